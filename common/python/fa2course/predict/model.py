"""Counters to time. The model, in full:

- A block needs so many cycles of each pipe of its SM: tensor cores (mma), shared memory
  (wavefronts), fp32 units, exp unit. The longest counts whole. A warp uses them one after the
  other, but other warps fill the gaps: half of what the others take is hidden under the longest.
  Under the exchange of partial O fp32 is hidden whole: it adds up the sums as they come.
- A block barrier costs `barrier` cycles of waiting, and each q tile `fill` cycles: copies that
  arrive before the first product can start, and stores that end after the last one. While one block
  waits, another block on the same SM can work.
- So the blocks on one SM take as long as one alone (work and waiting), or as their work together,
  whichever is more. How many fit follows from shared memory, registers and threads.
- Blocks go to the SMs in order, each when a place is free: waves and tail come from that.
- A launch also takes at least the time of its DRAM traffic, at a share `memory` of the published
  bandwidth, and twice `fill` to start.

Three constants are fitted, all else is published or counted.
"""
import heapq
import math
from dataclasses import dataclass, field

from .counts import Kernel, Launch, Shape
from .gpus import FIGURES, SHARED_BYTES_PER_CLOCK, Figures, tensor_flops_per_clock

# notes/prediction.md says how these were chosen.
START_FILLS = 2  # of a launch
HIDDEN = 0.5     # of the time of every pipe but the longest
PURPOSES = ("tiles", "statistics", "partial_o")


@dataclass(frozen=True)
class Constants:
    """What is fitted, on d = 64 of notes/results/h200.json; see report.py."""
    barrier: float  # cycles that a block waits at a block barrier
    fill: float     # cycles to fill and drain a q tile, and to start a launch
    memory: float   # share of the published DRAM bandwidth that a kernel reaches


@dataclass(frozen=True)
class Gpu:
    """The simulator's limits (`plan`) and the published figures."""
    key: str
    name: str
    cc: int
    sms: int
    shared_per_sm: int
    max_threads_per_sm: int
    max_blocks_per_sm: int
    regs_per_sm: int

    @property
    def figures(self) -> Figures:
        return FIGURES[self.key]

    @property
    def hz(self) -> float:
        return self.figures.clock_ghz * 1e9


@dataclass
class Work:
    """Cycles of one SM's pipes, for a whole launch or a part of it."""
    tensor: float = 0
    shared: dict[str, float] = field(default_factory=dict)  # by purpose
    exp: float = 0
    fp32: float = 0
    barriers: float = 0  # how many

    @property
    def shared_all(self) -> float:
        return sum(self.shared.values())


def work_of(gpu: Gpu, launch: Launch) -> Work:
    c, figures = launch.counters, gpu.figures
    fp32 = sum(n for name, n in c.items() if name.startswith("fp32_"))
    return Work(
        tensor=c.get("mma", 0) * 4096 / tensor_flops_per_clock(figures, gpu.sms),
        shared={p: c[f"shared_wavefronts_{p}"] * 128 / SHARED_BYTES_PER_CLOCK for p in PURPOSES
                if c.get(f"shared_wavefronts_{p}")},
        exp=(c.get("exp2_p", 0) + c.get("exp2_stats", 0)) / figures.exp2,
        fp32=fp32 / figures.fp32,
        barriers=c.get("block_barriers", 0))


# ---- Places on an SM ----------------------------------------------------------------------------

@dataclass(frozen=True)
class Places:
    per_sm: int
    limit: str  # in words: what keeps it from being more


def places(gpu: Gpu, threads: int, shared_bytes: int, registers: int | None) -> Places:
    """How many blocks an SM holds at a time. Shared memory: 1 KiB of every block is the system's.
    Registers are given out to warps in units of 256. CUDA C++ Programming Guide, "Compute
    Capabilities"."""
    warps = math.ceil(threads / 32)
    limits = {"shared memory": gpu.shared_per_sm // (shared_bytes + 1024),
              "threads": gpu.max_threads_per_sm // threads,
              "the number of blocks": gpu.max_blocks_per_sm}
    if registers:
        per_warp = math.ceil(registers * 32 / 256) * 256
        # A quarter of the warps, and of the registers, belongs to each of the four schedulers.
        limits["registers"] = 4 * (gpu.regs_per_sm // 4 // per_warp) // warps
    reason = min(limits, key=limits.__getitem__)
    return Places(max(1, limits[reason]), reason)


# ---- Blocks over the SMs ------------------------------------------------------------------------

@dataclass(frozen=True)
class Block:
    """One block, or `count` equal ones that follow each other in the grid."""
    count: int
    alone: float  # cycles if nothing else is on its SM
    busy: float   # cycles of the SM's pipes among them


@dataclass
class Schedule:
    cycles: float = 0       # until the last block has ended
    even: float = 0         # if the same work were spread over the SMs evenly, no place ever empty
    idle_sms: int = 0       # that never get a block
    waves: float = 0
    spans: list = field(default_factory=list)  # (sm, place, begin, end, block), if asked for

    @property
    def tail(self) -> float:
        """Share of the time that uneven work costs."""
        return 1 - self.even / self.cycles if self.cycles else 0.0


class Sm:
    """The blocks on one SM. All slow down together when they ask for more than the pipes have."""

    def __init__(self) -> None:
        self.now = 0.0
        # Each [cycles left if alone, share of the pipes, place, begin, number of the block].
        self.running: list[list] = []
        self.version = 0  # events of an earlier one no longer hold

    def slowdown(self) -> float:
        return max(1.0, sum(r[1] for r in self.running))

    def advance(self, time: float) -> None:
        done = (time - self.now) / self.slowdown()
        for r in self.running:
            r[0] -= done
        self.now = time

    def next_end(self) -> float:
        return self.now + min(r[0] for r in self.running) * self.slowdown()


def schedule(blocks: list[Block], sms: int, per_sm: int, spans: bool = False) -> Schedule:
    """Runs the grid. Equal blocks in a large grid keep all SMs in step: those are counted, not
    run."""
    total = sum(b.count for b in blocks)
    result = Schedule(waves=total / (sms * per_sm), idle_sms=max(0, sms - total))
    speed = [max(b.alone / min(per_sm, math.ceil(total / sms)), b.busy) for b in blocks]
    result.even = sum(b.count * s for b, s in zip(blocks, speed)) / sms
    if len(blocks) == 1 and not spans:
        block = blocks[0]
        most = math.ceil(total / sms)
        rounds, rest = divmod(most, per_sm)
        result.cycles = rounds * max(block.alone, per_sm * block.busy)
        if rest:
            result.cycles += max(block.alone, rest * block.busy)
        return result
    if total > 40 * sms * per_sm and not spans:  # the tail is one block in 40
        result.cycles = result.even + blocks[-1].alone
        return result
    queue = [b for b in blocks for _ in range(b.count)]
    machines = [Sm() for _ in range(sms)]
    ends: list[tuple[float, int, int]] = []
    # Places that are free, the emptiest SM first, as at the start of a launch.
    free = [(place, index, place) for place in range(per_sm) for index in range(sms)]
    time, number = 0.0, 0
    while True:
        changed = set()
        for _, index, place in sorted(free):
            if number == total:
                break
            block = queue[number]
            machines[index].running.append([block.alone, block.busy / block.alone, place, time,
                                            number])
            changed.add(index)
            number += 1
        for index in changed | {index for _, index, _ in free}:
            sm = machines[index]
            sm.version += 1
            if sm.running:
                heapq.heappush(ends, (sm.next_end(), index, sm.version))
        free = []
        if not ends:
            break
        time = ends[0][0]
        while ends and ends[0][0] <= time * (1 + 1e-9):  # all that end together
            _, index, version = heapq.heappop(ends)
            sm = machines[index]
            if version != sm.version:
                continue
            sm.advance(time)
            done = [r for r in sm.running if r[0] <= 1e-6 * (1 + time)]
            sm.running = [r for r in sm.running if r not in done]
            for i, r in enumerate(done):
                free.append((len(sm.running) + i, index, r[2]))
                if spans:
                    result.spans.append((index, r[2], r[3], time, r[4]))
        result.cycles = time
    return result


def visited(shape: Shape, tile, rank: int) -> int:
    """Key tiles that the q tile `rank` visits."""
    last = min((rank + 1) * tile.Br, shape.Nq) - 1
    keys = min(max(last + 1 + shape.Nk - shape.Nq, 0), shape.Nk) if shape.causal else shape.Nk
    return math.ceil(keys / tile.Bc)


def blocks_of(launch: Launch, kernel: Kernel, shape: Shape, work: Work, constants: Constants) \
        -> list[Block]:
    """The blocks of a launch in the order of the grid, each with its part of the work."""
    total, tile, heads = launch.counters["blocks"], kernel.tile, shape.B * shape.Hq
    q_tiles = math.ceil(shape.Nq / tile.Br)
    exchange = work.shared.get("partial_o", 0)
    pipes = [work.tensor, work.shared_all, work.exp, max(0, work.fp32 - exchange)]
    busy = max(pipes) + (1 - HIDDEN) * (sum(pipes) - max(pipes))
    waiting = constants.barrier * work.barriers
    if total != heads * q_tiles or not shape.causal:
        # A block that does anything with tiles meets a barrier; one may walk over several q tiles.
        active = min(total, work.barriers) or total
        fills = constants.fill * max(1, heads * q_tiles / active)
        return [Block(active, (busy + waiting) / active + fills, busy / active)]
    fills = constants.fill
    # One block per head and q tile; all stages but the first begin with the last tile.
    tiles = [visited(shape, tile, i) for i in range(q_tiles)]
    if kernel.stage != "stage1_naive":
        tiles.reverse()
    share = 1 / max(1, heads * sum(tiles))
    return [Block(heads, (busy + waiting) * n * share + fills, busy * n * share) for n in tiles]


# ---- A launch, a run ----------------------------------------------------------------------------

@dataclass
class LaunchPrediction:
    launch: Launch
    work: Work
    registers: int | None  # per thread; None: not in the report, so not a limit here
    places: Places
    schedule: Schedule
    blocks: int
    seconds: float
    dram_seconds: float


@dataclass
class Prediction:
    launches: list[LaunchPrediction]

    @property
    def ms(self) -> float:
        return 1e3 * sum(x.seconds for x in self.launches)

    @property
    def main(self) -> LaunchPrediction:
        """The launch that takes longest."""
        return max(self.launches, key=lambda x: x.seconds)


def dram_bytes(launch: Launch, shape: Shape, kernel: Kernel) -> float:
    """Bytes that must come from, or go to, DRAM. K and V tiles are read again by every q tile, but
    from L2; the tensors themselves count once. Stage 1's S and P count as often as they are
    requested: L2 may deliver them when softmax reads its row again, but not faster."""
    c = launch.counters
    tensors = 2 * shape.d * shape.B * (shape.Hq * shape.Nq * 2 + 2 * shape.Hkv * shape.Nk)
    if kernel.stage != "stage1_naive":
        return tensors
    requested = c.get("global_load_bytes", 0) + c.get("global_store_bytes", 0)
    if "mma" not in c:
        return requested  # softmax
    # The tiles of Q, K and V come from L2 when they come again; those of P come once.
    tile = kernel.tile
    visits = c["mma"] * 4096 / (2 * tile.Br * tile.Bc * shape.d)
    P = 2 * visits * tile.Br * tile.Bc if "multiply_O" in launch.kernel else 0
    return requested - 16 * c["cp_async"] + P + tensors / 2


def predict(gpu: Gpu, constants: Constants, registers: dict[str, int], kernel: Kernel,
            shape: Shape, launches: list[Launch]) -> Prediction:
    parts = []
    for launch in launches:
        work = work_of(gpu, launch)
        known = registers.get(launch.kernel)
        fit = places(gpu, launch.threads, launch.shared_bytes, known)
        plan = schedule(blocks_of(launch, kernel, shape, work, constants), gpu.sms, fit.per_sm)
        bandwidth = gpu.figures.dram_gbs * 1e9 * constants.memory
        dram = dram_bytes(launch, shape, kernel) / bandwidth
        seconds = max(plan.cycles / gpu.hz, dram) + START_FILLS * constants.fill / gpu.hz
        parts.append(LaunchPrediction(launch, work, known, fit, plan, launch.counters["blocks"],
                                      seconds, dram))
    return Prediction(parts)
