"""fa2_sweep.txt: one row per shape and backend, under lines that say where it was measured.

Plain text for people, `tee` and grep; standard library only.
"""

import re
from dataclasses import dataclass
from pathlib import Path

TITLE = "# fa2 sweep"
COLUMNS = (
    "seqlen headdim causal batch heads dtype tiles backend ms spread tflops gbps peak err note"
)
FORMAT = ("{:>6} {:>7} {:>6} {:>5} {:>5} {:>5} {:>5} {:<14} {:>10} {:>6} {:>7} {:>7} {:>6} {:>8}  "
          "{}")  # fmt: skip


@dataclass
class Row:
    seqlen: int
    headdim: int
    causal: bool
    batch: int
    heads: int
    dtype: str
    tiles: str  # of the stages: "same" or "tuned"; "-" for the others
    backend: str
    ms: float | None  # median; None: it did not run, and note says why
    spread: float | None  # (slowest - fastest) / median
    gbps: float | None  # requested global memory, where the tile is known
    peak: float | None  # share of the datasheet's
    err: float | None  # largest error seen, of sampled rows
    note: str  # the kernel that ran, or why none did

    @property
    def shape(self) -> tuple:
        return self.seqlen, self.headdim, self.causal, self.batch, self.heads, self.dtype

    @property
    def key(self) -> tuple:
        return (*self.shape, self.tiles, self.backend)

    @property
    def flops(self) -> float:
        full = 4.0 * self.batch * self.heads * self.seqlen**2 * self.headdim
        return full / 2 if self.causal else full

    @property
    def tflops(self) -> float | None:
        return None if self.ms is None else self.flops / self.ms / 1e9

    def __str__(self) -> str:
        def number(value, form):
            return "-" if value is None else format(value, form)

        return FORMAT.format(
            self.seqlen, self.headdim, int(self.causal), self.batch, self.heads, self.dtype,
            self.tiles, self.backend, number(self.ms, ".5f"), number(self.spread, ".3f"),
            number(self.tflops, ".1f"), number(self.gbps, ".0f"), number(self.peak, ".3f"),
            number(self.err, ".1e"), self.note,
        ).rstrip()  # fmt: skip


def stage_of(backend: str) -> tuple[int, str]:
    """Number and variant of a backend: stage6 is the row "lazy", stage6_paper the other one."""
    number, _, variant = backend.removeprefix("stage").partition("_")
    return int(number), variant or ("lazy" if number == "6" else "")


def header() -> str:
    return FORMAT.format(*COLUMNS.split())


def parse_row(line: str) -> Row:
    cells = line.split(None, 14)
    if len(cells) < 14:
        raise ValueError(f"not a row of a sweep: {line.strip()!r}")

    def number(cell):
        return None if cell == "-" else float(cell)

    return Row(
        int(cells[0]), int(cells[1]), cells[2] == "1", int(cells[3]), int(cells[4]), *cells[5:8],
        number(cells[8]), number(cells[9]), number(cells[11]), number(cells[12]), number(cells[13]),
        cells[14].strip() if len(cells) > 14 else "",
    )  # fmt: skip


def parse(text: str) -> tuple[list[str], list[Row]]:
    """The lines of the environment (of every run in the file, once) and the rows; a row measured
    again replaces the one before."""
    about: dict[str, None] = {}
    rows: dict[tuple, Row] = {}
    for line in text.splitlines():
        if line.startswith("#"):
            about[line.removeprefix("#").strip()] = None
        elif line.strip() and line.split() != COLUMNS.split():
            row = parse_row(line)
            rows[row.key] = row
    return list(about), list(rows.values())


def read(path: Path) -> tuple[list[str], list[Row]]:
    return parse(path.read_text())


def gpu_of(about: list[str]) -> str:
    """ "NVIDIA H200", as the first line of the file says."""
    found = re.search(r"fa2 sweep: ([^|]+?) \|", "\n".join(f"{line} |" for line in about))
    return found.group(1) if found else "unknown GPU"


def requested_bytes(row: Row, Br: int, Bc: int) -> float:
    """Of global memory by a kernel that visits K and V once per tile of Br queries: Q, O and LSE
    once, K and V in whole tiles (clipped at the end)."""
    keys = 0
    for first in range(0, row.seqlen, Br):
        seen = min(first + Br, row.seqlen) if row.causal else row.seqlen
        keys += min(-(-seen // Bc) * Bc, row.seqlen)
    row_bytes = 2 * row.headdim
    per_head = row.seqlen * (2 * row_bytes + 4) + 2 * keys * row_bytes
    return float(row.batch * row.heads * per_head)
