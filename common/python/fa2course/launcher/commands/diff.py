"""./fa2 diff N"""
import difflib
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from .. import paths, stages
from ..errors import UserError
from ..options import Parser

SUMMARY = "the one change of stage N, as a diff against stage N-1"
HELP = """
usage: ./fa2 diff N [--stat | --check]

Shows what stage N changes in kernel.cu against the stage before it, without the comment at the top
and the lines that mark the change.

  N        the stage: 2, stage2 or its folder
  --stat   only how many lines come and go, for all stages up to N
  --check  says which lines differ outside the regions that stage N marks as its change

exit status: 0 done, 1 a line differs outside the marked regions (--check), 2 cannot run here
"""

FIRST_CHANGE = 3  # stage 2 is written anew, not a change of stage 1


@dataclass
class Kernel:
    """A kernel.cu without its docblock and marks, and without its own name in FA2_STAGE."""
    path: str
    lines: list[str]
    numbers: list[int]  # of each line, in the file
    regions: list[tuple[int, int]]  # marked: lines[first:end], which may be empty

    def marked(self, line: int) -> bool:
        return any(first <= line < end for first, end in self.regions)

    def may_lack(self, line: int) -> bool:
        """True if lines of the parent may be missing before this line."""
        return any(first <= line <= end for first, end in self.regions)

    def place(self, line: int) -> str:
        number = self.numbers[line] if line < len(self.numbers) else self.numbers[-1] + 1
        return f"{self.path}:{number}"


def read(path: str, text: str) -> Kernel:
    """Raises UserError if the marks of the change do not come in pairs."""
    kernel = Kernel(path, [], [], [])
    first, code = None, False
    for number, line in enumerate(text.splitlines(), 1):
        code = code or not line.startswith("//")
        mark = stages.CHANGE_MARK.match(line)
        if mark and bool(mark.group(1)) == (first is None):
            what = "an end without a [change]" if mark.group(1) else "a [change] inside another"
            raise UserError(f"{path}:{number}: {what}", 1)
        if mark and mark.group(1):
            kernel.regions.append((first, len(kernel.lines)))
            first = None
        elif mark:
            first = len(kernel.lines)
        elif code:
            kernel.lines.append("FA2_STAGE" if line.startswith("FA2_STAGE(") else line)
            kernel.numbers.append(number)
    if first is not None:
        raise UserError(f"{path}: the last [change] has no [end of change]", 1)
    return kernel


def kernel(name: str) -> Kernel:
    path = paths.ROOT / name / "kernel.cu"
    if not path.exists():
        raise UserError(f"{name}/kernel.cu is not there (git checkout {name} brings it back)")
    return read(f"{name}/kernel.cu", path.read_text())


def counts(before: Kernel, after: Kernel) -> tuple[int, int]:
    """Lines added and removed between two stages."""
    blocks = difflib.SequenceMatcher(None, before.lines, after.lines, False).get_matching_blocks()
    same = sum(block.size for block in blocks)
    return len(after.lines) - same, len(before.lines) - same


def differs_only_where_marked(before: Kernel, after: Kernel) -> bool:
    """True if the parent is what stands outside the marks, with anything in place of a region."""
    at, end = 0, 0  # how far the parent is matched; where the last region ended
    for first, next_end in after.regions:
        piece = after.lines[end:first]
        if end == 0:
            starts = [0] if before.lines[:len(piece)] == piece else []
        else:
            starts = [i for i in range(at, len(before.lines) - len(piece) + 1)
                      if before.lines[i:i + len(piece)] == piece]
        if not starts:
            return False
        at, end = starts[0] + len(piece), next_end
    rest = after.lines[end:]
    left = len(before.lines) - len(rest)
    return left >= at and before.lines[left:] == rest


def out_of_place(before: Kernel, after: Kernel) -> list[str]:
    """A sentence for every line that differs outside the regions that `after` marks."""
    if not after.regions:
        return [f"{after.path} marks no change: put the lines that differ from {before.path} "
                "between // [change] and // [end of change]"]
    if differs_only_where_marked(before, after):
        return []
    found = []
    matcher = difflib.SequenceMatcher(None, before.lines, after.lines, False)
    for kind, i, i_end, k, k_end in matcher.get_opcodes():
        if kind == "equal":
            continue
        found += [f"{after.place(line)}: is not in {before.path}, and not marked: "
                  f"{after.lines[line]}"
                  for line in range(k, k_end) if not after.marked(line)]
        if i < i_end and not any(after.may_lack(line) for line in range(k, k_end + 1)):
            found += [f"{before.place(line)}: is missing in {after.path}, where nothing is marked "
                      f"(line {after.place(k).rsplit(':', 1)[1]}): {before.lines[line]}"
                      for line in range(i, i_end)]
    return found or [f"{after.path}: what stands outside its marks is not {before.path} in the "
                     "same order"]


def run(arguments: list[str]) -> int:
    parser = Parser("diff")
    parser.add_argument("stage", metavar="N")
    parser.add_argument("--stat", action="store_true")
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args(arguments)
    names = stages.names()
    index = names.index(stages.find(options.stage))
    if index == 0:
        raise UserError(f"{names[0]} is the first stage; it changes nothing. Try ./fa2 diff 2.")
    if options.stat:
        for before, after in zip(names[:index], names[1:index + 1]):
            added, removed = counts(kernel(before), kernel(after))
            print(f"{before} -> {after}: {added} lines added, {removed} removed")
        return 0
    before, after = kernel(names[index - 1]), kernel(names[index])
    if options.check:
        return check(before, after, stages.number(names[index]))
    show({kernel.path: "".join(f"{line}\n" for line in kernel.lines) for kernel in (before, after)})
    return 0


def check(before: Kernel, after: Kernel, number: int) -> int:
    if number < FIRST_CHANGE:
        raise UserError(f"stage {number} is written anew, so there is no change to check; "
                        f"./fa2 diff {FIRST_CHANGE} --check is the first")
    problems = out_of_place(before, after)
    print("\n".join(problems) if problems else
          f"{after.path} differs from {before.path} only where it says so")
    return 1 if problems else 0


def show(texts: dict[str, str]) -> None:
    """The difference between two texts, which are given by their names."""
    if shutil.which("git"):
        with tempfile.TemporaryDirectory() as folder:
            for path, text in texts.items():
                (Path(folder) / path).parent.mkdir(exist_ok=True)
                (Path(folder) / path).write_text(text)
            color = "always" if sys.stdout.isatty() else "never"
            done = subprocess.run(
                ["git", "-C", folder, "diff", "--no-index", f"--color={color}",
                 "--diff-algorithm=histogram", "--", *texts], capture_output=True, text=True)
        if done.returncode in (0, 1):  # 1: there are differences
            print(done.stdout, end="")  # by us: git does not notice a full disk
            return
    (before, old), (after, new) = texts.items()
    for line in difflib.unified_diff(old.splitlines(), new.splitlines(), f"a/{before}",
                                     f"b/{after}", lineterm=""):
        print(line)
