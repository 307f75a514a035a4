"""The numbers in lecture 9's text are those of its output block and of the recorded results."""
import json
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
LECTURE = ROOT / "lectures" / "09_what_comes_after.md"


def test_budgets_follow_from_the_counters():
    text = LECTURE.read_text()
    header = ["wavefronts", "excess", "barriers", "syncs", "shuffles", "mma", "exp2_p",
              "exp2_stats", "normalisations"]
    row = re.search(r"^6 deferred lazy +(.*)$", text, re.MULTILINE).group(1).split()
    counted = {name: float(value.rstrip("M")) * (1e6 if value.endswith("M") else 1)
               for name, value in zip(header, row, strict=True)}
    pairs = (1024 // 64) * (1024 // 128)
    wavefronts, mma = counted["wavefronts"] / pairs, counted["mma"] / pairs
    exponentials = counted["exp2_p"] / pairs
    prose = " ".join(text.split())
    assert f"a pair takes {wavefronts:,.0f} wavefronts, {mma:,.0f} `mma`" in prose
    assert exponentials == pytest.approx(8192, rel=2e-3)  # the block rounds it
    assert "8,192 exponentials" in prose
    assert f"| tensor cores, Hopper | {mma / 2:,.0f} | {mma:,.0f} |" in text
    assert f"| tensor cores, Blackwell | {mma / 4:,.0f} | {mma / 2:,.0f} |" in text
    assert "| exponentials, either | 512 | 512 |" in text
    assert (f"| shared memory, as stage 6 reads it | {wavefronts / 2:,.0f} | {wavefronts:,.0f} |"
            in text)


def recorded(tile_mode: str, d: int, N: int) -> dict:
    """Stage 6 lazy at B2 H16, fp16, full, as h200.json has it."""
    records = json.loads((ROOT / "notes" / "results" / "h200.json").read_text())["records"]
    record, = [r for r in records
               if r["stage"] == "stage6_fa2_deferred" and r["variant"] == "lazy"
               and r["tile_mode"] == tile_mode and r["dtype"] == "fp16"
               and [r["shape"][key] for key in ("B", "Hq", "Hkv", "Nq", "Nk", "d", "causal")] ==
               [2, 16, 16, N, N, d, False]]
    return record


def test_the_gap_is_the_recorded_one():
    record = recorded("same", 64, 4096)
    per_pair = record["time_ms"] * 1e3 / (32 * (4096 // 64) * (4096 // 128) / 132)
    text = " ".join(LECTURE.read_text().split())
    expected = (f"takes {record['time_ms']:.3g} ms. That is 65,536 pairs over 132 SMs, 496.5 for "
                f"each, and {per_pair:.2f} µs for one: at most {per_pair * 1980:,.0f} clocks")
    assert expected in text, f"lecture 9 should say: {expected}"


def test_the_gains_of_other_tiles_are_the_recorded_ones():
    def gain(tile_mode: str, d: int, N: int) -> str:
        ratio = recorded("same", d, N)["time_ms"] / recorded(tile_mode, d, N)["time_ms"]
        return f"{ratio:.2f} times"

    text = " ".join(LECTURE.read_text().split())
    for expected in (f"{gain('tuned', 64, 4096)} at d = 64 and "
                     f"{gain('tuned', 128, 4096)} at d = 128",
                     f"Measured are {gain('same_b', 64, 2048)} (N = 2048)"):
        assert expected in text, f"lecture 9 should say: {expected}"


def test_the_profiles_are_the_committed_ones():
    text = " ".join(LECTURE.read_text().split())
    for name, sentence in (("", "are active in {}% of the cycles"), ("_official", "in [{}%](")):
        profile = (ROOT / "notes" / f"fa2_ncu_4096_d128{name}.md").read_text()
        active = re.search(r"^\| tensor pipe active \| ([\d.]+)%", profile, re.MULTILINE).group(1)
        assert sentence.format(active) in text, f"lecture 9 should say {active}%"
