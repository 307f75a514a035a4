"""compare --peers: PyTorch's backends, Triton and flash-attn in turn with the stages."""

from pathlib import Path

from . import build, paths, process, pytorch
from .console import say
from .errors import UserError


def run(preset: str, out: Path, quiet: bool) -> int:
    """Times the peers on the shapes of out/compare.json, adds them to it, and writes out/peers.txt.
    Without a GPU or PyTorch it says why and leaves the comparison as it is."""
    if preset != "cuda":
        say("no peers: PyTorch's backends and Triton's kernel are timed on a GPU, and this "
            "comparison ran on the simulator; an H200's times are in "
            "notes/fa2_sweep.csv")  # fmt: skip
        return 0
    try:
        python = pytorch.find()
    except UserError as error:
        say(f"no peers: {error}")
        return 0
    build.ensure_built("cuda", ["fa2course"])
    if not quiet:
        print(flush=True)
    script = paths.ROOT / "common" / "bench" / "sweep.py"
    command = [python, str(script), "--like", str(out / "compare.json"), "--out", str(out)]
    return process.run_foreground([*command, *(["--quiet"] if quiet else [])])
