"""./fa2 hint N [K]"""
import textwrap

from .. import console, stages
from ..errors import UserError
from ..options import Parser

SUMMARY = "the next of three hints for stage N, the last nearly the answer"
HELP = """
usage: ./fa2 hint N [K]

Shows the next hint of stage N that you have not seen, or hint K: 1 a direction, 2 the plan,
3 nearly the answer.

  N    the stage: 2, stage2 or its folder
  K    1, 2 or 3
"""


def run(arguments: list[str]) -> int:
    from fa2course.student import hints, progress

    parser = Parser("hint")
    parser.add_argument("stage", metavar="N")
    parser.add_argument("number", metavar="K", nargs="?", type=int)
    options = parser.parse_args(arguments)
    stage = stages.number(stages.find(options.stage))
    texts = hints.of(stage).hints
    seen = progress.of(stage).hints
    number = min(seen + 1, len(texts)) if options.number is None else options.number
    if not 1 <= number <= len(texts):
        raise UserError(f"there is no hint {number}; they are 1 to {len(texts)}")
    print(f"stage {stage}, hint {number} of {len(texts)}\n")
    for paragraph in texts[number - 1].split("\n\n"):
        if paragraph.startswith("    "):
            print(paragraph)
        else:
            print(textwrap.fill(" ".join(paragraph.split()), 100))
        print()
    if number > seen:
        progress.update(stage, hints=number)
    elif options.number is None:
        console.say(f"that was the last; ./fa2 hint {stage} 1 shows the first again, and ./fa2 "
                    f"solution {stage} the solution")
    return 0
