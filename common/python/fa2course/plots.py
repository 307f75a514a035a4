"""What the picture of ./fa2 compare shows: counters of the simulator as small multiples, one bar
per stage, and speeds of a GPU over the sequence length. The records are those of compare.json.
"""
import math
from collections.abc import Callable
from dataclasses import dataclass

INK, QUIET, FAINT, PAPER = "#22262b", "#666d75", "#b4b9bf", "#fbfbf9"
# One color per stage, dark enough for the paper and apart in lightness for those who see no hue.
STAGE_COLORS = {1: "#8a8f98", 2: "#7b3294", 3: "#2c6fbb", 4: "#1b9e77", 5: "#d98b00", 6: "#c8322b"}

# ---- Names ---------------------------------------------------------------------------------------


def stage_label(record: dict) -> str:
    """'stage3_fa2_seqpar' -> '3 seqpar', as in the tables."""
    name = record["stage"].split("_", 1)[-1].removeprefix("fa2_")
    return f"{record['number']} {name} {record['variant']}".strip()


def shape_label(shape: dict) -> str:
    heads = f"H{shape['Hq']}" + (f" Hkv{shape['Hkv']}" if shape["Hkv"] != shape["Hq"] else "")
    rows = f"N{shape['Nq']}"
    if shape["Nq"] != shape["Nk"]:
        rows = f"Nq{shape['Nq']} Nk{shape['Nk']}"
    return f"B{shape['B']} {heads} {rows} d{shape['d']} {'causal' if shape['causal'] else 'full'}"


def group_key(record: dict) -> tuple:
    return (tuple(record["shape"].values()), record["dtype"], record["tile_mode"])


def human(value: float) -> str:
    """A count in at most five characters."""
    for size, suffix in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= 0.9995 * size:
            return f"{value / size:.3g}{suffix}"
    return f"{value:.3g}"


# ---- Counters of the simulator -------------------------------------------------------------------


@dataclass
class Panel:
    title: str
    of: Callable[[dict], float]


def total(*names: str) -> Callable[[dict], float]:
    return lambda counters: sum(counters[name] for name in names)


def shared(purpose: str) -> Callable[[dict], float]:
    return total(f"shared_load_bytes_{purpose}", f"shared_store_bytes_{purpose}")


PANELS = [
    Panel("thread blocks", total("blocks")),
    Panel("global memory, bytes", total("global_load_bytes", "global_store_bytes")),
    Panel("shared memory, bytes of partial O", shared("partial_o")),
    Panel("shared memory, bytes of statistics", shared("statistics")),
    Panel("shared memory, wavefronts", total(
        "shared_wavefronts_tiles", "shared_wavefronts_statistics", "shared_wavefronts_partial_o")),
    Panel("block barriers", total("block_barriers")),
    Panel("warp syncs", total("warp_syncs")),
    Panel("shuffles", total("shuffles")),
    Panel("multiplies on O", total("fp32_mul_O", "fp32_fma_O")),
    Panel("normalisations", total("normalisations")),
    Panel("exp2 of statistics", total("exp2_stats")),
    Panel("mma", total("mma")),
]


def largest_group(records: list[dict]) -> list[dict]:
    """The rows of the problem with the most work: there the stages differ most clearly."""
    def work(record: dict) -> tuple:
        s = record["shape"]
        return (s["B"] * s["Hq"] * s["Nq"] * s["Nk"] * s["d"], record["dtype"] == "fp16",
                record["tile_mode"] == "same")
    best = max(records, key=work)
    return [r for r in records if group_key(r) == group_key(best)]


def parent_of(row: dict, rows: list[dict]) -> dict | None:
    """The row that `row` is one change from: its stage's first variant, or the stage before."""
    nearest = None
    for other in rows:
        if other is row:
            break
        if "/" in other["stage"]:
            continue
        if other["stage"] == row["stage"].partition("/")[0]:
            return other
        if other["number"] < row["number"] and (not nearest or other["number"] > nearest["number"]):
            nearest = other
    return nearest


def draw_counters(plt, records: list[dict]):
    rows = largest_group([r for r in records if r["counters"]])
    columns = 4
    lines = math.ceil(len(PANELS) / columns)
    figure, axes = plt.subplots(lines, columns, figsize=(max(2.6, 0.56 * len(rows)) * columns,
                                                         2.1 * lines + 1.6))
    for panel, axis in zip(PANELS, axes.flat):
        draw_panel(axis, panel, rows)
    for axis in axes[-1]:
        axis.set_xticks(range(len(rows)), [stage_label(r) for r in rows], rotation=90)
    head = f"What each change moves: {shape_label(rows[0]['shape'])}, {rows[0]['dtype']}"
    under = ("Counted by the simulator, not timed; one logarithmic scale per panel. In color: "
             "moved by this stage, and by how much. Gray: as in its parent. "
             f"Tiles: {rows[0]['tile_mode']}.")
    return figure, head, under


def draw_panel(axis, panel: Panel, rows: list[dict]) -> None:
    values = [panel.of(r["counters"]) for r in rows]
    positive = [v for v in values if v > 0] or [1]
    floor, top = min(positive) / 3, max(max(positive), 4 * min(positive))
    axis.set_yscale("log")
    axis.set_ylim(floor, top * (top / floor) ** 0.42)  # room for two lines of text
    for x, (value, row) in enumerate(zip(values, rows)):
        parent = parent_of(row, rows)
        before = panel.of(parent["counters"]) if parent else value
        color = STAGE_COLORS[row["number"]]
        if value > 0:
            axis.bar(x, value, width=0.74, color=FAINT if value == before else color)
        label, style = human(value), {"color": QUIET}
        if value != before:
            label, style = f"{change(before, value)}\n{label}", {"color": color, "weight": "bold"}
        axis.annotate(label, (x, max(value, floor)), xytext=(0, 2), textcoords="offset points",
                      ha="center", va="bottom", fontsize=7.5, linespacing=1.05, **style)
    axis.set_title(panel.title, fontsize=9.5, loc="left", color=INK)
    axis.set_xlim(-0.6, len(rows) - 0.4)
    axis.set_xticks([])
    axis.yaxis.set_visible(False)
    for side in ("top", "right", "left"):
        axis.spines[side].set_visible(False)


def change(before: float, after: float) -> str:
    if before == 0:
        return "new"
    if after == 0:
        return "gone"
    more = after > before
    ratio = after / before if more else before / after
    return ("\u00d7" if more else "\u00f7") + f"{ratio:.3g}"


# ---- Times of a GPU ------------------------------------------------------------------------------


def sweep_of(records: list[dict]) -> list[dict]:
    """The rows of the batch, heads, dtype and tiles that most rows have; with Nq = Nk."""
    def family(record: dict) -> tuple:
        s = record["shape"]
        return s["B"], s["Hq"], s["Hkv"], record["dtype"], record["tile_mode"]
    square = [r for r in records if r["shape"]["Nq"] == r["shape"]["Nk"]] or records
    families = [family(r) for r in square]
    most = max(families, key=families.count)
    return [r for r, f in zip(square, families) if f == most]


def draw_times(plt, records: list[dict]):
    rows = sweep_of([r for r in records if r["tflops"]])
    panels = sorted({(r["shape"]["d"], r["shape"]["causal"]) for r in rows})
    figure, axes = plt.subplots(1, len(panels), figsize=(3.1 + 3.3 * len(panels), 5), sharey=True,
                                squeeze=False)
    stages = list(dict.fromkeys(stage_label(r) for r in rows))  # in the order of the course
    for (d, causal), axis in zip(panels, axes[0]):
        here = [r for r in rows if (r["shape"]["d"], r["shape"]["causal"]) == (d, causal)]
        for stage in stages:
            draw_line(axis, [r for r in here if stage_label(r) == stage])
        axis.set_title(f"d {d}, {'causal (FLOPs halved)' if causal else 'full'}", fontsize=10,
                       loc="left", color=INK)
        sizes = sorted({r["shape"]["Nq"] for r in here})
        axis.set_xscale("log", base=2)
        axis.set_xticks(sizes, [str(n) if n < 1024 else f"{n / 1024:g}k" for n in sizes])
        axis.minorticks_off()
        axis.set_xlabel("N = Nq = Nk", color=INK)
        axis.grid(axis="y", color="#dcdfe2", linewidth=0.7)
        axis.set_axisbelow(True)
        for side in ("top", "right"):
            axis.spines[side].set_visible(False)
    axes[0][0].set_ylabel("TFLOP/s", color=INK)
    axes[0][0].set_ylim(bottom=0)
    handles, names = axes[0][0].get_legend_handles_labels()
    figure.legend(handles[::-1], names[::-1], loc="center right", frameon=False, labelcolor=INK,
                  handlelength=3.2)
    s, e = rows[0]["shape"], rows[0]["environment"]
    head = (f"Speed of each stage: B{s['B']} H{s['Hq']}, {rows[0]['dtype']}, "
            f"tiles {rows[0]['tile_mode']}")
    peak = f" Datasheet peak {e['peak_tflops']:g} TFLOP/s." if e["peak_tflops"] else ""
    under = (f"{e['gpu']}, driver {e['driver']}, CUDA {e['cuda']}, "
             f"commit {e['commit'] or 'unknown'}, {e['date']}. "
             f"Bars: slowest and fastest run.{peak}")
    return figure, head, under


def draw_line(axis, rows: list[dict]) -> None:
    if not rows:
        return
    rows = sorted(rows, key=lambda r: r["shape"]["Nq"])
    number, variant = rows[0]["number"], rows[0]["variant"] or rows[0]["stage"].partition("/")[2]
    plain = variant in ("", "lazy")
    axis.errorbar([r["shape"]["Nq"] for r in rows], [r["tflops"] for r in rows],
                  yerr=[r["tflops"] * (r["spread"] or 0) / 2 for r in rows],
                  color=STAGE_COLORS[number], marker="osD^vPX"[number], markersize=5, linewidth=1.8,
                  linestyle="-" if plain else "--", capsize=2, label=stage_label(rows[0]))
