"""The picture of ./fa2 compare."""
import json
import re
import struct
from pathlib import Path

import pytest

from fa2course import plots, report

ROOT = Path(__file__).resolve().parents[3]


def counter_names() -> list[str]:
    header = (ROOT / "common/harness/counters.h").read_text()
    return re.findall(r"X\((\w+), ", header)


def record(number: int, stage: str, variant: str = "", **changes) -> dict:
    shape = {"B": 1, "Hq": 2, "Hkv": 2, "Nq": 512, "Nk": 512, "d": 64, "causal": False}
    environment = {"gpu": "NVIDIA H200", "driver": "580", "cuda": "13.0", "commit": "abc1234",
                   "date": "2025-01-31", "peak_tflops": 989}
    return {"stage": stage, "variant": variant, "number": number, "backend": "sim", "shape": shape,
            "dtype": "fp16", "tile_mode": "same", "tile": None, "time_ms": None, "spread": None,
            "tflops": None, "counters": None, "share_of_tolerance": None, "ok": True, "reason": "",
            "environment": environment} | changes


def counted(number: int, stage: str, value: int, variant: str = "") -> dict:
    return record(number, stage, variant, counters=dict.fromkeys(counter_names(), value))


def timed(number: int, stage: str, N: int, tflops: float, d: int = 64) -> dict:
    r = record(number, stage, backend="cuda", tflops=tflops, time_ms=1 / tflops, spread=0.02)
    r["shape"] |= {"Nq": N, "Nk": N, "d": d}
    return r


def write(folder: Path, records: list[dict], **changes) -> None:
    results = {"format": "fa2-compare", "version": 1, "records": records} | changes
    (folder / "compare.json").write_text(json.dumps(results))


def png_size(path: Path) -> tuple[int, int]:
    data = path.read_bytes()
    assert data.startswith(b"\x89PNG\r\n\x1a\n") and data.endswith(b"IEND\xaeB`\x82")
    return struct.unpack(">II", data[16:24])


def test_labels_are_those_of_the_tables():
    assert plots.stage_label(record(2, "stage2_fa1")) == "2 fa1"
    assert plots.stage_label(record(3, "stage3_fa2_seqpar")) == "3 seqpar"
    assert plots.stage_label(record(6, "stage6_fa2_deferred", "lazy")) == "6 deferred lazy"
    shape = record(2, "stage2_fa1")["shape"]
    assert plots.shape_label(shape) == "B1 H2 N512 d64 full"
    assert plots.shape_label(shape | {"Hkv": 1, "Nk": 9}) == "B1 H2 Hkv1 Nq512 Nk9 d64 full"


@pytest.mark.parametrize("value, text", [(0, "0"), (7, "7"), (999, "999"), (1000, "1k"),
                                         (999_600, "1M"), (2_097_152, "2.1M"), (4.3e9, "4.3G")])
def test_human_numbers(value, text):
    assert plots.human(value) == text


def test_change_in_words():
    assert plots.change(2, 8) == "×4"
    assert plots.change(8, 2) == "÷4"
    assert plots.change(0, 2) == "new"
    assert plots.change(2, 0) == "gone"


def test_parents_are_those_of_the_tables():
    rows = [counted(2, "stage2_fa1", 1), counted(2, "stage2_fa1/kv_outer", 1),
            counted(4, "stage4_fa2_warps", 1), counted(6, "stage6_fa2_deferred", 1, "paper"),
            counted(6, "stage6_fa2_deferred", 1, "lazy")]
    parents = [plots.parent_of(row, rows) for row in rows]
    assert parents == [None, rows[0], rows[0], rows[2], rows[3]]


def test_every_panel_reads_counters_that_exist():
    counters = dict.fromkeys(counter_names(), 1)
    assert len(counters) > 30
    for panel in plots.PANELS:
        assert panel.of(counters) >= 1


def test_the_problem_with_the_most_work_is_drawn():
    small, large = counted(2, "stage2_fa1", 1), counted(2, "stage2_fa1", 1)
    large["shape"] = large["shape"] | {"Nq": 1024}
    assert plots.largest_group([small, large]) == [large]


def test_one_sweep_is_drawn_and_not_a_mixture():
    rows = [timed(2, "stage2_fa1", N, 100) for N in (512, 1024, 2048)]
    other = timed(2, "stage2_fa1", 512, 100)
    other["shape"]["B"] = 16
    assert plots.sweep_of([other, *rows]) == rows


def test_picture_of_counters(tmp_path, capsys):
    pytest.importorskip("matplotlib")
    write(tmp_path, [counted(1, "stage1_naive", 5), counted(2, "stage2_fa1", 3),
                     counted(3, "stage3_fa2_seqpar", 0), record(4, "stage4_fa2_warps")])
    assert report.main([str(tmp_path)]) == 0
    width, height = png_size(tmp_path / "compare.png")
    assert width > 800 and height > 500
    assert sorted(p.name for p in tmp_path.iterdir()) == ["compare.html", "compare.json",
                                                           "compare.png"]
    assert "compare.png" in capsys.readouterr().out


def test_picture_of_times(tmp_path):
    pytest.importorskip("matplotlib")
    stages = [(2, "stage2_fa1"), (3, "stage3_fa2_seqpar")]
    write(tmp_path, [timed(number, stage, N, 50.0 * number, d)
                     for number, stage in stages for N in (512, 1024) for d in (64, 128)])
    assert report.main([str(tmp_path)]) == 0
    assert png_size(tmp_path / "compare.png")[0] > 800


@pytest.mark.parametrize("content, sentence", [
    (None, "No such file"), ("{", "not JSON"), ("[]", "no file of fa2 compare"),
    ('{"format": "fa2-compare", "version": 99}', "only version 1"),
    ('{"format": "fa2-compare", "version": 1, "records": []}', "nothing to draw")])
def test_what_cannot_be_drawn_is_one_sentence(tmp_path, capsys, content, sentence):
    if content is not None:
        (tmp_path / "compare.json").write_text(content)
    assert report.main([str(tmp_path)]) == 2
    error = capsys.readouterr().err
    assert sentence in error and error.count("\n") == 1
    assert not (tmp_path / "compare.png").exists()


def test_usage():
    assert report.main([]) == 2
    assert report.main(["--help"]) == 0
