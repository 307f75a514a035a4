#!/usr/bin/env python3
"""Writes the tables of notes/performance.md that have markers, from notes/results/h200.json and
notes/fa2_sweep.txt. A test fails where they differ from what it would write.

    python common/bench/performance_tables.py
"""

import json
import re
import statistics
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
NOTES = ROOT / "notes"
sys.path[:0] = [str(ROOT / "common" / "python"), str(ROOT / "common" / "bench")]

import ncu_table  # noqa: E402
import sweep_file  # noqa: E402

from fa2course.launcher.paths import write_whole  # noqa: E402

STAGES = ["1", "2", "3", "4", "5", "6 paper", "6 lazy"]
VARIANTS = {
    "stage2_fa1/kv_outer": ("2", "stage 2, K and V in the outer loop"),
    "stage3_fa2_seqpar/natural_order": ("3", "stage 3, light tiles first"),
    "stage4_fa2_warps/kv_split": ("4", "stage 4, warps split K and V, one combine at the end"),
    "stage6_fa2_deferred/threshold_0": ("6 lazy", "stage 6 lazy with threshold 0"),
}
PROFILES = {"_stage1": "stage 1, S", "_stage2": "stage 2", "_stage3": "stage 3",
            "_stage4": "stage 4", "_stage5": "stage 5", "": "stage 6 lazy",
            "_official": "official FA2"}  # fmt: skip
MASKS = [(64, False), (64, True), (128, False), (128, True)]


def table(*rows: list) -> str:
    """The first row is the head."""
    lines = [f"| {' | '.join(map(str, row))} |" for row in rows]
    return "\n".join([lines[0], "|---" * len(rows[0]) + "|", *lines[1:]])


def in_order(cases) -> list[tuple]:
    """B2 H16 first; by rising N, and fp16 before bf16."""
    return sorted(cases, key=lambda c: (c[5:] == ("bf16",), c[:2] != (2, 16), c))


def label(case: tuple) -> list:
    B, H, N, d, causal = case
    return [f"B{B} H{H} N{N}", d, "causal" if causal else "full"]


def digits(number: float) -> str:
    return f"{number:.0f}" if number >= 10 else f"{number:.1f}"


def gain(before: dict, after: dict, same: str) -> str:
    """The ratio of two times, or `same` where it is inside half of the two spreads together."""
    ratio = before["time_ms"] / after["time_ms"]
    if abs(ratio - 1) <= (before["spread"] + after["spread"]) / 2:
        return same.format(ratio)
    return f"{ratio:.2f}" if ratio < 10 else f"{ratio:.1f}"


def recorded(tiles: str) -> dict[tuple, dict]:
    """The records of h200.json on these tiles, by case and stage; a variant's file is its stage."""
    found = {}
    for r in json.loads((NOTES / "results" / "h200.json").read_text())["records"]:
        s = r["shape"]
        case = s["B"], s["Hq"], s["Nq"], s["d"], s["causal"]
        stage = r["stage"] if "/" in r["stage"] else f"{r['number']} {r['variant']}".strip()
        if r["tile_mode"] == tiles and r["dtype"] == "fp16":
            found[*case, stage] = r
    return found


def parents() -> str:
    same, tuned = recorded("same"), recorded("tuned")
    rows = [["shape", "d", "mask", *STAGES, "largest spread, 2 to 6", "6 lazy, tuned"]]
    for case in in_order(key[:5] for key in same if key[5] == "1"):
        at = [same[*case, stage] for stage in STAGES]
        cells = [digits(at[0]["tflops"])]
        cells += [f"{digits(r['tflops'])} ({gain(before, r, '=')})"
                  for before, r in zip(at, at[1:])]  # fmt: skip
        spread = max(r["spread"] for r in at[1:])
        rows.append([*label(case), *cells, f"{spread:.0%}",
                     digits(tuned[*case, "6 lazy"]["tflops"])])  # fmt: skip
    return table(*rows)


def variants() -> str:
    same = recorded("same")
    rows = [["variant", *(f"d{d} {'causal' if causal else 'full'}" for d, causal in MASKS), "over"]]
    for name, (stage, what) in VARIANTS.items():
        cells = [gain(same[2, 16, 4096, *mask, stage], same[2, 16, 4096, *mask, name], "{:.2f} =")
                 for mask in MASKS]  # fmt: skip
        rows.append([f"{what} (`{name.split('/')[1]}`)", *cells, f"stage {stage}"])
    return table(*rows)


def swept() -> dict[tuple, dict[str, sweep_file.Row]]:
    """What ran of the sweep, by case and dtype; the stages on their tuned tiles."""
    found: dict[tuple, dict[str, sweep_file.Row]] = {}
    for row in sweep_file.read(NOTES / "fa2_sweep.txt")[1]:
        if row.tiles != "same" and row.ms is not None:
            case = row.batch, row.heads, row.seqlen, row.headdim, row.causal, row.dtype
            found.setdefault(case, {})[row.backend] = row
    return found


def again() -> dict[tuple, dict[str, float]]:
    """Times of `compare --peers` in other processes, by case and backend."""
    found: dict[tuple, dict[str, float]] = {}
    for r in json.loads((NOTES / "results" / "h200.json").read_text())["peers"]:
        if r["tile_mode"] == "same":
            continue
        case = *r["shape"].values(), r["dtype"]
        found.setdefault(case, {})[r["backend"]] = r["time_ms"]
    return found


def peers() -> str:
    at, other = swept(), again()
    rows = [["shape", "d", "mask", "official FA2", "Triton FA2", "cuDNN", "stage 6 lazy",
             "spread, ours and official", "over the official", "over Triton",
             "again: the official", "Triton"]]  # fmt: skip
    for case in in_order(at):
        shape, *mask = label(case[:5])
        run = at[case]
        ours, flash, triton = run["stage6"], run["sdpa_flash"], run["triton_fa2"]
        times = other.get(case)
        rows.append([shape + " bf16" * (case[5] == "bf16"), *mask,
                     *(digits(r.tflops) for r in (flash, triton, run["sdpa_cudnn"], ours)),
                     f"{ours.spread:.0%}, {flash.spread:.0%}",
                     f"{flash.ms / ours.ms:.2f}", f"{triton.ms / ours.ms:.2f}",
                     *(f"{times[name] / times['stage6']:.2f}" if times else ""
                       for name in ("sdpa_flash", "triton_fa2"))])  # fmt: skip
    return table(*rows)


def summary() -> str:
    """Of peers(); and of stage 1 over PyTorch's MATH."""
    groups = {
        "B2 H16, N >= 2048": lambda c: c[:2] == (2, 16) and c[2] >= 2048 and c[5] == "fp16",
        "B2 H16, N <= 1024": lambda c: c[:2] == (2, 16) and c[2] <= 1024,
        "the other B and H, N >= 2048": lambda c: c[:2] != (2, 16),
        "all of fp16, N >= 2048": lambda c: c[2] >= 2048 and c[5] == "fp16",
        "bf16": lambda c: c[5] == "bf16",
    }
    rows = [["shapes", "number", "stage 6 over the official: geometric mean", "smallest",
             "stage 1 over MATH: smallest", "largest"]]  # fmt: skip
    for name, inside in groups.items():
        part = [run for case, run in swept().items() if inside(case)]
        ratios = [run["sdpa_flash"].ms / run["stage6"].ms for run in part]
        math = [run["sdpa_math"].ms / run["stage1"].ms for run in part]
        rows.append([name, len(part), f"{statistics.geometric_mean(ratios):.2f}",
                     f"{min(ratios):.2f}", f"{min(math):.2f}", f"{max(math):.2f}"])  # fmt: skip
    return table(*rows)


def profiles() -> str:
    columns = []
    for suffix, name in PROFILES.items():
        about = json.loads((NOTES / f"fa2_ncu_4096_d128{suffix}.json").read_text())
        report, tile = ncu_table.read_kept(about), about.get("tile")
        v, hmma = report.values, report.values[ncu_table.HMMA]
        pipe = max(ncu_table.PIPES, key=lambda pipe, v=v: v.get(pipe, 0))
        other = pipe.removeprefix("sm__inst_executed_pipe_").split(".")[0]
        columns.append({
            "": name,
            "tile": f"{tile['Br']} x {tile['Bc']}, {tile['warps']} warps" if tile else "",
            "blocks per SM": report.blocks_per_sm,
            "tensor pipe active": f"{v[ncu_table.TENSOR_ACTIVE]:.1f}%",
            "instructions per HMMA": f"{v[ncu_table.INSTRUCTIONS] / hmma:.2f}",
            "busiest other pipe": f"{other} {v[pipe]:.1f}%",
            "HMMA": f"{hmma:,.0f}",
            "barriers (BAR)": f"{report.opcode('BAR'):,}",
            "DRAM bytes (least 135 MB)": f"{report.dram_bytes / 1e6:,.0f} MB",
            "DRAM busy": f"{v[ncu_table.DRAM_SHARE]:.1f}%",
            "time under the profiler": f"{v[ncu_table.TIME] / 1e6:.3g} ms",
        })  # fmt: skip
    return table(*([what, *(column[what] for column in columns)] for what in columns[0]))


def refreshed(text: str) -> str:
    """The note with its tables made anew."""
    for make in (parents, profiles, peers, summary, variants):
        name = make.__name__
        place = re.compile(f"(<!-- {name} -->\n).*?(<!-- end of {name} -->)", re.DOTALL)
        if not place.search(text):
            raise ValueError(f"notes/performance.md has no place for {name}")
        text = place.sub(lambda at, made=make(): f"{at[1]}{made}\n{at[2]}", text)
    return text


if __name__ == "__main__":
    note = NOTES / "performance.md"
    write_whole(note, refreshed(note.read_text()))
