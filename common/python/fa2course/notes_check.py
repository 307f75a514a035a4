"""Checks references from notes into code: the file is there, it has that line, and the line has the
identifiers that the note names. Standard library only.

A reference is `FILE:LINE` or `FILE:LINE-LINE`, as a link or plain, followed by the identifiers that
stand there, in backticks:

    [kernel.cu:64](../stage2_fa1/kernel.cu#L64) `attend`
    softmax.h:137 `softmax_rescale_o`
    stage4_fa2_warps/kernel.cu:51 `S_rows`, `Br / warps`

A link to github.com/Dao-AILab/flash-attention/blob/COMMIT/... is held against that commit. A plain
FILE is one of this repository, if there is one of that name (or path); else one of
csrc/flash_attn/src at v2.8.3, or at v1.0.9 if its name begins with fmha.
"""
import re
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

OFFICIAL = "https://github.com/Dao-AILab/flash-attention"
FA2 = "060c9188beec3a8b62b33a3bfa6d5d2d44975fab"  # v2.8.3
FA1 = "6d48e14a6c2f551db96f0badc658a6279a929df3"  # v1.0.9
TAGS = {FA2: "v2.8.3", FA1: "v1.0.9"}
SOURCES = "csrc/flash_attn/src/"

WHERE = (r"(?P<file>[\w./-]*[\w-]+\.(?:cuh?|h|hpp|cpp|py|txt|cmake)):"
         r"(?P<first>\d+)(?:-(?P<last>\d+))?")
LINKED = rf"\[`?{WHERE}`?\]\((?P<url>[^()\s]+)\)"
PLAIN = rf"(?<![\w/.\]\[-]){WHERE.replace('?P<', '?P<plain_')}`?"
REFERENCE = re.compile(rf"(?:{LINKED}|{PLAIN})(?P<names>:?(?:[ \n]*(?:,[ \n]*)?(?:`[^`\n]+`))*)")
NAME = re.compile(r"`([^`\n]+)`")


class Drift(Exception):
    """One reference that does not hold, as a sentence."""


class Missing(Exception):
    """The references cannot be checked here; says why and what to do."""


@dataclass
class Reference:
    note: str  # the file that holds it, for messages
    note_line: int
    start: int  # place in the note's text
    end: int
    commit: str | None  # None: this repository
    path: str  # relative to the root of the repository it points into
    first: int
    last: int
    names: list[str]

    def __str__(self) -> str:
        lines = str(self.first) if self.first == self.last else f"{self.first}-{self.last}"
        where = f" at {TAGS.get(self.commit, self.commit[:12])}" if self.commit else ""
        return f"{self.note}:{self.note_line}: {self.path}:{lines}{where}"


def find(text: str, note: Path, root: Path) -> list[Reference]:
    """Every reference in a note. Raises Drift for one that contradicts itself."""
    shown = note.relative_to(root).as_posix() if note.is_relative_to(root) else str(note)
    found = []
    for match in REFERENCE.finditer(text):
        linked = match["url"] is not None
        file, first, last = (match[part if linked else f"plain_{part}"]
                             for part in ("file", "first", "last"))
        lines = int(first), int(last or first)
        line_of_note = text.count("\n", 0, match.start()) + 1
        where = f"{shown}:{line_of_note}: {file}:{first}"
        if lines[1] < lines[0]:
            raise Drift(f"{where}: the last line is before the first")
        if linked:
            commit, path, anchor = target(match["url"], note, root, where)
            if anchor != lines:
                raise Drift(f"{where}: the link goes to line {anchor[0]}, its text says {first}")
            if not f"/{path}".endswith(f"/{file}"):
                raise Drift(f"{where}: the link goes to {path}")
        else:
            commit, path = resolve(file, root, where)
        names = NAME.findall(match["names"])
        found.append(Reference(shown, line_of_note, match.start(), match.end(), commit, path,
                               *lines, names))
    return found


def target(url: str, note: Path, root: Path, where: str) -> tuple[str | None, str, tuple[int, int]]:
    """Commit, path and lines that a link points to."""
    address, _, fragment = url.partition("#")
    lines = re.fullmatch(r"L(\d+)(?:-L(\d+))?", fragment)
    if not lines:
        raise Drift(f"{where}: its link needs #L and the line number: {url}")
    anchor = int(lines[1]), int(lines[2] or lines[1])
    if address.startswith("http"):
        permalink = re.fullmatch(re.escape(OFFICIAL) + r"/blob/([0-9a-f]{40})/(.+)", address)
        if not permalink:
            raise Drift(f"{where}: the link must be a permalink, {OFFICIAL}/blob/COMMIT/FILE#L1, "
                        "with all 40 digits of the commit: a branch's lines move")
        return permalink[1], permalink[2], anchor
    path = (note.parent / address).resolve()
    if not path.is_relative_to(root):
        raise Drift(f"{where}: the link leaves the repository")
    return None, path.relative_to(root).as_posix(), anchor


def resolve(file: str, root: Path, where: str) -> tuple[str | None, str]:
    """What a plain file name means."""
    if (root / file).is_file() or re.match(r"(stage\d|common/|lectures/|notes/)", file):
        return None, file
    ours = [path.relative_to(root).as_posix() for folder in ("stage*", "common")
            for path in sorted(root.glob(f"{folder}/**/{file}"))]
    if len(ours) == 1:
        return None, ours[0]
    if ours:
        raise Drift(f"{where}: which of {', '.join(ours[:3])}{', ...' if ours[3:] else ''}? Write "
                    "its folder, too")
    commit = FA1 if file.split("/")[-1].startswith("fmha") or file.startswith("fmha/") else FA2
    known = file.startswith(("csrc/", "hopper/", "flash_attn/", "benchmarks/"))
    return commit, file if known else SOURCES + file


def has(lines: list[str], name: str) -> bool:
    """Whether the identifier (or piece of code) stands in these lines, not as a part of another."""
    left = r"(?<!\w)" if re.match(r"\w", name) else ""
    right = r"(?!\w)" if re.search(r"\w$", name) else ""
    words = r"\s+".join(re.escape(word) for word in name.split())
    return re.search(left + words + right, "\n".join(lines)) is not None


def check(reference: Reference, read: Callable[[str | None, str], list[str] | None]) -> None:
    """Raises Drift unless it holds. `read` gives a file's lines, or None if there is no file."""
    lines = read(reference.commit, reference.path)
    if lines is None:
        raise Drift(f"{reference}: there is no such file")
    if not 1 <= reference.first <= reference.last <= len(lines):
        raise Drift(f"{reference}: the file has {len(lines)} lines")
    if not reference.names:
        raise Drift(f"{reference}: name in backticks, right after it, an identifier that stands "
                    "there")
    for name in reference.names:
        if not has(lines[reference.first - 1:reference.last], name):
            at = [i for i, line in enumerate(lines, 1) if has([line], name)]
            now = (f"it stands in line {at[0]}" if len(at) == 1 else
                   f"it stands in lines {', '.join(map(str, at[:8]))}" if at else
                   "it is nowhere in the file")
            raise Drift(f"{reference} does not have `{name}`: {now}")


def read_ours(root: Path) -> Callable[[str | None, str], list[str] | None]:
    def read(commit: str | None, path: str) -> list[str] | None:
        file = root / path
        return file.read_text(errors="replace").splitlines() if file.is_file() else None
    return read


def read_official(checkout: Path) -> Callable[[str | None, str], list[str] | None]:
    """Reads files of a clone at any commit, whatever is checked out. Raises Missing."""
    kept: dict[tuple[str, str], list[str] | None] = {}

    def git(*arguments: str) -> subprocess.CompletedProcess:
        return subprocess.run(["git", "-C", str(checkout), *arguments], capture_output=True,
                              text=True, errors="replace", check=False)

    try:
        is_repository = git("rev-parse", "--git-dir").returncode == 0
    except OSError:
        raise Missing("git is not installed, and --official reads the repository with it") from None
    if not is_repository:
        raise Missing(f"{checkout} is no git repository. Clone it: git clone {OFFICIAL}")

    def read(commit: str, path: str) -> list[str] | None:
        if (commit, path) not in kept:
            if git("cat-file", "-e", f"{commit}^{{commit}}").returncode != 0:
                name = TAGS.get(commit, commit)
                raise Missing(f"{checkout} does not have {name}. Fetch it: git -C {checkout} fetch "
                              f"--depth 1 origin {'tag ' if commit in TAGS else ''}{name}")
            shown = git("show", f"{commit}:{path}")
            kept[commit, path] = shown.stdout.splitlines() if shown.returncode == 0 else None
        return kept[commit, path]
    return read


def moved(reference: Reference, text: str, first: int) -> str:
    """The reference's text in the note, with its lines moved so that they begin at `first`."""
    def lines(match: re.Match) -> str:
        last = first + reference.last - reference.first
        return f"{match[1]}{first}" + (f"{match[2]}{last}" if match[2] else "")

    text = text[reference.start:reference.end]
    # The text's FILE:LINE-LINE, and the link's #LLINE-LLINE.
    return re.sub(r"(:|#L)\d+(?:(-L?)\d+)?(?=[`\])\s]|$)", lines, text,
                  count=2 if "](" in text else 1)


def fix(text: str, references: list[Reference], root: Path) -> tuple[str, int]:
    """The note with the line numbers of references into this repository moved to where all their
    identifiers are now, where that is one place. Returns how many moved, too."""
    read, count = read_ours(root), 0
    for reference in sorted(references, key=lambda r: r.start, reverse=True):
        lines = read(None, reference.path)
        if reference.commit or not lines or not reference.names:
            continue
        length = reference.last - reference.first + 1
        at = [first for first in range(1, len(lines) - length + 2)
              if has([lines[first - 1]], reference.names[0]) and
              all(has(lines[first - 1:first - 1 + length], name) for name in reference.names)]
        if len(at) == 1 and at[0] != reference.first:
            text = text[:reference.start] + moved(reference, text, at[0]) + text[reference.end:]
            count += 1
    return text, count
