"""The pictures of the lectures, from the simulator's counters and the committed results.

`./fa2 lectures --refresh` writes them all to lectures/figures.
"""
import math
import random
from collections.abc import Callable

from . import counts
from ..plots import human
from .svg import Svg

FOLDER = counts.paths.ROOT / "lectures" / "figures"
SMALL = "--batch 1 --heads 2 --seqlen 256 --headdim 64 --full"  # 8 q tiles, 2 key tiles each
SMALL_LABEL = "B1 H2 N256 d64, full, fp16, tile 64x128, 4 warps"
COUNTED = f"Counted by the simulator: {SMALL_LABEL}."
LABELS = {"1": "1 naive", "2": "2 FA1", "3": "3 seqpar", "4": "4 warps", "5": "5 registers",
          "6 paper": "6 paper", "6 lazy": "6 lazy"}


def color(stage: str) -> str:
    return f"s{stage[0]}"


def tiles(records: dict[str, dict]) -> dict[str, int]:
    """T, the pairs of query tile and key tile that a stage visits: the mma say how many."""
    visited = {}
    for stage, r in records.items():
        tile = r["tile"]
        flops_per_tile = 4 * tile["Br"] * tile["Bc"] * r["shape"]["d"]
        visited[stage] = r["counters"]["mma"] * 4096 // flops_per_tile
    return visited


# ---- The grid ------------------------------------------------------------------------------------


def grid() -> Svg:
    shape = "--batch 1 --heads 8 --seqlen 1024 --headdim 64 --causal --stages 2,3"
    blocks = {stage: r["counters"]["blocks"] for stage, r in counts.stages(shape).items()}
    sms, columns, cell, gap = 132, 12, 24, 4
    picture = Svg(800, 500, f"The grid: from {blocks['2']} to {blocks['3']} blocks on {sms} SMs",
                  "B1 H8 N1024, Br = 64: 8 heads, 16 query tiles each. One square is one SM of an "
                  "H200.\nBlocks counted by the simulator. Which SM gets which block is the "
                  "hardware's choice.")
    heads = ["w0", "w1", "w2", "w3", "s2", "s4", "s5", "s6"]
    for panel, (stage, words) in enumerate([
            ("2", "one block per head (color), which loops over its tiles"),
            ("3", "one block per (head, query tile)")]):
        x0, y0, n = 30 + 400 * panel, 100, blocks[stage]
        picture.text(x0, 60, f"Stage {stage}: {n} blocks, {max(0, sms - n)} of {sms} SMs idle",
                     weight="bold")
        picture.text(x0, 80, words, size=12, color="quiet")
        for sm in range(sms):
            x, y = x0 + sm % columns * (cell + gap), y0 + sm // columns * (cell + gap)
            if sm < n:
                picture.rect(x, y, cell, cell, heads[sm % 8])
                tile = "all" if stage == "2" else str(blocks["3"] // 8 - 1 - sm // 8)
                picture.text(x + cell / 2, y + 16, tile, size=11, color="paper", anchor="middle")
            else:
                picture.rect(x, y, cell, cell, "faint")
    picture.text(30, 424, "In a square: the query tile (stage 2: all, one after the other). Stage "
                          "3 starts the last tile first,", size=12)
    picture.text(30, 440, "since it sees the most keys under a causal mask.", size=12)
    return picture


# ---- Split-K and split-Q -------------------------------------------------------------------------


def split() -> Svg:
    rows = counts.stages(SMALL + " --stages 3,4")
    T = tiles(rows)
    picture = Svg(920, 540, "Who owns what inside a block: split-K (stage 3), split-Q (stage 4)",
                  f"Per visited tile. {COUNTED}")
    warps = ["w0", "w1", "w2", "w3"]
    for panel, stage in enumerate(["3", "4"]):
        x, y = 20 + 455 * panel, 64
        c = rows[stage]["counters"]
        by_columns = stage == "3"
        picture.text(x, y, "Stage 3: warps split the keys (split-K)" if by_columns
                     else "Stage 4: warps split the query rows (split-Q)", weight="bold")
        # S = Q K^T
        matrix(picture, x + 20, y + 40, 128, 64, warps, by_columns)
        picture.text(x + 20, y + 30, "S, P: 64 x 128", size=12)
        picture.text(x + 154, y + 76, "x", size=16)
        # V
        picture.text(x + 172, y + 30, "V: 128 x 64", size=12)
        for w in range(4):
            picture.rect(x + 172, y + 40 + 32 * w, 64, 31, warps[w] if by_columns else "faint")
            if by_columns:
                picture.text(x + 204, y + 60 + 32 * w, f"warp {w}", size=11, color="paper",
                             anchor="middle")
        if not by_columns:
            picture.text(x + 204, y + 104, "all warps\nread all", size=11, color="ink",
                         anchor="middle")
        picture.text(x + 244, y + 76, "=", size=16)
        # O
        if by_columns:
            picture.text(x + 266, y + 30, "4 partial P V, 64 x 64", size=12)
            for w in range(4):
                picture.rect(x + 266 + 12 * w, y + 40 + 26 * w, 64, 64, warps[w], line="paper")
                picture.text(x + 272 + 12 * w, y + 54 + 26 * w, f"warp {w}", size=10, color="paper")
            picture.line([(x + 314, y + 186), (x + 314, y + 222)], "ink", 2, arrow=True)
            picture.text(x + 306, y + 208, "through shared memory", size=12, anchor="end")
        else:
            picture.text(x + 266, y + 30, "P V: whole sums", size=12)
            matrix(picture, x + 266, y + 40, 64, 64, warps, False)
            picture.line([(x + 298, y + 110), (x + 298, y + 222)], "ink", 2, arrow=True)
            picture.text(x + 290, y + 204, "nothing to exchange", size=12, anchor="end")
        matrix(picture, x + 266, y + 228, 64, 64, warps, False)
        picture.text(x + 258, y + 258, "O in registers,\n16 rows per warp", size=12, anchor="end")
        per_tile = [("partial O through shared memory", human(
                        counts.shared_bytes(c, "partial_o") / T[stage]) + " bytes"),
                    ("row statistics through shared memory", human(
                        counts.shared_bytes(c, "statistics") / T[stage]) + " bytes"),
                    ("block barriers", f"{c['block_barriers'] / T[stage]:.3g}"),
                    ("tiles through shared memory", human(
                        counts.shared_bytes(c, "tiles") / T[stage]) + " bytes"),
                    ("wavefronts in all", human(counts.wavefronts(c) / T[stage]))]
        for i, (what, value) in enumerate(per_tile):
            picture.text(x + 20, y + 330 + 20 * i, what)
            picture.text(x + 400, y + 330 + 20 * i, value, anchor="end", weight="bold")
    picture.text(40, 505, "The price of split-Q: every warp reads all of K and V, so the tile "
                          "bytes grow. The gain is larger.", size=12)
    return picture


def matrix(picture: Svg, x, y, w, h, warps: list[str], by_columns: bool) -> None:
    for i, name in enumerate(warps):
        if by_columns:
            picture.rect(x + i * w / 4, y, w / 4 - 1, h, name)
            picture.text(x + i * w / 4 + w / 8, y + h / 2 + 4, f"w{i}", size=11, color="paper",
                         anchor="middle")
        else:
            picture.rect(x, y + i * h / 4, w, h / 4 - 1, name)
            picture.text(x + w / 2, y + i * h / 4 + h / 8 + 4, f"w{i}", size=10, color="paper",
                         anchor="middle")


# ---- Where things live ---------------------------------------------------------------------------


def where() -> Svg:
    rows = counts.stages(SMALL)
    picture = Svg(800, 388, "Where S, P, m, l and O live",
                  f"Bytes per (query tile, key tile). {COUNTED}")
    columns = {"S": 130, "P": 240, "m, l": 350, "partial O": 500, "O": 650}
    widths = {"S": 106, "P": 106, "m, l": 146, "partial O": 146, "O": 134}
    T = tiles(rows)
    for what, x in columns.items():
        picture.text(x + widths[what] / 2, 62, what, anchor="middle", weight="bold")
    for i, (stage, r) in enumerate(rows.items()):
        y, c, t = 72 + 36 * i, r["counters"], T[stage]
        picture.text(16, y + 21, LABELS[stage], weight="bold", color=color(stage))
        # S and P in global memory: stage 1 stores far more than O and LSE.
        spilled = c["global_store_bytes"] > 2 * output_bytes(r)
        statistics, partial = (counts.shared_bytes(c, use) for use in ("statistics", "partial_o"))
        cells = {"S": ("global", "global") if spilled else ("registers", "registers"),
                 "P": ("global", "global") if spilled else ("registers", "registers"),
                 "m, l": (("registers", "registers") if not statistics else
                          ("shared", "shared") if spilled else
                          ("shared", f"shared, {human(statistics / t)} B")),
                 "partial O": (("shared", f"shared, {human(partial / t)} B") if partial
                               else ("", "none")),
                 "O": ("registers", "registers")}
        for what, (space, words) in cells.items():
            picture.rect(columns[what], y, widths[what], 30, space or "paper", line="faint")
            picture.text(columns[what] + widths[what] / 2, y + 20, words, size=12, anchor="middle",
                         color="ink" if space else "quiet")
    picture.text(130, 344, "Q, K and V tiles are in shared memory in every stage; in stage 1 so "
                           "are the tiles of P that it reads back.", size=12)
    return picture


def output_bytes(record: dict) -> int:
    """O in 16 bits and LSE."""
    s = record["shape"]
    return s["B"] * s["Hq"] * s["Nq"] * (2 * s["d"] + 4)


# ---- The life of one tile ------------------------------------------------------------------------


def tile_life() -> Svg:
    rows = counts.stages(SMALL)
    T = tiles(rows)
    picture = Svg(860, 480, "The life of one key tile, from the wait for K to the last use of V",
                  f"Not to scale: the order of things, not their time. {COUNTED}")
    lanes = [("3", [("S = Q Kᵀ", 96, "w0"), ("max", 44, "s5"), ("m, α", 48, "s5"),
                    ("P = exp2, Σ", 84, "s5"), ("l, f", 40, "s5"), ("P V, slice 1", 82, "w0"),
                    ("exchange", 66, "s2"), ("O", 28, "s6"), ("… slice d/16", 84, "w0"),
                    ("exchange", 66, "s2"), ("O", 28, "s6")]),
             ("4", [("S = Q Kᵀ", 96, "w0"), ("max", 44, "s5"), ("m, α", 48, "s5"),
                    ("P = exp2, Σ", 84, "s5"), ("l, f", 40, "s5"), ("P V, all slices", 150, "w0"),
                    ("O = f_O O + f_P PV", 130, "s6")]),
             ("5", [("S = Q Kᵀ", 96, "w0"), ("max, 2 shuffles", 100, "s4"),
                    ("P = exp2, Σ, 2 sh.", 118, "s4"), ("P V, all slices", 150, "w0"),
                    ("O = f_O O + f_P PV", 130, "s6")]),
             ("6 lazy", [("S = Q Kᵀ", 96, "w0"), ("max, vote", 66, "s4"), ("P = exp2, Σ", 84, "s4"),
                         ("O += P V: the mma adds", 190, "w0")])]
    for i, (stage, steps) in enumerate(lanes):
        y, x, c, t = 76 + 82 * i, 120, rows[stage]["counters"], T[stage]
        picture.text(16, y + 16, f"Stage {LABELS[stage].split()[0]}", weight="bold",
                     color=color(stage))
        picture.text(16, y + 33, LABELS[stage].split()[1], size=12, color="quiet")
        for words, width, shade in steps:
            picture.rect(x, y, width - 2, 26, shade)
            picture.text(x + (width - 2) / 2, y + 17, words, size=11, color="paper",
                         anchor="middle")
            x += width
        block, warp = c["block_barriers"] / t, c["warp_syncs"] / t / rows[stage]["tile"]["warps"]
        picture.text(120, y + 44, f"{block:.3g} block barriers, {warp:.3g} warp syncs and "
                     f"{c['shuffles'] / t / rows[stage]['tile']['warps']:.3g} shuffles per warp, "
                     f"{human(counts.wavefronts(c) / t)} wavefronts", size=12, color="quiet")
    y = 404
    picture.text(16, y + 14, "Copies", weight="bold")
    for words, x, width in [("V_j lands", 120, 312), ("K_j+1 lands", 216, 494)]:
        picture.rect(x, y + (0 if words[0] == "V" else 20), width, 16, "shared")
        picture.text(x + 6, y + (12 if words[0] == "V" else 32), words + (
            ": started before S = Q Kᵀ, needed at P V" if words[0] == "V"
            else ": started when every warp is done with K_j, needed by the next tile"), size=11)
    return picture


# ---- The scale of O ------------------------------------------------------------------------------

LAZY = 8  # stage 6 lazy rescales when a maximum grew by more than this, in log2 units


def scale_histories(seed: int = 7, count: int = 32, Bc: int = 128) -> dict[str, list]:
    """One query row: log2 of the factor between what is stored in O and sum_k exp2(s_k) v_k, after
    each tile; and at which tiles O was multiplied. The scores are random, and grow slowly so that
    the maximum does."""
    draw = random.Random(seed)
    m, stale, row_sum = -math.inf, -math.inf, 0.0
    rows = {"5": [], "6 paper": [], "6 lazy": []}
    multiplied = {name: [] for name in rows}
    for j in range(count):
        scores = [draw.gauss(0.75 * j, 3.0) for _ in range(Bc)]  # in log2 units
        m_new = max(m, max(scores))
        row_sum += sum(2.0 ** s for s in scores)
        multiplied["5"].append(True)
        multiplied["6 paper"].append(True)
        grew = m_new - stale > LAZY  # -inf at first: then it always grew
        multiplied["6 lazy"].append(grew)
        stale = m_new if grew else stale
        m = m_new
        rows["5"].append(-math.log2(row_sum))
        rows["6 paper"].append(-m)
        rows["6 lazy"].append(-stale)
    return {"scale": rows, "multiplied": multiplied}


def scale_O() -> Svg:
    history = scale_histories()
    count = len(history["scale"]["5"])
    picture = Svg(800, 470, "In which scale is O? One query row, over its key tiles",
                  "O holds 2^y times the sum of 2^s v over the keys so far. A dot: O is multiplied "
                  "at that tile.\nRandom scores s, whose maximum grows on purpose (figures.py). "
                  "Lazy: only when the maximum grew by more than 8.")
    x0, y0, w, h = 60, 50, 600, 340
    low = min(min(v) for v in history["scale"].values())
    high = max(max(v) for v in history["scale"].values())

    def at(j: int, value: float) -> tuple[float, float]:
        return x0 + w * j / (count - 1), y0 + h * (high - value) / (high - low)
    for value in range(math.ceil(low / 5) * 5, math.floor(high) + 1, 5):
        picture.line([(x0, at(0, value)[1]), (x0 + w, at(0, value)[1])], "faint", 1)
        picture.text(x0 - 8, at(0, value)[1] + 4, str(value).replace("-", "−"), size=12,
                     color="quiet", anchor="end")
    picture.text(16, y0 + 4, "y", color="quiet")
    for j in range(0, count, 4):
        picture.text(at(j, low)[0], y0 + h + 18, str(j), size=12, color="quiet", anchor="middle")
    picture.text(x0 + w + 14, y0 + h + 18, "tile j", size=12, color="quiet")
    names = {"5": "5: divided by l\nat every tile",
             "6 paper": "6 paper: scale of the\nmaximum so far",
             "6 lazy": "6 lazy: scale of a\nstale maximum"}
    for stage, words in names.items():
        values = history["scale"][stage]
        shade = {"5": "s5", "6 paper": "s3", "6 lazy": "s6"}[stage]
        points = []
        for j, value in enumerate(values):  # steps: the scale holds from one tile to the next
            if j:
                points.append(at(j, values[j - 1]))
            points.append(at(j, value))
        picture.line(points, shade, 2)
        for j, value in enumerate(values):
            if history["multiplied"][stage][j]:
                picture.dot(*at(j, value), shade, 3 if stage != "6 lazy" else 5)
        y = {"5": y0 + 150, "6 paper": y0 + 84, "6 lazy": y0 + 18}[stage]
        times = sum(history["multiplied"][stage])
        picture.line([(x0 + w + 14, y - 4), (x0 + w + 34, y - 4)], shade, 3)
        picture.text(x0 + w + 14, y + 14, words + f"\n{times} multiplications", size=11)
    return picture


# ---- Bytes and barriers --------------------------------------------------------------------------

PANELS: list[tuple[str, Callable[[dict], float]]] = [
    ("blocks", lambda c: c["blocks"]),
    ("global bytes", counts.global_bytes),
    ("partial O, shared bytes", lambda c: counts.shared_bytes(c, "partial_o")),
    ("statistics, shared bytes", lambda c: counts.shared_bytes(c, "statistics")),
    ("tiles, shared bytes", lambda c: counts.shared_bytes(c, "tiles")),
    ("shared wavefronts", counts.wavefronts),
    ("block barriers", lambda c: c["block_barriers"]),
    ("warp syncs", lambda c: c["warp_syncs"]),
    ("shuffles", lambda c: c["shuffles"]),
    ("multiplies on O", counts.multiplies_on_O),
    ("normalizations", lambda c: c["normalisations"]),
    ("exp2 of statistics", lambda c: c["exp2_stats"]),
]


def bytes_barriers() -> Svg:
    rows = counts.stages(SMALL)
    picture = Svg(860, 640, "Bytes, barriers and work per stage",
                  f"{COUNTED}\nEach panel has its own linear scale. Gray: as in the stage before.")
    for k, (title, of) in enumerate(PANELS):
        x0, y0, w, h = 20 + 280 * (k % 3), 60 + 135 * (k // 3), 255, 62
        values = [of(r["counters"]) for r in rows.values()]
        top = max(max(values), 1)
        picture.text(x0, y0, title, weight="bold", size=12)
        base = y0 + 24 + h
        for i, (stage, value) in enumerate(zip(rows, values, strict=True)):
            x, bar = x0 + i * w / len(values), h * value / top
            moved = i == 0 or value != values[i - 1]
            picture.rect(x, base - bar, w / len(values) - 5, bar,
                         color(stage) if moved else "faint", rx=1)
            picture.text(x + w / len(values) / 2 - 2.5, base - bar - 4, human(value), size=10,
                         anchor="middle", color="ink" if moved else "quiet")
            label = stage.replace(" paper", "p").replace(" lazy", "l")
            picture.text(x + w / len(values) / 2 - 2.5, base + 14, label, size=11, anchor="middle",
                         color="quiet")
        picture.line([(x0, base), (x0 + w - 5, base)], "line", 1)
    return picture


# ---- Measured ------------------------------------------------------------------------------------


def environment_line(*records: dict) -> str:
    e = records[0]["environment"]
    commits = dict.fromkeys(record["environment"]["commit"] for record in records)
    return (f"{e['gpu']}, driver {e['driver']}, CUDA {e['cuda']}, commit {' and '.join(commits)}, "
            f"{e['date'][:10]} (notes/results/{counts.RECORDED.name}).")


def speed() -> Svg:
    panels = [(d, causal) for d in (64, 128) for causal in (False, True)]
    shown = [record for tiles in ("same", "tuned")
             for record in counts.recorded_at(2, 16, 4096, 64, tiles=tiles).values()]
    picture = Svg(860, 420, "Speed of each stage, B2 H16 N4096, fp16, TFLOP/s",
                  f"{environment_line(*shown)} FLOPs halved when causal.\nTile 64x128, 4 warps in "
                  "every stage; outlined: the stage's tuned tile where it is faster (the number is "
                  "then its speed).")
    top = 400
    for k, (d, causal) in enumerate(panels):
        x0, y0, w, h = 40 + 205 * k, 70, 185, 260
        same = counts.recorded_at(2, 16, 4096, d, causal)
        tuned = counts.recorded_at(2, 16, 4096, d, causal, "tuned")
        picture.text(x0, 58, f"d {d}, {'causal' if causal else 'full'}", weight="bold")
        for value in range(0, top + 1, 100):
            y = y0 + h - h * value / top
            picture.line([(x0, y), (x0 + w, y)], "faint", 1)
            if k == 0:
                picture.text(x0 - 6, y + 4, str(value), size=11, color="quiet", anchor="end")
        for i, (stage, r) in enumerate(same.items()):
            x, width = x0 + i * w / 7, w / 7 - 5
            bar = h * r["tflops"] / top
            best = tuned.get(stage)
            label = max(r["tflops"], best["tflops"] if best else 0)
            if best and best["tflops"] > r["tflops"] * (1 + r["spread"] + best["spread"]):
                tall = h * best["tflops"] / top
                picture.rect(x, y0 + h - tall, width, tall, "", line=color(stage))
            else:
                label = r["tflops"]
            picture.rect(x, y0 + h - bar, width, bar, color(stage), rx=1)
            half = bar * r["spread"] / 2
            picture.line([(x + width / 2, y0 + h - bar - half),
                          (x + width / 2, y0 + h - bar + half)], "ink", 1.5)
            picture.text(x + width / 2, y0 + h - h * label / top - 6, f"{label:.0f}", size=11,
                         anchor="middle")
            picture.text(x + width / 2, y0 + h + 15,
                         stage.replace(" paper", "p").replace(" lazy", "l"), size=11, color="quiet",
                         anchor="middle")
    return picture


BANDWIDTH = 4.8  # TB/s, NVIDIA's datasheet of the H200


def roofline() -> Svg:
    """Speed against FLOPs per byte that a stage asks of global memory."""
    picture_of = {}
    for d in (64, 128):
        # Bytes per FLOP depend on tile and head dim, not on N, once the heads' Q and O are small
        # against K and V: count a small shape, with as many keys as time allows.
        counted = counts.stages(f"--batch 1 --heads 1 --seqlen 64 --seqlen-k 1024 --headdim {d} "
                                "--full")
        timed = counts.recorded_at(2, 16, 4096, d)
        for stage, r in counted.items():
            s = r["shape"]
            flops = 4 * s["Nq"] * s["Nk"] * d
            picture_of[d, stage] = (flops / counts.global_bytes(r["counters"]),
                                    timed[stage]["tflops"])
    some = next(iter(counts.recorded_at(2, 16, 4096, 64).values()))
    peak = some["environment"]["peak_tflops"]
    picture = Svg(860, 520, "Roofline: what bounds each stage? B2 H16 N4096, full, fp16",
                  f"Speed: {environment_line(some)}\n"
                  "FLOP per byte requested from global memory: simulator, Nq 64, Nk 1024 "
                  "(the L2 cache answers many of them).")
    x0, y0, w, h = 70, 50, 600, 390
    (left, right), (low, high) = (4, 2048), (8, 1500)

    def at(intensity: float, tflops: float) -> tuple[float, float]:
        return (x0 + w * math.log2(intensity / left) / math.log2(right / left),
                y0 + h - h * math.log2(tflops / low) / math.log2(high / low))
    for value in (10, 30, 100, 300, 1000):
        picture.line([at(left, value), at(right, value)], "faint", 1)
        picture.text(x0 - 8, at(left, value)[1] + 4, str(value), size=12, color="quiet",
                     anchor="end")
    for value in (4, 16, 64, 256, 1024):
        picture.text(at(value, low)[0], y0 + h + 18, str(value), size=12, color="quiet",
                     anchor="middle")
    picture.text(x0 + w / 2, y0 + h + 36, "FLOP per requested byte", size=12, color="quiet",
                 anchor="middle")
    picture.text(20, y0 + h / 2 + 30, "TFLOP/s", size=12, color="quiet", turn=-90)
    ridge = peak / BANDWIDTH
    picture.line([at(left, left * BANDWIDTH), at(ridge, peak), at(right, peak)], "ink", 2)
    picture.text(*shifted(at(ridge, peak), 0, -8), f"datasheet peak {peak:g}", size=12)
    picture.text(*shifted(at(5, 64 * BANDWIDTH), 0, 0), f"DRAM {BANDWIDTH} TB/s (datasheet)",
                 size=12)
    s = some["shape"]
    least = {d: 4 * s["Nq"] * s["Nk"] * d / (4 * s["Nq"] * d * 2) for d in (64, 128)}
    picture.line([at(least[64], low), at(least[64], peak)], "line", 1.5, "5 4")
    picture.text(*shifted(at(least[64], 16), -6, 0), "Q, K, V, O once each", size=12, color="quiet",
                 anchor="end")
    legend = y0 + 40
    for i, ((d, stage), (intensity, tflops)) in enumerate(picture_of.items()):
        x, y = at(intensity, tflops)
        x += -7 if d == 64 else 7
        if d == 64:
            picture.dot(x, y, color(stage), 6)
        else:
            picture.rect(x - 5.5, y - 5.5, 11, 11, color(stage), rx=0)
        ly = legend + 22 * (i % 7) + (0 if d == 64 else 190)
        if d == 64:
            picture.dot(x0 + w + 30, ly - 4, color(stage), 6)
        else:
            picture.rect(x0 + w + 24.5, ly - 9.5, 11, 11, color(stage), rx=0)
        picture.text(x0 + w + 44, ly, f"{LABELS[stage]}, {tflops:.0f}", size=12)
    picture.text(x0 + w + 24, legend - 26, "d 64, TFLOP/s", size=12, weight="bold")
    picture.text(x0 + w + 24, legend + 164, "d 128, TFLOP/s", size=12, weight="bold")
    return picture


def shifted(point: tuple[float, float], dx: float, dy: float) -> tuple[float, float]:
    return point[0] + dx, point[1] + dy


FIGURES: dict[str, Callable[[], Svg]] = {
    "grid": grid, "split": split, "where": where, "tile_life": tile_life, "scale_O": scale_O,
    "bytes_barriers": bytes_barriers, "speed": speed, "roofline": roofline}
