"""./fa2 fuzz"""
from .. import build, lock, paths, process
from ..errors import UserError
from ..options import check_known, value_of

SUMMARY = "random problems over the whole contract; a failure is made small and can be repeated"
HELP = """
usage: ./fa2 fuzz [OPTIONS]

Runs random problems on every stage and checks each against the reference: element type, head dim,
mask, lengths from 0 up, groups of heads, strides, scale, adversarial data. It stops at the first
wrong result, makes its problem as small as it can, and prints the command that repeats it.

  --minutes M     stop after this long (default: 1, or no limit with --count)
  --count K       stop after this many problems
  --seed S        of the first problem (default: a new one every time)
  --stage N       one stage by number or name (default: all)
  --variant NAME  one variant of that stage, e.g. lazy
  --backend NAME  sim or cuda (default: a GPU if one is usable)
  --threads N     problems at once (default: one per core)

exit status: 0 none is wrong, 1 one is, 2 cannot run here
"""


def run(arguments: list[str]) -> int:
    check_known("fuzz", HELP, arguments)
    backend = value_of("--backend", arguments)
    if backend not in (None, "sim", "cuda"):
        raise UserError(f"--backend is \"{backend}\"; accepted are sim, cuda.")
    preset = build.choose(backend)
    paths.BUILD.mkdir(exist_ok=True)
    with lock.exclusive():
        build.ensure_built(preset, ["fa2-fuzz"])
    if backend is None:
        arguments = [*arguments, "--backend", preset]
    return process.run_foreground(
        [str(paths.preset_dir(preset) / "bin" / "fa2-fuzz"), *arguments])
