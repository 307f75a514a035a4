"""./fa2 status"""
from .. import stages
from ..options import Parser

SUMMARY = "how far you are: stages started and solved, hints used"
HELP = """
usage: ./fa2 status

Shows your stages: what the last check said, hints and solutions seen. It is kept in
work/progress.json; commit work/ in your fork.
"""


def run(arguments: list[str]) -> int:
    from fa2course.student import progress

    Parser("status").parse_args(arguments)
    known = progress.load()
    print(f"{'stage':<22}{'state':<12}{'last check':<16}{'hints':<9}stopped at")
    following = None
    for name in stages.names():
        number = stages.number(name)
        entry = known.get(number, progress.Stage())
        started = progress.kernel(number).exists()
        state = "solved" if entry.solved else "started" if started else "-"
        if entry.solution:
            state += "*"
        last = f"{entry.passed} of {entry.of}" if entry.of else "-"
        hints = f"{entry.hints} of 3" if entry.hints else "-"
        print(f"{name:<22}{state:<12}{last:<16}{hints:<9}{entry.failed}".rstrip())
        if following is None and not entry.solved:
            following = f"./fa2 check {number}" if started else f"./fa2 start {number}"
    if any(entry.solution for entry in known.values()):
        print("* the solution was shown")
    print(f"next: {following or './fa2 compare --mine'}")
    return 0
