#!/usr/bin/env python3
"""The course's benchmark task: every backend in turn, in one process (see ./fa2 sweep --help)."""

import argparse
import json
import os
import re
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "common" / "python"), str(ROOT / "common" / "bench")]

try:
    import torch
except ImportError as error:
    sys.exit(f"fa2 sweep: PyTorch is not installed for {sys.executable} ({error})")

import backends  # noqa: E402
import sweep_file  # noqa: E402
import timing  # noqa: E402
from sweep_file import Row  # noqa: E402

from fa2course import library  # noqa: E402
from fa2course.launcher.commands.compare import commit  # noqa: E402
from fa2course.launcher.paths import write_whole  # noqa: E402

SEQLENS = [512, 1024, 2048, 4096, 8192, 16384]
# (batch, heads, N): one long sequence, many short ones, few heads, more heads than any cache holds.
OTHER_SHAPES = [(1, 8, 16384), (8, 16, 2048), (1, 32, 2048), (16, 32, 2048)]
BF16_SEQLEN = 4096
# Batch x heads for the second figure: from 1 block per SM and far fewer to many.
FAMILIES = [(1, 1), (1, 2), (1, 4), (1, 8), (1, 16), (2, 16), (4, 16), (8, 16), (16, 16), (16, 32)]
TOLERANCE = {"fp16": 4e-3, "bf16": 3e-2}  # of unit-variance data; a wrong kernel is far beyond
DTYPES = {"fp16": torch.float16, "bf16": torch.bfloat16}


def arguments(words: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser("sweep.py", allow_abbrev=False)
    parser.add_argument("--mode", choices=["fwd"], default="fwd")
    parser.add_argument("--batch_size", type=int, default=2)
    parser.add_argument("--nheads", type=int, default=16)
    parser.add_argument("--seqlen", type=int)
    parser.add_argument("--headdim", type=int, choices=[64, 128])
    parser.add_argument("--dtype", choices=list(DTYPES), default="fp16")
    parser.add_argument("--causal", action="store_true")
    parser.add_argument("--tiles", choices=["same", "tuned"], default="tuned")
    parser.add_argument("--backends", help="a list, e.g. sdpa_flash,stage6")
    parser.add_argument("--out", type=Path, help="folder of fa2_sweep.txt")
    parser.add_argument("--parents", action="store_true")
    parser.add_argument("--like", type=Path, help="a compare.json: its shapes and stages")
    parser.add_argument("--quiet", action="store_true")
    return parser.parse_args(words)


def driver() -> str:
    done = subprocess.run(
        ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"],
        capture_output=True, text=True,
    )  # fmt: skip
    return (done.stdout.split() or ["unknown"])[0]


def triton_version() -> str:
    try:
        import triton
    except ImportError:
        return "not installed"
    return triton.__version__


def datasheet_tflops(gpu: str) -> float | None:
    """From the one table of the course, which is fa2-compare's."""
    text = (ROOT / "common" / "cli" / "compare" / "peaks.cpp").read_text()
    for part, value in re.findall(r'\{"([^"]+)", ([\d.]+)\}', text):
        if re.search(re.escape(part) + r"(?![\w])(?!.* Ti)", gpu):
            return float(value)
    return None


def measured_gemm() -> float:
    """TFLOP/s of an 8192^3 fp16 product by cuBLAS on random data."""
    n = 8192
    a, b = (torch.randn(n, n, device="cuda", dtype=torch.float16) for _ in "ab")
    result = timing.median_times({"gemm": [lambda: a @ b]}, replay=False)["gemm"]
    return 2 * n**3 / result.ms / 1e9


def environment_lines(peak: float | None) -> list[str]:
    mma = library.load().mma_tflops()  # before the GEMM, whose power lowers the clock
    properties = torch.cuda.get_device_properties()
    return [
        f"{sweep_file.TITLE}: {properties.name} | compute capability {properties.major}."
        f"{properties.minor}, {properties.multi_processor_count} SMs | driver {driver()} | "
        f"CUDA {torch.version.cuda} | PyTorch {torch.__version__} | Triton {triton_version()} | "
        f"commit {os.environ.get('FA2_COMMIT') or commit() or 'unknown'} | "
        f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}",
        f"# median of {timing.RUNS} runs after {timing.WARM_UPS} warm-ups, device events, backends "
        f"in turn, in another order in every round; N < {timing.REPLAY_BELOW}: replayed from a "
        "CUDA graph. "
        "TFLOP/s = 4 B H N^2 d / time, halved when causal",
        f"# datasheet peak {f'{peak:g}' if peak else 'unknown'} TFLOP/s (fp16, fp32 accumulate) | "
        f"in this process: cuBLAS GEMM 8192^3 {measured_gemm():.0f} TFLOP/s, mma.sync alone "
        f"{mma:.0f} TFLOP/s",
    ]


def inputs(row: Row) -> list[list[torch.Tensor]]:
    """Sets of q, k, v; more than the L2 cache holds."""
    shape = (row.batch, row.heads, row.seqlen, row.headdim)
    one = 4 * 2 * row.batch * row.heads * row.seqlen * row.headdim
    return [
        [torch.randn(shape, device="cuda", dtype=DTYPES[row.dtype]) for _ in "qkv"]
        for _ in range(timing.input_sets(one))
    ]


def failed(row: Row) -> bool:
    return row.note.startswith(("WRONG", "did not run"))


def sampled_error(o, q, k, v, causal: bool) -> float:
    """Largest error of O in some rows against float64; NaN where O has one."""
    batch, heads, N, d = q.shape
    g = torch.Generator().manual_seed(N + d)
    b, h, i = (torch.randint(n, (64,), generator=g).tolist() for n in (batch, heads, N))
    i[:2] = 0, N - 1
    errors = []
    for b_, h_, i_ in zip(b, h, i):
        seen = i_ + 1 if causal else N
        s = k[b_, h_, :seen].double() @ q[b_, h_, i_].double() / d**0.5
        exact = torch.softmax(s, 0) @ v[b_, h_, :seen].double()
        errors.append((o[b_, h_, i_].double() - exact).abs().max())
    return torch.stack(errors).max().item()


def measure(shape: Row, names: list[str], peak: float | None) -> list[Row]:
    """All these backends on one shape."""
    sets = inputs(shape)
    rows, usable = {}, {}
    for name in names:
        tiles = shape.tiles if name.startswith("stage") else "-"
        row = rows[name] = Row(*shape.shape, tiles, name, None, None, None, None, None, "")
        try:
            backend = backends.make(name, shape.tiles)
            call = lambda s, backend=backend: backend.call(*s, shape.causal)  # noqa: E731
            row.err = sampled_error(call(sets[0]), *sets[0], shape.causal)
            row.note = backends.verify(name, backends.kernels_of(lambda: call(sets[0])))
        except torch.OutOfMemoryError:
            row.note = "out of memory"
        except backends.Unavailable as error:
            row.note = str(error)
        except (RuntimeError, ValueError) as error:
            row.note = "did not run: " + str(error).strip().splitlines()[0]
        else:
            if row.err <= TOLERANCE[shape.dtype]:
                usable[name] = backend
            else:
                row.note = f"WRONG: error {row.err:.1e}"
        torch.cuda.empty_cache()
    replay = shape.seqlen < timing.REPLAY_BELOW
    calls = {
        name: [lambda s=s, b=backend: b.call(*s, shape.causal) for s in sets]
        for name, backend in usable.items()
    }
    for name, result in timing.median_times(calls, replay).items():
        row = rows[name]
        if isinstance(result, Exception):
            oom = isinstance(result, torch.OutOfMemoryError)
            row.note = "out of memory" if oom else f"did not run: {str(result).splitlines()[0]}"
            continue
        row.ms, row.spread = result.ms, result.spread
        tile = usable[name].tile(*sets[0][:2], shape.causal)
        if tile:
            row.gbps = sweep_file.requested_bytes(row, *tile) / row.ms / 1e6
        row.peak = row.tflops / peak if peak else None
    return list(rows.values())


def plan(options: argparse.Namespace) -> list[tuple[Row, list[str]]]:
    """Shapes and the backends on each. One shape where the flags say so, else everything."""
    stages = backends.stage_names()
    names = options.backends.split(",") if options.backends else [*backends.PEERS, *stages]
    for name in names:
        if name not in (*backends.PEERS, *stages):
            raise ValueError(f"there is no backend '{name}'; known are "
                             f"{', '.join([*backends.PEERS, *stages])}")  # fmt: skip

    def shape(N, d, causal, batch=options.batch_size, heads=options.nheads, tiles=options.tiles,
              dtype=options.dtype):  # fmt: skip
        return Row(N, d, causal, batch, heads, dtype, tiles, "", *[None] * 5, "")

    one_shape = options.seqlen or options.headdim
    todo = []
    if not options.parents:
        seqlens = [options.seqlen] if options.seqlen else SEQLENS
        headdims = [options.headdim] if options.headdim else [64, 128]
        masks = [options.causal] if one_shape or options.causal else [False, True]
        todo = [(shape(N, d, c), names) for c in masks for d in headdims for N in seqlens]
    whole = not (options.parents or one_shape or options.causal or options.backends)
    if whole:
        todo += [(shape(N, d, c, b, h), names) for b, h, N in OTHER_SHAPES for d in (64, 128)
                 for c in (False, True)]  # fmt: skip
        todo += [(shape(BF16_SEQLEN, d, False, dtype="bf16"), names) for d in (64, 128)]
    if options.parents or whole:
        todo += [(shape(2048, d, False, b, h, "same"), stages) for d in (64, 128)
                 for b, h in FAMILIES]  # fmt: skip
    return todo


def add_peers(file: Path, rows: list[Row]) -> None:
    """Puts what was measured in turn with the peers into the comparison's own file."""
    results = json.loads(file.read_text())
    results["peers"] = [
        {"backend": row.backend, "shape": {"B": row.batch, "H": row.heads, "N": row.seqlen,
         "d": row.headdim, "causal": row.causal}, "dtype": row.dtype, "tile_mode": row.tiles,
         "time_ms": row.ms, "spread": row.spread, "tflops": row.tflops, "note": row.note}
        for row in rows
    ]  # fmt: skip
    write_whole(file, json.dumps(results, indent=1) + "\n")


def plan_like(file: Path) -> list[tuple[Row, list[str]]]:
    """The shapes and stages of a comparison, with all the peers. Only as many queries as keys and
    equal heads, which every peer takes."""
    todo: dict[tuple, tuple[Row, list[str]]] = {}
    for record in json.loads(file.read_text())["records"]:
        s, tiles = record["shape"], record["tile_mode"]
        if s["Nq"] != s["Nk"] or s["Hq"] != s["Hkv"] or "/" in record["stage"] or not s["Nq"]:
            continue
        shape = (s["Nq"], s["d"], s["causal"], s["B"], s["Hq"], record["dtype"], tiles)
        names = todo.setdefault(shape, (Row(*shape, "", *[None] * 5, ""), [*backends.PEERS]))[1]
        paper = "_paper" if record["variant"] == "paper" else ""
        if record["variant"] in ("", "paper", "lazy"):
            names.append(f"stage{record['number']}{paper}")
    return list(todo.values())


def keep(partial: Path | None, line: object) -> None:
    """Writes it at once: an interrupt leaves whole rows."""
    if partial:
        with open(partial, "a") as file:
            file.write(f"{line}\n")


def run(options: argparse.Namespace) -> int:
    if not torch.cuda.is_available():
        raise library.CannotRunHere(f"PyTorch {torch.__version__} sees no GPU")
    library.load().require(library.CUDA)
    for value, flag in ((options.batch_size, "batch_size"), (options.nheads, "nheads"),
                        (options.seqlen, "seqlen")):  # fmt: skip
        if value is not None and value < 1:
            raise ValueError(f"--{flag} is {value}; it must be at least 1")
    todo = plan_like(options.like) if options.like else plan(options)
    show = (lambda *words, **kw: None) if options.quiet else print
    torch.manual_seed(0)
    peak = datasheet_tflops(torch.cuda.get_device_name())
    out = partial = None
    done: dict[tuple, Row] = {}
    if options.out:
        options.out.mkdir(parents=True, exist_ok=True)
        out = options.out / ("peers.txt" if options.like else "fa2_sweep.txt")
        partial = out.with_name(f"{out.name}.part")
        if options.like:  # a comparison is made anew
            partial.unlink(missing_ok=True)
        if partial.exists():
            # A full disk may have cut the last row short.
            os.truncate(partial, partial.read_bytes().rfind(b"\n") + 1)
            done = {row.key: row for row in sweep_file.read(partial)[1] if not failed(row)}
            print(f"fa2 sweep: goes on after {len(done)} rows in {partial}", file=sys.stderr)
    lines = [*environment_lines(peak), sweep_file.header()]
    show("\n".join(lines), flush=True)
    keep(partial, "\n".join(lines))
    wrong = 0
    for i, (shape, names) in enumerate(todo):
        left = [name for name in names
                if (*shape.shape, shape.tiles if name.startswith("stage") else "-", name)
                not in done]  # fmt: skip
        if sys.stderr.isatty():
            print(f"\r{i + 1}/{len(todo)} shapes ", end="", file=sys.stderr, flush=True)
        for row in measure(shape, left, peak) if left else []:
            show(row, flush=True)
            keep(partial, row)
            wrong += failed(row)
    if partial:
        partial.replace(out)
        if options.like:
            add_peers(options.like, sweep_file.read(out)[1])
        show(f"Written: {out}")
    return 1 if wrong else 0


def main(words: list[str]) -> int:
    try:
        return run(arguments(words))
    except (ValueError, library.CannotRunHere, library.Unsupported) as error:
        print(f"fa2 sweep: {error}", file=sys.stderr)
        return 2
    except OSError as error:
        print(f"fa2 sweep: {error.filename or 'the output'} cannot be written: {error.strerror}; "
              "the same command goes on from here", file=sys.stderr)  # fmt: skip
        return 2
    except KeyboardInterrupt:
        print("fa2 sweep: interrupted; with --out the same command goes on from "
              "here", file=sys.stderr)
        return 130


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
