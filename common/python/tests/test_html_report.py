"""The page of ./fa2 compare: whole, self-contained, and saying what the records say."""
from html.parser import HTMLParser

import pytest

from fa2course import html_report, report
from test_report import counted, record, timed

pytest.importorskip("matplotlib")

VOID = {"meta", "br", "path", "use", "rect", "image", "link", "img"}


class Page(HTMLParser):
    """Checks that tags nest, and collects what a browser would fetch."""

    def __init__(self, page: str):
        super().__init__()
        self.open, self.fetched, self.words = [], [], []
        self.feed(page)
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        if tag not in VOID:
            self.open.append(tag)
        for name, value in attributes:
            if name in ("src", "href", "xlink:href") and not value.startswith(("#", "data:")):
                self.fetched.append(value)
            assert not name.startswith("on")

    def handle_startendtag(self, tag, attributes):
        pass

    def handle_endtag(self, tag):
        if tag not in VOID:
            assert self.open.pop() == tag

    def handle_data(self, data):
        if not self.open or self.open[-1] != "style":
            self.words.append(data)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.words).split())


def results(records: list[dict]) -> dict:
    return {"format": "fa2-compare", "version": 1, "command": "fa2 compare", "records": records}


def test_the_page_is_self_contained_and_whole():
    page = html_report.page(results([counted(1, "stage1_naive", 5), counted(2, "stage2_fa1", 0)]))
    read = Page(page)
    assert read.fetched == []
    assert "<script" not in page and "@import" not in page and "url(http" not in page
    assert "<svg" in page
    assert "2 right" in read.text and "gone" in read.text


def test_the_same_records_give_the_same_page():
    rows = [timed(2, "stage2_fa1", N, 100) for N in (512, 1024)]
    assert html_report.page(results(rows)) == html_report.page(results(rows))


def test_what_is_wrong_is_in_sight_and_escaped():
    bad = counted(2, "stage2_fa1", 1) | {"ok": False, "reason": "O[0] is <b>nan</b>"}
    read = Page(html_report.page(results([counted(1, "stage1_naive", 1), bad])))
    assert "WRONG" in read.text and "1 wrong" in read.text
    assert "O[0] is <b>nan</b>" in read.text


def test_gains_are_those_of_the_tables():
    slow, fast = timed(2, "stage2_fa1", 512, 50), timed(3, "stage3_fa2_seqpar", 512, 100)
    assert "×2" in html_report.gain(fast, slow).shown
    assert "slower" in html_report.gain(slow, fast).shown
    near = timed(4, "stage4_fa2_warps", 512, 101)
    assert "no gain" in html_report.gain(near, fast).shown


def test_each_gpu_has_a_section_and_they_stand_side_by_side():
    rows = [timed(2, "stage2_fa1", 512, 50), timed(3, "stage3_fa2_seqpar", 512, 90)]
    other = [r | {"environment": r["environment"] | {"gpu": "NVIDIA A100"}} for r in rows]
    read = Page(html_report.page(results([*rows, *other, counted(2, "stage2_fa1", 7)])))
    assert "Side by side" in read.text
    for name in ("NVIDIA H200", "NVIDIA A100", "Simulator"):
        assert name in read.text


@pytest.mark.parametrize("value, shown", [(None, "–"), (0, "0"), (1234567, "1,234,567"),
                                          (0.05659, "0.0566"), (24.08, "24.1"), ("nan", "nan")])
def test_numbers(value, shown):
    assert html_report.number(value) == shown


def test_nothing_ran():
    with pytest.raises(report.ReportError, match="nothing to show"):
        html_report.page(results([]))


def test_a_stage_that_did_not_run_says_why():
    idle = record(4, "stage4_fa2_warps", ok=None, reason="needs 99 KiB")
    read = Page(html_report.page(results([counted(1, "stage1_naive", 1), idle])))
    assert "not run" in read.text and "needs 99 KiB" in read.text
