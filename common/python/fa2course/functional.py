"""attention(q, k, v): any stage of the course on NumPy arrays and PyTorch tensors.

NumPy arrays and PyTorch CPU tensors run on the simulator, PyTorch CUDA tensors on the GPU, in the
current stream. Nothing is compiled for PyTorch: libfa2course is loaded.
"""

import math
import sys

from . import library
from .library import CUDA, DTYPES, SIM, TILE_MODES, InvalidArgument, Options, Problem

LAYOUTS = {"bhnd": (0, 1, 2, 3), "bnhd": (0, 2, 1, 3)}  # position of batch, heads, rows, head_dim


def attention(
    q,
    k,
    v,
    *,
    stage: int | str = 6,
    causal: bool = False,
    scale: float | None = None,
    layout: str = "bhnd",
    return_lse: bool = False,
    variant: str | None = None,
    tiles: str = "tuned",
    counters: dict | None = None,
):
    """O = softmax(scale * Q K^T) V, forward only. Returns O, or (O, LSE) with return_lse.

    q is [batch, heads, rows, head_dim] (layout "bhnd") or [batch, rows, heads, head_dim] ("bnhd");
    k and v may have fewer heads (grouped queries) and another number of rows. float16 or bfloat16
    (ml_dtypes for NumPy), head_dim 64 or 128 and contiguous. The causal mask is aligned at the
    bottom right; a row that sees no key has O = 0 and LSE = -inf. LSE is float32,
    [batch, heads, rows]. O has q's dtype and layout, and is contiguous in it.

    stage     a number or a folder's name          variant   e.g. "lazy" of stage 6
    scale     default 1 / sqrt(head_dim)           tiles     "same", "same_b" or "tuned"
    counters  a dict: the simulator fills it with what the kernel did (on a GPU it stays empty)
    """
    kind = kind_of(q, k, v)
    shapes = check_shapes(q, k, v, layout)
    check_dtypes(q, k, v)
    if tiles not in TILE_MODES:
        raise InvalidArgument(f'tiles is "{tiles}"; accepted are {", ".join(TILE_MODES)}.')
    if scale is not None and not (math.isfinite(scale) and scale > 0):
        raise InvalidArgument(
            f"scale is {scale:g}; it must be positive (None: 1 / sqrt(head_dim))."
        )
    if isinstance(stage, bool) or not isinstance(stage, int | str):
        raise InvalidArgument(f"stage is {stage!r}; give a number or a stage's name.")
    how = (str(stage), variant or "", tiles, bool(causal), float(scale or 0), layout)
    if kind == "numpy":
        o, lse, counted = on_host(q, k, v, shapes, how)
    else:
        check_tensors(q, k, v)
        if q.device.type == "cpu" and counters is not None:
            o, lse, counted = on_tensors(q, k, v, *how)
        else:
            (o, lse), counted = torch_op()(q, k, v, *how), {}
    if counters is not None:
        counters.clear()
        counters.update(counted)
    return (o, lse) if return_lse else o


# ---- What is accepted ----------------------------------------------------------------------------


def kind_of(*arrays) -> str:
    """ "numpy" or "torch"; all three alike."""
    kinds = []
    for name, x in zip("qkv", arrays):
        if hasattr(x, "__array_interface__") and hasattr(x, "strides"):
            kinds.append("numpy")
        elif "torch" in sys.modules and isinstance(x, sys.modules["torch"].Tensor):
            kinds.append("torch")
        else:
            raise InvalidArgument(
                f"{name} is a {type(x).__name__}; a NumPy array or a PyTorch tensor is needed."
            )
    if len(set(kinds)) > 1:
        raise InvalidArgument(f"q, k and v are {', '.join(kinds)}; give three of one kind.")
    return kinds[0]


def check_shapes(q, k, v, layout: str) -> tuple[list[int], list[int]]:
    """The shapes of q and of k and v, as [batch, heads, rows, head_dim]."""
    if layout not in LAYOUTS:
        raise InvalidArgument(f'layout is "{layout}"; accepted are {", ".join(LAYOUTS)}.')
    for name, x in zip("qkv", (q, k, v)):
        if len(x.shape) != 4:
            raise InvalidArgument(
                f"{name} has {len(x.shape)} dimensions, {show(x)}; 4 are needed, {layout}."
            )
    shape_q, shape_k, shape_v = ([x.shape[i] for i in LAYOUTS[layout]] for x in (q, k, v))
    if shape_k != shape_v:
        raise InvalidArgument(f"k is {show(k)} and v is {show(v)}; they must have the same shape.")
    for axis, meaning in ((0, "batch size"), (3, "head dimension")):
        if shape_q[axis] != shape_k[axis]:
            raise InvalidArgument(
                f"q is {show(q)} and k is {show(k)} ({layout}); the {meaning} must be the same."
            )
    return shape_q, shape_k


def show(x) -> str:
    return "x".join(map(str, x.shape)) or "a scalar"


def dtype_name(x) -> str:
    return str(x.dtype).removeprefix("torch.")


def check_dtypes(q, k, v) -> None:
    for name, x in zip("qkv", (q, k, v)):
        if dtype_name(x) not in DTYPES:
            raise InvalidArgument(f"{name} is {dtype_name(x)}; accepted are {', '.join(DTYPES)}.")
    if len({dtype_name(x) for x in (q, k, v)}) > 1:
        raise InvalidArgument(
            f"q, k and v are {', '.join(dtype_name(x) for x in (q, k, v))}; they "
            "must have one dtype."
        )


def check_tensors(q, k, v) -> None:
    import torch

    if any(x.device != q.device for x in (k, v)):
        raise InvalidArgument(
            f"q, k and v are on {', '.join(str(x.device) for x in (q, k, v))}; they "
            "must be on one device."
        )
    if q.device.type not in ("cpu", "cuda"):
        raise InvalidArgument(f"q is on {q.device}; accepted are cpu (the simulator) and cuda.")
    if any(x.layout != torch.strided for x in (q, k, v)):
        raise InvalidArgument("q, k and v must be dense tensors.")
    if torch.is_grad_enabled() and any(x.requires_grad for x in (q, k, v)):
        raise InvalidArgument(
            "q, k or v requires a gradient, and the course has the forward pass only; "
            "call it under torch.no_grad(), or detach() the inputs."
        )


def strides_of(name: str, shape: list[int], strides: list[int]) -> list[int]:
    """{batch, head, row} as the C interface wants them. An axis of length 1 has any stride, so it
    gets the contiguous one: three zeros would mean contiguous."""
    if 0 in shape:
        return [0, 0, 0]
    contiguous = [shape[1] * shape[2] * shape[3], shape[2] * shape[3], shape[3]]
    if shape[3] > 1 and strides[3] != 1:
        raise InvalidArgument(
            f"{name} has stride {strides[3]} in head_dim; it must be contiguous "
            "there (make it so with .contiguous() or numpy.ascontiguousarray)."
        )
    result = [s if n > 1 else c for n, s, c in zip(shape, strides, contiguous)]
    if not any(result):
        raise InvalidArgument(
            f"{name} repeats one row (all its strides are 0); make it contiguous."
        )
    return result


def problem_of(
    q, k, v, o, shapes, element_strides, causal: bool, scale: float, layout: str
) -> Problem:
    shape_q, shape_k = shapes
    fields = dict(
        batch=shape_q[0],
        heads_q=shape_q[1],
        heads_kv=shape_k[1],
        seqlen_q=shape_q[2],
        seqlen_k=shape_k[2],
        head_dim=shape_q[3],
        dtype=DTYPES[dtype_name(q)],
        causal=causal,
        scale=scale,
    )
    for name, x in zip("qkvo", (q, k, v, o)):
        shape = shape_k if name in "kv" else shape_q
        strides = [element_strides(x)[i] for i in LAYOUTS[layout]]
        fields[f"{name}_strides"] = tuple(strides_of(name, shape, strides))
    return Problem(**fields)


# ---- NumPy ---------------------------------------------------------------------------------------


def on_host(q, k, v, shapes, how):
    import numpy as np

    stage, variant, tiles, causal, scale, layout = how
    for name, x in zip("qkv", (q, k, v)):
        if any(s % x.itemsize for s in x.strides):
            raise InvalidArgument(
                f"{name} has strides of {x.strides} bytes, which are no multiples of "
                f"its {x.itemsize}-byte elements; copy it first."
            )
    o = np.empty(q.shape, q.dtype)
    lse = np.empty(shapes[0][:3], np.float32)
    problem = problem_of(
        q, k, v, o, shapes, lambda x: [s // x.itemsize for s in x.strides], causal, scale, layout
    )
    lib = library.load()
    options = Options(
        stage=stage.encode(), variant=variant.encode(), backend=SIM, tile_mode=TILE_MODES[tiles]
    )
    size = lib.workspace_bytes(problem, options)
    workspace = np.empty(size, np.uint8)
    counted = lib.forward(
        problem,
        options,
        *(x.ctypes.data for x in (q, k, v, o, lse)),
        workspace.ctypes.data if size else 0,
        size,
        0,
    )
    return o, lse, counted


# ---- PyTorch -------------------------------------------------------------------------------------


def on_tensors(
    q, k, v, stage: str, variant: str, tiles: str, causal: bool, scale: float, layout: str
):
    """Runs it and returns (o, lse, counters)."""
    import torch

    shapes = check_shapes(q, k, v, layout)
    o, lse = outputs(q, layout)
    problem = problem_of(q, k, v, o, shapes, lambda x: x.stride(), causal, scale, layout)
    lib = library.load()
    on_gpu = q.device.type == "cuda"
    options = Options(
        stage=stage.encode(),
        variant=variant.encode(),
        backend=CUDA if on_gpu else SIM,
        tile_mode=TILE_MODES[tiles],
    )
    with torch.cuda.device(q.device if on_gpu else -1):  # -1: changes nothing
        if on_gpu:
            require_cuda(lib)
        size = lib.workspace_bytes(problem, options)
        workspace = torch.empty(size, dtype=torch.uint8, device=q.device)
        stream = torch.cuda.current_stream(q.device).cuda_stream if on_gpu else 0
        counted = lib.forward(
            problem,
            options,
            *(x.data_ptr() for x in (q, k, v, o, lse)),
            workspace.data_ptr(),
            size,
            stream,
        )
    return o, lse, {} if on_gpu else counted


def outputs(q, layout: str):
    """O and LSE, not yet written."""
    batch, heads, rows, _ = (q.shape[i] for i in LAYOUTS[layout])
    return q.new_empty(q.shape), q.new_empty(
        (batch, heads, rows), dtype=sys.modules["torch"].float32
    )


def require_cuda(lib: library.Library) -> None:
    try:
        lib.require(CUDA)
    except library.Fa2Error as error:
        raise type(error)(
            f"q is a CUDA tensor, but {lib.path} cannot use the GPU: {error} Build it "
            "with ./fa2 compare --backend cuda, or pass CPU tensors for the simulator."
        ) from None


_op = None


def torch_op():
    """fa2course::attention, an operator of PyTorch: torch.compile sees it as one opaque step."""
    global _op
    if _op is None:
        _op = define_op()
    return _op


def define_op():
    import torch

    @torch.library.custom_op("fa2course::attention", mutates_args=(), device_types=("cpu", "cuda"))
    def op(
        q: torch.Tensor,
        k: torch.Tensor,
        v: torch.Tensor,
        stage: str,
        variant: str,
        tiles: str,
        causal: bool,
        scale: float,
        layout: str,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        return on_tensors(q, k, v, stage, variant, tiles, causal, scale, layout)[:2]

    @op.register_fake
    def _(q, k, v, stage, variant, tiles, causal, scale, layout):
        return outputs(q, layout)

    return torch.ops.fa2course.attention.default


if "torch" in sys.modules:  # torch.compile must find it defined
    torch_op()
