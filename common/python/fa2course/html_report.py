"""The page compare.html, written beside compare.json by `python -m fa2course.report DIR`.

One file that needs nothing else and fetches nothing: pictures are inside it, there is no script. It
is meant to be shown to a class. Each GPU (the simulator counts as one) gets a section of its own,
so that results which `./fa2 compare --merge` joined are never mixed.
"""
import html
import io
import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from . import plots
from .launcher.paths import write_whole
from .report import ReportError, pyplot

STYLE = """
:root { color-scheme: light; }
body { margin: 0 auto; max-width: 84rem; padding: 1.2rem 1.5rem 4rem; background: #fbfbf9;
       color: #22262b; font: 16px/1.45 system-ui, "Liberation Sans", Arial, sans-serif; }
h1 { font-size: 1.9rem; margin: .4rem 0 .2rem; }
h2 { font-size: 1.4rem; margin: 2.2rem 0 .3rem; border-top: 2px solid #22262b; padding-top: .6rem; }
h3, summary { font-size: 1.05rem; font-weight: 600; margin: .9rem 0 .3rem; }
summary { cursor: pointer; }
.quiet { color: #5b626a; }
figure { margin: 1rem 0; overflow-x: auto; }
figure svg { max-width: 100%; height: auto; }
.table { overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; font-size: .92rem; }
th { text-align: right; vertical-align: bottom; font-weight: 600;
     border-bottom: 1px solid #22262b; }
th, td { padding: .25rem .6rem; }
td { text-align: right; white-space: nowrap; border-bottom: 1px solid #e3e4e0; }
th:first-child, td:first-child { text-align: left; }
td.moved { font-weight: 700; }
td small { display: block; font-size: .78em; }
td.bad, .bad { color: #b3211b; font-weight: 700; }
.good { color: #10704f; font-weight: 600; }
.track { display: inline-block; width: 9em; text-align: left; margin-right: .5em; }
.value { display: inline-block; min-width: 3.2em; }
.bar { display: inline-block; height: .75em; }
.key { display: inline-block; width: .8em; height: .8em; margin-right: .5em; border-radius: 2px; }
dl { display: flex; flex-wrap: wrap; gap: .1rem 1.6rem; margin: .5rem 0; }
dt { color: #5b626a; display: inline; } dd { margin: 0 0 0 .4rem; display: inline; }
code { font-size: .92em; }
@media print { body { max-width: none; } details > * { display: block; }
               h2 { break-before: page; } }
"""

text = html.escape

# ---- Cells ---------------------------------------------------------------------------------------


@dataclass
class Cell:
    shown: str  # HTML
    style: str = ""


def number(value: float | None) -> str:
    """Three digits that count, and every digit of a whole number."""
    if value is None:
        return "–"
    if isinstance(value, str):  # "nan", "inf" or "-inf"
        return value
    if float(value).is_integer():
        return f"{int(value):,}"
    digits = max(0, 2 - math.floor(math.log10(abs(value))))
    return f"{value:,.{min(digits, 6)}f}"


def share(value) -> str:
    return f"{value:.1%}" if isinstance(value, float | int) else number(value)


def result(record: dict) -> Cell:
    if record["ok"]:
        return Cell('<span class="good">ok</span>')
    word = "not run" if record["ok"] is None else "WRONG"
    return Cell(f'<span class="bad" title="{text(record["reason"])}">{word}</span>')


def stage(record: dict) -> Cell:
    color = plots.STAGE_COLORS.get(record["number"], plots.INK)
    return Cell(f'<span class="key" style="background:{color}"></span>'
                f'{text(plots.stage_label(record))}')


def tile(record: dict) -> str:
    t = record["tile"]
    if not t:
        return "–"
    deep = f", {t['depth']} deep" if t["depth"] > 1 else ""
    return f"{t['Br']}×{t['Bc']}, {t['warps']} warps{deep}"


def gain(record: dict, parent: dict | None) -> Cell:
    """How much faster than its parent; what lies inside both spreads is no gain. The same rule as
    in the tables of the terminal (common/cli/compare/tables.cpp)."""
    if not parent or not record["time_ms"] or not parent["time_ms"]:
        return Cell("–")
    speedup = parent["time_ms"] / record["time_ms"]
    noise = ((record["spread"] or 0) + (parent["spread"] or 0)) / 2
    if abs(speedup - 1) <= noise:
        return Cell(f'×{speedup:.3g} <span class="quiet">no gain</span>')
    return Cell(f"×{speedup:.3g}" + (" slower" if speedup < 1 else ""),
                "moved" if speedup > 1 else "bad")


def counter(of: Callable[[dict], float], record: dict, parent: dict | None) -> Cell:
    if not record["counters"]:
        return Cell("–")
    value = of(record["counters"])
    before = of(parent["counters"]) if parent and parent["counters"] else value
    if value == before:
        return Cell(f'<span class="quiet">{number(value)}</span>')
    return Cell(f"{number(value)}<small>{plots.change(before, value)}</small>", "moved")


def speed(record: dict, fastest: float) -> Cell:
    if not record["tflops"]:
        return Cell("–")
    color = plots.STAGE_COLORS.get(record["number"], plots.INK)
    width = 9 * record["tflops"] / fastest
    return Cell(f'<span class="track"><span class="bar" style="width:{width:.2f}em;'
                f'background:{color}"></span></span><span class="value">{record["tflops"]:.1f}'
                "</span>")


# ---- Tables --------------------------------------------------------------------------------------


def table(heads: list[str], rows: list[list[Cell]]) -> str:
    """The heads are HTML."""
    head = "".join(f"<th>{name}</th>" for name in heads)
    body = "\n".join("<tr>" + "".join(
        f'<td class="{cell.style}">{cell.shown}</td>' if cell.style else f"<td>{cell.shown}</td>"
        for cell in row) + "</tr>" for row in rows)
    return (f'<div class="table"><table><thead><tr>{head}</tr></thead>\n'
            f"<tbody>{body}</tbody></table></div>")


def times_table(rows: list[dict]) -> str:
    fastest = max((r["tflops"] or 0 for r in rows), default=0) or 1
    heads = ["stage", "result", "error / tolerance", "tile", "ms", "spread", "TFLOP/s", "of peak",
             "over its parent"]
    cells = []
    for r in rows:
        peak = r["environment"]["peak_tflops"]
        cells.append([stage(r), result(r), Cell(share(r["share_of_tolerance"])), Cell(tile(r)),
                      Cell(number(r["time_ms"])), Cell(share(r["spread"])), speed(r, fastest),
                      Cell(share(r["tflops"] / peak if peak and r["tflops"] else None)),
                      gain(r, plots.parent_of(r, rows))])
    return table(heads, cells)


def counters_table(rows: list[dict]) -> str:
    """One column per stage: there are more counters than a page is wide."""
    parents = [plots.parent_of(r, rows) for r in rows]
    lines = [[Cell("result"), *(result(r) for r in rows)],
             [Cell("error / tolerance"), *(Cell(share(r["share_of_tolerance"])) for r in rows)]]
    lines += [[Cell(text(panel.title)),
               *(counter(panel.of, r, parent) for r, parent in zip(rows, parents))]
              for panel in plots.PANELS]
    return table(["", *(stage(r).shown for r in rows)], lines)


def groups_of(records: list[dict]) -> dict[tuple, list[dict]]:
    """The records of one problem, dtype and tile mode, in the order of the file."""
    groups: dict[tuple, list[dict]] = {}
    for record in records:
        groups.setdefault(plots.group_key(record), []).append(record)
    return groups


def group_title(rows: list[dict]) -> str:
    r = rows[0]
    return f"{plots.shape_label(r['shape'])}, {r['dtype']}, tiles {r['tile_mode']}"


def problem(rows: list[dict]) -> str:
    timed = any(r["time_ms"] for r in rows)
    reasons = "".join(f'<p class="bad">{text(plots.stage_label(r))}: {text(r["reason"])}</p>'
                      for r in rows if r["reason"])
    return (times_table(rows) if timed else counters_table(rows)) + reasons


def problems(records: list[dict]) -> str:
    """One table per problem: the one with the most work in sight, the others to be opened."""
    groups = groups_of(records)
    first = groups.pop(plots.group_key(plots.largest_group(records)[0]))
    parts = [f"<h3>{text(group_title(first))}</h3>\n{problem(first)}"]
    for rows in groups.values():
        opened = " open" if any(r["ok"] is False for r in rows) else ""
        parts.append(f"<details{opened}><summary>{text(group_title(rows))}</summary>\n"
                     f"{problem(rows)}</details>")
    return "\n".join(parts)


# ---- Pictures ------------------------------------------------------------------------------------


def picture(records: list[dict]) -> str:
    """What the picture beside compare.json shows, as SVG; empty when there is nothing to draw."""
    timed = [r for r in records if r["tflops"]]
    counted = [r for r in records if r["counters"]]
    if not timed and not counted:
        return ""
    plt = pyplot()
    plt.rcParams.update({"svg.fonttype": "path", "svg.hashsalt": "fa2"})  # the same bytes each time
    figure, head, under = (plots.draw_times(plt, timed) if timed
                           else plots.draw_counters(plt, counted))
    width, _ = figure.get_size_inches()
    figure.tight_layout(rect=(0, 0, 1 - (1.7 / width if timed else 0), 1))
    out = io.StringIO()
    figure.savefig(out, format="svg", metadata={"Date": None, "Creator": None})
    plt.close(figure)
    svg = out.getvalue()
    svg = svg[svg.index("<svg"):].replace("<svg ", f'<svg role="img" aria-label="{text(head)}" ', 1)
    return (f"<figure><figcaption><h3>{text(head)}</h3>"
            f'<p class="quiet">{text(under)}</p></figcaption>\n{svg}</figure>')


# ---- The page ------------------------------------------------------------------------------------


def machine(record: dict) -> str:
    e = record["environment"]
    if record["backend"] == "sim":
        return f"Simulator ({e['gpu'] or 'a simulated GPU'})"
    return e["gpu"] or "GPU"


def by_machine(records: list[dict]) -> dict[str, list[dict]]:
    """GPUs first, then the simulator; each in the order of the file."""
    found: dict[str, list[dict]] = {}
    for record in sorted(records, key=lambda r: r["backend"] == "sim"):
        found.setdefault(machine(record), []).append(record)
    return found


ENVIRONMENT = {"gpu": "GPU", "sms": "SMs", "compute_capability": "compute capability",
               "peak_tflops": "datasheet peak, TFLOP/s",
               "mma_tflops": "mma.sync alone, TFLOP/s", "driver": "driver", "cuda": "CUDA",
               "cpu": "CPU", "threads": "threads", "compiler": "compiler", "commit": "commit",
               "date": "date"}


def environment(records: list[dict]) -> str:
    """All that the records of a section say of where they come from."""
    rows = []
    for key, name in ENVIRONMENT.items():
        values = dict.fromkeys(str(r["environment"].get(key) or "") for r in records)
        shown = ", ".join(value for value in values if value not in ("", "0", "0.0"))
        if shown:
            rows.append(f"<div><dt>{text(name)}</dt><dd>{text(shown)}</dd></div>")
    return f"<dl>{''.join(rows)}</dl>"


def side_by_side(machines: dict[str, list[dict]]) -> str:
    """TFLOP/s of every stage on every GPU, for the largest problem that all of them ran."""
    timed = {name: groups_of([r for r in rows if r["tflops"]]) for name, rows in machines.items()}
    timed = {name: groups for name, groups in timed.items() if groups}
    if len(timed) < 2:
        return ""
    common = set.intersection(*(set(groups) for groups in timed.values()))
    if not common:
        return ""
    first = next(iter(timed.values()))
    rows = plots.largest_group([r for key in common for r in first[key]])
    key = plots.group_key(rows[0])
    cells = []
    for r in sorted(rows, key=first[key].index):
        row = [stage(r)]
        for groups in timed.values():
            same = [x for x in groups[key] if plots.stage_label(x) == plots.stage_label(r)]
            row.append(Cell(f"{same[0]['tflops']:.1f}" if same else "–"))
        cells.append(row)
    return (f"<h2>Side by side</h2><p>TFLOP/s on {text(group_title(rows))}.</p>"
            + table(["stage", *map(text, timed)], cells))


def verdict(records: list[dict]) -> str:
    right = sum(r["ok"] is True for r in records)
    wrong = sum(r["ok"] is False for r in records)
    idle = len(records) - right - wrong
    said = f'<span class="good">{right} right</span>'
    if wrong:
        said += f', <span class="bad">{wrong} wrong</span>'
    if idle:
        said += f", {idle} not run"
    return f"{len(records)} results, each checked against a double-precision reference: {said}."


def page(results: dict) -> str:
    records = results["records"]
    if not records:
        raise ReportError("There is nothing to show: no stage ran.")
    machines = by_machine(records)
    sections = []
    for name, rows in machines.items():
        note = ("Counted by what executes, not timed." if rows[0]["backend"] == "sim" else
                "Median of at least 20 runs. TFLOP/s = 4 B H Nq Nk d / time, halved when causal. "
                "A difference within the spread of both is no gain.")
        sections.append(f"<h2>{text(name)}</h2>\n{environment(rows)}\n{picture(rows)}\n"
                        f'<p class="quiet">{note} Bold: moved by this stage\'s change.</p>\n'
                        f"{problems(rows)}")
    return f"""<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>FlashAttention-2, one change at a time: comparison</title>
<style>{STYLE}</style></head><body>
<h1>FlashAttention-2, one change at a time</h1>
<p>{verdict(records)}<br>
<span class="quiet">Command: <code>{text(results.get("command", ""))}</code></span></p>
{side_by_side(machines)}
{"".join(sections)}
</body></html>
"""


def write(results: dict, target: Path) -> None:
    try:
        write_whole(target, page(results))
    except OSError as error:
        raise ReportError(f"Cannot write {target}: {error.strerror}.") from None
