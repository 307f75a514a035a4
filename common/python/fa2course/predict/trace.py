"""Pictures of time: a timeline of one block's warps and of the grid's blocks over the SMs, as trace
events (chrome://tracing, https://ui.perfetto.dev) and as SVG."""
import json
from dataclasses import dataclass
from html import escape
from pathlib import Path

from . import counts, model, table, timeline
from .counts import Kernel, Shape

COLORS = {timeline.COPY: "#b8b8b8", timeline.QK: "#1f77b4", timeline.SOFTMAX: "#2ca02c",
          timeline.BARRIER: "#d62728", timeline.PV: "#17becf", timeline.EXCHANGE: "#ff7f0e",
          timeline.RESCALE: "#9467bd", timeline.EPILOGUE: "#8c564b"}
# Names of the reserved colors of the trace viewer.
CNAMES = {timeline.COPY: "grey", timeline.QK: "thread_state_running",
          timeline.SOFTMAX: "good", timeline.BARRIER: "terrible", timeline.PV: "rail_load",
          timeline.EXCHANGE: "bad", timeline.RESCALE: "rail_animation", timeline.EPILOGUE: "olive"}


DEFAULT_SHAPE = ["--gpu", "h200", "--batch", "1", "--heads", "8", "--seqlen", "2048", "--headdim",
                 "64", "--causal"]


@dataclass
class Picture:
    """What a trace shows."""
    gpu: model.Gpu
    kernel: Kernel
    label: str            # "3 seqpar"
    block_shape: Shape    # of the block's timeline
    spans: list[timeline.Span]
    grid: table.Row       # the run whose grid is shown
    launch: model.LaunchPrediction
    places: list[tuple]   # (sm, place, begin, end, block)


def make(program: Path, arguments: list[str], key_tiles: int) -> list[Picture]:
    """One picture per row (stage 6 has two) of the first shape that the arguments name."""
    planned = table.plan(program, arguments)
    use, gpu = table.constants(), model.Gpu(**planned["gpu"])
    rows = table.predict_rows(program, planned, use)
    shape = planned["rows"][0]["shape"]
    first = [(p, r) for p, r in zip(planned["rows"], rows) if p["shape"] == shape]
    for _, row in first:
        if row.error:
            raise table.Refused(row.error)
    kernels = [table.kernel_of(p) for p, _ in first]
    shapes = [Shape(1, 1, 1, k.tile.Br * (2 if r.number == 2 else 1), k.tile.Bc * key_tiles,
                    r.shape.d, False) for k, (_, r) in zip(kernels, first)]
    results = counts.run_jobs(program, gpu.key, [counts.job(k, s, steps=True)
                                                 for k, s in zip(kernels, shapes)])
    pictures = []
    for kernel, shape, result, (_, row) in zip(kernels, shapes, results, first):
        counts.launches(result)  # raises what the job was refused for
        launch = row.prediction.main
        run = model.schedule(model.blocks_of(launch.launch, kernel, row.shape, launch.work, use),
                             gpu.sms, launch.places.per_sm, spans=True)
        pictures.append(Picture(gpu, kernel, row.label, shape,
                                timeline.block(gpu, use, result["steps"]), row, launch,
                                sorted(run.spans)))
    return pictures


# ---- Trace events -------------------------------------------------------------------------------
# Times are in microseconds there; here one model cycle is shown as one nanosecond.

def chrome(picture: Picture) -> str:
    events = []

    def name(pid: int, what: str, text: str, tid: int = 0) -> None:
        events.append({"ph": "M", "name": what, "pid": pid, "tid": tid, "args": {"name": text}})

    name(1, "process_name", f"model: one block of stage {picture.label}, alone on its SM")
    for warp in sorted({s.warp for s in picture.spans}):
        name(1, "thread_name", f"warp {warp}", warp)
    for s in picture.spans:
        events.append({"ph": "X", "name": s.name, "cat": "warp", "pid": 1, "tid": s.warp,
                       "ts": s.begin / 1000, "dur": (s.end - s.begin) / 1000,
                       "cname": CNAMES[s.name], "args": s.counters})
    name(2, "process_name", f"model: the grid on {picture.gpu.sms} SMs, "
                            f"{table.title(picture.grid)}")
    per_sm = picture.launch.places.per_sm
    for sm, place in sorted({(p[0], p[1]) for p in picture.places}):
        name(2, "thread_name", f"SM {sm}, place {place}", sm * per_sm + place)
    for sm, place, begin, end, block in picture.places:
        events.append({"ph": "X", "name": f"block {block}", "cat": "grid", "pid": 2,
                       "tid": sm * per_sm + place, "ts": begin / 1000, "dur": (end - begin) / 1000,
                       "args": {}})
    about = {"what": "model time, not measured; 1 ns stands for one cycle",
             "gpu": picture.gpu.name, "stage": picture.kernel.stage,
             "block": counts.spec(picture.block_shape, picture.kernel.dtype),
             "grid": counts.spec(picture.grid.shape, picture.kernel.dtype)}
    return json.dumps({"traceEvents": events, "displayTimeUnit": "ns", "otherData": about}) + "\n"


# ---- SVG ----------------------------------------------------------------------------------------

LEFT, WIDTH, RIGHT, LANE = 70, 900, 20, 34


def rectangle(x: float, y: float, width: float, height: float, color: str, title: str = "") -> str:
    inside = f"<title>{escape(title)}</title>" if title else ""
    return (f'<rect x="{x:.1f}" y="{y:.1f}" width="{max(width, 0.3):.1f}" height="{height:.1f}" '
            f'fill="{color}">{inside}</rect>')


def text(x: float, y: float, words: str, size: int = 12, anchor: str = "start") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" text-anchor="{anchor}">' \
           f'{escape(words)}</text>'


def axis(y: float, cycles: float) -> list[str]:
    """Ticks at round numbers of model cycles."""
    steps = (k * 10 ** e for e in range(2, 12) for k in (1, 2, 5))
    step = next(s for s in steps if cycles / s <= 10)
    out, at = [], 0
    while at <= cycles:
        x = LEFT + WIDTH * at / cycles
        out.append(f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{y:.1f}" y2="{y + 4:.1f}" stroke="#333"/>')
        out.append(text(x, y + 16, f"{at:,}", 11, "middle"))
        at += step
    return out


def share(picture: Picture, name: str) -> float:
    """Of the warps' time that is spent so."""
    total = sum(s.end - s.begin for s in picture.spans)
    return sum(s.end - s.begin for s in picture.spans if s.name == name) / total


def svg(picture: Picture) -> str:
    cycles = max(s.end for s in picture.spans)
    warps = max(s.warp for s in picture.spans) + 1
    shown = [n for n in timeline.NAMES if any(s.name == n for s in picture.spans)]
    s, t = picture.block_shape, picture.kernel.tile
    out = [text(LEFT, 22, f"Stage {picture.label}: one block, alone on an SM of the "
                          f"{picture.gpu.name}, in model cycles (not measured)", 15),
           text(LEFT, 40, f"{t.Br} x {t.Bc} tiles, d = {s.d}, {s.Nk // t.Bc} key tiles; "
                          f"{100 * share(picture, timeline.BARRIER):.0f}% of the warps' time is "
                          "waiting at block barriers")]
    y = 56
    for i, name in enumerate(shown):
        x = LEFT + i * WIDTH / len(shown)
        out += [rectangle(x, y, 12, 12, COLORS[name]), text(x + 16, y + 10, name, 12)]
    y += 24
    for warp in range(warps):
        out.append(text(LEFT - 8, y + LANE / 2 + 2, f"warp {warp}", 12, "end"))
        for span in picture.spans:
            if span.warp == warp:
                out.append(rectangle(LEFT + WIDTH * span.begin / cycles, y,
                                     WIDTH * (span.end - span.begin) / cycles, LANE - 6,
                                     COLORS[span.name],
                                     f"{span.name}: {span.end - span.begin:.0f} cycles"))
        y += LANE
    out += axis(y, cycles)
    y += 52
    out.append(text(LEFT, y, f"Its grid: {picture.launch.blocks} blocks on {picture.gpu.sms} SMs, "
                             f"{picture.launch.places.per_sm} at a time on each; "
                             f"{table.title(picture.grid)}; model cycles", 15))
    y += 12
    total = max(p[3] for p in picture.places)
    per_sm = picture.launch.places.per_sm
    lane = max(1.0, 264 / (picture.gpu.sms * per_sm))
    height = lane * picture.gpu.sms * per_sm
    out.append(rectangle(LEFT, y, WIDTH, height, "#eeeeee"))
    for sm, place, begin, end, block in picture.places:
        out.append(rectangle(LEFT + WIDTH * begin / total, y + (sm * per_sm + place) * lane,
                             WIDTH * (end - begin) / total, lane,
                             "#1f77b4" if block // picture.gpu.sms % 2 else "#aec7e8",
                             f"block {block} on SM {sm}"))
    out.append(text(LEFT - 8, y + 10, "SM 0", 12, "end"))
    out.append(text(LEFT - 8, y + height, f"SM {picture.gpu.sms - 1}", 12, "end"))
    y += height
    out += axis(y, total)
    y += 30
    full = LEFT + WIDTH + RIGHT
    return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {full} {y:.0f}" width="{full}" '
            f'height="{y:.0f}" font-family="sans-serif">\n'
            f'<rect width="100%" height="100%" fill="white"/>\n' + "\n".join(out) + "\n</svg>\n")


# ---- For the command ----------------------------------------------------------------------------

def file_stem(picture: Picture) -> str:
    number = picture.kernel.stage.removeprefix("stage").split("_")[0]
    return f"trace_stage{number}" + (f"_{picture.kernel.variant}" if picture.kernel.variant else "")


def summary(picture: Picture) -> str:
    """Where the warps' time goes, in a line."""
    parts = {name: share(picture, name) for name in timeline.NAMES}
    shown = ", ".join(f"{name} {100 * part:.0f}%" for name, part in parts.items() if part >= 0.005)
    cycles = max(s.end for s in picture.spans)
    return f"stage {picture.label}: {cycles:,.0f} model cycles (not measured): {shown}"
