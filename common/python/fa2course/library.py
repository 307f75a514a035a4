"""libfa2course, loaded: the C interface of common/harness/fa2.h as Python sees it."""

import ctypes
import functools
import os
from ctypes import (
    POINTER,
    c_char_p,
    c_float,
    c_int32,
    c_int64,
    c_size_t,
    c_uint32,
    c_uint64,
    c_void_p,
)
from pathlib import Path

ABI_VERSION = 1
SIM, CUDA = 0, 1
DTYPES = {"float16": 0, "bfloat16": 1}
TILE_MODES = {"same": 0, "same_b": 1, "tuned": 2}
ROOT = Path(__file__).resolve().parents[3]  # of the course, where this is its clone


class Fa2Error(RuntimeError):
    """What went wrong, in one sentence."""


class InvalidArgument(Fa2Error, ValueError):
    """An argument that no machine accepts."""


class Unsupported(Fa2Error):
    """Valid, but not built in, or too large for this GPU."""


class CannotRunHere(Fa2Error):
    """No usable GPU, or no library built for one."""


class KernelFailed(Fa2Error):
    """The kernel faulted, or the simulator caught a mistake in it."""


ERRORS = {1: InvalidArgument, 2: Unsupported, 3: CannotRunHere, 4: KernelFailed}


class Problem(ctypes.Structure):
    _fields_ = [
        ("struct_size", c_uint32),
        ("abi_version", c_uint32),
        ("batch", c_int64),
        ("heads_q", c_int64),
        ("heads_kv", c_int64),
        ("seqlen_q", c_int64),
        ("seqlen_k", c_int64),
        ("head_dim", c_int64),
        *((f"{tensor}_strides", c_int64 * 3) for tensor in "qkvo"),
        ("dtype", c_int32),
        ("causal", c_int32),
        ("scale", c_float),
        ("reserved", c_uint32),
    ]

    def __init__(self, **fields):
        super().__init__(struct_size=ctypes.sizeof(Problem), abi_version=ABI_VERSION, **fields)


class Options(ctypes.Structure):
    _fields_ = [
        ("struct_size", c_uint32),
        ("abi_version", c_uint32),
        ("stage", c_char_p),
        ("variant", c_char_p),
        ("backend", c_int32),
        ("tile_mode", c_int32),
        ("gpu", c_char_p),
        ("os_threads", c_int32),
        ("order", c_int32),
        ("seed", c_uint64),
    ]

    def __init__(self, **fields):
        super().__init__(struct_size=ctypes.sizeof(Options), abi_version=ABI_VERSION, **fields)


class Tile(ctypes.Structure):
    _fields_ = [(name, c_int32) for name in ("row", "Br", "Bc", "warps", "depth", "shared_bytes")]


class Library:
    """One loaded libfa2course."""

    def __init__(self, path: Path):
        self.path = path
        try:
            self.c = ctypes.CDLL(str(path))
            self.c.fa2_abi_version.restype = c_uint32
            version = self.c.fa2_abi_version()
        except (OSError, AttributeError) as error:
            reason = str(error).removeprefix(f"{path}: ")
            raise CannotRunHere(
                f"{path} cannot be loaded: {reason}. Build it again for this machine: ./fa2 compare"
            ) from None
        if version != ABI_VERSION:
            raise CannotRunHere(
                f"{path} has version {version} of the C interface, and this package "
                f"needs {ABI_VERSION}. Build it again: ./fa2 compare"
            )
        for name in ("last_error", "stage_name", "variant_name", "counter_name", "counter_meaning"):
            getattr(self.c, f"fa2_{name}").restype = c_char_p
        self.c.fa2_forward.argtypes = [
            POINTER(Problem),
            POINTER(Options),
            *[c_void_p] * 6,
            c_size_t,
            c_void_p,
            c_void_p,
        ]
        self.c.fa2_workspace_bytes.argtypes = [
            POINTER(Problem),
            POINTER(Options),
            POINTER(c_size_t),
        ]
        self.c.fa2_tile_info.argtypes = [POINTER(Problem), POINTER(Options), POINTER(Tile)]
        self.counter_names = [
            self.c.fa2_counter_name(i).decode() for i in range(self.c.fa2_counter_count())
        ]

    def check(self, status: int) -> None:
        if status == 0:
            return
        sentence = self.c.fa2_last_error().decode(errors="replace")
        if "no kernel image" in sentence:
            sentence += (
                f" {self.path} was built for GPUs of another architecture; build it on this "
                "machine: ./fa2 compare --backend cuda"
            )
        raise ERRORS.get(status, Fa2Error)(sentence)

    def require(self, backend: int) -> None:
        """Raises CannotRunHere or Unsupported, with the reason, where the backend cannot run."""
        self.check(self.c.fa2_backend_status(backend))

    def mma_tflops(self) -> float:
        """What mma.sync alone reaches on the current GPU, in TFLOP/s."""
        tflops = ctypes.c_double()
        self.check(self.c.fa2_mma_tflops(ctypes.byref(tflops)))
        return tflops.value

    def workspace_bytes(self, problem: Problem, options: Options) -> int:
        size = c_size_t()
        self.check(self.c.fa2_workspace_bytes(problem, options, size))
        return size.value

    def tile(self, problem: Problem, options: Options) -> Tile:
        tile = Tile()
        self.check(self.c.fa2_tile_info(problem, options, tile))
        return tile

    def forward(
        self,
        problem: Problem,
        options: Options,
        q: int,
        k: int,
        v: int,
        o: int,
        lse: int,
        workspace: int,
        workspace_bytes: int,
        stream: int,
    ) -> dict[str, int]:
        """Addresses in; the counters out (zeros on CUDA)."""
        values = (c_uint64 * len(self.counter_names))()
        self.check(
            self.c.fa2_forward(
                problem,
                options,
                q,
                k,
                v,
                o,
                lse,
                workspace,
                workspace_bytes,
                stream,
                ctypes.addressof(values),
            )
        )
        return dict(zip(self.counter_names, values))

    def stages(self, backend: int = SIM) -> list[tuple[str, int, list[str]]]:
        """(name, number, variants) of each stage, in the order of the course."""
        return [
            (
                self.c.fa2_stage_name(backend, i).decode(),
                self.c.fa2_stage_number(backend, i),
                [
                    self.c.fa2_variant_name(backend, i, j).decode()
                    for j in range(self.c.fa2_variant_count(backend, i))
                ],
            )
            for i in range(self.c.fa2_stage_count(backend))
        ]


def candidates() -> list[Path]:
    """Where a library may be: $FA2_LIBRARY alone, else the course's builds, CUDA first."""
    named = os.environ.get("FA2_LIBRARY")
    if named:
        return [Path(named)]
    return [ROOT / "build" / preset / "lib" / "libfa2course.so" for preset in ("cuda", "sim")]


@functools.cache
def load() -> Library:
    """The library of this process. A build for CUDA has the simulator, too."""
    found = [path for path in candidates() if path.exists()]
    if not found:
        where = " or ".join(str(path) for path in candidates())
        raise CannotRunHere(
            f"libfa2course is not built: {where} is not there. Build it with ./fa2 compare in a "
            "clone of the course, or name it in FA2_LIBRARY."
        )
    for path in found[:-1]:
        try:
            return Library(path)
        except CannotRunHere:
            continue
    return Library(found[-1])
