"""The predictions of `./fa2 compare --gpu MODEL`, as rows, tables and files."""
import json
import math
import os
import subprocess
import textwrap
from dataclasses import dataclass
from pathlib import Path

from fa2course import plots
from fa2course.launcher import paths

from . import counts, model, registers
from .counts import Kernel, Shape, Tile

CONSTANTS = Path(__file__).with_name("constants.json")


@dataclass
class Row:
    """One stage on one shape: a prediction, or why there is none."""
    stage: str
    number: int
    variant: str
    tile_mode: str
    dtype: str
    shape: Shape
    tile: Tile | None
    prediction: model.Prediction | None
    error: str

    @property
    def label(self) -> str:
        """As fa2-compare calls it: "6 deferred lazy"."""
        return plots.stage_label(vars(self))


class Refused(Exception):
    """fa2-counts has said why."""


def plan(program: Path, arguments: list[str]) -> dict:
    """Which rows `./fa2 compare` with these options has on a GPU, and with which tiles."""
    done = subprocess.run([str(program), "plan", *arguments], capture_output=True, text=True,
                          check=False)
    if done.returncode != 0:
        raise Refused(done.stderr.strip())
    return json.loads(done.stdout)


def constants() -> model.Constants:
    found = json.loads(CONSTANTS.read_text())
    return model.Constants(found["barrier"], found["fill"], found["memory"])


def kernel_of(row: dict) -> Kernel:
    return Kernel(row["stage"], row["variant"], row["dtype"], row["tile_row"], Tile(**row["tile"]))


def predict_rows(program: Path, planned: dict, use: model.Constants | None = None) -> list[Row]:
    gpu, report = model.Gpu(**planned["gpu"]), registers.load()
    use = use or constants()
    runnable = [(kernel_of(r), Shape(**r["shape"])) for r in planned["rows"] if "error" not in r]
    launches = iter(counts.count(program, gpu.key, runnable))
    rows = []
    for r in planned["rows"]:
        shape, prediction, tile = Shape(**r["shape"]), None, None
        if "error" not in r:
            kernel = kernel_of(r)
            tile = kernel.tile
            prediction = model.predict(gpu, use, registers.registers(report, kernel.stage, gpu.cc),
                                       kernel, shape, next(launches))
        rows.append(Row(r["stage"], r["number"], r["variant"], r["tile_mode"], r["dtype"], shape,
                        tile, prediction, r.get("error", "")))
    return rows


# ---- In words -----------------------------------------------------------------------------------

NAMES = {"tiles": "tiles", "statistics": "statistics", "partial_o": "partial O"}


def shared_in_words(work: model.Work) -> str:
    parts = sorted(work.shared.items(), key=lambda item: -item[1])
    named = [f"{NAMES[p]} {100 * n / work.shared_all:.0f}%" for p, n in parts
             if n >= 0.15 * work.shared_all]
    return "shared memory: " + ", ".join(named) + " of the wavefronts"


def bottleneck(gpu: model.Gpu, use: model.Constants, p: model.Prediction) -> str:
    """What the time goes into, and what of the GPU is idle."""
    main = p.main
    words, work = [], main.work
    pipes = {"tensor": work.tensor, "shared": work.shared_all, "exp": work.exp, "fp32": work.fp32}
    pipe_seconds = main.schedule.cycles / gpu.hz
    waiting = use.barrier * work.barriers
    alone = min(main.places.per_sm, math.ceil(main.blocks / gpu.sms)) == 1
    if len(p.launches) > 1:
        words.append(f"{main.launch.kernel.split('<')[0]} ({100 * main.seconds * 1e3 / p.ms:.0f}%)")
    if main.schedule.idle_sms:
        words.append(f"{main.blocks} blocks on {gpu.sms} SMs: {main.schedule.idle_sms} idle")
    start = model.START_FILLS * use.fill / gpu.hz
    if start > 0.5 * main.seconds:
        words.append("starting the launch")
    elif main.dram_seconds > pipe_seconds:
        words.append("DRAM")
    elif alone and waiting > 0.25 * sum(pipes.values()):
        words.append(f"block barriers: {100 * waiting / (waiting + sum(pipes.values())):.0f}% of a "
                     "block's time")
    else:
        most = max(pipes, key=pipes.__getitem__)
        words.append({"shared": shared_in_words(work) if work.shared else "",
                      "tensor": "tensor cores", "exp": "exponentials", "fp32": "fp32"}[most])
    if main.schedule.tail > 0.15 and not main.schedule.idle_sms:
        words.append(f"the tail: {100 * main.schedule.tail:.0f}%")
    if main.registers is None:
        words.append("its registers are not known")
    return "; ".join(words)


def number(value: float) -> str:
    return f"{value:.3g}" if value < 1000 else f"{value:.0f}"


def parent_of(rows: list[Row], index: int) -> Row | None:
    """The row that a stage is compared with: the one before it of the same shape, with a time.
    Stage 6's rows both have stage 5 as parent."""
    for row in reversed(rows[:index]):
        if row.prediction and row.number < rows[index].number and "/" not in row.stage:
            return row
    return None


def header(gpu: model.Gpu) -> str:
    text = (f"PREDICTION for {gpu.name}, not a measurement: a model on the simulator's counters "
            "and published figures of the GPU, with three constants fitted on one H200.")
    if gpu.key != "h200":
        text += " No measurement on this GPU has been compared with it."
    return text + " How far to trust it: notes/prediction.md."


COLUMNS = ["stage", "blocks", "per SM", "waves", "tail", "predicted ms", "over parent",
           "what limits it"]


def cells(gpu: model.Gpu, use: model.Constants, group: list[Row], index: int) -> list[str]:
    row = group[index]
    if row.prediction is None:
        return [row.label, "", "", "", "", "", "", row.error]
    main, parent = row.prediction.main, parent_of(group, index)
    gain = f"x{parent.prediction.ms / row.prediction.ms:.2f}" if parent else ""
    return [row.label, str(main.blocks), str(main.places.per_sm), number(main.schedule.waves),
            f"{100 * main.schedule.tail:.0f}%", number(row.prediction.ms), gain,
            bottleneck(gpu, use, row.prediction)]


def groups(rows: list[Row]) -> list[list[Row]]:
    found: dict[tuple, list[Row]] = {}
    for row in rows:
        found.setdefault((row.shape, row.dtype, row.tile_mode), []).append(row)
    return list(found.values())


def title(row: Row) -> str:
    return f"{plots.shape_label(vars(row.shape))}, {row.dtype}, tiles {row.tile_mode}"


def text_table(gpu: model.Gpu, use: model.Constants, group: list[Row], markdown: bool) -> str:
    lines = [COLUMNS] + [cells(gpu, use, group, i) for i in range(len(group))]
    widths = [max(len(line[i]) for line in lines) for i in range(len(COLUMNS))]
    left = {0, len(COLUMNS) - 1}

    def join(line: list[str]) -> str:
        padded = [c.ljust(w) if i in left else c.rjust(w)
                  for i, (c, w) in enumerate(zip(line, widths))]
        return "| " + " | ".join(padded) + " |" if markdown else "  ".join(padded).rstrip()

    rule = ["-" * w for w in widths]
    out = [("### " if markdown else "") + title(group[0]) + " (predicted)", ""]
    out += [join(lines[0]), join(rule), *map(join, lines[1:]), ""]
    return "\n".join(out)


# ---- Files --------------------------------------------------------------------------------------

def to_json(gpu: model.Gpu, use: model.Constants, rows: list[Row], command: str) -> str:
    def record(row: Row) -> dict:
        s, t = row.shape, row.tile
        base = {"stage": row.stage, "variant": row.variant, "number": row.number,
                "shape": vars(s), "dtype": row.dtype, "tile_mode": row.tile_mode,
                "tile": vars(t) if t else None}
        if row.prediction is None:
            return base | {"predicted_ms": None, "reason": row.error}
        main = row.prediction.main
        return base | {
            "predicted_ms": row.prediction.ms, "blocks": main.blocks,
            "blocks_per_sm": main.places.per_sm, "limited_by": main.places.limit,
            "waves": main.schedule.waves, "idle_sms": main.schedule.idle_sms,
            "tail": main.schedule.tail, "bottleneck": bottleneck(gpu, use, row.prediction),
            "launches": [{"kernel": x.launch.kernel, "predicted_ms": 1e3 * x.seconds,
                          "counters": x.launch.counters} for x in row.prediction.launches]}

    return json.dumps({"format": "fa2-prediction", "version": 1, "note": header(gpu),
                       "command": command, "gpu": vars(gpu), "figures": vars(gpu.figures),
                       "constants": vars(use), "rows": [record(r) for r in rows]}, indent=1) + "\n"


SIZES = ("--batch", "--heads", "--heads-kv", "--seqlen", "--seqlen-k", "--headdim")
SIMULATOR_RATE = 1e8  # B H Nq Nk d per second on one core, as in common/cli/compare/shapes.cpp


def simulator_minutes(planned: dict, arguments: list[str]) -> float:
    """What fa2-compare would take with these options. Without sizes it takes small ones."""
    if not any(word.split("=")[0] in SIZES for word in arguments):
        return 0
    work = 0.0
    for s in (row["shape"] for row in planned["rows"]):
        work += s["B"] * s["Hq"] * s["Nq"] * s["Nk"] * s["d"] * (0.5 if s["causal"] else 1)
    return work / SIMULATOR_RATE / len(os.sched_getaffinity(0)) / 60


def report(program: Path, planned: dict, out: Path, command: str, quiet: bool) -> None:
    """Prints the tables, and writes prediction.json and prediction.md."""
    gpu, use, rows = model.Gpu(**planned["gpu"]), constants(), predict_rows(program, planned)
    if not quiet:
        print(textwrap.fill(header(gpu), 100) + "\n")
        for group in groups(rows):
            print(text_table(gpu, use, group, markdown=False))
    tables = "\n".join(text_table(gpu, use, group, markdown=True) for group in groups(rows))
    paths.write_whole(out / "prediction.json", to_json(gpu, use, rows, command))
    paths.write_whole(out / "prediction.md", f"# {header(gpu)}\n\n`{command}`\n\n{tables}")
    if not quiet:
        print(f"Written: prediction.json, prediction.md in {out}")
