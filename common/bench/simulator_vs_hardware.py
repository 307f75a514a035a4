#!/usr/bin/env python3
"""The simulator's counts of every stage beside Nsight Compute's.

  simulator_vs_hardware.py collect --out DIR   profile every stage (needs a GPU, PyTorch and ncu)
  simulator_vs_hardware.py count               the same calls on the simulator (needs a build)
  simulator_vs_hardware.py table               write notes/simulator_vs_hardware.md from the two
                                               files; fails where a difference has no reason
"""

import csv
import glob
import io
import os
import re
import subprocess
import sys
import textwrap
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
NOTES = ROOT / "notes"
sys.path[:0] = [str(ROOT / "common" / "python"), str(ROOT / "common" / "bench")]

import sweep_file  # noqa: E402

from fa2course.launcher.paths import write_whole  # noqa: E402

HARDWARE, SIMULATOR = (NOTES / f"simulator_vs_hardware_{side}.csv" for side in ("ncu", "sim"))
COLUMNS = ["stage", "row", "kernel", "d", "causal", "quantity", "value"]

# ---- The calls: every stage once per shape, tiles "same" -----------------------------------------

B, H, N = 1, 2, 512
Br, Bc = 64, 128  # of the tile "same"
SHAPES = [(d, causal) for d in (64, 128) for causal in (0, 1)]
BACKENDS = ["stage1", "stage2", "stage3", "stage4", "stage5", "stage6_paper", "stage6"]
BLOCKS = {"multiply_S": B * H * (N // Br) * (N // Bc), "softmax_P": B * H * N // 4,
          "multiply_O": B * H * (N // Br), "fa1_forward": B * H,
          "fa2_forward": B * H * (N // Br)}  # fmt: skip


def kernels_of(backend: str) -> list[str]:
    """In the order in which a call launches them."""
    special = {"stage1": ["multiply_S", "softmax_P", "multiply_O"], "stage2": ["fa1_forward"]}
    return special.get(backend, ["fa2_forward"])


def inputs(d: int):
    """The same numbers on both machines: how often the row lazy rescales depends on them."""
    import numpy as np

    rng = np.random.default_rng(0)
    return [rng.standard_normal((B, H, N, d)).astype(np.float16) for _ in "qkv"]


# ---- collect: what Nsight Compute counts ---------------------------------------------------------

L1_WAVEFRONTS = "l1tex__data_pipe_lsu_wavefronts_mem_shared"
L1_CONFLICTS = "l1tex__data_bank_conflicts_pipe_lsu_mem_shared"
GLOBAL_BYTES = "smsp__sass_data_bytes_mem_global"
# Totals of a launch.
TOTALS = ["launch__grid_size", "launch__block_size",
          *(f"{name}_op_{op}.sum" for name in (L1_WAVEFRONTS, L1_CONFLICTS, GLOBAL_BYTES)
            for op in ("ld", "st"))]  # fmt: skip
# One value per instruction of the kernel. They are added up by opcode, as "<what> <opcode>".
PER_INSTRUCTION = {
    "warps": ("inst_executed", {"HMMA", "BAR", "SHFL"}),
    "threads": ("thread_inst_executed_true", {"MUFU", "LDGSTS"}),
    "wavefronts": ("memory_l1_wavefronts_shared", {"LDSM", "LDS", "STS"}),
    "ideal": ("memory_l1_wavefronts_shared_ideal", {"LDSM", "LDS", "STS"}),
}


def call_all() -> None:
    """What ncu watches."""
    import backends
    import torch

    for d, causal in SHAPES:
        q, k, v = (torch.from_numpy(x).cuda() for x in inputs(d))
        for name in BACKENDS:
            backends.make(name, "same").call(q, k, v, bool(causal))
    torch.cuda.synchronize()


def collect(out: Path) -> None:
    from fa2course.launcher.commands.profile import find_ncu

    ncu = find_ncu()
    if not ncu:
        sys.exit("simulator_vs_hardware: Nsight Compute (ncu) is not installed")
    out.mkdir(parents=True, exist_ok=True)
    report = out / "simulator_vs_hardware.ncu-rep"
    metrics = [*TOTALS, *(name for name, _ in PER_INSTRUCTION.values())]
    command = [ncu, "--clock-control", "none", "--force-overwrite", "--export", str(report),
               "--kernel-name", f"regex:^({'|'.join(BLOCKS)})$", "--metrics", ",".join(metrics),
               sys.executable, __file__, "call"]  # fmt: skip
    if subprocess.run(command).returncode != 0 or not report.exists():
        sys.exit("simulator_vs_hardware: ncu failed")
    write(out / HARDWARE.name, environment(ncu), read_report(report))


def environment(ncu: str) -> str:
    import torch

    from fa2course.launcher import gpu
    from fa2course.launcher.commands.compare import commit

    shown = subprocess.run([ncu, "--version"], capture_output=True, text=True).stdout
    version = re.search(r"Version (\S+)", shown).group(1)
    found = gpu.look()
    return (f"{found.name}, driver {found.driver}, CUDA {found.nvcc_version}, PyTorch "
            f"{torch.__version__}, Nsight Compute {version}, commit "
            f"{os.environ.get('FA2_COMMIT') or commit()}")  # fmt: skip


def read_report(report: Path) -> list[list]:
    """Names do not say which stage a kernel is of: launches are told apart by their order."""
    for place in ("/usr/local/cuda*/nsight-compute-*", "/opt/nvidia/nsight-compute/*"):
        sys.path += sorted(glob.glob(f"{place}/extras/python"))
    import ncu_report

    launches = ncu_report.load_report(str(report)).range_by_idx(0)
    actions = [launches.action_by_idx(i) for i in range(launches.num_actions())]
    calls = [(backend, kernel, d, causal) for d, causal in SHAPES for backend in BACKENDS
             for kernel in kernels_of(backend)]  # fmt: skip
    seen = [(a.name(), a.metric_by_name("launch__grid_size").as_uint64()) for a in actions]
    if seen != [(kernel, BLOCKS[kernel]) for _, kernel, *_ in calls]:
        sys.exit(f"simulator_vs_hardware: other kernels ran than were called: {seen}")
    return [[*sweep_file.stage_of(backend), kernel, d, causal, *item]
            for action, (backend, kernel, d, causal) in zip(actions, calls)
            for item in counts_of(action).items()]  # fmt: skip


def counts_of(action) -> dict[str, int]:
    found = defaultdict(int)
    for name in TOTALS:
        found[name] = round(action.metric_by_name(name).as_double())
    for what, (name, opcodes) in PER_INSTRUCTION.items():
        metric = action.metric_by_name(name)
        addresses = metric.correlation_ids()
        for i in range(metric.num_instances()):
            opcode = opcode_of(action.sass_by_pc(addresses.as_uint64(i)))
            if opcode.split(".")[0] in opcodes:
                found[f"{what} {opcode}"] += round(metric.as_double(i))
    return found


def opcode_of(sass: str) -> str:
    """ "@!P6 STS.128 [R8], R4" is a STS.128."""
    return next(word for word in sass.split() if not word.startswith("@"))


# ---- count: what the simulator counts ------------------------------------------------------------


def count() -> list[list]:
    from fa2course import attention

    rows = []
    for d, causal in SHAPES:
        q, k, v = inputs(d)
        for name in BACKENDS:
            stage, row = sweep_file.stage_of(name)
            found: dict[str, int] = {}
            attention(q, k, v, stage=stage, variant=row, tiles="same", causal=bool(causal),
                      counters=found)  # fmt: skip
            rows += [[stage, row, "", d, causal, quantity, value]
                     for quantity, value in found.items() if not quantity.startswith("fp32")]
    return rows


# ---- The two files -------------------------------------------------------------------------------


def write(path: Path, about: str, rows: list[list]) -> None:
    text = io.StringIO()
    text.write(f"# {about}\n")
    csv.writer(text, lineterminator="\n").writerows([COLUMNS, *rows])
    write_whole(path, text.getvalue())
    print(f"Written: {path}")


def read(path: Path) -> tuple[str, dict]:
    """What was measured where, and {(backend, d, causal): {kernel: {quantity: value}}}."""
    with path.open() as file:
        about = file.readline().removeprefix("# ").strip()
        found = defaultdict(lambda: defaultdict(dict))
        for r in csv.DictReader(file):
            row = f"{r['stage']} {r['row']}".strip()
            call = row, int(r["d"]), int(r["causal"])
            found[call][r["kernel"]][r["quantity"]] = int(r["value"])
    return about, found


# ---- table: what is compared, and why it differs -------------------------------------------------

ROWS = [" ".join(map(str, sweep_file.stage_of(name))).strip() for name in BACKENDS]


@dataclass
class Call:
    """One call: what the simulator counted, and Nsight Compute for each of its kernels."""

    d: int
    sim: dict[str, int]
    launches: list[dict[str, int]]

    def total(self, name: str) -> int:
        return sum(launch[name] for launch in self.launches)

    def opcodes(self, what: str, *opcodes: str) -> int:
        """With all modifiers: LDS counts LDS.128, too, but not LDSM."""
        names = tuple(f"{what} {opcode}." for opcode in opcodes)
        return sum(value for launch in self.launches for name, value in launch.items()
                   if f"{name}.".startswith(names))  # fmt: skip

    def shared(self, what: str) -> int:
        """Of the simulator: "wavefronts", or "wavefronts_ideal" without bank conflicts."""
        return sum(self.sim[f"shared_{what}_{use}"] for use in ("tiles", "statistics",
                                                                "partial_o"))  # fmt: skip

    def owners(self, per_warp: int) -> int:
        """Times that a warp's owners of rows, so many in a warp, went over a tile of S: each then
        takes one exponential, alpha. (Stages 2 to 4.)"""
        return self.sim["exp2_stats"] // per_warp

    def per_instruction(self, what: str) -> int:
        return self.opcodes(what, "LDSM", "LDS", "STS")

    @property
    def barriers(self) -> float:
        """Each warp of a block executes BAR."""
        assert {launch["launch__block_size"] for launch in self.launches} == {128}
        return self.opcodes("warps", "BAR") / 4

    @property
    def conflicts(self) -> int:
        return self.per_instruction("wavefronts") - self.per_instruction("ideal")

    @property
    def l1_conflicts(self) -> int:
        return self.total(f"{L1_CONFLICTS}_op_ld.sum") + self.total(f"{L1_CONFLICTS}_op_st.sum")


@dataclass
class Quantity:
    name: str
    source: str
    expected: Callable[[Call], int]
    measured: Callable[[Call], float]


@dataclass
class Reason:
    """Why a quantity of some rows differs: `change` is by how much, for every shape exactly; None
    where it varies from run to run."""

    quantity: str
    rows: list[str]
    text: str
    change: Callable[[Call], int] | None


QUANTITIES = [
    Quantity("mma", "`inst_executed` of `HMMA`",
             lambda c: c.sim["mma"], lambda c: c.opcodes("warps", "HMMA")),
    Quantity("exp2", "`thread_inst_executed_true` of `MUFU.EX2`",
             lambda c: c.sim["exp2_p"] + c.sim["exp2_stats"],
             lambda c: c.opcodes("threads", "MUFU.EX2")),
    Quantity("block barriers", "`inst_executed` of `BAR` over the four warps of a block",
             lambda c: c.sim["block_barriers"], lambda c: c.barriers),
    Quantity("shuffles", "`inst_executed` of `SHFL`",
             lambda c: c.sim["shuffles"], lambda c: c.opcodes("warps", "SHFL")),
    Quantity("cp.async bytes", "`thread_inst_executed_true` of `LDGSTS`, 16 bytes each",
             lambda c: 16 * c.sim["cp_async"], lambda c: 16 * c.opcodes("threads", "LDGSTS")),
    Quantity("global bytes loaded", f"`{GLOBAL_BYTES}_op_ld`, and the bytes of cp.async",
             lambda c: c.sim["global_load_bytes"],
             lambda c: c.total(f"{GLOBAL_BYTES}_op_ld.sum") + 16 * c.opcodes("threads", "LDGSTS")),
    Quantity("global bytes stored", f"`{GLOBAL_BYTES}_op_st`",
             lambda c: c.sim["global_store_bytes"],
             lambda c: c.total(f"{GLOBAL_BYTES}_op_st.sum")),
    Quantity("shared wavefronts", "`memory_l1_wavefronts_shared` of `LDSM`, `LDS` and `STS`; "
             "what cp.async writes is in neither count",
             lambda c: c.shared("wavefronts"), lambda c: c.per_instruction("wavefronts")),
    Quantity("bank conflicts", "The same less `memory_l1_wavefronts_shared_ideal`",
             lambda c: c.shared("wavefronts") - c.shared("wavefronts_ideal"),
             lambda c: c.conflicts),
    Quantity("shared wavefronts in the L1", f"`{L1_WAVEFRONTS}_op_ld` and `_op_st`",
             lambda c: c.per_instruction("wavefronts"),
             lambda c: c.total(f"{L1_WAVEFRONTS}_op_ld.sum")
             + c.total(f"{L1_WAVEFRONTS}_op_st.sum")),
    Quantity("bank conflicts in the L1", f"`{L1_CONFLICTS}_op_ld` and `_op_st`",
             lambda c: c.conflicts, lambda c: c.l1_conflicts),
]  # fmt: skip

REASONS = [
    Reason("shared wavefronts", ["1"],
           "every lane reads the 32 partial maxima of its row, and later the 32 sums, one after "
           "the other: 64 wavefronts a row. The compiler makes 16 `LDS.128` of them; one whose "
           "lanes all want the same 16 bytes takes 2 wavefronts: 32 a row.",
           lambda c: -32 * B * H * N),
    Reason("shared wavefronts", ["2", "3"],
           "the owner of a row reads its 16 partial maxima, and later the 16 sums, one after the "
           "other, with 16 lanes on a bank each time: 512 wavefronts per warp of owners and tile. "
           "The compiler makes 8 `LDS.128` of them, 16 wavefronts each: 128.",
           lambda c: -384 * c.owners(32)),
    Reason("shared wavefronts", ["4"],
           "the same with 4 partial values and 16 owners in a warp: 16 wavefronts per warp and "
           "tile become 4. And the source reads `f_O` and `f_P` again for every 16 columns of d; "
           "the compiler reads them once, since no barrier lies between.",
           lambda c: -(12 + 4 * (c.d // 16 - 1)) * c.owners(16)),
    Reason("bank conflicts", ["2", "3"],
           "of those 512 wavefronts 480 are conflicts, of those 128 are 96. The conflicts of the "
           "writers of the partial values, 48 per warp and tile, are in both.",
           lambda c: -384 * c.owners(32)),
    Reason("bank conflicts", ["4"],
           "of those 16 wavefronts 8 are conflicts, of those 4 are none.",
           lambda c: -8 * c.owners(16)),
    Reason("shared wavefronts in the L1", ["2", "3", "4"],
           "what the next table has more, since a conflict is a wavefront.",
           lambda c: c.l1_conflicts - c.conflicts),
    Reason("bank conflicts in the L1", ["2", "3", "4"],
           "some stores wait for another reason than their addresses, which the L1 counts as a "
           "conflict. It depends on timing: stages 2 and 3 execute the same stores, and differ. "
           "Stage 1, which stores while nothing runs ldmatrix or cp.async, shows none: probably "
           "the stores wait for those. Loads show none here.", None),
]  # fmt: skip


class Unexplained(Exception):
    """A difference without a reason, or a reason without its difference."""


def calls(hardware: Path, simulator: Path) -> dict[tuple, Call]:
    """By (row, d, causal)."""
    measured, counted = read(hardware)[1], read(simulator)[1]
    wanted = [(row, *shape) for shape in SHAPES for row in ROWS]
    if set(measured) != set(wanted) or set(counted) != set(wanted):
        raise Unexplained("the two files do not hold the same calls")
    found = {key: Call(key[1], counted[key][""], list(measured[key].values())) for key in wanted}
    for key, call in found.items():
        if call.total("launch__grid_size") != call.sim["blocks"]:
            raise Unexplained(f"stage {key}: another number of blocks")
    return found


def check(quantity: Quantity, row: str, of_row: list[Call]) -> None:
    """Equal for every shape and no reason, or one reason that gives the difference of each."""
    reasons = [r for r in REASONS if r.quantity == quantity.name and row in r.rows]
    differences = [quantity.measured(c) - quantity.expected(c) for c in of_row]
    if not any(differences) and not reasons:
        return
    if not any(differences) or len(reasons) != 1:
        raise Unexplained(f"{quantity.name} of stage {row}: {len(reasons)} reasons for the "
                          f"differences {differences}")  # fmt: skip
    change = reasons[0].change
    if change and [change(c) for c in of_row] != differences:
        raise Unexplained(f"{quantity.name} of stage {row}: the reason explains "
                          f"{[change(c) for c in of_row]}, not {differences}")  # fmt: skip


def cell(quantity: Quantity, call: Call) -> str:
    a, b = quantity.expected(call), quantity.measured(call)
    if a == b:
        return f"{a:,}"
    return f"{a:,} → {b:,}" + (f" ({b / a:.2f})" if a else "")


HEAD = """\
# The simulator's counts against Nsight Compute's

Every stage at B1 H2 N512, fp16, tiles `same`, with the same inputs on both machines; stage 1 is the
sum of its three kernels. Hardware:
{about}.

One number: both count the same. a → b (b / a): the simulator counts a, Nsight Compute b, and a
sentence below the table says why. The reason gives each difference exactly, for every shape, or
this file is not written; only that of the last table cannot, since it depends on timing. In the
last two tables both sides are Nsight Compute's: a per instruction, b by the L1 cache's counters.

Written by common/bench/simulator_vs_hardware.py from simulator_vs_hardware_sim.csv and
simulator_vs_hardware_ncu.csv.
"""


def markdown(hardware: Path = HARDWARE, simulator: Path = SIMULATOR) -> str:
    found = calls(hardware, simulator)
    about = "\n".join(textwrap.wrap(read(hardware)[0], 100))
    lines = [HEAD.format(about=about)]
    titles = [f"d{d} {'causal' if causal else 'full'}" for d, causal in SHAPES]
    for quantity in QUANTITIES:
        lines += [f"## {quantity.name}", "", f"{quantity.source}.", "",
                  f"| stage | {' | '.join(titles)} |",
                  f"|---{'|---' * len(titles)}|"]  # fmt: skip
        for row in ROWS:
            of_row = [found[row, *shape] for shape in SHAPES]
            check(quantity, row, of_row)
            lines.append(f"| {row} | {' | '.join(cell(quantity, c) for c in of_row)} |")
        for reason in REASONS:
            if reason.quantity == quantity.name:
                stages = f"Stage{'s' * (len(reason.rows) > 1)} {', '.join(reason.rows)}"
                lines += ["", *textwrap.wrap(f"{stages}: {reason.text}", 100)]
        lines.append("")
    return "\n".join(lines[:-1]) + "\n"


def main(words: list[str]) -> int:
    if words == ["call"]:  # by collect, under ncu
        call_all()
    elif len(words) == 3 and words[:2] == ["collect", "--out"]:
        collect(Path(words[2]))
    elif words == ["count"]:
        write(SIMULATOR, "the simulator", count())
    elif words == ["table"]:
        try:
            write_whole(NOTES / "simulator_vs_hardware.md", markdown())
        except Unexplained as error:
            print(f"simulator_vs_hardware: {error}", file=sys.stderr)
            return 1
    else:
        print(__doc__, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
