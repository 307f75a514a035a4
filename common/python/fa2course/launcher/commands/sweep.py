"""./fa2 sweep"""

import os
from pathlib import Path

from .. import build, gpu, lock, paths, process, pytorch, venv
from ..console import say
from ..errors import UserError
from ..options import check_known, value_of
from .compare import commit

SUMMARY = "the benchmark task: PyTorch's backends, Triton and every stage, in turn on a GPU"
HELP = """
usage: ./fa2 sweep [--mode fwd --batch_size B --nheads H --seqlen N --headdim D --dtype fp16
                    --causal]
       ./fa2 sweep --plot FILE

Times sdpa_math, sdpa_flash (the official FA2), sdpa_efficient, sdpa_cudnn, flash_attn (the package,
where installed), triton_fa1, triton_fa2 and stages 1 to 6 in one process, in turn, and checks each
result. Needs a GPU and PyTorch; FA2_PYTHON names the Python that has it.

Without flags: the whole sweep (N 512 to 16384, d 64 and 128, causal and full, B2 H16), then B1 H8
N16384, B8 H16, B1 H32 and B16 H32 N2048, two shapes in bf16, and each stage against its parent
over batch x heads. It writes fa2_sweep.txt, .csv and .png, and goes on
where it was interrupted. With flags: that shape, printed, so that this loop works:

  for seqlen in 512 1024 2048 4096 8192 16384; do
    for headdim in 64 128; do
      ./fa2 sweep --mode fwd --batch_size 2 --nheads 16 --seqlen $seqlen --headdim $headdim \\
        --dtype fp16 --causal
    done
  done | tee fa2_sweep.txt

  --mode fwd           the course has the forward pass only
  --batch_size N       default 2
  --nheads N           default 16
  --seqlen N           queries and keys
  --headdim N          64 or 128
  --dtype NAME         fp16 (default) or bf16
  --causal             causal attention (default: full; without other flags: both)
  --backends LIST      e.g. sdpa_flash,stage6
  --tiles NAME         of the stages: tuned (default) or same
  --parents            only each stage against its parent, over batch x heads
  --out DIR            folder for the files (default without flags: build/results/sweep)
  --plot FILE          only draw: turn an existing fa2_sweep.txt into .csv and .png; needs no GPU

exit status: 0 done, 1 a result is wrong or a backend failed, 2 cannot run here
"""


def run(arguments: list[str]) -> int:
    check_known("sweep", HELP, arguments)
    mode = value_of("--mode", arguments)
    if mode not in (None, "fwd"):
        raise UserError(f"--mode is {mode}; the course has the forward pass only (--mode fwd)")
    file = value_of("--plot", arguments)
    if file:
        return plot(Path(file), Path(value_of("--out", arguments) or Path(file).parent))
    if "--plot" in arguments:
        raise UserError("--plot needs the name of a fa2_sweep.txt")
    found = gpu.look()
    if not found.usable:
        raise UserError(
            f"a sweep is a measurement and needs a GPU: {found.reason}. An H200's is in "
            "notes/fa2_sweep.csv and .png; ./fa2 compare counts on the simulator."
        )
    python = pytorch.find()
    build.ensure_built("cuda", ["fa2course"])
    one_shape = any(word.startswith(("--seqlen", "--headdim")) for word in arguments)
    out = value_of("--out", arguments)
    if not out and not one_shape:
        out = str(paths.BUILD / "results" / "sweep")
        arguments = [*arguments, "--out", out]
    os.environ.setdefault("FA2_COMMIT", commit())
    status = process.run_foreground(
        [python, str(paths.ROOT / "common" / "bench" / "sweep.py"), *arguments]
    )
    if status in (0, 1) and out:
        plot(Path(out) / "fa2_sweep.txt", Path(out))
    return status


def plot(file: Path, out: Path) -> int:
    if not file.exists():
        raise UserError(f"{file} is not there")
    paths.BUILD.mkdir(exist_ok=True)
    with lock.exclusive():
        python = venv.ensure_or_system(["report"], ["matplotlib", "numpy"])
    script = paths.ROOT / "common" / "bench" / "plot_fa2_sweep.py"
    status = process.run_foreground([str(python), str(script), str(file), "--out", str(out)])
    if status not in (0, 1, 2):
        say(f"the plots failed with status {status}")
    return status
