"""The marked tables of notes/performance.md are what the measurements say."""

import importlib
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
NOTE = ROOT / "notes" / "performance.md"
sys.path.insert(0, str(ROOT / "common" / "bench"))
tables = importlib.import_module("performance_tables")


@pytest.mark.parametrize("make", [tables.parents, tables.profiles, tables.peers, tables.summary,
                                  tables.variants])  # fmt: skip
def test_tables_are_made_again(make):
    """Table by table, so that a difference names its own."""
    name = make.__name__
    written = NOTE.read_text().split(f"<!-- {name} -->\n")[1].split(f"\n<!-- end of {name} -->")[0]
    assert written == make(), "python common/bench/performance_tables.py writes it again"


def test_a_changed_number_is_written_over():
    text = NOTE.read_text()
    assert tables.refreshed(text.replace("B2 H16 N512 |", "B9 H9 N9 |")) == text


def test_a_note_without_a_marker_is_refused():
    with pytest.raises(ValueError, match="has no place for summary"):
        tables.refreshed(NOTE.read_text().replace("<!-- summary -->", ""))


def test_a_gain_is_one_outside_of_the_spread():
    slow, fast = ({"time_ms": ms, "spread": 0.06} for ms in (1.05, 1.0))
    assert tables.gain(slow, fast, "{:.2f} =") == "1.05 ="
    assert tables.gain(slow, fast | {"spread": 0.02}, "=") == "1.05"
    assert tables.gain(fast, slow | {"spread": 0.02}, "=") == "0.95"
    assert tables.gain({"time_ms": 20.0, "spread": 0.0}, fast, "=") == "20.0"


def test_rows_are_in_order():
    cases = [(1, 8, 512, 64, True, "fp16"), (2, 16, 64, 64, True, "bf16"), (2, 16, 99, 64, True,
             "fp16"), (2, 16, 64, 64, True, "fp16")]  # fmt: skip
    assert tables.in_order(cases) == [cases[3], cases[2], cases[0], cases[1]]
