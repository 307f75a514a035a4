"""What Nsight Compute watches: two calls of one kernel, of a stage or of the official FA2.

Called by ./fa2 profile under ncu. Standard data: unit variance, a different one per head.
"""

import argparse
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "common" / "python"), str(ROOT / "common" / "bench")]

import torch  # noqa: E402

import backends  # noqa: E402


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("backend")  # stage2, stage6, stage6_paper, sdpa_flash
    for name, value in (("batch", 2), ("heads", 16), ("seqlen", 4096), ("headdim", 128)):
        parser.add_argument(f"--{name}", type=int, default=value)
    parser.add_argument("--causal", action="store_true")
    parser.add_argument("--tiles", default="tuned")
    options = parser.parse_args()
    torch.manual_seed(0)
    shape = (options.batch, options.heads, options.seqlen, options.headdim)
    q, k, v = (torch.randn(shape, device="cuda", dtype=torch.float16) for _ in "qkv")
    backend = backends.make(options.backend, options.tiles)
    for _ in range(2):  # ncu skips the first
        backend.call(q, k, v, options.causal)
    torch.cuda.synchronize()
    print("tile", backend.tile(q, k, options.causal))


if __name__ == "__main__":
    main()
