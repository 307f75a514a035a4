"""Fits the model's three constants on measured times, judges the predictions on the others, and
writes constants.json and the tables of notes/prediction.md.

    python -m fa2course.predict.report [--program build/sim/bin/fa2-counts] [--judge-only]

Fitted on: head dim 64, B2 H16, common tiles, every length but those of LEFT_OUT. Judged on the
rest. Draws the lectures' pictures anew, since they show the constants.
"""
import argparse
import json
import math
import re
import statistics
import sys
from dataclasses import dataclass
from pathlib import Path

from fa2course import plots
from fa2course.launcher import paths

from . import counts, model, registers, table, trace
from .counts import Kernel, Launch, Shape

RESULTS = paths.ROOT / "notes" / "results" / "h200.json"
NOTES = paths.ROOT / "notes" / "prediction.md"
LEFT_OUT = (2048,)
START = (80.0, 4000.0, 0.7)  # barrier, fill, memory: where the search begins
STEPS = (20.0, 800.0, 0.08)


@dataclass
class Measured:
    """A measured row with what a prediction of it needs."""
    record: dict
    kernel: Kernel
    shape: Shape
    launches: list[Launch]

    @property
    def ms(self) -> float:
        return self.record["time_ms"]

    @property
    def fitted(self) -> bool:
        s = self.shape
        return (s.d == 64 and (s.B, s.Hq, s.Hkv) == (2, 16, 16) and s.Nq == s.Nk and
                s.Nq not in LEFT_OUT and self.record["tile_mode"] == "same" and
                self.kernel.dtype == "fp16")

    @property
    def group(self) -> str:
        if self.fitted:
            return "fitted: d = 64"
        if self.record["tile_mode"] != "same":
            return "tuned tiles"
        if self.shape.d == 64:
            return "d = 64, lengths left out"
        return "d = 128"

    @property
    def label(self) -> str:
        return plots.stage_label(self.record)


def planned_row(program: Path, record: dict, cache: dict) -> dict | None:
    """The row of the course's present plan that this record stands for; None if its tile has
    changed since, or the stage is not there."""
    s = record["shape"]
    options = ["--gpu", "h200", "--batch", s["B"], "--heads", s["Hq"], "--heads-kv", s["Hkv"],
               "--seqlen", s["Nq"], "--seqlen-k", s["Nk"], "--headdim", s["d"],
               "--causal" if s["causal"] else "--full", "--dtype", record["dtype"],
               "--tiles", record["tile_mode"], "--variants"]
    key = tuple(map(str, options))
    if key not in cache:
        cache[key] = table.plan(program, list(key))
    for row in cache[key]["rows"]:
        if (row["stage"], row["variant"]) == (record["stage"], record["variant"]):
            return row if row.get("tile") == record["tile"] else None
    return None


def read(program: Path, results: Path = RESULTS) -> tuple[model.Gpu, list[Measured], int]:
    """The measured rows, and how many were left aside because their tile has changed since."""
    records = [r for r in json.loads(results.read_text())["records"]
               if r["backend"] == "cuda" and r["ok"] and r["time_ms"] and "/" not in r["stage"]]
    cache: dict = {}
    rows = [(r, planned_row(program, r, cache)) for r in records]
    unique: dict[tuple, dict] = {}  # where the tuned tile is the common one, it is no other case
    runs = []
    for record, row in rows:
        if row is None:
            continue
        kernel, shape = table.kernel_of(row), Shape(**row["shape"])
        if unique.setdefault((kernel.stage, kernel.variant, kernel.dtype, kernel.tile, shape),
                             record) is record:
            runs.append((kernel, shape))
    counted = counts.count(program, "h200", runs)
    gpu = model.Gpu(**next(iter(cache.values()))["gpu"])
    measured = [Measured(r, *run, launches)
                for r, run, launches in zip(unique.values(), runs, counted)]
    return gpu, measured, sum(row is None for _, row in rows)


class Judge:
    """Predicts measured rows; keeps what the constants do not change."""

    def __init__(self, gpu: model.Gpu):
        self.gpu, self.report = gpu, registers.load()

    def ms(self, use: model.Constants, m: Measured) -> float:
        known = registers.registers(self.report, m.kernel.stage, self.gpu.cc)
        return model.predict(self.gpu, use, known, m.kernel, m.shape, m.launches).ms

    def loss(self, use: model.Constants, rows: list[Measured]) -> float:
        return statistics.fmean(math.log(self.ms(use, m) / m.ms) ** 2 for m in rows)

    def fit(self, rows: list[Measured]) -> model.Constants:
        """Least squares of the logarithms, one constant after the other, in ever smaller steps."""
        values, steps = list(START), list(STEPS)
        best = self.loss(model.Constants(*values), rows)
        for _ in range(12):
            for i in range(len(values)):
                for sign in (1, -1):
                    trial = list(values)
                    trial[i] = max(0.0, trial[i] + sign * steps[i])
                    loss = self.loss(model.Constants(*trial), rows)
                    if loss < best:
                        best, values = loss, trial
                        break
                else:
                    steps[i] /= 2
        return model.Constants(round(values[0], 1), float(round(values[1])), round(values[2], 3))


# ---- The verdict --------------------------------------------------------------------------------

@dataclass
class Pair:
    """Two consecutive stages on one shape."""
    first: Measured
    second: Measured
    measured: float   # speedup
    predicted: float

    @property
    def error(self) -> float:
        return self.predicted / self.measured - 1

    @property
    def apart(self) -> bool:
        """Whether the times differ by more than their own spread."""
        spread = max(x.record["spread"] or 0 for x in (self.first, self.second))
        return abs(self.measured - 1) > spread

    @property
    def in_order(self) -> bool:
        return (self.predicted > 1) == (self.measured > 1)


def where(m: Measured) -> str:
    return f"{plots.shape_label(m.record['shape'])}, tiles {m.record['tile_mode']}"


def pairs(rows: list[Measured], predicted: dict[int, float]) -> list[Pair]:
    shapes: dict[tuple, list[Measured]] = {}
    for m in rows:
        shapes.setdefault((m.shape, m.kernel.dtype, m.record["tile_mode"]), []).append(m)
    found = []
    for group in shapes.values():
        for a, b in zip(group, group[1:]):
            found.append(Pair(a, b, a.ms / b.ms, predicted[id(a)] / predicted[id(b)]))
    return found


def percent(part: int, whole: int) -> str:
    return f"{part} of {whole}" + (f" ({100 * part / whole:.0f}%)" if whole else "")


def verdict(rows: list[Measured], predicted: dict[int, float]) -> str:
    """The tables of the notes."""
    groups = ["fitted: d = 64", "d = 64, lengths left out", "d = 128", "tuned tiles"]
    lines = ["| rows | number | within 25% | median error | largest error | speedups within 20% | "
             "order right |",
             "|---|---|---|---|---|---|---|"]
    for name in [*groups, "all that were not fitted"]:
        part = [m for m in rows if m.group == name or (name.startswith("all") and not m.fitted)]
        if not part:
            continue
        errors = [predicted[id(m)] / m.ms - 1 for m in part]
        steps = pairs(part, predicted)
        apart = [p for p in steps if p.apart]
        lines.append(
            f"| {name} | {len(part)} | {percent(sum(abs(e) <= 0.25 for e in errors), len(part))} | "
            f"{100 * statistics.median(map(abs, errors)):.0f}% | "
            f"{100 * max(errors, key=abs):+.0f}% | "
            f"{percent(sum(abs(p.error) <= 0.2 for p in steps), len(steps))} | "
            f"{percent(sum(p.in_order for p in apart), len(apart))} |")
    return "\n".join(lines)


def by_stage(rows: list[Measured], predicted: dict[int, float]) -> str:
    lines = ["| stage | rows | mean error | from | to |", "|---|---|---|---|---|"]
    for label in dict.fromkeys(m.label for m in rows):
        errors = [100 * (predicted[id(m)] / m.ms - 1) for m in rows if m.label == label]
        lines.append(f"| {label} | {len(errors)} | {statistics.fmean(errors):+.0f}% | "
                     f"{min(errors):+.0f}% | {max(errors):+.0f}% |")
    return "\n".join(lines)


def misses(rows: list[Measured], predicted: dict[int, float], count: int = 12) -> str:
    worst = sorted(rows, key=lambda m: -abs(math.log(predicted[id(m)] / m.ms)))[:count]
    lines = ["| stage | shape | measured ms | predicted ms | error |", "|---|---|---|---|---|"]
    for m in worst:
        p = predicted[id(m)]
        lines.append(f"| {m.label} | {where(m)} | {table.number(m.ms)} | {table.number(p)} | "
                     f"{100 * (p / m.ms - 1):+.0f}% |")
    return "\n".join(lines)


def wrong_order(rows: list[Measured], predicted: dict[int, float]) -> str:
    wrong = [p for p in pairs(rows, predicted) if p.apart and not p.in_order]
    if not wrong:
        return "None."
    return "\n".join(f"- {p.first.label} to {p.second.label}, {where(p.first)}: measured "
                     f"x{p.measured:.2f}, predicted x{p.predicted:.2f}" for p in wrong)


def rewrite(text: str, name: str, content: str) -> str:
    """Puts `content` between the markers of this name."""
    begin, end = f"<!-- {name} -->", f"<!-- end of {name} -->"
    pattern = re.compile(re.escape(begin) + ".*?" + re.escape(end), re.DOTALL)
    if not pattern.search(text):
        raise ValueError(f"{NOTES.name} has no place for {name}")
    return pattern.sub(lambda _: f"{begin}\n{content}\n{end}", text)


def write_notes(rows: list[Measured], predicted: dict[int, float], use: model.Constants,
                aside: int) -> None:
    records = json.loads(RESULTS.read_text())
    commits = sorted({record["environment"]["commit"] for record in records["records"]})
    fitted = sum(m.fitted for m in rows)
    values = (f"barrier = {use.barrier:g} cycles, fill = {use.fill:g} cycles, memory = "
              f"{use.memory:g},\nfitted on {fitted} of {len(rows)} rows of results/h200.json "
              f"(commits {', '.join(commits)}).")
    if aside:
        values += f" {aside} rows were left aside: their tile has changed since."
    text = NOTES.read_text()
    for name, content in (("constants", values), ("verdict", verdict(rows, predicted)),
                          ("stages", by_stage(rows, predicted)),
                          ("order", wrong_order(rows, predicted)),
                          ("misses", misses(rows, predicted))):
        text = rewrite(text, name, content)
    paths.write_whole(NOTES, text)


def draw_lectures(program: Path) -> None:
    """What ./fa2 trace 3 4 --format svg --out lectures/figures does."""
    for stage in ("3", "4"):
        for picture in trace.make(program, [*trace.DEFAULT_SHAPE, "--stages", stage], 3):
            paths.write_whole(paths.ROOT / "lectures" / "figures" /
                              f"{trace.file_stem(picture)}.svg", trace.svg(picture))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--program", type=Path, default=paths.BUILD / "sim" / "bin" / "fa2-counts")
    parser.add_argument("--judge-only", action="store_true",
                        help="with the committed constants; write nothing")
    options = parser.parse_args()
    if not options.program.exists():
        print(f"fa2: there is no {options.program}; ./fa2 compare --gpu h200 builds it",
              file=sys.stderr)
        return 2
    gpu, rows, aside = read(options.program)
    judge = Judge(gpu)
    if options.judge_only:
        use = table.constants()
    else:
        use = judge.fit([m for m in rows if m.fitted])
    predicted = {id(m): judge.ms(use, m) for m in rows}
    print(verdict(rows, predicted))
    print(by_stage(rows, predicted))
    print(wrong_order(rows, predicted))
    if not options.judge_only:
        paths.write_whole(table.CONSTANTS, json.dumps(vars(use)) + "\n")
        write_notes(rows, predicted, use, aside)
        draw_lectures(options.program)
    return 0


if __name__ == "__main__":
    sys.exit(main())
