"""What the warps of one block do, in model cycles: the simulator's steps, timed with the pipes of
model.py. The block has its SM for itself.

A phase first takes what it needs of shared memory, which all warps of the block share evenly, then
what it needs of its own scheduler: tensor cores, or fp32 and exponentials side by side. At a block
barrier a warp waits for the last one, and `barrier` cycles more. Half of `fill` passes until the
first copies have landed, the other half until the last stores have gone; later copies have landed
when they are waited for.
"""
from dataclasses import dataclass, field

from . import model
from .gpus import tensor_flops_per_clock

COPY, QK, SOFTMAX, BARRIER = "copy wait", "QK MMA", "softmax", "barrier wait"
PV, EXCHANGE, RESCALE, EPILOGUE = "PV MMA", "exchange", "rescale", "epilogue"
NAMES = (COPY, QK, SOFTMAX, BARRIER, PV, EXCHANGE, RESCALE, EPILOGUE)


@dataclass
class Phase:
    name: str
    shared: float = 0  # wavefronts
    own: float = 0     # cycles of the warp's scheduler
    barrier: bool = False
    counters: dict[str, int] = field(default_factory=dict)

    def add(self, other: "Phase") -> None:
        self.shared += other.shared
        self.own += other.own
        for name, n in other.counters.items():
            self.counters[name] = self.counters.get(name, 0) + n


@dataclass(frozen=True)
class Span:
    warp: int
    name: str
    begin: float
    end: float
    counters: dict[str, int]


def picked(done: dict[str, int], *prefixes: str) -> dict[str, int]:
    return {n: v for n, v in done.items() if n.startswith(prefixes)}


class Costs:
    """Of one warp's work on its scheduler, a quarter of the SM."""

    def __init__(self, gpu: model.Gpu):
        self.mma = 4 * 4096 / tensor_flops_per_clock(gpu.figures, gpu.sms)
        self.fp32 = 4 / gpu.figures.fp32
        self.exp = 4 / gpu.figures.exp2

    def phase(self, name: str, done: dict[str, int]) -> Phase:
        fp32 = sum(v for n, v in done.items() if n.startswith("fp32_"))
        exp = sum(v for n, v in done.items() if n.startswith("exp2_"))
        shared = sum(v for n, v in done.items() if n.startswith("shared_wavefronts_")
                     and "_ideal_" not in n)
        own = done.get("mma", 0) * self.mma + max(fp32 * self.fp32, exp * self.exp)
        return Phase(name, shared, own, False, done)


def phases_of(costs: Costs, steps: list[list], use: model.Constants) -> list[Phase]:
    """The steps of one warp as phases. Steps are [launch, block, warp, operation, awaited copies,
    counters]."""
    phases: list[Phase] = []
    product, copies_seen = QK, False

    def put(phase: Phase) -> None:
        if phase.shared == 0 and phase.own == 0 and not phase.barrier:
            return
        if phases and phases[-1].name == phase.name and not (phases[-1].barrier or phase.barrier):
            phases[-1].add(phase)
        else:
            phases.append(phase)

    for _, _, _, operation, awaited, done in steps:
        exchange = picked(done, "shared_wavefronts_partial_o")
        if exchange:
            put(costs.phase(EXCHANGE, exchange | picked(done, "fp32_add_O")))
        on_O = picked(done, "fp32_mul_O", "fp32_fma_O") | \
            ({} if exchange else picked(done, "fp32_add_O"))
        statistics = picked(done, "shared_wavefronts_statistics", "exp2_", "fp32_add_S",
                            "fp32_mul_S", "fp32_fma_S", "fp32_add_stat", "fp32_mul_stat",
                            "fp32_fma_stat")
        if operation == "exit":
            put(costs.phase(EPILOGUE, on_O | statistics | picked(done, "global_store")))
            phases[-1].own += use.fill / 2
            continue
        if on_O and not picked(statistics, "exp2_", "fp32"):
            put(costs.phase(RESCALE, on_O | statistics))
        else:
            put(costs.phase(SOFTMAX, statistics))
            put(costs.phase(RESCALE, on_O))
        if operation.startswith("ldmatrix"):
            product = PV if operation.endswith("_trans") else QK
        if operation.startswith(("ldmatrix", "mma")):
            if done.get("mbarrier_waits") and not copies_seen:
                put(Phase(COPY, own=use.fill / 2))
                copies_seen = True
            put(costs.phase(product, picked(done, "mma", "ldmatrix", "shared_wavefronts_tiles")))
        if operation == "block_barrier":
            first = awaited and not copies_seen
            copies_seen |= awaited
            put(Phase(COPY if first else BARRIER, own=use.fill / 2 if first else 0, barrier=True))
    return phases


@dataclass
class _Warp:
    index: int
    phases: list[Phase]
    at: int = 0
    begin: float = 0
    shared: float = 0
    own: float = 0
    arrived: bool = False

    @property
    def done(self) -> bool:
        return self.at == len(self.phases)

    def start(self, time: float) -> None:
        self.begin, self.arrived = time, False
        if not self.done:
            self.shared, self.own = self.phases[self.at].shared, self.phases[self.at].own


def run(programs: list[list[Phase]], barrier_cycles: float) -> list[Span]:
    """Runs the warps of one block against each other."""
    warps = [_Warp(i, phases) for i, phases in enumerate(programs)]
    spans: list[Span] = []
    time = 0.0

    def finish(warp: _Warp, end: float) -> None:
        phase = warp.phases[warp.at]
        spans.append(Span(warp.index, phase.name, warp.begin, end, phase.counters))
        warp.at += 1
        warp.start(end)

    for warp in warps:
        warp.start(0.0)
    while active := [w for w in warps if not w.done]:
        for warp in active:  # nothing left to do: go on, or wait at the barrier
            while not warp.done and not warp.arrived and warp.shared <= 0 and warp.own <= 0:
                if warp.phases[warp.at].barrier:
                    warp.arrived = True
                else:
                    finish(warp, time)
        active = [w for w in warps if not w.done]
        working = [w for w in active if not w.arrived]
        if not working:
            for warp in active:  # a barrier releases all
                finish(warp, time + barrier_cycles)
            time += barrier_cycles
            continue
        sharing = [w for w in working if w.shared > 0]
        left = [w.shared * len(sharing) for w in sharing] + \
            [w.own for w in working if w.shared <= 0]
        step = min(left)
        for warp in working:
            if warp.shared > 0:
                warp.shared -= step / len(sharing)
                if warp.shared < 1e-9:
                    warp.shared = 0
            else:
                warp.own -= step
                if warp.own < 1e-9:
                    warp.own = 0
        time += step
    return [s for s in spans if s.end > s.begin]


def block(gpu: model.Gpu, use: model.Constants, steps: list[list]) -> list[Span]:
    """The spans of block 0 of every launch, one launch after the other."""
    costs, spans, offset = Costs(gpu), [], 0.0
    for launch in sorted({s[0] for s in steps}):
        of_launch = [s for s in steps if s[0] == launch and s[1] == 0]
        warps = max(s[2] for s in of_launch) + 1
        programs = [phases_of(costs, [s for s in of_launch if s[2] == w], use)
                    for w in range(warps)]
        found = run(programs, use.barrier)
        spans += [Span(s.warp, s.name, s.begin + offset, s.end + offset, s.counters) for s in found]
        offset = max(s.end for s in spans)
    return spans
