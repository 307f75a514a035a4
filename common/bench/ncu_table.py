"""Reads a report of Nsight Compute and says what the lecture asks to verify, with verdicts.

Needs the `ncu-report` package (or Nsight Compute's own copy of it) and no GPU.
"""

from dataclasses import dataclass
from pathlib import Path

# What ./fa2 profile collects: sections for people who open the report, metrics for the table.
SECTIONS = ["LaunchStats", "Occupancy", "SpeedOfLight", "ComputeWorkloadAnalysis",
            "InstructionStats", "MemoryWorkloadAnalysis", "WarpStateStats"]  # fmt: skip
HMMA = "smsp__inst_executed_pipe_tensor_op_hmma.sum"
TENSOR_ACTIVE = "sm__pipe_tensor_op_hmma_cycles_active.avg.pct_of_peak_sustained_active"
INSTRUCTIONS = "smsp__inst_executed.sum"
TIME = "gpu__time_duration.sum"
DRAM_READ, DRAM_WRITE = "dram__bytes_read.sum", "dram__bytes_write.sum"
DRAM_SHARE = "dram__throughput.avg.pct_of_peak_sustained_elapsed"
WAVEFRONTS = "l1tex__data_pipe_lsu_wavefronts_mem_shared"
CONFLICTS = "l1tex__data_bank_conflicts_pipe_lsu_mem_shared"
OPCODES = "sass__inst_executed_per_opcode"
LIMITS = [f"launch__occupancy_limit_{what}" for what in ("blocks", "registers", "shared_mem",
                                                         "warps")]  # fmt: skip
PIPES = [f"sm__inst_executed_pipe_{pipe}.avg.pct_of_peak_sustained_active"
         for pipe in ("alu", "fma", "fp16", "lsu", "xu", "uniform")]  # fmt: skip
METRICS = [HMMA, TENSOR_ACTIVE, INSTRUCTIONS, TIME, DRAM_READ, DRAM_WRITE, DRAM_SHARE,
           f"{WAVEFRONTS}_op_ld.sum", f"{WAVEFRONTS}_op_st.sum",
           f"{CONFLICTS}_op_ld.sum", f"{CONFLICTS}_op_st.sum", f"{CONFLICTS}_op_ldgsts.sum",
           OPCODES, *PIPES, *LIMITS]  # fmt: skip


class NoReader(Exception):
    """ncu_report is not installed."""


@dataclass
class Shape:
    batch: int
    heads: int
    seqlen: int
    headdim: int
    causal: bool
    products: int = 2  # Q K^T and P V; the profiled kernel of stage 1 has the first alone

    def __str__(self) -> str:
        mask = "causal" if self.causal else "full"
        return f"B{self.batch} H{self.heads} N{self.seqlen} d{self.headdim} {mask}, fp16"

    @property
    def flops(self) -> float:
        one = 2.0 * self.batch * self.heads * self.seqlen**2 * self.headdim
        full = self.products * one
        return full / 2 if self.causal else full

    @property
    def least_bytes(self) -> int:
        """Q, K, V read and O written once, and LSE."""
        return self.batch * self.heads * self.seqlen * (8 * self.headdim + 4)

    @property
    def score_bytes(self) -> int:
        """Of S = Q K^T, had it been written in 16 bits."""
        return 2 * self.batch * self.heads * self.seqlen**2


def shape_of(about: dict) -> Shape:
    """Of the JSON beside a report."""
    products = 1 if about["backend"] == "stage1" else 2
    return Shape(*(about[f] for f in ("batch", "heads", "seqlen", "headdim", "causal")), products)


@dataclass
class Report:
    kernel: str
    gpu: str
    values: dict[str, float]
    opcodes: dict[str, int]  # warp instructions executed, by opcode

    def opcode(self, *names: str) -> int:
        """Also of all modifiers: "BAR" counts BAR.SYNC."""
        return sum(n for op, n in self.opcodes.items() if op.split(".")[0] in names)

    def values_kept(self) -> dict:
        """What the table reads, for who has no reader of reports."""
        kept = {name: self.values[name] for name in METRICS if name in self.values}
        return kept | {"opcodes": self.opcodes}

    @property
    def blocks_per_sm(self) -> int:
        return int(min(self.values[limit] for limit in LIMITS))

    @property
    def dram_bytes(self) -> float:
        return self.values[DRAM_READ] + self.values[DRAM_WRITE]

    @property
    def conflicts(self) -> float:
        return sum(self.values[f"{CONFLICTS}_op_{op}.sum"] for op in ("ld", "st"))

    @property
    def wavefronts(self) -> float:
        """Of loads and stores. (The metric without an operation has one per shuffle as well.)"""
        return sum(self.values[f"{WAVEFRONTS}_op_{op}.sum"] for op in ("ld", "st"))


def read(path: Path) -> Report:
    """The first kernel of a report."""
    try:
        import ncu_report
    except ImportError as error:
        raise NoReader(f"the package ncu-report is not installed ({error})") from None
    action = ncu_report.load_report(str(path)).range_by_idx(0).action_by_idx(0)
    values, opcodes = {}, {}
    for name in action.metric_names():
        metric = action.metric_by_name(name)
        try:
            value = metric.as_double()
        except Exception:  # a text, or nothing was collected
            continue
        if value is not None:
            values[name] = value
    metric = action.metric_by_name(OPCODES)
    if metric is not None and metric.has_correlation_ids():
        ids = metric.correlation_ids()
        for i in range(metric.num_instances()):
            opcodes[ids.as_string(i)] = metric.as_uint64(i)
    gpu = action.metric_by_name("device__attribute_display_name")
    return Report(action.name(), gpu.as_string() if gpu else "unknown GPU", values, opcodes)


def read_kept(about: dict) -> Report:
    """From the JSON beside a report."""
    values = about["measured"]
    return Report(about["backend"], about["gpu_model"], values, values["opcodes"])


def human(value: float) -> str:
    return f"{value:,.0f}"


def table(
    report: Report, shape: Shape, counters: dict[str, int] | None, warps: int = 0
) -> list[list[str]]:
    """Rows of what, measured, to compare with, verdict. `counters`: the simulator's, of the same
    kernel, tile and shape, with so many warps per block; None for the official kernel."""
    barriers = counters["block_barriers"] * warps if counters else None  # one by each warp
    v = report.values
    seconds = v[TIME] / 1e9
    busiest = max(PIPES, key=lambda pipe: v.get(pipe, 0))
    other = busiest.removeprefix("sm__inst_executed_pipe_").split(".")[0]
    blocks = report.blocks_per_sm
    rows = [
        ["time", f"{v[TIME] / 1e6:.3f} ms", f"{shape.flops / seconds / 1e12:.0f} TFLOP/s",
         "with the profiler attached"],
        ["tensor-core instructions", human(v[HMMA]),
         f"least possible {human(least_mma(shape))}" + simulated(counters, "mma"),
         equal(v[HMMA], counters and counters["mma"])],
        ["tensor pipe active", f"{v[TENSOR_ACTIVE]:.1f}% of cycles",
         f"busiest other pipe: {other} {v.get(busiest, 0):.1f}%",
         verdict(v[TENSOR_ACTIVE] > v.get(busiest, 0), "dominates", "does not dominate")],
        ["instructions per tensor instruction", f"{v[INSTRUCTIONS] / max(v[HMMA], 1):.2f}", "", ""],
        ["DRAM bytes", human(report.dram_bytes),
         f"2 B H Nq Nk = {human(shape.score_bytes)}, least {human(shape.least_bytes)}",
         verdict(report.dram_bytes < shape.score_bytes / 4,
                 f"1/{shape.score_bytes / report.dram_bytes:.0f} of it", "not far below")],
        ["DRAM rate", f"{report.dram_bytes / seconds / 1e9:.0f} GB/s",
         f"{v[DRAM_SHARE]:.1f}% of the peak",
         verdict(v[DRAM_SHARE] < 50, "not bound by memory", "memory matters")],
        ["blocks per SM", str(blocks), limits(report),
         verdict(blocks in (1, 2), "1 or 2, as said", "not 1 or 2")],
        ["shared wavefronts (loads and stores)", human(report.wavefronts), simulated(
            counters, *(f"shared_wavefronts_{p}" for p in ("tiles", "statistics", "partial_o"))),
         ""],
        ["bank conflicts (loads and stores)", human(report.conflicts), simulated(
            counters and {"excess": excess(counters)}, "excess"),
         equal(report.conflicts, counters and excess(counters))],
        ["barrier instructions (BAR)", human(report.opcode("BAR")), simulated(
            barriers and {"all": barriers}, "all"), equal(report.opcode("BAR"), barriers)],
        ["shuffles (SHFL)", human(report.opcode("SHFL")), simulated(counters, "shuffles"),
         equal(report.opcode("SHFL"), counters and counters["shuffles"])],
        ["ldmatrix (LDSM)", human(report.opcode("LDSM")), simulated(counters, "ldmatrix"),
         equal(report.opcode("LDSM"), counters and counters["ldmatrix"])],
    ]  # fmt: skip
    return rows


def least_mma(shape: Shape) -> int:
    """m16n8k16 is 4096 FLOP; of the visible half of S if causal."""
    return int(shape.flops // 4096)


def excess(counters: dict[str, int]) -> int:
    parts = ("tiles", "statistics", "partial_o")
    return sum(counters[f"shared_wavefronts_{p}"] - counters[f"shared_wavefronts_ideal_{p}"]
               for p in parts)  # fmt: skip


def simulated(counters: dict[str, int] | None, *names: str) -> str:
    return f" simulator {human(sum(counters[name] for name in names))}" if counters else ""


def verdict(holds: bool, yes: str, no: str) -> str:
    return f"yes: {yes}" if holds else f"NO: {no}"


def equal(measured: float, expected: float | None) -> str:
    if expected is None:
        return ""
    if measured == expected:
        return "equal"
    if not expected:
        return f"{human(measured)} more than none"
    return f"{(measured / expected - 1) * 100:+.2f}%"


def limits(report: Report) -> str:
    names = {limit: int(report.values[limit]) for limit in LIMITS}
    return "limits: " + ", ".join(f"{limit.removeprefix('launch__occupancy_limit_')} {n}"
                                  for limit, n in names.items())  # fmt: skip


def markdown(title: str, about: list[str], rows: list[list[str]]) -> str:
    lines = [f"# {title}", "", *about, "", "| what | measured | beside | verdict |",
             "|---|---|---|---|"]  # fmt: skip
    lines += [f"| {' | '.join(cell.strip() for cell in row)} |" for row in rows]
    return "\n".join(lines) + "\n"
