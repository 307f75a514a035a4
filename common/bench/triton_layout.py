"""How Triton's compiler shares a tile of triton_fa2 among the warps. Needs Triton and PyTorch,
no GPU.

python common/bench/triton_layout.py
"""

import re

import triton
import triton_fa2
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

POINTERS = {"Q": "*fp16", "K": "*fp16", "V": "*fp16", "O_out": "*fp16", "LSE": "*fp32"}
OTHERS = {"scale": "fp32", "large": "i1"}


def compiled(sm: int, warps: int, **constants):
    """The kernel for one architecture; strides are multiples of 16, as of contiguous tensors."""
    kernel = triton_fa2.forward.fn  # without the autotuner
    signature = {
        name: "constexpr" if name in constants else (POINTERS | OTHERS).get(name, "i32")
        for name in kernel.arg_names
    }
    divisible = {
        (at,): [["tt.divisibility", 16]]
        for at, name in enumerate(kernel.arg_names)
        if name in POINTERS or name.endswith(("_batch", "_head", "_row"))
    }
    source = ASTSource(fn=kernel, signature=signature, constexprs=constants, attrs=divisible)
    options = {"num_warps": warps, "num_stages": 2}
    return triton.compile(source, target=GPUTarget("cuda", sm, 32), options=options)


def main() -> None:
    for sm in (80, 90):
        for warps in (4, 8):
            code = compiled(sm, warps, d=64, causal=False, Br=128, Bc=64).asm
            layout = re.search(r"nvidia_mma<.*?(warpsPerCTA = \[.*?\])", code["ttgir"])[1]
            instruction = "wgmma" if "wgmma.mma_async" in code["ptx"] else "mma.sync"
            print(
                f"sm_{sm}, tile 128 x 64, {warps} warps: {instruction + ',':10} {layout}, "
                f"{code['ptx'].count('shfl.sync')} shuffles"
            )


if __name__ == "__main__":
    main()
