"""./fa2 warmup [N]"""
from .. import build, paths, process
from ..options import Parser

SUMMARY = "runs the warm-ups before stage 1 and shows what each is about"
HELP = """
usage: ./fa2 warmup [N]

Runs the five kernels of stage1_naive/warmup on the simulator, or only number N, and prints what
each is about: which lane holds what, what ldmatrix loads, wavefronts without and with the swizzle,
what the simulator says to a forgotten wait, a softmax in one pass. Change a kernel and run it
again.

  N    1 fragments of mma, 2 ldmatrix, 3 swizzle, 4 cp.async, 5 online softmax

exit status: 0 all right, 1 a result is wrong or the build failed, 2 cannot run here
"""


def run(arguments: list[str]) -> int:
    parser = Parser("warmup")
    parser.add_argument("number", metavar="N", nargs="?", type=int, choices=range(1, 6))
    options = parser.parse_args(arguments)
    build.ensure_built("sim", ["fa2-warmup"])
    program = paths.preset_dir("sim") / "bin" / "fa2-warmup"
    number = [str(options.number)] if options.number else []
    return process.run_foreground([str(program), *number])
