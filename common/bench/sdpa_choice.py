"""Which backend PyTorch's scaled_dot_product_attention really runs, when nobody forces one.

    python common/bench/sdpa_choice.py

One line per case: what was asked, and the kernel that ran. Needs a GPU.
"""

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "common" / "python"), str(ROOT / "common" / "bench")]

import torch  # noqa: E402
import torch.nn.functional as F  # noqa: E402

import backends  # noqa: E402


def ran(kernels: list[str]) -> str:
    for name, pattern in backends.FUSED.items():
        if any(pattern.search(kernel) for kernel in kernels):
            return name.removeprefix("sdpa_")
    return "math"


def main() -> None:
    half, single = torch.float16, torch.float32
    mask = torch.ones(512, 512, dtype=torch.bool, device="cuda").tril()
    cases = {
        "fp16 d64 causal": (half, 64, {"is_causal": True}),
        "fp16 d128 full": (half, 128, {}),
        "bf16 d128 causal": (torch.bfloat16, 128, {"is_causal": True}),
        "fp16 d80 causal": (half, 80, {"is_causal": True}),
        "fp16 d256 causal": (half, 256, {"is_causal": True}),
        "fp16 d512 causal": (half, 512, {"is_causal": True}),
        "fp16 d64 dropout 0.1": (half, 64, {"dropout_p": 0.1}),
        "fp16 d64 with a mask tensor": (half, 64, {"attn_mask": mask}),
        "fp32 d64 causal": (single, 64, {"is_causal": True}),
        "fp64 d64 causal": (torch.float64, 64, {"is_causal": True}),
    }
    print(f"# SDPA without a forced backend: {torch.cuda.get_device_name()}, PyTorch "
          f"{torch.__version__}, B2 H4 N512")  # fmt: skip
    for name, (dtype, d, arguments) in cases.items():
        q, k, v = (torch.randn(2, 4, 512, d, device="cuda", dtype=dtype) for _ in "qkv")
        call = lambda: F.scaled_dot_product_attention(q, k, v, **arguments)  # noqa: B023, E731
        call()
        kernels = backends.kernels_of(call)
        print(f"{name:28} {ran(kernels):10} {backends.verify('', kernels)}", flush=True)


if __name__ == "__main__":
    main()
