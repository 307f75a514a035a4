"""./fa2 diff N"""
import difflib
import shutil
import sys

from .. import paths, process, stages
from ..errors import UserError
from ..options import Parser

SUMMARY = "the one change of stage N, as a diff against stage N-1"
HELP = """
usage: ./fa2 diff N [--stat]

Shows what stage N changes in kernel.cu against the stage before it.

  N        the stage: 2, stage2 or its folder
  --stat   only how many lines come and go, for all stages up to N
"""


def kernel(name: str):
    path = paths.ROOT / name / "kernel.cu"
    if not path.exists():
        raise UserError(f"{name}/kernel.cu is not there (git checkout {name} brings it back)")
    return path


def counts(before: str, after: str) -> tuple[int, int]:
    """Lines added and removed between two stages."""
    lines = list(difflib.unified_diff(kernel(before).read_text().splitlines(),
                                      kernel(after).read_text().splitlines(), lineterm="", n=0))[2:]
    return (sum(line.startswith("+") for line in lines), sum(line.startswith("-") for line in lines))


def run(arguments: list[str]) -> int:
    parser = Parser("diff")
    parser.add_argument("stage", metavar="N")
    parser.add_argument("--stat", action="store_true")
    options = parser.parse_args(arguments)
    names = stages.names()
    index = names.index(stages.find(options.stage))
    if index == 0:
        raise UserError(f"{names[0]} is the first stage; it changes nothing. Try ./fa2 diff 2.")
    if options.stat:
        for before, after in zip(names[:index], names[1:index + 1]):
            added, removed = counts(before, after)
            print(f"{before} -> {after}: {added} lines added, {removed} removed")
        return 0
    before, after = names[index - 1], names[index]
    kernel(before), kernel(after)
    if shutil.which("git"):
        color = "always" if sys.stdout.isatty() else "never"
        status = process.run_foreground(
            ["git", "-C", str(paths.ROOT), "diff", "--no-index", f"--color={color}",
             "--diff-algorithm=histogram", "--", f"{before}/kernel.cu", f"{after}/kernel.cu"])
        if status in (0, 1):  # 1: there are differences
            return 0
    for line in difflib.unified_diff(kernel(before).read_text().splitlines(),
                                     kernel(after).read_text().splitlines(),
                                     f"a/{before}/kernel.cu", f"b/{after}/kernel.cu", lineterm=""):
        print(line)
    return 0
