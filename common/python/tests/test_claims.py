"""notes/claims.md is what the committed measurements say; so are the profiles and the sweep."""

import importlib
import json
import re
import struct
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
NOTES = ROOT / "notes"
sys.path.insert(0, str(ROOT / "common" / "bench"))
pytestmark = pytest.mark.usefixtures("built")
PROFILES = [f"fa2_ncu_4096_d128{name}" for name in
            ("", "_stage1", "_stage2", "_stage3", "_stage4", "_stage5", "_official")]


@pytest.fixture(scope="module")
def claims():
    pytest.importorskip("numpy")
    return importlib.import_module("claims")


def test_every_verdict_is_computed_again(claims):
    """Row by row, so that a difference names its claim."""
    written = dict(
        re.findall(r"^\| (\w+) (\|.*)$", (NOTES / "claims.md").read_text(), re.MULTILINE)
    )
    fresh = claims.markdown(claims.Evidence())
    again = dict(re.findall(r"^\| (\w+) (\|.*)$", fresh, re.MULTILINE))
    assert list(written) == [claim.id for claim in claims.claims()]
    for name, row in again.items():
        assert written[name] == row, f"{name}: python common/bench/claims.py writes it again"
    assert (NOTES / "claims.md").read_text() == fresh


def test_verdicts_hold_for_the_kernels_of_today(claims):
    """Counters may move a little with a kernel; what they decide may not."""
    today = claims.Evidence()
    today.counted = claims.simulate()
    for claim in claims.claims():
        verdict = claim.decide(claims.Evidence())[0]
        assert claim.decide(today)[0] == verdict, (
            f"{claim.id}: python common/bench/claims.py --count"
        )


def test_a_verdict_follows_the_measurement(claims):
    """Doctored evidence turns the verdict around."""
    evidence = claims.Evidence()
    assert claims.three_times_math(evidence)[0] == claims.HOLDS
    for times in evidence.layer["throughput"].values():
        times["layer_ms"]["ours"] *= 100
    assert claims.three_times_math(evidence)[0] == claims.WRONG
    slow = claims.Evidence()
    for row in slow.sweep:
        if row.backend == "sdpa_flash" and row.seqlen == 16384:
            row.ms *= 2
    assert claims.flat(slow)[0] == claims.WRONG


@pytest.mark.parametrize("name", PROFILES)
def test_profiles_are_read_back_without_a_gpu(name):
    ncu_table = pytest.importorskip("ncu_table")
    pytest.importorskip("ncu_report")
    report = ncu_table.read(NOTES / f"{name}.ncu-rep")
    about = json.loads((NOTES / f"{name}.json").read_text())
    assert json.loads(json.dumps(report.values_kept())) == about["measured"]
    shape = ncu_table.shape_of(about)
    assert (shape.seqlen, shape.headdim) == (4096, 128)
    assert "H200" in report.gpu
    assert report.values[ncu_table.HMMA] == report.opcode("HMMA") == ncu_table.least_mma(shape)
    warps = about.get("tile", {}).get("warps", 0)
    rows = {row[0]: row for row in ncu_table.table(report, shape, about.get("counters"), warps)}
    if "official" not in name:  # what the hardware counts as the simulator does
        for what in ("tensor-core instructions", "shuffles (SHFL)", "ldmatrix (LDSM)",
                     "barrier instructions (BAR)"):  # fmt: skip
            assert rows[what][3] == "equal", rows[what]
    assert (NOTES / f"{name}.md").read_text().count("| ") > 20


def test_the_committed_sweep_is_whole():
    sweep_file = importlib.import_module("sweep_file")
    about, rows = sweep_file.read(NOTES / "fa2_sweep.txt")
    assert "H200" in about[0] and "commit" in about[0] and "driver" in about[0]
    shapes = {row.shape for row in rows if row.tiles != "same"}
    assert {(s[0], s[1], s[2]) for s in shapes} == {
        (N, d, c) for N in (512, 1024, 2048, 4096, 8192, 16384) for d in (64, 128)
        for c in (False, True)}  # fmt: skip
    for row in rows:
        assert row.ms is not None or row.note, row
        assert "WRONG" not in row.note and "did not run" not in row.note, row
        if row.backend == "sdpa_flash":
            assert "flash_fwd" in row.note
    for name in ("fa2_sweep.png", "fa2_sweep_parents.png", "fa2_memory.png"):
        data = (NOTES / name).read_bytes()
        assert data[:8] == b"\x89PNG\r\n\x1a\n" and struct.unpack(">I", data[16:20])[0] > 600


def test_the_committed_csv_is_that_of_the_sweep():
    plot = importlib.import_module("plot_fa2_sweep")
    about, rows = plot.sweep_file.read(NOTES / "fa2_sweep.txt")
    assert (NOTES / "fa2_sweep.csv").read_text() == plot.to_csv(about, rows)
