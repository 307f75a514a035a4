"""Finds what does not work in the course's Markdown and notebooks: links that lead nowhere, and
math that GitHub or Jupyter would not render. Standard library only."""
import json
import re
import subprocess
import urllib.parse
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

LINK = re.compile(r"\]\(\s*<?([^\s()<>]*(?:\([^\s()]*\)[^\s()<>]*)*)>?"
                  r"(?:\s+[\"'][^\"')]*[\"'])?\s*\)")
DEFINITION = re.compile(r"^ {0,3}\[[^\]^]+\]:\s*<?(\S+?)>?\s*$", re.MULTILINE)
HTML = re.compile(r"<(?:a|img|source)\b[^>]*?\b(?:href|src|srcset)=[\"']([^\"']+)[\"']",
                  re.IGNORECASE)


@dataclass
class Page:
    """A Markdown file, or one Markdown cell of a notebook."""
    path: Path
    where: str  # for messages
    text: str


def files(root: Path) -> list[Path]:
    """The Markdown files and notebooks of the course; not those of the student's work."""
    listed = subprocess.run(["git", "-C", str(root), "ls-files", "-coz", "--exclude-standard"],
                            capture_output=True, text=True, check=False)
    names = listed.stdout.split("\0") if listed.returncode == 0 else [
        path.relative_to(root).as_posix() for path in root.rglob("*")]
    return [root / name for name in sorted(set(names)) if name.endswith((".md", ".ipynb")) and
            not name.startswith(("build/", "work/", ".")) and (root / name).is_file()]


def pages(path: Path, root: Path) -> Iterator[Page]:
    name = path.relative_to(root).as_posix()
    if path.suffix == ".md":
        yield Page(path, name, path.read_text())
        return
    for number, cell in enumerate(json.loads(path.read_text())["cells"], 1):
        if cell["cell_type"] == "markdown":
            yield Page(path, f"{name}, cell {number}", "".join(cell["source"]))


def without_code(text: str) -> str:
    """The text with code blanked, line by line as long as before."""
    def blank(match: re.Match) -> str:
        return re.sub(r"[^\n]", " ", match[0])

    text = re.sub(r"^([ >]*)(```+|~~~+)[^\n]*\n.*?^[ >]*\2[ \t]*$", blank, text,
                  flags=re.MULTILINE | re.DOTALL)
    text = re.sub(r"<!--.*?-->", blank, text, flags=re.DOTALL)
    return re.sub(r"(?<!`)(`+)(?!`)(?:[^`]|(?!\1(?!`))`)+?\1(?!`)", blank, text)


def line_of(text: str, position: int) -> int:
    return text.count("\n", 0, position) + 1


# ---- Links ---------------------------------------------------------------------------------------

def slug(heading: str) -> str:
    """The anchor that GitHub gives a heading."""
    heading = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", heading.strip())
    heading = re.sub(r"(?<!\w)[*_]+|[*_]+(?!\w)|`", "", heading)
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


@cache
def anchors(path: Path) -> set[str]:
    text = re.sub(r"^([ >]*)(```+|~~~+)[^\n]*\n.*?^[ >]*\2[ \t]*$", "", path.read_text(),
                  flags=re.MULTILINE | re.DOTALL)
    found, seen = set(re.findall(r"<a (?:id|name)=\"([^\"]+)\"", text)), {}
    for heading in re.findall(r"^#{1,6}[ \t]+(.*?)[ \t#]*$", text, re.MULTILINE):
        name = slug(heading)
        seen[name] = seen.get(name, -1) + 1
        found.add(name if seen[name] == 0 else f"{name}-{seen[name]}")
    return found


def broken_link(target: str, page: Path, root: Path) -> str:
    """What is wrong with a link, or ""."""
    if re.match(r"[a-z][a-z+.-]*:", target, re.IGNORECASE):
        parts = urllib.parse.urlsplit(target)
        if parts.scheme == "mailto":
            return ""
        if parts.scheme not in ("http", "https") or "." not in parts.netloc:
            return "is no address"
        moving = re.match(r"/[^/]+/[^/]+/blob/(?![0-9a-f]{40}/)", parts.path)
        if parts.netloc == "github.com" and moving and re.match(r"L\d", parts.fragment):
            return "points to a line of a branch, which moves: use the commit's 40 digits"
        return ""
    name, _, fragment = target.partition("#")
    path = (page.parent / urllib.parse.unquote(name)).resolve() if name else page
    if name.startswith("/") or not path.is_relative_to(root):
        return "leaves the repository"
    if not path.exists():
        return "leads to no file"
    if path.is_relative_to(root / "build"):
        return "leads into build/, which a clone does not have"
    if not fragment:
        return ""
    if line := re.fullmatch(r"L(\d+)(?:-L(\d+))?", fragment):
        lines = len(path.read_text(errors="replace").splitlines()) if path.is_file() else 0
        return "" if int(line[2] or line[1]) <= lines else f"points behind the last line, {lines}"
    if path.suffix == ".md":
        return "" if fragment in anchors(path) else "points to a heading that is not there"
    return ""


def broken_links(page: Page, root: Path) -> list[str]:
    text = without_code(page.text)
    # A link's text may be code, which is blanked; the brackets and the target are not.
    return [f"{page.where}:{line_of(text, match.start())}: {match[1]} {wrong}"
            for pattern in (LINK, DEFINITION, HTML) for match in pattern.finditer(text)
            if (wrong := broken_link(match[1], page.path, root) if match[1] else "is empty")]


# ---- Math ----------------------------------------------------------------------------------------

# On GitHub, Markdown comes before math: what Markdown takes for its own is gone when math begins.
PITFALLS = [
    (r"\\[^A-Za-z\s]", "Markdown takes the backslash of {0}: \\lbrace, \\cr, \\thinspace, \\Vert"),
    (r"\*", "* can begin emphasis: \\ast or \\cdot"),
    (r"[)}\]|]_", "{0} can begin emphasis: put what stands before _ in a command, or swap it with "
                  "^"),
    (r"<[A-Za-z/!?]", "{0} begins an HTML tag: a blank after <, or \\lt"),
    (r"\\operatorname|\\(?:re)?newcommand|\\def\b|\\require|\\tag\b",
     "GitHub does not allow {0}: \\mathrm"),
    (r"`", "a backtick begins code"),
]


def bad_math(page: Page) -> list[str]:
    """What GitHub or Jupyter would not render as meant."""
    text, found = without_code(page.text), []

    def complain(position: int, what: str) -> None:
        found.append(f"{page.where}:{line_of(text, position)}: {what}")

    def look(formula: str, position: int) -> None:
        for pattern, advice in PITFALLS:
            if match := re.search(pattern, formula):
                complain(position + match.start(), advice.format(match[0]))
        bare = re.sub(r"\\[{}]", "", formula)
        if bare.count("{") != bare.count("}"):
            complain(position, "unbalanced braces")
        if not formula.strip():
            complain(position, "empty formula")

    def block(match: re.Match) -> str:
        formula = match[1]
        look(formula, match.start(1))
        before, after = text[:match.start()], text[match.end():]
        if not (re.search(r"(?:^|\n[ >]*\n)[ >]*$", before) and
                re.match(r"[ \t]*(?:\n[ >]*\n|\n?$)", after)):
            complain(match.start(), "a $$ block needs a blank line before and after it")
        if bad := re.search(r"^[ >]*([-+=#>]|\d+\.)(?=\s|$)|^[ >]*(=+|-+)[ \t]*$", formula,
                            re.MULTILINE):
            complain(match.start(1) + bad.start(),
                     f"{(bad[1] or bad[2]).strip()} at the beginning of a line makes a list or "
                     "heading of it")
        if re.search(r"\n[ >]*\n", formula):
            complain(match.start(1), "a blank line ends the paragraph inside of $$")
        return re.sub(r"[^\n]", " ", match[0])

    rest = re.sub(r"\$\$(.*?)\$\$", block, text, flags=re.DOTALL)
    position = 0
    for line in rest.split("\n"):
        dollars = [match.start() for match in re.finditer(r"(?<!\\)\$", line)]
        if len(dollars) % 2:
            complain(position, "a $ without its partner in the line; in code or as \\$ if it is no "
                               "math")
        else:
            for begin, end in zip(dollars[::2], dollars[1::2]):
                formula = line[begin + 1:end]
                look(formula, position + begin + 1)
                if formula != formula.strip():
                    complain(position + begin, "a blank inside of $ keeps GitHub from rendering it")
                if re.match(r"\w", line[end + 1:]) or re.search(r"\w$", line[:begin]):
                    complain(position + begin, "a letter or digit touches a $ from outside")
                if line.lstrip(" >").startswith("|") and "|" in formula:
                    complain(position + begin, "| ends the table's cell: \\vert")
        position += len(line) + 1
    return found
