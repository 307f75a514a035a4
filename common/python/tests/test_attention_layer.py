"""lectures/attention_layer.ipynb runs through without a GPU, and its ledger is whole."""

import json
import os
from pathlib import Path

import pytest

nbformat = pytest.importorskip("nbformat")
nbclient = pytest.importorskip("nbclient")
ROOT = Path(__file__).resolve().parents[3]
NOTEBOOK = ROOT / "lectures" / "attention_layer.ipynb"
CHECKS = ["state_smaller_than_score_matrix", "matches_sdpa_within_1e-3", "memory_linear_in_T",
          "less_peak_memory_than_math", "at_least_3x_math_at_T2048"]  # fmt: skip


@pytest.fixture(scope="module")
def executed(build_dir):
    before = dict(os.environ)
    os.environ |= {
        "FA2_LIBRARY": str(build_dir / "lib" / "libfa2course.so"),
        "CUDA_VISIBLE_DEVICES": "",  # the same answer on every machine
        "PYDEVD_DISABLE_FILE_VALIDATION": "1",
    }
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    try:
        nbclient.NotebookClient(
            notebook, timeout=120, kernel_name="python3",
            resources={"metadata": {"path": str(NOTEBOOK.parent)}},
        ).execute()  # fmt: skip
    finally:
        os.environ.clear()
        os.environ |= before
    return notebook


def test_every_check_is_in_the_ledger(executed):
    ledger = json.loads((ROOT / "build/results/attention_layer/ledger.json").read_text())
    assert [entry["check"] for entry in ledger["ledger"]] == CHECKS
    states = [entry["state"] for entry in ledger["ledger"]]
    assert states == ["passed"] * 4 + ["skipped"], ledger["ledger"]
    assert "no speed to compare" in ledger["ledger"][-1]["detail"]
    for curves in ledger["memory"].values():
        ours, math = (curves[label]["attention_alone"] for label in ("ours", "math"))
        assert ours[-1] / ours[1] < 5 and math[-1] / math[1] > 6


def test_it_says_where_it_runs_and_why(executed):
    text = "".join(
        "".join(part.get("text", "")) for cell in executed.cells for part in cell.get("outputs", [])
    )
    assert "Running on: simulator (" in text
    assert "4 passed, 0 FAILED, 1 skipped" in text
    assert text.count("skipped: ") == 3  # the exercises
    record = ROOT / "notes" / "attention_layer_h200.json"
    if record.exists():
        assert "Recorded on NVIDIA H200" in text


def test_the_ledger_records_a_failure():
    """The ledger's own code, with a check that does not hold."""
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    source = next(cell.source for cell in notebook.cells if "class Ledger" in cell.source)
    scope: dict = {}
    exec(source.split("ledger = Ledger()")[0], scope)
    ledger = scope["Ledger"]()
    ledger.check("holds", True, "1 < 2")
    ledger.check("does not hold", float("nan") < 1, "nan < 1")
    assert ledger.summary() == "1 passed, 1 FAILED, 0 skipped"
