"""compare --merge: results of several machines, by GPU."""
import json

import pytest

from fa2course import merge
from fa2course.launcher.errors import UserError
from test_report import counted, timed


def file(*records: dict) -> dict:
    return {"format": "fa2-compare", "version": 1, "command": "", "records": list(records),
            "environment": records[0]["environment"]}


def on(record: dict, gpu: str, date: str = "2025-01-31") -> dict:
    return record | {"environment": record["environment"] | {"gpu": gpu, "date": date}}


def test_gpus_stand_together_and_nothing_counts_twice():
    a, b = timed(2, "stage2_fa1", 512, 50), timed(3, "stage3_fa2_seqpar", 512, 90)
    first = file(on(a, "A100"), on(a, "H200"))
    second = file(on(b, "A100"), on(a, "A100"), on(counted(2, "stage2_fa1", 1), "simulated"))
    results, left_out = merge.merge([first, second, first], "fa2 compare --merge")
    assert [(r["environment"]["gpu"], r["number"]) for r in results["records"]] == [
        ("A100", 2), ("A100", 3), ("H200", 2), ("simulated", 2)]
    assert left_out == 3
    assert "A100: 2 results, none wrong" in merge.summary(results)


def test_the_later_measurement_stays():
    old = on(timed(2, "stage2_fa1", 512, 50), "A100", "2025-01-01")
    new = on(timed(2, "stage2_fa1", 512, 60), "A100", "2025-02-01")
    for files in ([file(old), file(new)], [file(new), file(old)]):
        results, left_out = merge.merge(files, "")
        assert [r["tflops"] for r in results["records"]] == [60] and left_out == 1


def test_a_wrong_result_is_the_exit_status():
    right = timed(2, "stage2_fa1", 512, 50)
    assert merge.exit_status(file(right)) == 0
    assert merge.exit_status(file(right, right | {"ok": False})) == 1
    assert merge.exit_status(file(right | {"ok": None})) == 0


@pytest.mark.parametrize("content, sentence", [
    (None, "cannot be read"), ("{", "not JSON"), ("[]", "no file of ./fa2 compare"),
    (json.dumps({"format": "fa2-compare", "version": 2}), "version 2")])
def test_what_cannot_be_merged_is_a_sentence(tmp_path, content, sentence):
    if content is not None:
        (tmp_path / "a.json").write_text(content)
    with pytest.raises(UserError, match=sentence):
        merge.read(tmp_path / "a.json")
