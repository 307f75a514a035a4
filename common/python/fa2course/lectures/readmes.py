"""The numbers in each stage's README: counters before and after, H200 times before and after."""
import csv

from . import counts

SWEEP = counts.paths.ROOT / "notes" / "fa2_sweep.csv"

SHAPE = "--batch 1 --heads 2 --seqlen 512 --headdim 64 --full"
SHAPE_LABEL = "B1 H2 N512 d64 full, fp16"
# (B, H, N, d, causal): where each change matters most comes first. What was recorded is shown.
TIMED = {2: [(16, 32, 2048, 64, False), (16, 32, 2048, 128, False)],
         3: [(1, 8, 16384, 64, False), (1, 8, 16384, 128, False)]}
TIMED_ALWAYS = [(2, 16, 4096, 64, False), (2, 16, 4096, 128, False), (2, 16, 4096, 128, True)]
PARENT = {"1": None, "2": "1", "3": "2", "4": "3", "5": "4", "6 paper": "5", "6 lazy": "6 paper"}
COUNTERS = [
    ("blocks", lambda c: c["blocks"]),
    ("global bytes", counts.global_bytes),
    ("partial O bytes in shared memory", lambda c: counts.shared_bytes(c, "partial_o")),
    ("statistics bytes in shared memory", lambda c: counts.shared_bytes(c, "statistics")),
    ("tile bytes in shared memory", lambda c: counts.shared_bytes(c, "tiles")),
    ("shared-memory wavefronts", counts.wavefronts),
    ("block barriers", lambda c: c["block_barriers"]),
    ("warp syncs", lambda c: c["warp_syncs"]),
    ("shuffles", lambda c: c["shuffles"]),
    ("mma", lambda c: c["mma"]),
    ("exp2 of P", lambda c: c["exp2_p"]),
    ("exp2 of statistics", lambda c: c["exp2_stats"]),
    ("normalizations", lambda c: c["normalisations"]),
    ("multiplies on O", counts.multiplies_on_O),
]


class Wrong(Exception):
    """What a table cannot be made from."""


def numbers(words: str) -> str:
    """The tables of "N", of "N times" the second one, of "N heads" the gain over batch x heads."""
    number, _, only = words.partition(" ")
    stages = [stage for stage in PARENT if stage[0] == number]
    if not stages or only not in ("", "times", "heads"):
        raise Wrong("say a stage and, for one table alone, \"times\" or \"heads\"")
    if only == "heads":
        return heads_table(int(number))
    return "\n\n".join(([] if only else [counter_table(stages)]) + [time_table(stages)])


def counter_table(stages: list[str]) -> str:
    measured = counts.stages(SHAPE)
    rows, unchanged = [], []
    columns = ([PARENT[stages[0]]] if PARENT[stages[0]] else []) + stages
    for title, of in COUNTERS:
        values = [of(measured[stage]["counters"]) for stage in columns]
        if len(columns) > 1 and len(set(values)) == 1:
            if values[0]:
                unchanged.append(title)
            continue
        rows.append(f"| {title} | " + " | ".join(f"{value:,}" for value in values) + " |")
    head = "| counter | " + " | ".join(f"stage {stage}" for stage in columns) + " |"
    text = [f"Counters of the simulator, {SHAPE_LABEL}, tiles `same`:", "", head,
            "|---" * (len(columns) + 1) + "|", *rows]
    if unchanged:
        text += ["", f"Unchanged: {', '.join(unchanged)}."]
    return "\n".join(text)


def time_table(stages: list[str]) -> str:
    """Before -> after on an H200. A gain inside the spread of the runs is called no gain."""
    shapes = TIMED.get(int(stages[0][0]), []) + TIMED_ALWAYS
    rows, environment = [], None
    for B, H, N, d, causal in shapes:
        at = counts.recorded_at(B, H, N, d, causal)
        for stage in stages:
            parent = PARENT[stage]
            if stage not in at or (parent and parent not in at):
                continue
            after, environment = at[stage], at[stage]["environment"]
            shape = f"B{B} H{H} N{N} d{d} {'causal' if causal else 'full'}"
            if not parent:
                rows.append(f"| {shape} | {milliseconds(after)} | {after['tflops']:.0f} |")
                continue
            before = at[parent]
            rows.append(f"| {shape} | {parent} → {stage} | {milliseconds(before)} → "
                        f"{milliseconds(after)} | {verdict(before, after)} |")
    if not rows:
        raise Wrong(f"{counts.RECORDED.name} has no times of stage {stages[0]}")
    head = ("| shape | ms | TFLOP/s |\n|---|---|---|" if not PARENT[stages[0]]
            else "| shape | stages | ms, before → after | speedup |\n|---|---|---|---|")
    e = environment
    return (f"Recorded on an {e['gpu']} (driver {e['driver']}, CUDA {e['cuda']}, commit "
            f"{e['commit']}), fp16, tiles `same`:\n\n{head}\n" + "\n".join(rows))


def heads_table(number: int) -> str:
    """How much a stage gains on its parent, over batch x heads at one N: from the sweep."""
    if not SWEEP.exists():
        raise Wrong(f"{SWEEP.name} is missing (./fa2 sweep on a GPU makes it)")
    with SWEEP.open() as file:
        rows = [row for row in csv.DictReader(file)
                if row["tiles"] == "same" and row["seqlen"] == "2048" and row["causal"] == "0"]
    gains: dict[int, dict[str, float]] = {}
    for row in rows:
        before, after = (float(row[f"stage{n}_ms"]) for n in (number - 1, number))
        heads = int(row["batch"]) * int(row["heads"])
        gains.setdefault(heads, {})[row["headdim"]] = before / after
    lines = [f"Speedup of stage {number} over stage {number - 1} at N 2048, full, fp16, tiles "
             "`same` (notes/fa2_sweep.csv):", "", "| batch × heads | d 64 | d 128 |",
             "|---|---|---|"]
    lines += [f"| {heads} | {gains[heads]['64']:.2f}x | {gains[heads]['128']:.2f}x |"
              for heads in sorted(gains)]
    return "\n".join(lines)


def milliseconds(record: dict) -> str:
    return f"{record['time_ms']:#.3g}".rstrip(".")


def verdict(before: dict, after: dict) -> str:
    ratio = before["time_ms"] / after["time_ms"]
    noise = (before["spread"] + after["spread"]) / 2
    if abs(ratio - 1) <= noise:
        return f"no gain ({ratio:.2f}x, spread {noise:.0%})"
    return f"{ratio:.2f}x"
