"""Counters of any shape, exactly, from small simulated ones.

Every tile of a kind does the same work. So when the lengths grow by whole periods (a multiple of Br
and Bc), each counter follows a polynomial: for full attention in the number of periods of Nq and
Nk, bilinear; for causal attention of second degree, because the triangle grows. A few small shapes
fix the polynomial, and integers make it exact. Counters add over batch and heads. The one that
depends on data, how often stage 6's lazy row rescales, stays at once per row on the course's
inputs.
"""
import json
import math
import subprocess
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path

Counters = dict[str, int]


@dataclass(frozen=True)
class Shape:
    B: int
    Hq: int
    Hkv: int
    Nq: int
    Nk: int
    d: int
    causal: bool


@dataclass(frozen=True)
class Tile:
    Br: int
    Bc: int
    warps: int
    depth: int
    smem_bytes: int


@dataclass(frozen=True)
class Kernel:
    """One row of a comparison: a stage's variant with a row of its tile table."""
    stage: str
    variant: str
    dtype: str
    tile_row: int
    tile: Tile


@dataclass
class Launch:
    """What all blocks of one kernel launch count."""
    kernel: str
    threads: int
    shared_bytes: int
    counters: Counters = field(default_factory=dict)


class CountsFailed(Exception):
    """The simulator refused a job, or caught a mistake of the kernel."""


def spec(shape: Shape, dtype: str) -> str:
    """The problem as one line, as parse_spec() of common/harness reads it."""
    return (f"{dtype} {'causal ' if shape.causal else ''}b={shape.B} h={shape.Hq}/{shape.Hkv} "
            f"q={shape.Nq} k={shape.Nk} d={shape.d}")


def run_jobs(program: Path, gpu: str, jobs: list[dict]) -> list[dict]:
    """Runs jobs on the simulator, all cores at once; see common/cli/predict/main.cpp."""
    done = subprocess.run([str(program), "run", gpu], input=json.dumps(jobs), capture_output=True,
                          text=True, check=False)
    if done.returncode != 0:
        raise CountsFailed(done.stderr.strip() or f"fa2-counts ended with {done.returncode}")
    return json.loads(done.stdout)


def job(kernel: Kernel, shape: Shape, steps: bool = False) -> dict:
    return {"stage": kernel.stage, "variant": kernel.variant, "tile_row": kernel.tile_row,
            "spec": spec(shape, kernel.dtype), "steps": steps}


def launches(result: dict) -> list[Launch]:
    if "error" in result:
        raise CountsFailed(result["error"])
    return [Launch(x["kernel"], x["threads"], x["shared_bytes"], x["counters"])
            for x in result["launches"]]


# ---- The polynomial -----------------------------------------------------------------------------

@dataclass(frozen=True)
class Periods:
    """A shape as remainders and whole periods. `x` counts those of Nq (causal: of the shorter
    side), `y` those of Nk (causal: of the difference, with its sign in `longer`)."""
    period: int
    x: int
    y: int
    rest: tuple[int, int]
    causal: bool
    longer: str  # causal: which side is the longer one

    def shape(self, x: int, y: int, d: int) -> Shape:
        first, second = x * self.period + self.rest[0], y * self.period + self.rest[1]
        if not self.causal:
            return Shape(1, 1, 1, first, second, d, False)
        if self.longer == "k":
            return Shape(1, 1, 1, first, first + second, d, True)
        return Shape(1, 1, 1, first + second, first, d, True)


def periods_of(shape: Shape, tile: Tile) -> Periods:
    period = math.lcm(tile.Br, tile.Bc, 64)
    if not shape.causal:
        (x, r), (y, s) = divmod(shape.Nq, period), divmod(shape.Nk, period)
        return Periods(period, x, y, (r, s), False, "")
    x, r = divmod(min(shape.Nq, shape.Nk), period)
    y, s = divmod(abs(shape.Nk - shape.Nq), period)
    return Periods(period, x, y, (r, s), True, "k" if shape.Nk >= shape.Nq else "q")


# The powers of x and y that occur, and the numbers of periods (beyond the least) that fix them.
FULL = ((0, 0), (1, 0), (0, 1), (1, 1)), ((0, 0), (1, 0), (0, 1), (1, 1))
CAUSAL = (((0, 0), (1, 0), (2, 0), (0, 1), (1, 1)), ((0, 0), (1, 0), (2, 0), (0, 1), (1, 1)))
SQUARE = ((0, 0), (1, 0), (2, 0)), ((0, 0), (1, 0), (2, 0))  # causal, Nq - Nk within one period


def basis(shape: Shape, tile: Tile) -> list[tuple[int, int]]:
    """The periods to simulate; just the shape's own where it is no larger than those."""
    p = periods_of(shape, tile)
    # From so many periods on, the copies' ring is full and every kind of tile occurs.
    least = max(1, math.ceil(tile.depth * tile.Bc / p.period))
    if not p.causal:
        x0, y0 = (1 if p.x else 0), min(least, p.y)
        points = [(x0 + i, y0 + j) for i, j in FULL[1]]
        small = p.x <= x0 + 1 and p.y <= y0 + 1
    elif p.y == 0:
        points = [(least + i, 0) for i, _ in SQUARE[1]]
        small = p.x <= least + 2
    else:
        points = [(least + i, 1 + j) for i, j in CAUSAL[1]]
        small = p.x < least or (p.x <= least + 2 and p.y <= 2)
    return [(p.x, p.y)] if small else points


def terms(p: Periods) -> tuple[tuple[int, int], ...]:
    return FULL[0] if not p.causal else SQUARE[0] if p.y == 0 else CAUSAL[0]


def solve(matrix: list[list[int]], right: list[int]) -> list[Fraction]:
    """Gauss and Jordan, exactly."""
    rows = [[Fraction(v) for v in row] + [Fraction(b)] for row, b in zip(matrix, right)]
    for i in range(len(rows)):
        pivot = next(r for r in range(i, len(rows)) if rows[r][i] != 0)
        rows[i], rows[pivot] = rows[pivot], rows[i]
        rows[i] = [v / rows[i][i] for v in rows[i]]
        for r in range(len(rows)):
            if r != i and rows[r][i] != 0:
                rows[r] = [a - rows[r][i] * b for a, b in zip(rows[r], rows[i])]
    return [row[-1] for row in rows]


def extrapolate(p: Periods, points: list[tuple[int, int]], values: list[int]) -> int:
    """The counter at (p.x, p.y) from its values at the points."""
    if points == [(p.x, p.y)]:
        return values[0]
    powers = terms(p)
    weights = solve([[x ** i * y ** j for x, y in points] for i, j in powers],
                    [p.x ** i * p.y ** j for i, j in powers])
    total = sum((w * v for w, v in zip(weights, values)), Fraction(0))
    if total.denominator != 1:
        raise ArithmeticError(f"a counter does not follow the tiles: {total}")
    return int(total)


def combine(shape: Shape, tile: Tile, small: list[list[Launch]]) -> list[Launch]:
    """The launches of `shape` from those of its basis (one head each)."""
    p, points, heads = periods_of(shape, tile), basis(shape, tile), shape.B * shape.Hq
    combined = []
    for parts in zip(*small, strict=True):
        names = sorted({name for part in parts for name in part.counters})
        counters = {name: heads * extrapolate(p, points, [x.counters.get(name, 0) for x in parts])
                    for name in names}
        combined.append(Launch(parts[0].kernel, parts[0].threads, parts[0].shared_bytes, counters))
    return combined


def count(program: Path, gpu: str, wanted: list[tuple[Kernel, Shape]]) -> list[list[Launch]]:
    """The launches of every wanted run, by as few small simulations as will do."""
    jobs: dict[str, dict] = {}
    needed: list[list[str]] = []
    for kernel, shape in wanted:
        p = periods_of(shape, kernel.tile)
        keys = []
        for x, y in basis(shape, kernel.tile):
            small = job(kernel, p.shape(x, y, shape.d))
            keys.append(json.dumps(small))
            jobs[keys[-1]] = small
        needed.append(keys)
    order = sorted(jobs, key=lambda k: -len(k))
    results = dict(zip(order, run_jobs(program, gpu, [jobs[k] for k in order])))
    return [combine(shape, kernel.tile, [launches(results[k]) for k in keys])
            for (kernel, shape), keys in zip(wanted, needed)]
