#!/usr/bin/env python3
"""Decides each claim of the course's sources from the committed measurements, and writes
notes/claims.md. `python common/bench/claims.py [--check | --count]`: --check only compares; --count
lets the simulator count today's kernels first (notes/claims_counters.json; that needs a build).

A claim about numbers is decided by a function of the evidence, so that its verdict cannot go stale;
one about texts or code by the line it cites (./fa2 notes notes/claims.md checks those of this
repository). Needs no GPU.
"""

import functools
import json
import re
import statistics
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
NOTES = ROOT / "notes"
sys.path[:0] = [str(ROOT / "common" / "python"), str(ROOT / "common" / "bench")]

import ncu_table  # noqa: E402
import sweep_file  # noqa: E402

from fa2course.launcher.paths import write_whole  # noqa: E402

HOLDS, PARTLY, WRONG, OPEN = "holds", "partly", "does not hold", "not decided here"
CODE = "csrc/flash_attn/src"


# ---- Evidence ------------------------------------------------------------------------------------


class Evidence:
    @functools.cached_property
    def sweep(self) -> list[sweep_file.Row]:
        return sweep_file.read(NOTES / "fa2_sweep.txt")[1]

    @functools.cached_property
    def about(self) -> list[str]:
        return sweep_file.read(NOTES / "fa2_sweep.txt")[0]

    @functools.cached_property
    def layer(self) -> dict:
        return json.loads((NOTES / "attention_layer_h200.json").read_text())

    @functools.cached_property
    def choice(self) -> dict[str, str]:
        """SDPA's own choice of a backend, by case."""
        lines = (NOTES / "sdpa_choice.txt").read_text().splitlines()[1:]
        return {line[:28].strip(): line[28:].split()[0] for line in lines}

    @functools.cached_property
    def gemm(self) -> float:
        """TFLOP/s of cuBLAS in the sweep's process."""
        return float(re.search(r"cuBLAS GEMM 8192\^3 (\d+) TFLOP/s", "\n".join(self.about)).group(1))

    @functools.cached_property
    def profiles(self) -> dict[str, tuple[ncu_table.Shape, ncu_table.Report]]:
        """What Nsight Compute measured, N 4096, d 128, full."""
        found = {}
        for name, suffix in (("official", "_official"), ("stage 2", "_stage2"), ("stage 6", "")):
            about = json.loads((NOTES / f"fa2_ncu_4096_d128{suffix}.json").read_text())
            found[name] = ncu_table.shape_of(about), ncu_table.read_kept(about)
        return found

    def rows(self, backend: str, **wanted) -> list[sweep_file.Row]:
        """Rows that ran, of the B2 H16 sweep unless `batch` says otherwise."""
        wanted = {"batch": 2, "heads": 16} | wanted
        if backend.startswith("stage"):
            wanted.setdefault("tiles", "tuned")
        return [row for row in self.sweep if row.backend == backend and row.ms is not None
                and all(getattr(row, key) == value for key, value in wanted.items())]  # fmt: skip

    def row(self, backend: str, seqlen: int, headdim: int, causal: bool = False, **wanted):
        return self.rows(backend, seqlen=seqlen, headdim=headdim, causal=causal, **wanted)[0]

    @functools.cached_property
    def counted(self) -> dict[str, dict[str, int]]:
        return json.loads((NOTES / "claims_counters.json").read_text())

    def counters(self, stage: int, variant: str = "", N: int = 256) -> dict[str, int]:
        """The simulator's, of one head, with one tile for all stages, d 64, full."""
        return self.counted[key_of(stage, variant, N)]

    def parent(self, stage: int, headdim: int, batch: int, heads: int) -> float:
        """Speedup over the stage before, N 2048, one tile for all."""
        here, before = (self.row(f"stage{n}", 2048, headdim, batch=batch, heads=heads, tiles="same")
                        for n in (stage, stage - 1))  # fmt: skip
        return before.ms / here.ms

    def over(self, fast: int, slow: int, headdim: int, batch: int, heads: int) -> float:
        rows = [self.row(f"stage{n}", 2048, headdim, batch=batch, heads=heads, tiles="same")
                for n in (slow, fast)]  # fmt: skip
        return rows[0].ms / rows[1].ms


COUNTED = [(n, v, N) for n, v in ((2, ""), (3, ""), (4, ""), (5, ""), (6, "paper"), (6, "lazy"))
           for N in (256, 512, 1024) if N < 1024 or n in (2, 3)]  # fmt: skip


def key_of(stage: int, variant: str, N: int) -> str:
    return f"stage{stage}{'_' * bool(variant)}{variant} N{N}"


def simulate() -> dict[str, dict[str, int]]:
    """What today's kernels count."""
    import numpy as np

    from fa2course import attention

    counted = {}
    for stage, variant, N in COUNTED:
        rng = np.random.default_rng(0)
        q, k, v = (rng.standard_normal((1, 1, N, 64)).astype(np.float16) for _ in "qkv")
        found: dict[str, int] = {}
        attention(q, k, v, stage=stage, variant=variant, tiles="same", counters=found)
        counted[key_of(stage, variant, N)] = found
    return counted


def spread(values) -> str:
    """ "a to b", or one number."""
    values = list(values)
    low, high = (f"{v:.3g}" for v in (min(values), max(values)))
    return low if low == high else f"{low} to {high}"


def official(file: str, line: int, name: str) -> str:
    return f"{file}:{line} `{name}`"


# ---- Claims --------------------------------------------------------------------------------------


@dataclass
class Claim:
    id: str
    text: str
    decide: Callable[[Evidence], tuple[str, str]]  # verdict, what decides it


def fixed(verdict: str, why: str) -> Callable[[Evidence], tuple[str, str]]:
    return lambda e: (verdict, why)


def judged(holds: bool, why: str, partly: bool = False) -> tuple[str, str]:
    return (HOLDS if holds else PARTLY if partly else WRONG), why


def twice_fa1(e):
    full = e.over(6, 2, 128, 16, 32), e.over(6, 2, 64, 16, 32)
    small = e.over(6, 2, 128, 1, 1), e.over(6, 2, 64, 1, 1)
    triton = [a.ms / b.ms for a, b in ((e.row("triton_fa1", 4096, d), e.row("triton_fa2", 4096, d))
                                       for d in (64, 128))]  # fmt: skip
    return judged(
        False,
        f"depends on the shape. Stage 6 over stage 2, N2048 full, one tile: {spread(full)}x at B16 "
        f"H32, which fills the GPU, {spread(small)}x at B1 H1; the Triton pair at B2 H16 N4096 "
        f"{spread(triton)}x",
        partly=True,
    )


def share_of_gemm(e):
    rows = [row for row in e.rows("sdpa_flash", headdim=128, causal=False) if row.seqlen >= 4096]
    shares = [row.tflops / e.gemm for row in rows]
    return judged(
        min(shares) >= 0.5 and max(shares) <= 0.7,
        f"{spread(100 * s for s in shares)}% of cuBLAS ({e.gemm:.0f} TFLOP/s), d128 full N >= 4096",
        partly=max(shares) >= 0.5,
    )


def seventy_percent(e):
    shares = [row.tflops / e.gemm for row in e.rows("sdpa_flash")]
    ours = [row.tflops / e.gemm for row in e.rows("stage6")]
    return judged(
        max(shares) >= 0.65,
        f"at most {100 * max(shares):.0f}% of cuBLAS for the official kernel over the whole sweep, "
        f"{100 * max(ours):.0f}% for stage 6; A100 not measured",
    )


def peak_share(e):
    rows = [row for row in e.rows("sdpa_flash", headdim=128) if row.seqlen >= 4096]
    shares = [row.peak for row in rows]
    ours = [r.peak for r in e.rows("stage6", headdim=128) if r.seqlen >= 4096]
    return judged(
        min(shares) >= 0.4 and max(shares) <= 0.6,
        f"official {spread(100 * s for s in shares)}%, stage 6 {spread(100 * s for s in ours)}% of "
        "the datasheet's 989 TFLOP/s: Hopper's peak needs wgmma, which FA2 does not use",
        partly=max(shares) >= 0.4,
    )


def math_quadratic(e):
    ratios = [e.row("sdpa_math", 8192, d, c).ms / e.row("sdpa_math", 2048, d, c).ms
              for d in (64, 128) for c in (False, True)]  # fmt: skip
    flash = [e.row("sdpa_flash", 8192, d, c).ms / e.row("sdpa_flash", 2048, d, c).ms
             for d in (64, 128) for c in (False, True)]  # fmt: skip
    return judged(
        12 < min(ratios) and max(ratios) < 20,
        f"MATH takes {spread(ratios)} times as long for 4x N. But so does FA2: {spread(flash)} "
        "times. Both do O(N^2) work; what MATH has more of is memory traffic",
    )


def flat(e):
    growth = []
    for d in (64, 128):
        for c in (False, True):
            at = {row.seqlen: row.tflops for row in e.rows("sdpa_flash", headdim=d, causal=c)}
            growth.append(at[16384] / at[2048])
    return judged(
        min(growth) > 0.9,
        f"of TFLOP/s: N 16384 over N 2048 is {spread(growth)} (official). Its time is quadratic",
    )


def three_times_math(e):
    times = e.layer["throughput"]
    layer = {n: t["layer_ms"]["math"] / t["layer_ms"]["ours"] for n, t in times.items()}
    alone = {n: t["attention_ms"]["math"] / t["attention_ms"]["ours"] for n, t in times.items()}
    return judged(
        min(layer.values()) >= 3,
        f"layer {spread(layer.values())}x, attention alone {spread(alone.values())}x at T = 2048",
    )


def within_1e3(e):
    match = e.layer["match"]
    return judged(
        match["apart"] < 1e-3 and match["within_2x"],
        f"layers {match['apart']:.1e} apart. On unit-variance q, k, v merely rounding the exact "
        "answer costs almost 1e-3, so the course judges by twice the error of a 16-bit evaluation",
    )


def memory_growth(e):
    ours, math = [], []
    for curves in e.layer["memory"].values():
        at = [curves["T"].index(T) for T in (512, 2048)]
        for label, values in (("ours", ours), ("math", math)):
            alone = curves[label]["attention_alone"]
            values.append(alone[at[1]] / alone[at[0]])
    return judged(
        max(ours) <= 5 and min(math) >= 10,
        f"attention beyond its inputs, T 512 to 2048: ours {spread(ours)}x, MATH {spread(math)}x",
    )


def whole_memory(e):
    found = []
    for curves in e.layer["memory"].values():
        at = [curves["T"].index(T) for T in (512, 2048)]
        found.append(curves["math"]["peak"][at[1]] / curves["math"]["peak"][at[0]])
    return judged(
        min(found) > 12,
        f"peak memory of the whole layer with its weights grows {spread(found)}x: the resting "
        "memory hides part of the growth",
        partly=True,
    )


def less_memory(e):
    pairs = {n: (c["math"]["beyond_resting"][-1], c["ours"]["beyond_resting"][-1])
             for n, c in e.layer["memory"].items()}  # fmt: skip
    ratios = [a / b for a, b in pairs.values()]
    return judged(
        min(ratios) >= 10,
        f"MATH needs {spread(ratios)} times as much beyond the resting memory at T = 2048",
    )


def tensor_dominates(e):
    report = e.profiles["official"][1]
    v, hmma = report.values, report.opcodes["HMMA"]
    active, ours = (e.profiles[name][1].values[ncu_table.TENSOR_ACTIVE]
                    for name in ("official", "stage 6"))  # fmt: skip
    others = {op: n for op, n in report.opcodes.items() if op != "HMMA"}
    op = max(others, key=others.__getitem__)
    return judged(
        active > max(v.get(pipe, 0) for pipe in ncu_table.PIPES),
        f"{hmma:,} HMMA; tensor pipe active {active:.0f}% of cycles (stage 6: {ours:.0f}%), more "
        f"than any other pipe. By count it is one of {v[ncu_table.INSTRUCTIONS] / hmma:.1f} "
        f"instructions; {op} {others[op]:,}",
    )


def dram_below(e):
    shares = {name: report.dram_bytes / shape.score_bytes
              for name, (shape, report) in e.profiles.items()}  # fmt: skip
    text = ", ".join(f"{name} {100 * share:.0f}%" for name, share in shares.items())
    return judged(
        max(shares.values()) < 0.25,
        f"DRAM bytes against 2 B H N^2 at N 4096, d 128: {text}",
        partly=shares["official"] < 0.25,
    )


def occupancy(e):
    blocks = {name: report.blocks_per_sm for name, (_, report) in e.profiles.items()}
    text = ", ".join(f"{name} {n}" for name, n in blocks.items())
    return judged(blocks["official"] in (1, 2), f"blocks per SM, d 128: {text}")


def eight_to_128(e):
    blocks = [8 * e.counters(n, N=1024)["blocks"] for n in (2, 3)]  # counters add over heads
    return judged(
        blocks == [8, 128],
        f"stage 2 -> 3 at B1 H8 N1024: {blocks[0]} -> {blocks[1]} blocks of 64 rows (the simulator "
        "counts them)",
    )


def biggest_win(e):
    gains = {n: e.parent(n, 128, 1, 8) for n in range(3, 7)}
    text = ", ".join(f"stage {n} {g:.3g}x" for n, g in gains.items())
    return judged(
        max(gains, key=gains.get) == 3, f"B1 H8 N2048 d128, over the stage before: {text}"
    )


def vanishing(e):
    gains = {bh: e.parent(3, 128, *bh) for bh in ((1, 1), (2, 16), (16, 32))}
    text = ", ".join(f"B{b} H{h} {g:.3g}x" for (b, h), g in gains.items())
    return judged(
        gains[1, 1] > 4 * gains[16, 32],
        f"one block per query tile, stage 3 over 2, N2048 d128: {text}; "
        "notes/fa2_sweep_parents.png",
    )


def statistics_counters(e):
    before, after = e.counters(4), e.counters(5)
    name = "shared_store_bytes_statistics"
    return judged(
        before[name] > 0 and after[name] == 0 and before["shuffles"] == 0 and after["shuffles"] > 0,
        f"stage 4 -> 5: {name} {before[name]:,} -> {after[name]}, shuffles {before['shuffles']} -> "
        f"{after['shuffles']}; {official('softmax.h', 132, 'row_max, row_sum')}, "
        f"{official('softmax.h', 43, 'Allreduce')}",
    )


def barriers(e):
    counts = {n: e.counters(n) for n in (3, 4, 5)}
    text = ", ".join(f"stage {n} {c['block_barriers']}" for n, c in counts.items())
    return judged(
        False,
        f"block barriers: {text}. They go with the split of the rows (change 2), not with the "
        f"registers; stage 4 has __syncwarp instead ({counts[4]['warp_syncs']}), stage 5 "
        f"{counts[5]['warp_syncs']}. Those for the copies of K and V stay",
        partly=counts[5]["block_barriers"] < counts[3]["block_barriers"],
    )


def columns_or_rows(e):
    before, after = (e.counters(n)["shared_store_bytes_partial_o"] for n in (3, 4))
    return judged(
        False,
        "reversed: FA1 split K and V (columns of S) among the warps, FA2 the rows of Q: "
        f"{official('kernel_traits.h', 76, 'Layout<Shape<Int<kNWarps>,_1,_1>>')}; paper, section "
        f"3.3. Stage 3 -> 4: bytes of partial O {before:,} -> {after}",
    )


def final_reduction(e):
    after = e.counters(4)
    nothing = after["shared_store_bytes_partial_o"] == 0
    return judged(
        not nothing,
        "with the rows split, a row belongs to one warp: nothing is combined across warps, at the "
        f"end either (partial O: {after['shared_store_bytes_partial_o']} bytes in stage 4)",
    )


def one_multiply_less(e):
    counts = (e.counters(n, v, N=512) for n, v in ((5, ""), (6, "paper"), (6, "lazy")))
    five, paper, lazy = (c["fp32_mul_O"] + c["fp32_fma_O"] for c in counts)
    return judged(
        False,
        f"of the division: multiplications on O, N512 d64, stage 5 {five:,}, stage 6 paper "
        f"{paper:,}. O is still multiplied by e^(m_old - m_new): "
        f"{official('softmax.h', 137, 'softmax_rescale_o')}. Skipping that is FA4's rule ({lazy:,} "
        "in the row lazy)",
        partly=lazy < paper < five,
    )


def same_flops(e):
    counts = {(n, v): e.counters(n, v)["mma"] for n, v in ((2, ""), (3, ""), (4, ""), (5, ""),
                                                           (6, "paper"), (6, "lazy"))}  # fmt: skip
    return judged(
        len(set(counts.values())) == 1,
        f"mma of stages 2 to 6 at N256 d64: {', '.join(f'{n:,}' for n in set(counts.values()))}",
    )


def exponentials(e):
    small, large = (e.counters(6, "paper", N=n)["exp2_p"] for n in (256, 512))
    return judged(
        large / small < 3,
        f"they are O(N^2): exponentials of P at N 256 and 512: {small:,} and {large:,}",
    )


def removes_split_k(e):
    three, four = (e.counters(n)["shared_store_bytes_partial_o"] for n in (3, 4))
    return judged(
        three == 0,
        "two separate changes: one block per query tile still sums partial O over its warps "
        f"({three:,} bytes in stage 3); the split of the rows ends that ({four} in stage 4)",
    )


def fa1_share(e):
    rows = [e.row("stage2", 2048, d, batch=16, heads=32, tiles="same") for d in (64, 128)]
    return (OPEN, "A100 not measured. Our stage 2 on an H200, B16 H32 N2048: "
            f"{spread(100 * r.peak for r in rows)}% of the datasheet's peak")  # fmt: skip


def a100(e):
    best = max(e.rows("sdpa_flash"), key=lambda row: row.tflops)
    return (OPEN, "A100 not measured. On an H200 the official kernel's best is "
            f"{best.tflops:.0f} TFLOP/s, {100 * best.peak:.0f}% of peak (forward)")  # fmt: skip


def falls_back(e):
    text = "; ".join(f"{case}: {ran}" for case, ran in e.choice.items())
    to_math = [case for case, ran in e.choice.items() if ran == "math"]
    return judged(
        len(to_math) == len(e.choice),
        f"there are more backends than two. PyTorch 2.11 chose by itself: {text}",
        partly=bool(to_math),
    )


def forced(e):
    rows = [row for row in e.sweep if row.backend == "sdpa_flash"]
    return judged(
        all("flash_fwd" in row.note for row in rows if row.ms is not None) and bool(rows),
        f"{len(rows)} rows of the sweep forced it, and the profiler saw flash_fwd_kernel in each",
    )


def triton_within_2x(e):
    ratios = [e.row("triton_fa2", N, d, c).ms / e.row("sdpa_flash", N, d, c).ms
              for N in (2048, 4096) for d in (64, 128) for c in (False, True)]  # fmt: skip
    return judged(
        max(ratios) <= 2, f"{spread(ratios)} times the official kernel's time (autotuned)"
    )


def each_change(e):
    """A gain inside the run-to-run spread counts as none."""
    texts, real = [], 0
    for n in range(3, 7):
        gain = statistics.geometric_mean(e.parent(n, d, 16, 16) for d in (64, 128))
        noise = statistics.mean(
            e.row(f"stage{k}", 2048, d, batch=16, heads=16, tiles="same").spread
            for d in (64, 128) for k in (n - 1, n)
        )  # fmt: skip
        real += gain - 1 > noise
        texts.append(
            f"stage {n} {gain:.3g}x" + ("" if gain - 1 > noise else " (inside the spread)")
        )
    return judged(
        real == 4,
        "each over the stage before where the GPU is full (B16 H16 N2048, mean of d 64 and 128): "
        + ", ".join(texts),
        partly=real > 0,
    )


def algebra(e):
    per_head, whole = 2 * 2048**2 / 2**20, 2 * 32 * 2048**2 / 2**20
    return judged((per_head, whole) == (8, 256), f"{per_head:g} MiB per head, {whole:g} MiB")


def carried_state(e):
    state, score = 4 * 32 * 2048 * (2 + 128) / 2**20, 2 * 32 * 2048**2 / 2**20
    return judged(state < score / 2, f"{state:g} against {score:g} MiB at H32 T2048 d128")


def tuned_bytes(e):
    share = e.profiles["official"][1].values[ncu_table.DRAM_SHARE]
    return judged(share < 50, f"at N 4096 d 128 the official kernel keeps DRAM busy {share:.1f}%")


LECTURE = [
    Claim("L1", "FA2 is about 2x faster than FA1", twice_fa1),
    Claim("L2", "FA2 sits at 50-70% of the GEMM throughput", share_of_gemm),
    Claim("L3", "FA1's grid was (q tiles, heads, batch)",
          fixed(WRONG, "the same lecture says later that FA1 serialized the sequence inside a "
                       "block. FA1's paper and first release: batch x heads; its later releases "
                       "split the queries over grid.z (fmha_fwd_launch_template.h:86 "
                       "`num_splits`)")),
    Claim("L4", "in FA1 the work over the sequence was serialized inside one block",
          fixed(HOLDS, "paper of FA1 and its first release; stage2_fa1 does so")),
    Claim("L5", "FA1's reductions of m and l went through shared memory, with barriers",
          fixed(HOLDS, "v1.0.9, fmha/softmax.h:548 `smem_red.store`, fmha/softmax.h:549 "
                       "`__syncthreads`; a quad had reduced by shuffles first, fmha/softmax.h:547 "
                       "`quad_reduce`")),
    Claim("L6", "each of FA2's changes makes it faster", each_change),
    Claim("L7", "FA2's grid is (q tiles, heads, batch)",
          fixed(WRONG, "(q tiles, batch, heads): "
                       f"{official('flash_fwd_launch_template.h', 64, 'grid')}; a batch over "
                       "65,535 is refused because of that order")),
    Claim("L8", "you go from 8 blocks to 128", eight_to_128),
    Claim("L9", "for a small batch with few heads that is the biggest single win", biggest_win),
    Claim("L10", "FA2 splits its warps over columns of K and V", columns_or_rows),
    Claim("L11", "each warp writes other rows of the output; no sync between warps for the GEMMs",
          fixed(HOLDS, "because it splits rows; with columns split every warp would write all "
                       "rows, so the lecture contradicts L10")),
    Claim("L12", "a block-level reduction at the end combines (m, l) across "
                 "warps", final_reduction),
    Claim("L13", "FA2 keeps m and l in registers and reduces by shuffles", statistics_counters),
    Claim("L14", "with the statistics in registers, warps never wait in __syncthreads for softmax",
          barriers),
    Claim("L15", "O is rescaled once, in the epilogue, instead of in every iteration",
          fixed(WRONG, "only the division by l is deferred; the rescale by e^(m_old - m_new) stays "
                       f"in the loop: {official('softmax.h', 157, 'scores_scale')} and the paper's "
                       "Algorithm 1, line 10. Written without it the formula overflows or is wrong "
                       "when the maximum grows")),
    Claim("L16", "that drops one multiply per element of O and iteration", one_multiply_less),
    Claim("L17", "FA2 reaches about 70% of a pure GEMM of the same shape on A100 and H100",
          seventy_percent),
    Claim("L18", "the exponentials are O(N d) non-matmul work", exponentials),
    Claim("L19", "reading task: `tSrS` is the S accumulator of flash_fwd_kernel.h",
          fixed(WRONG, f"it is {official('flash_fwd_kernel.h', 303, 'acc_s')}; `tSrS` is in the "
                       "Hopper code (FA3)")),
    Claim("L20", "reading task: `softmax_rescale_o_` and `softmax_template` in softmax.h",
          fixed(WRONG, f"{official('softmax.h', 137, 'softmax_rescale_o')}; there is no "
                       "`softmax_template`")),
    Claim("L21", "reading task: the division by l is in the epilogue",
          fixed(HOLDS, f"{official('softmax.h', 170, 'normalize_softmax_lse')}, called at "
                       f"{official('flash_fwd_kernel.h', 433, 'normalize_softmax_lse')}")),
    Claim("L22", "benchmarks/benchmark_flash_attention.py takes --mode, --seqlen, --headdim, "
                 "--causal",
          fixed(WRONG, "it has no flags; the shapes are in the file. `./fa2 sweep` takes them")),
    Claim("L23", "SDPA's MATH backend slows down quadratically", math_quadratic),
    Claim("L24", "FA2 stays flat or improves slightly with N", flat),
    Claim("L25", "FA2 reaches 40-60% of the fp16 peak for N >= 4096, d = 128", peak_share),
    Claim("L26", "SDPA falls back to MATH silently when FA2's conditions fail", falls_back),
    Claim("L27", "sdpa_kernel([FLASH_ATTENTION]) forces it, or fails loudly", forced),
    Claim("L28", "TFLOP/s = 4 B H N^2 d / time",
          fixed(PARTLY, "of full attention. A causal mask leaves half; every table here halves "
                        "then and says so, as the official benchmark does")),
    Claim("L29", "tensor-core instructions dominate", tensor_dominates),
    Claim("L30", "DRAM traffic is far below O(N^2) bytes", dram_below),
    Claim("L31", "achieved DRAM bandwidth is far from the limit", tuned_bytes),
    Claim("L32", "occupancy is 1 to 2 blocks per SM", occupancy),
]  # fmt: skip

REVIEW = [
    Claim("P1", "FA1 reached 25 to 40% of the A100's peak", fa1_share),
    Claim("P2", "the schedule delays and batches the rescaling",
          fixed(PARTLY, "the division is delayed to the end; the rescaling itself is done in every "
                        f"iteration ({official('softmax.h', 137, 'softmax_rescale_o')}). Batching "
                        "it is FA4's, and our row lazy")),
    Claim("P3", "splitting the queries over blocks also removes the split-K reduction",
          removes_split_k),
    Claim("P4", "within a block the work is split along output rows, so that each warp's "
                "accumulator stays in registers",
          fixed(HOLDS, f"{official('kernel_traits.h', 76, 'Layout<Shape<Int<kNWarps>,_1,_1>>')}")),
    Claim("P5", "50 to 73% of peak on A100, up to 225 TFLOP/s in training", a100),
    Claim("P6", "the mathematics and the flop count did not change", same_flops),
    Claim("P7", "the speedup disappears at another batch size: name shape, dtype and "
                "GPU", vanishing),
]  # fmt: skip

NOTEBOOK = [
    Claim("N1", "a T4 cannot run it: no cp.async, too little shared memory",
          fixed(HOLDS, "compute capability 7.5; the kernels use cp.async and need 8.0, which the "
                       "library says (common/harness/backend_cuda.cpp `8.0 or later is needed`)")),
    Claim("N2", "the layer's output is within 1e-3 of SDPA's in fp16", within_1e3),
    Claim("N3", "from T = 512 to 2048 FA2's memory grows at most 5x, naive attention's about 16x",
          memory_growth),
    Claim("N4", "peak memory of the layer shows that", whole_memory),
    Claim("N5", "the bound is 5x", fixed(PARTLY, "its text says 5x, its check 6x; 5x holds (N3)")),
    Claim("N6", "less peak memory than MATH; at T = 2048 by an order of magnitude", less_memory),
    Claim("N7", "at least 3x MATH at T = 2048", three_times_math),
    Claim("N8", "one T x T score matrix at T = 2048 is 8 MiB per head, 256 MiB at 32 "
                "heads", algebra),
    Claim("N9", "the running state (m, l, O) is much smaller than the scores", carried_state),
    Claim("N10", "FA2 keeps a state of O(T D) in fp32 in memory",
          fixed(WRONG, "m, l and O live in registers, for the rows being worked on; memory holds O "
                       f"in 16 bits and LSE: {official('flash_fwd_kernel.h', 455, 'gLSE')}")),
    Claim("N11", "it compares at B = 1, H = 32, T = 2048, D = 128",
          fixed(PARTLY, "its text does; its code uses H = 16, D = 64. Ours measures both")),
    Claim("N12", "a Triton kernel is within 2x of the official one", triton_within_2x),
]  # fmt: skip

PRIMARY = [
    Claim("O1", "arXiv 2307.08691, Algorithm 1: O is multiplied by diag(e^(m_old - m_new))^-1",
          fixed(WRONG, "a misprint: no inverse; the paper's ICLR version and "
                       f"{official('softmax.h', 157, 'scores_scale')} multiply by it")),
    Claim("O2", "a causal mask hides entries whose row index is strictly less than the column's",
          fixed(PARTLY, "true for a square S. Aligned at the bottom right, key j is kept when "
                        f"j <= i + Nk - Nq: {official('mask.h', 173, 'col_idx_limit_right')}")),
    Claim("O3", "a row that sees no key has LSE = +inf in the official code",
          fixed(HOLDS, f"{official('softmax.h', 180, 'INFINITY')}; here it is -inf, the logarithm "
                       "of 0")),
]  # fmt: skip

SECTIONS = [
    ('Lecture "FlashAttention-2"', LECTURE),
    ("Review of the paper", REVIEW),
    ('Notebook "FlashAttention-2 in an attention layer"', NOTEBOOK),
    ("The paper and the official code themselves", PRIMARY),
]


def claims() -> list[Claim]:
    return [claim for _, section in SECTIONS for claim in section]


HEAD = """\
# Claims of the course's sources, and what decides them

The paper and the official code (v2.8.3, commit 060c9188beec; FlashAttention-1 v1.0.9) are
the truth where the sources differ. Verdicts on numbers are computed from the files beside
this one by common/bench/claims.py, which writes this file; a test computes them again.
Files cited without a folder are the official code's, under {CODE}.

Measured: {measured}. fp16, forward, B2 H16 unless said
otherwise. Profiles: fa2_ncu_4096_d128*.json; layer: attention_layer_h200.json; each names its commit.
"""


def markdown(e: Evidence) -> str:
    head = HEAD.format(CODE=CODE, measured=e.about[0].removeprefix("fa2 sweep: "))
    tally: dict[str, int] = {}
    body = []
    for title, section in SECTIONS:
        body += [
            "",
            f"## {title}",
            "",
            "| | claim | verdict | what decides it |",
            "|---|---|---|---|",
        ]
        for claim in section:
            verdict, why = claim.decide(e)
            tally[verdict] = tally.get(verdict, 0) + 1
            shown = verdict if verdict == HOLDS else f"**{verdict}**"
            body.append(f"| {claim.id} | {claim.text} | {shown} | {why} |".replace("|_1", "_1"))
    counts = ", ".join(f"{n} {verdict}" for verdict, n in tally.items())
    return "\n".join([head, f"Of {sum(tally.values())}: {counts}.", *body]) + "\n"


def write(target: Path, text: str) -> None:
    write_whole(target, text)
    print(f"Written: {target}")


def main(words: list[str]) -> int:
    target = NOTES / "claims.md"
    if words == ["--count"]:
        write(NOTES / "claims_counters.json", json.dumps(simulate(), indent=0) + "\n")
        words = []
    text = markdown(Evidence())
    if not words:
        write(target, text)
        return 0
    if words != ["--check"]:
        print(__doc__, file=sys.stderr)
        return 2
    if target.exists() and target.read_text() == text:
        print("notes/claims.md is what the measurements say")
        return 0
    print("fa2 claims: notes/claims.md differs from what the measurements say; write it again: "
          "python common/bench/claims.py", file=sys.stderr)  # fmt: skip
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
