"""Draws compare.png and writes compare.html from compare.json: `python -m fa2course.report DIR`.

The format of compare.json is described in common/cli/README.md.
"""
import io
import json
import os
import sys
from pathlib import Path

from .launcher.paths import write_whole
from .merge import FORMAT, VERSION
from .plots import INK, PAPER, draw_counters, draw_times


class ReportError(Exception):
    """What cannot be drawn, in one sentence for a person."""


def read_results(folder: Path) -> dict:
    path = folder / "compare.json"
    try:
        results = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ReportError(f"Cannot read {path}: {error.strerror}.") from None
    except ValueError:
        raise ReportError(f"Cannot read {path}: it is not JSON.") from None
    if not isinstance(results, dict) or results.get("format") != FORMAT:
        raise ReportError(f"Cannot read {path}: it is no file of fa2 compare.")
    if results.get("version") != VERSION:
        raise ReportError(f"Cannot read {path}: only version {VERSION} is known here.")
    return results


def pyplot():
    """matplotlib without a display, with its cache in the build folder: HOME may be read-only."""
    cache = Path(__file__).resolve().parents[3] / "build" / "matplotlib"
    if "MPLCONFIGDIR" not in os.environ and os.access(cache.parent, os.W_OK):
        os.environ["MPLCONFIGDIR"] = str(cache)
    import matplotlib
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt
    plt.rcParams.update({"font.size": 9, "text.color": INK, "xtick.color": INK, "ytick.color": INK,
                         "axes.edgecolor": INK, "axes.facecolor": PAPER, "figure.facecolor": PAPER})
    return plt


def draw(results: dict, target: Path) -> None:
    """Writes the picture whole or not at all. Its own light background reads on any page. Of merged
    results it shows the first GPU; compare.html shows each."""
    records = results["records"]
    timed = [r for r in records if r["tflops"]]
    counted = [r for r in records if r["counters"]]
    if not timed and not counted:
        raise ReportError("There is nothing to draw: no stage ran.")
    gpu = (timed or counted)[0]["environment"]["gpu"]
    records = [r for r in records if r["environment"]["gpu"] == gpu]
    plt = pyplot()
    figure, head, under = draw_times(plt, records) if timed else draw_counters(plt, records)
    width, height = figure.get_size_inches()
    figure.text(0.1 / width, 1 - 0.1 / height, head, va="top", fontsize=13, fontweight="bold")
    figure.text(0.1 / width, 1 - 0.4 / height, under, va="top", fontsize=9)
    legend = 1.7 if timed else 0  # inches
    figure.tight_layout(rect=(0, 0, 1 - legend / width, 1 - 0.6 / height))
    picture = io.BytesIO()
    figure.savefig(picture, format="png", dpi=130)
    plt.close(figure)
    try:
        write_whole(target, picture.getvalue())
    except OSError as error:
        raise ReportError(f"Cannot write {target}: {error.strerror}.") from None


def main(arguments: list[str]) -> int:
    if len(arguments) != 1 or arguments[0].startswith("-"):
        print("usage: python -m fa2course.report DIR  (where compare.json is)", file=sys.stderr)
        return 0 if arguments in (["-h"], ["--help"]) else 2
    from . import html_report  # which needs this module

    folder = Path(arguments[0])
    try:
        results = read_results(folder)
        draw(results, folder / "compare.png")
        html_report.write(results, folder / "compare.html")
    except ReportError as error:
        print(f"fa2 report: {error}", file=sys.stderr)
        return 2
    print(f"Written: compare.png and compare.html in {folder}")
    return 0


if __name__ == "__main__":
    from fa2course.report import main as run  # one copy of this module, also for html_report
    sys.exit(run(sys.argv[1:]))
