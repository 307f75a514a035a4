"""The steps of a check: problems that grow by one difficulty at a time, around the tile's size."""
from collections.abc import Callable
from dataclasses import dataclass

Tile = tuple[int, int, int, int]  # Br, Bc, warps, depth

MAX_GRID_Y = 65535  # blocks that a grid may have along y


@dataclass(frozen=True)
class Row:
    """A row of the kernel's tile table, of one of its variants."""
    variant: str
    index: int
    mode: str
    d: int
    tile: Tile


@dataclass(frozen=True)
class Case:
    spec: str
    row: Row
    only_LSE: bool = False
    timed: bool = False
    blocks: bool = False      # says what each block does, in the order in which blocks start
    max_grid_y: int = MAX_GRID_Y

    def json(self) -> dict:
        return {"spec": f"d={self.row.d} {self.spec}", "variant": self.row.variant,
                "tile_row": self.row.index, "tile": list(self.row.tile), "only_LSE": self.only_LSE,
                "timed": self.timed, "blocks": self.blocks, "max_grid_y": self.max_grid_y}


@dataclass(frozen=True)
class Step:
    name: str
    title: str
    part: str  # how much must be compiled: "first" (fp16, first row) or "all"
    cases: Callable[[list[Row]], list[Case]]
    advice: str = ""  # follows a wrong result


def on_first(*templates: str, only_LSE: bool = False) -> Callable[[list[Row]], list[Case]]:
    """These problems on the first row. {Br+5}, {2*Bc} and the like are computed from its tile."""
    def cases(rows: list[Row]) -> list[Case]:
        return [Case(fill(text, rows[0].tile), rows[0], only_LSE) for text in templates]
    return cases


def fill(text: str, tile: Tile) -> str:
    """The f-string `text` with Br and Bc of the tile."""
    parts = text.split("{")
    out = parts[0]
    for part in parts[1:]:
        formula, rest = part.split("}", 1)
        out += str(eval(formula, {"__builtins__": {}}, {"Br": tile[0], "Bc": tile[1]})) + rest
    return out


def everything(rows: list[Row]) -> list[Case]:
    """Both element types on every row of the tile table, full and causal."""
    cases = []
    for row in rows:
        Br, Bc = row.tile[:2]
        for n, dtype in enumerate(("bf16", "fp16")):
            mask = "causal " if (row.index + n) % 2 else ""
            cases.append(Case(f"{dtype} {mask}h=2 q={Br + 9} k={2 * Bc + 11} seed=7", row))
    return cases


# The problems whose counters have closed forms: nothing ragged.
COUNTED = ("h=2 q={4*Br} k={2*Bc}", "causal h=2 q={4*Br} k={2*Bc}", "b=2 h=4/2 q={2*Br} k={3*Bc}")


def counted(rows: list[Row]) -> list[Case]:
    cases = []
    for row in rows:
        if row.mode == "same":
            cases += [Case(fill(text, row.tile), row) for text in COUNTED]
    return cases


def timed(rows: list[Row]) -> list[Case]:
    row = next((row for row in rows if row.mode == "same" and row.d == 128), rows[0])
    return [Case("b=2 h=16 q=4096 k=4096", row, timed=True)]


def grid(rows: list[Row]) -> list[Case]:
    """The order of the blocks, and grids whose y is too short for all q tiles; the last has a block
    behind the last q tile."""
    row = rows[0]
    order = Case(fill("causal h=2 q={4*Br} k={4*Br}", row.tile), row, blocks=True)
    return [order] + [Case(fill(text, row.tile), row, max_grid_y=3) for text in
                      ("causal h=2 q={6*Br} k={Bc}", "h=2 q={4*Br+5} k={Bc}")]


MANY = ("h=2 q={2*Br} k={3*Bc}", "h=2 q={2*Br} k={3*Bc} inputs=ascending",
        "q={Br} k={3*Bc} inputs=negative")

LSE = {  # the first of two sub-goals: right without the second
    1: ("lse", "S and its row sums: LSE"),
    2: ("online_update", "sub-goal 1, the online update: LSE"),
}

COMMON = (
    Step("one_tile", "one tile", "first", on_first("q={Br} k={Bc}")),
    Step("many_tiles", "many tiles", "first", on_first(*MANY),
         "One tile is right: look at what is carried from one K/V tile to the next."),
    Step("causal", "causal", "first",
         on_first("causal h=2 q={2*Bc} k={2*Bc}", "causal q={2*Br} k={3*Bc}"),
         "Full attention is right: look at the mask, at which tiles are masked and which skipped. "
         "Causal is aligned at the bottom right."),
    Step("ragged", "ragged lengths and strides", "first",
         on_first("h=2 q={Br+5} k={2*Bc+3}", "causal h=2 q={2*Br-1} k={Bc+77}", "q=1 k=1",
                  "b=2 h=2 q={Br+3} k=19 layout=packed,row_gap,bnhd,head_gap"),
         "Whole tiles are right: look at rows beyond Nq, keys beyond Nk, and strides."),
    Step("gqa_masked", "grouped queries and rows without a key", "first",
         on_first("b=2 h=4/2 q=21 k=37", "causal h=2 q={3*Br+8} k=75", "q={Br+1} k=0",
                  "causal b=2 h=6/3 q={Br+1} k={Bc+1} inputs=nan_first_head"),
         "A row that sees no key has O = 0 and LSE = -inf; and -inf - -inf is NaN."),
    Step("bf16", "bf16 and every row of the tile table", "all", everything,
         "fp16 with the first tile is right: look for what depends on the type, d or the tile."),
    Step("counters", "the counters that the change must move", "all", counted),
)
GRID = Step("grid", "the grid: which q tile starts first, and where y ends", "all", grid,
            "This run takes 3 blocks along y in place of a GPU's 65,535, and grid_of() goes on along "
            "z. Look at how a block finds its q tile: query_tile() in common/device/attention.h "
            "counts with blockIdx.z, and a block behind the last q tile must return.")
GPU = (
    Step("gpu", "on the GPU", "all", lambda rows: everything(rows) + timed(rows)),
)


def steps_of(stage: int) -> list[Step]:
    """The steps of a stage's check behind "compiles", in order."""
    steps = list(COMMON)
    if stage in LSE:
        name, title = LSE[stage]
        cases = on_first("q={Br} k={Bc}", *MANY, only_LSE=True)
        steps.insert(0, Step(name, title, "first", cases))
    if stage >= 3:
        steps.append(GRID)
    if stage == 2:
        steps[1:3] = [Step("exchange", "sub-goal 2, the cross-warp exchange: O of one tile",
                           "first", steps[1].cases,
                           "The online update is judged by LSE: look at f_O and f_P, and at the "
                           "exchange."),
                      steps[2]]
    return steps
