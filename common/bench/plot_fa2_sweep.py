#!/usr/bin/env python3
"""Turns fa2_sweep.txt into fa2_sweep.csv, fa2_sweep.png and fa2_sweep_parents.png.

    python common/bench/plot_fa2_sweep.py [fa2_sweep.txt] [--out DIR]

In the CSV, sdpa is PyTorch's MATH backend and fa2 the official FlashAttention-2 (PyTorch's FLASH).
Runs anywhere: needs matplotlib, no GPU.
"""

import csv
import io
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "common" / "python"), str(ROOT / "common" / "bench")]

import sweep_file  # noqa: E402
from sweep_file import Row  # noqa: E402

from fa2course import plots, report  # noqa: E402
from fa2course.launcher.paths import write_whole  # noqa: E402

FIRST = ["seqlen", "headdim", "sdpa_ms", "fa2_ms", "fa2_tflops", "sdpa_tflops"]
SHAPE = ["causal", "batch", "heads", "dtype", "tiles"]
SHORT = {"sdpa_math": "sdpa", "sdpa_flash": "fa2"}  # the lecture's names
# Color, marker, dash, label. PyTorch's are gray and black, Triton's dotted, the stages in color.
LOOK = {
    "sdpa_math": ("#a5abb2", "v", "--", "SDPA MATH"),
    "sdpa_efficient": ("#7d848c", "^", "--", "SDPA efficient"),
    "sdpa_flash": ("#22262b", "s", "-", "official FA2 (SDPA FLASH)"),
    "flash_attn": ("#22262b", "P", ":", "flash-attn package"),
    "sdpa_cudnn": ("#4b5158", "d", "--", "SDPA cuDNN"),
    "triton_fa1": ("#7b3294", "x", ":", "Triton, FA1 style"),
    "triton_fa2": ("#c8322b", "x", ":", "Triton FA2"),
}
STAGE_NAMES = {1: "naive", 2: "fa1", 3: "seqpar", 4: "warps", 5: "registers", 6: "deferred"}


def by_shape(rows: list[Row]) -> dict[tuple, dict[str, Row]]:
    """Rows of one shape together; the stages' tiles are part of it."""
    tiles = {row.shape: {r.tiles for r in rows if r.shape == row.shape} - {"-"} for row in rows}
    groups: dict[tuple, dict[str, Row]] = {}
    for row in rows:
        for mode in sorted(tiles[row.shape]) or ["-"]:
            if row.tiles in (mode, "-"):
                groups.setdefault((*row.shape, mode), {})[row.backend] = row
    return groups


def to_csv(about: list[str], rows: list[Row]) -> str:
    """One line per shape. Empty: it did not run (out of memory, not installed)."""
    groups = by_shape(rows)
    names = list(dict.fromkeys(row.backend for row in rows))
    further = [name for name in names if name not in SHORT]
    columns = [*FIRST, *SHAPE]
    columns += [f"{name}_{what}" for name in further for what in ("ms", "tflops")]
    columns += [f"{SHORT.get(name, name)}_{what}" for name in names
                for what in ("spread", "requested_gbps", "share_of_peak")]  # fmt: skip
    columns += ["environment"]
    text = io.StringIO()
    writer = csv.DictWriter(text, columns, lineterminator="\n")
    writer.writeheader()
    environment = about[0] if about else ""
    for (N, d, causal, batch, heads, dtype, tiles), group in groups.items():
        line = {"seqlen": N, "headdim": d, "causal": int(causal), "batch": batch, "heads": heads,
                "dtype": dtype, "tiles": tiles, "environment": environment}  # fmt: skip
        for name, row in group.items():
            values = {"ms": row.ms, "tflops": row.tflops, "spread": row.spread,
                      "requested_gbps": row.gbps, "share_of_peak": row.peak}  # fmt: skip
            for what, value in values.items():
                if value is not None:
                    line[f"{SHORT.get(name, name)}_{what}"] = f"{value:.6g}"
        writer.writerow(line)
    return text.getvalue()


def look_of(backend: str) -> tuple[str, str, str, str]:
    if backend in LOOK:
        return LOOK[backend]
    number, variant = sweep_file.stage_of(backend)
    label = f"stage {number} {STAGE_NAMES.get(number, '')} {variant}".strip()
    return plots.STAGE_COLORS[number], "o", "--" if variant == "paper" else "-", label


def draw_speed(plt, about: list[str], rows: list[Row]):
    """TFLOP/s against seqlen, a line per backend, a panel per head dim and mask."""
    rows = [row for row in rows if row.ms is not None and row.tiles in ("tuned", "-")]
    families = [(r.batch, r.heads, r.dtype) for r in rows]
    batch, heads, dtype = max(families, key=families.count)
    rows = [row for row, f in zip(rows, families) if f == (batch, heads, dtype)]
    panels = sorted({(row.headdim, row.causal) for row in rows})
    figure, axes = plt.subplots(1, len(panels), figsize=(2.9 + 3.5 * len(panels), 5.6), sharey=True,
                                squeeze=False)  # fmt: skip
    names = sorted({row.backend for row in rows}, key=lambda n: ([*LOOK, n].index(n), n))
    for (d, causal), axis in zip(panels, axes[0]):
        here = [row for row in rows if (row.headdim, row.causal) == (d, causal)]
        for name in names:
            line = sorted((r.seqlen, r.tflops) for r in here if r.backend == name)
            color, marker, dash, label = look_of(name)
            axis.plot(*zip(*line) if line else ([], []), color=color, marker=marker, linestyle=dash,
                      markersize=5, linewidth=1.7, label=label)  # fmt: skip
        axis.set_title(f"d {d}, {'causal (FLOPs halved)' if causal else 'full'}", loc="left",
                       fontsize=10)  # fmt: skip
        seqlens = sorted({row.seqlen for row in here})
        axis.set_xscale("log", base=2)
        axis.set_xticks(seqlens, [str(n) if n < 1024 else f"{n / 1024:g}k" for n in seqlens])
        axis.minorticks_off()
        axis.set_xlabel("sequence length N")
        axis.grid(axis="y", color="#dcdfe2", linewidth=0.7)
    axes[0][0].set_ylabel("TFLOP/s")
    axes[0][0].set_ylim(bottom=0)
    handles, labels = axes[0][0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="center right", frameon=False, handlelength=3)
    return (
        figure,
        f"Attention forward on one {sweep_file.gpu_of(about)}: B{batch} H{heads}, {dtype}",
    )


def parent_gains(rows: list[Row]) -> dict[tuple[int, int], list[tuple[int, float, float]]]:
    """(head dim, stage) -> (batch x heads, speedup over the stage before, spread of the two)."""
    gains: dict[tuple[int, int], list[tuple[int, float, float]]] = {}
    for shape, group in by_shape([r for r in rows if r.tiles == "same"]).items():
        for number in range(2, 7):
            here, parent = group.get(f"stage{number}"), group.get(f"stage{number - 1}")
            if here and parent and here.ms and parent.ms:
                gains.setdefault((shape[1], number), []).append(
                    (shape[3] * shape[4], parent.ms / here.ms, here.spread + parent.spread)
                )
    return {key: sorted(values) for key, values in gains.items()}


def draw_parents(plt, rows: list[Row]):
    """Each stage's speedup over its parent against batch x heads."""
    gains = parent_gains(rows)
    headdims = sorted({d for d, _ in gains})
    size = (2.2 + 4.6 * len(headdims), 5)
    figure, axes = plt.subplots(1, len(headdims), figsize=size, sharey=True, squeeze=False)
    for d, axis in zip(headdims, axes[0]):
        for number in range(2, 7):
            points = gains.get((d, number), [])
            x, y, spread = zip(*points) if points else ((), (), ())
            bars = [s * v / 2 for s, v in zip(spread, y)]
            label = f"stage {number} {STAGE_NAMES[number]} over {number - 1}"
            axis.errorbar(x, y, yerr=bars, capsize=2, color=plots.STAGE_COLORS[number], marker="o",
                          markersize=4.5, linewidth=1.7, label=label)  # fmt: skip
        axis.axhline(1, color=plots.INK, linewidth=0.8)
        axis.set_xscale("log", base=2)
        axis.set_yscale("log")
        ticks = [0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50]
        low, high = axis.get_ylim()
        ticks = [t for t in ticks if low <= t <= high]
        axis.set_yticks(ticks, [f"{t:g}x" for t in ticks])
        axis.minorticks_off()
        sizes = sorted({x for (dim, _), points in gains.items() if dim == d for x, *_ in points})
        axis.set_xticks(sizes, [str(n) for n in sizes])
        axis.set_xlabel("batch x heads")
        axis.set_title(f"d {d}", loc="left", fontsize=10)
        axis.grid(axis="y", color="#dcdfe2", linewidth=0.7)
    axes[0][0].set_ylabel("speedup over the stage before")
    handles, labels = axes[0][0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="center right", frameon=False)
    seqlens = sorted({row.seqlen for row in rows if row.tiles == "same"})
    return figure, ("Where each change's gain vanishes: "
                    f"N{'/'.join(map(str, seqlens))} full, one tile for all stages")  # fmt: skip


def save(plt, drawn, about: list[str], target: Path, legend: float) -> None:
    """Writes the picture whole or not at all, with its environment in it."""
    figure, head = drawn
    under = about[0].removeprefix("fa2 sweep: ") if about else ""
    width, height = figure.get_size_inches()
    figure.text(0.1 / width, 1 - 0.1 / height, head, va="top", fontsize=13, fontweight="bold")
    figure.text(0.1 / width, 1 - 0.4 / height, under, va="top", fontsize=7.5, color=plots.QUIET)
    for axis in figure.axes:
        axis.set_axisbelow(True)
        for side in ("top", "right"):
            axis.spines[side].set_visible(False)
    figure.tight_layout(rect=(0, 0, 1 - legend / width, 1 - 0.6 / height))
    picture = io.BytesIO()
    figure.savefig(picture, format="png", dpi=120)
    plt.close(figure)
    write_whole(target, picture.getvalue())


def write(source: Path, out: Path) -> list[Path]:
    """All files that the rows allow."""
    about, rows = sweep_file.read(source)
    if not rows:
        raise ValueError(f"{source} has no rows")
    table = out / "fa2_sweep.csv"
    write_whole(table, to_csv(about, rows))
    written = [table]
    plt = report.pyplot()
    if any(row.ms and row.tiles in ("tuned", "-") for row in rows):
        save(plt, draw_speed(plt, about, rows), about, out / "fa2_sweep.png", 2.2)
        written.append(out / "fa2_sweep.png")
    if parent_gains(rows):
        save(plt, draw_parents(plt, rows), about, out / "fa2_sweep_parents.png", 2.2)
        written.append(out / "fa2_sweep_parents.png")
    return written


def main(words: list[str]) -> int:
    out = None
    if "--out" in words[:-1]:
        at = words.index("--out")
        out = Path(words[at + 1])
        del words[at : at + 2]
    if len(words) > 1 or any(word.startswith("-") for word in words):
        print(__doc__, file=sys.stderr)
        return 0 if words in (["--help"], ["-h"]) else 2
    source = Path(words[0] if words else "fa2_sweep.txt")
    try:
        written = write(source, out or source.parent)
    except (OSError, ValueError) as error:
        print(f"plot_fa2_sweep: {error}", file=sys.stderr)
        return 2
    print("Written:", *written)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
