"""./fa2 start N"""
from .. import paths, stages
from ..errors import UserError
from ..options import Parser

SUMMARY = "puts work/stageN/kernel.cu in place: the task of stage N"
HELP = """
usage: ./fa2 start N [--from mine] [--force]

Puts work/stageN/kernel.cu in place. For stages 3 to 6 that is the solution of stage N-1 with the
lines to change marked; for stages 1 and 2 a frame with pieces missing. The task is in its first
lines. Then: ./fa2 check N.

  N            the stage: 2, stage2 or its folder
  --from mine  start from your own stage N-1 in work/ (stages 3 to 6)
  --force      replace a file that is there; it is kept as kernel.oldK.cu

exit status: 0 done, 1 the file is there already, 2 cannot run here
"""


def run(arguments: list[str]) -> int:
    from fa2course.student import progress, skeleton
    from fa2course.student.compiler import shown

    parser = Parser("start")
    parser.add_argument("stage", metavar="N")
    parser.add_argument("--from", dest="source", choices=["mine"])
    parser.add_argument("--force", action="store_true")
    options = parser.parse_args(arguments)
    stage = stages.number(stages.find(options.stage))
    target = progress.kernel(stage)
    name = shown(target)
    if options.source:
        text = skeleton.from_mine(stage, own(stage, progress))
    else:
        text = skeleton.skeleton(stage)
    if target.exists():
        if not options.force:
            raise UserError(f"{name} is there already. ./fa2 check {stage} checks it; ./fa2 start "
                            f"{stage} --force puts a fresh one in place and keeps yours.", 1)
        number = 1
        while (kept := target.with_name(f"kernel.old{number}.cu")).exists():
            number += 1
        target.rename(kept)
        print(f"your file is kept as {shown(kept)}")
    paths.write_whole(target, text)
    progress.update(stage)
    print(f"{name} is there. Its first lines are the task; then ./fa2 check {stage}")
    return 0


def own(stage: int, progress) -> str:
    """The student's own stage before this one."""
    from fa2course.student.compiler import shown

    if stage <= 2:
        raise UserError(f"stage {stage} starts from a frame; leave --from mine away")
    before = progress.kernel(stage - 1)
    if not before.exists():
        raise UserError(f"{shown(before)} is not there. Leave --from mine away to "
                        f"start from the solution of stage {stage - 1}.")
    return before.read_text(errors="replace")
