"""What a stage's change must move: limits on counters, from the closed forms of its algorithm.

Every rule is an upper limit or an exact count on the tile of `--tiles same`; a better kernel
passes. A rule of stage N holds for the later stages too, up to `until`.
"""
from collections.abc import Callable
from dataclasses import dataclass, field

Counters = dict[str, int]
Sizes = dict[str, int]  # T (tiles visited), q_tiles, heads, Nq, d, Br, Bc, warps


@dataclass(frozen=True)
class Rule:
    since: int
    problem: str  # continues "correct, but ..."
    value: Callable[[Counters], int]
    needed: Callable[[Sizes], int]
    unit: str
    until: int = 6
    per: str = "T"  # which size the numbers are shown by: "T" (per tile), "q_tiles", or ""
    exact: bool = False
    only: tuple[str, ...] = field(default=())  # names of variants; (): all

    def broken_by(self, counters: Counters, sizes: Sizes) -> bool:
        value, needed = self.value(counters), self.needed(sizes)
        return value != needed if self.exact else value > needed

    def message(self, stage: int, counters: Counters, sizes: Sizes) -> str:
        by = sizes[self.per] if self.per else 1
        what = {"T": " per tile", "q_tiles": " per query tile", "": ""}[self.per]
        value = number(self.value(counters) / by)
        needed = number(self.needed(sizes) / by)
        most = "" if self.exact or needed == "0" else "at most "
        return (f"correct, but {self.problem}: {value} {self.unit}{what}, stage {stage} needs "
                f"{most}{needed}.")


def number(value: float) -> str:
    return f"{value:,.0f}" if value == int(value) else f"{value:,.1f}"


def total(*names: str) -> Callable[[Counters], int]:
    return lambda n: sum(n[name] for name in names)


def excess(purpose: str) -> Callable[[Counters], int]:
    """Passes through the banks of shared memory that only conflicts cost."""
    return lambda n: n[f"shared_wavefronts_{purpose}"] - n[f"shared_wavefronts_ideal_{purpose}"]


O_MULTIPLIES = total("fp32_mul_O", "fp32_fma_O")

def mma_needed(s: Sizes) -> int:
    return s["T"] * 4 * s["Br"] * s["Bc"] * s["d"] // 4096


RULES = (
    # ---- stage 6: un-normalized O ----
    Rule(6, "O is still divided by l on every tile", total("normalisations"),
         lambda s: s["q_tiles"] * 4 * s["Br"], "reciprocals of l", per="q_tiles"),
    Rule(6, "O is still multiplied by two factors per tile", O_MULTIPLIES,
         lambda s: (s["T"] + s["q_tiles"]) * s["Br"] * s["d"], "multiplications on O"),
    Rule(6, "the row sums still meet across lanes on every tile", total("shuffles"),
         lambda s: (s["T"] + s["q_tiles"]) * s["Br"] // 4, "shuffles"),
    Rule(6, "variant \"lazy\" still rescales on every tile", total("exp2_stats"),
         lambda s: s["T"] * 4 * s["Br"] - 1, "exponentials for statistics", only=("lazy",)),
    # ---- stage 5: statistics in registers ----
    Rule(5, "the statistics still go through shared memory",
         total("shared_load_bytes_statistics", "shared_store_bytes_statistics"), lambda s: 0,
         "bytes"),
    Rule(5, "warps still synchronize for the statistics", total("warp_syncs"), lambda s: 0,
         "warp barriers"),
    Rule(5, "lanes shuffle more than a maximum and a sum per row need", total("shuffles"),
         lambda s: s["T"] * s["Br"] // 2, "shuffles", until=5),
    # ---- stage 4: split Q ----
    Rule(4, "partial O still crosses the warps",
         total("shared_load_bytes_partial_o", "shared_store_bytes_partial_o"), lambda s: 0,
         "bytes"),
    Rule(4, "more block barriers are left than the copies of K and V have", total("block_barriers"),
         lambda s: s["T"] * 3, "block barriers"),
    # ---- stage 3: one block per query tile ----
    Rule(3, "the query tiles do not have a block each", total("blocks"), lambda s: s["q_tiles"],
         "blocks", per="", exact=True),
    Rule(3, "a block barrier is left that nothing needs any more", total("block_barriers"),
         lambda s: s["T"] * (3 + 2 * s["d"] // 16), "block barriers in all", until=3, per=""),
    # ---- stage 2: S and P stay on the chip ----
    Rule(2, "more is read from global memory than Q once, and K and V once per tile",
         total("global_load_bytes"),
         lambda s: 2 * s["heads"] * s["Nq"] * s["d"] + s["T"] * 4 * s["Bc"] * s["d"], "bytes"),
    Rule(2, "more is written to global memory than O and LSE", total("global_store_bytes"),
         lambda s: s["heads"] * s["Nq"] * (2 * s["d"] + 4), "bytes", per="q_tiles"),
    Rule(2, "global memory is lent for S and P", total("workspace_bytes"), lambda s: 0,
         "bytes of workspace", per=""),
    Rule(2, "there are more block barriers than the algorithm needs", total("block_barriers"),
         lambda s: s["T"] * (3 + 2 * s["d"] // 16) + s["q_tiles"], "block barriers in all", until=2,
         per=""),
    Rule(2, "lanes meet in the same banks when partial O crosses the warps", excess("partial_o"),
         lambda s: 0, "excess wavefronts", until=3),
    Rule(2, "exponentials are computed more than once", total("exp2_p"),
         lambda s: s["T"] * s["Br"] * s["Bc"], "exponentials of scores"),
    # ---- stage 1 ----
    Rule(1, "more is written to global memory than O, LSE, and S and P of the tiles that some row "
            "sees",
         total("global_store_bytes"),
         lambda s: s["T"] * 6 * s["Br"] * s["Bc"] + s["heads"] * s["Nq"] * (2 * s["d"] + 4),
         "bytes", until=1),
    # ---- all stages: the products run on the tensor cores, once ----
    Rule(1, "the products are not the mma that the visited tiles hold", total("mma"),
         mma_needed, "mma", exact=True),
    Rule(1, "lanes meet in the same banks when they read or write tiles", excess("tiles"),
         lambda s: 0, "excess wavefronts"),
)


def first_broken(stage: int, variant: str, counters: Counters, sizes: Sizes) -> str:
    """The message of the first broken rule, the newest stage's first; "" when all hold."""
    for rule in RULES:
        if not rule.since <= stage <= rule.until or (rule.only and variant not in rule.only):
            continue
        if rule.broken_by(counters, sizes):
            return rule.message(stage, counters, sizes)
    return ""


def wrong_order(mma: list[int]) -> str:
    """What is wrong with the order of the blocks, by the products that each makes; "" if nothing."""
    mma = [n for n in mma if n]  # without blocks behind the last q tile
    late = next((n for n in range(1, len(mma)) if mma[n] > mma[n - 1]), None)
    if late is None:
        return ""
    if mma == sorted(mma):
        which = ("The first q tile starts first, the last one last. Count i down: query_tile() in "
                 "common/device/attention.h gives the blocks with y = 0 the last q tile.")
    else:
        which = ("Blocks start in the order of x, then y: heads belong along x, q tiles along y, "
                 "the last q tile at y = 0 (query_tile() in common/device/attention.h).")
    return (f"correct, but a heavy block starts after a light one: block {late} makes {mma[late]:,} "
            f"mma, block {late - 1} before it {mma[late - 1]:,}. Under a causal mask the last q tile "
            f"sees the most keys, and must start first, or the GPU waits for it alone at the end. "
            f"{which}")


def idle_blocks_work(counters: Counters, sizes: Sizes) -> str:
    """Where the grid has more blocks than q tiles: whether those behind the last compute anything."""
    needed = mma_needed(sizes)
    if counters["mma"] <= needed:
        return ""
    return (f"correct, but a block behind the last q tile computes too: {counters['mma']:,} mma, the "
            f"q tiles need {needed:,}. Where y ends the grid goes on along z, and has up to one block "
            "per z too many: return where i >= ceil_div(p.Nq, Br).")
