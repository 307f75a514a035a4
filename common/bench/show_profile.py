"""Prints and writes the table of one report: show_profile.py FILE.ncu-rep

FILE.json beside it names the shape; the simulator's counts of the same kernel are added to it.
"""

import glob
import json
import os
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "common" / "python"), str(ROOT / "common" / "bench")]
sys.path += sorted(glob.glob("/opt/nvidia/nsight-compute/*/extras/python"))[-1:]

import ncu_table  # noqa: E402
import sweep_file  # noqa: E402

from fa2course.launcher import paths, stages  # noqa: E402


def simulate(about: dict) -> dict[str, int]:
    """The simulator's counts of the same kernel, tile and shape, from small shapes (exactly)."""
    from fa2course import library
    from fa2course.predict import counts

    number, variant = sweep_file.stage_of(about["backend"])
    problem = library.Problem(
        batch=about["batch"], heads_q=about["heads"], heads_kv=about["heads"],
        seqlen_q=about["seqlen"], seqlen_k=about["seqlen"], head_dim=about["headdim"],
        causal=about["causal"], dtype=library.DTYPES["float16"],
    )  # fmt: skip
    options = library.Options(
        stage=str(number).encode(), variant=variant.encode(), backend=library.SIM,
        tile_mode=library.TILE_MODES[about["tiles"]], gpu=about["gpu_model"].encode(),
    )  # fmt: skip
    t = library.load().tile(problem, options)
    about["tile"] = {"Br": t.Br, "Bc": t.Bc, "warps": t.warps, "depth": t.depth}
    N = about["seqlen"]
    shape = counts.Shape(
        about["batch"], about["heads"], about["heads"], N, N, about["headdim"], about["causal"]
    )
    kernel = counts.Kernel(
        stages.find(str(number)), variant, "fp16", t.row,
        counts.Tile(t.Br, t.Bc, t.warps, t.depth, t.shared_bytes),
    )  # fmt: skip
    build = os.environ.get("FA2_BUILD_DIR") or paths.preset_dir("sim")
    program = Path(build) / "bin" / "fa2-counts"
    launches = counts.count(program, about["gpu_model"], [(kernel, shape)])[0]
    total = dict.fromkeys(library.load().counter_names, 0)
    for launch in launches[:1] if number == 1 else launches:  # of stage 1 only S is profiled
        for name, value in launch.counters.items():
            total[name] += value
    return total


def main(words: list[str]) -> int:
    path = Path(words[0])
    about_file = path.with_suffix(".json")
    try:
        about = json.loads(about_file.read_text())
        report = ncu_table.read(path)
    except (OSError, ValueError, RuntimeError, ncu_table.NoReader) as error:
        print(f"fa2 profile: {path} cannot be read: {error}", file=sys.stderr)
        return 2
    about["measured"] = report.values_kept()
    if about["backend"].startswith("stage") and "counters" not in about:
        print("fa2 profile: counting on the simulator", file=sys.stderr, flush=True)
        about["counters"] = simulate(about)
    paths.write_whole(about_file, json.dumps(about, indent=1) + "\n")
    shape = ncu_table.shape_of(about)
    rows = ncu_table.table(
        report, shape, about.get("counters"), about.get("tile", {}).get("warps", 0)
    )
    lines = [f"{report.gpu}, driver {about['driver']}, CUDA {about['cuda']}, commit "
             f"{about['commit']}. {shape}, tiles {about['tiles']}."]  # fmt: skip
    if about["backend"] == "stage1":
        lines.append("The kernel of S = Q K^T alone, the first of the stage's three.")
    if about["backend"] in ("stage1", "stage2", "stage3", "stage4"):
        lines.append("Why hardware has fewer wavefronts and conflicts: "
                     "notes/simulator_vs_hardware.md.")  # fmt: skip
    text = ncu_table.markdown(f"Nsight Compute: {about['backend']}", lines, rows)
    paths.write_whole(path.with_suffix(".md"), text)
    widths = [max(len(row[i]) for row in rows) for i in range(4)]
    print("\n".join(lines) + "\n")
    for row in rows:
        print("  ".join(cell.strip().ljust(w) for cell, w in zip(row, widths)).rstrip())
    print(f"\nWritten: {path.with_suffix('.md')}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
