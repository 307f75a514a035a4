"""./fa2 solution N"""
import sys

from . import diff
from .. import stages
from ..errors import UserError
from ..options import Parser

SUMMARY = "shows, after asking, how your stage N differs from the solution"
HELP = """
usage: ./fa2 solution N [--yes]

Shows the diff from your work/stageN/kernel.cu to the published solution; without a file of yours,
from what ./fa2 start N would put there. It asks first, and ./fa2 status remembers.

  N      the stage: 2, stage2 or its folder
  --yes  do not ask
"""


def run(arguments: list[str]) -> int:
    from fa2course.student import progress, skeleton

    parser = Parser("solution")
    parser.add_argument("stage", metavar="N")
    parser.add_argument("--yes", action="store_true")
    options = parser.parse_args(arguments)
    stage = stages.number(stages.find(options.stage))
    if not options.yes and not agreed(stage, progress.of(stage).hints):
        return 1
    mine = progress.kernel(stage)
    before = mine.read_text(errors="replace") if mine.exists() else skeleton.skeleton(stage)
    diff.show({"yours": before, "solution": skeleton.solution(stage)})
    progress.update(stage, solution=True)
    return 0


def agreed(stage: int, hints: int) -> bool:
    if not sys.stdin.isatty():
        raise UserError("solution asks first, and nobody is there to answer: ./fa2 solution "
                        f"{stage} --yes")
    left = f" {3 - hints} hints are left (./fa2 hint {stage})." if hints < 3 else ""
    try:
        answer = input(f"Show the solution of stage {stage}?{left} [y/N] ")
    except EOFError:
        return False
    return answer.strip().lower() in ("y", "yes")
