"""The backends that a sweep runs: PyTorch's four, the flash-attn package, two Triton kernels, ours.

Each is called with q, k, v [batch, heads, rows, head_dim] and returns O in the same layout.
"""

import importlib
import re
from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.nn.functional as F
import sweep_file
from torch.nn.attention import SDPBackend, sdpa_kernel

from fa2course import attention, library

PEERS = ["sdpa_math", "sdpa_flash", "sdpa_efficient", "sdpa_cudnn", "flash_attn", "triton_fa1",
         "triton_fa2"]  # fmt: skip
# What runs on the GPU when a backend of PyTorch really is used; MATH is several plain kernels.
FUSED = {
    "sdpa_flash": re.compile(r"flash_fwd"),
    "sdpa_efficient": re.compile(r"fmha_cutlass|efficient_attention"),
    "sdpa_cudnn": re.compile(r"cudnn"),
}


class Unavailable(Exception):
    """This backend is not here; the text says why."""


@dataclass
class Backend:
    name: str
    call: Callable  # (q, k, v, causal) -> O
    tile: Callable  # (q, k, causal) -> (Br, Bc) once called, or None where it is not known


def sdpa(which: SDPBackend) -> Callable:
    def call(q, k, v, causal):
        with sdpa_kernel([which]):  # fails loudly rather than falling back
            return F.scaled_dot_product_attention(q, k, v, is_causal=causal)

    return call


def official_tile(q, k, causal) -> tuple[int, int]:
    """Of flash_fwd_launch_template.h, v2.8.3, on compute capability 8.0 and 9.0."""
    return (128, 128) if q.shape[-1] == 64 else (128, 64)


def stage(name: str, tiles: str) -> Backend:
    number, variant = sweep_file.stage_of(name)

    def call(q, k, v, causal):
        return attention(q, k, v, stage=number, variant=variant, tiles=tiles, causal=causal)

    def tile(q, k, causal):
        if number == 1:  # S and P add to what its tiles ask for
            return None
        problem = library.Problem(
            batch=q.shape[0], heads_q=q.shape[1], heads_kv=k.shape[1], seqlen_q=q.shape[2],
            seqlen_k=k.shape[2], head_dim=q.shape[3], causal=causal,
            dtype=library.DTYPES[str(q.dtype).removeprefix("torch.")],
        )  # fmt: skip
        options = library.Options(
            stage=str(number).encode(), variant=variant.encode(), backend=library.CUDA,
            tile_mode=library.TILE_MODES[tiles],
        )  # fmt: skip
        chosen = library.load().tile(problem, options)
        return chosen.Br, chosen.Bc

    return Backend(name, call, tile)


def stage_names() -> list[str]:
    """stage1 to stage6, and the other row of stage 6."""
    names = [f"stage{number}" for name, number, _ in library.load().stages(library.CUDA)
             if "/" not in name]  # fmt: skip
    return [*names, "stage6_paper"] if "stage6" in names else names


def make(name: str, tiles: str) -> Backend:
    """Raises Unavailable where the backend is not installed."""
    if name.startswith("stage"):
        return stage(name, tiles)
    if name.startswith("sdpa_"):
        which = {"math": SDPBackend.MATH, "flash": SDPBackend.FLASH_ATTENTION,
                 "efficient": SDPBackend.EFFICIENT_ATTENTION,
                 "cudnn": SDPBackend.CUDNN_ATTENTION}[name.removeprefix("sdpa_")]  # fmt: skip
        tile = official_tile if name == "sdpa_flash" else lambda q, k, causal: None
        return Backend(name, sdpa(which), tile)
    if name == "flash_attn":
        try:
            function = importlib.import_module("flash_attn").flash_attn_func
        except ImportError as error:
            raise Unavailable(f"the package flash-attn is not installed ({error})") from None
        return Backend(
            name,
            lambda q, k, v, causal: function(
                *(x.transpose(1, 2) for x in (q, k, v)), causal=causal
            ).transpose(1, 2),
            official_tile,
        )
    try:
        module = importlib.import_module(name)
    except ImportError as error:
        raise Unavailable(f"Triton is not installed ({error})") from None
    return Backend(name, module.attention, lambda q, k, causal: module.rows_per_tile())


def kernels_of(call: Callable) -> list[str]:
    """The names of the GPU kernels that a call runs, longest first, by PyTorch's profiler."""
    from torch.profiler import ProfilerActivity, profile

    torch.cuda.synchronize()
    with profile(activities=[ProfilerActivity.CUDA], acc_events=True) as profiler:
        call()
        torch.cuda.synchronize()
    events = [e for e in profiler.events() if e.device_type == torch.autograd.DeviceType.CUDA]
    events.sort(key=lambda e: -e.self_device_time_total)
    return [e.name for e in events if not e.name.startswith("Mem")]


def verify(name: str, kernels: list[str]) -> str:
    """The kernel that shows which backend ran, shortened. Raises ValueError if it was another."""
    names = [re.sub(r"^void |\(anonymous namespace\)::|<.*|\(.*", "", kernel) for kernel in kernels]
    short = [name if len(name) < 60 else f"{name[:57]}..." for name in names]
    if not short:
        raise ValueError("no kernel was seen")
    if name in FUSED:
        for kernel, text in zip(kernels, short):
            if FUSED[name].search(kernel):
                return text
        raise ValueError(f"{name} was asked for, and {short[0]} ran")
    if name == "sdpa_math":
        for kernel in kernels:
            if any(pattern.search(kernel) for pattern in FUSED.values()):
                raise ValueError(f"sdpa_math was asked for, and {kernel} ran")
        return f"{short[0]}+{len(short) - 1}"
    return short[0]
