"""The Python side of the FlashAttention-2 course: attention by any stage, launcher, reports.

from fa2course import attention
O = attention(q, k, v, stage=6, causal=True)
"""

_FUNCTIONAL = ("attention",)
_LIBRARY = ("CannotRunHere", "Fa2Error", "InvalidArgument", "KernelFailed", "Unsupported", "load")


def __getattr__(name: str):  # lazily: the launcher uses this package before NumPy is installed
    if name in _FUNCTIONAL:
        from . import functional

        return getattr(functional, name)
    if name in _LIBRARY:
        from . import library

        return getattr(library, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
