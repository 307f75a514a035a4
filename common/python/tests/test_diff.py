"""Each stage changes only what it marks as its change, and not much."""
import statistics
import subprocess

import pytest

from fa2course.launcher import paths, stages
from fa2course.launcher.commands import diff
from fa2course.launcher.errors import UserError

PARENT = "// Stage 3\n#include\na\nb\n{\nc\n}\nd\nFA2_STAGE(three)\n"


def problems(child: str, parent: str = PARENT) -> list[str]:
    return diff.out_of_place(diff.read("3/kernel.cu", parent), diff.read("4/kernel.cu", child))


@pytest.mark.parametrize("child", [
    "// Stage 4\n// is another\n#include\na\n// [change]\nx\n// [end of "
    "change]\n{\nc\n}\nd\nFA2_STAGE(four)\n",
    "#include\na\nb\n{\n  // [change]\n  // [end of change]\n}\nd\nFA2_STAGE(four)\n",
    "#include\n// [change]\nx\n// [end of change]\na\nb\n{\nc\n}\n// [change]\n}\ny\n}\n// [end of "
    "change]\nd\nFA2_STAGE(four)\n",
])
def test_marked_changes_pass(child):
    assert problems(child) == []


@pytest.mark.parametrize("child, says", [
    ("#include\na\n// [change]\nb\n// [end of change]\n{\nx\n}\nd\nFA2_STAGE(four)\n",
     ["4/kernel.cu:7: is not in 3/kernel.cu, and not marked: x",
      "3/kernel.cu:6: is missing in 4/kernel.cu, where nothing is marked (line 7): c"]),
    ("#include\na\n// [change]\ny\n// [end of change]\nc\n}\nd\nFA2_STAGE(four)\nmore\n",
     ["4/kernel.cu:10: is not in 3/kernel.cu, and not marked: more"]),
    ("#include\na\nb\n// [change]\n{\n// [end of change]\nc\n}\nFA2_STAGE(four)\n",
     ["3/kernel.cu:8: is missing in 4/kernel.cu, where nothing is marked (line 9): d"]),
    (PARENT, ["4/kernel.cu marks no change: put the lines that differ from 3/kernel.cu between "
              "// [change] and // [end of change]"]),
])
def test_unmarked_changes_are_named(child, says):
    assert problems(child) == says


@pytest.mark.parametrize("text, says", [
    ("a\n// [end of change]\n", "4/kernel.cu:2: an end without"),
    ("a\n// [change]\nb\n// [change]\n", "4/kernel.cu:4: a .change. inside another"),
    ("a\n  // [change]\n", "the last .change. has no"),
])
def test_marks_come_in_pairs(text, says):
    with pytest.raises(UserError, match=says):
        diff.read("4/kernel.cu", text)


CHANGES = list(zip(stages.names()[1:], stages.names()[2:]))


@pytest.mark.parametrize("before, after", CHANGES)
def test_the_change_is_the_only_change(before, after):
    assert diff.out_of_place(diff.kernel(before), diff.kernel(after)) == []


def sizes_of_changes() -> list[int]:
    return [sum(diff.counts(diff.kernel(before), diff.kernel(after))) for before, after in CHANGES]


def test_no_change_is_large():
    assert max(sizes_of_changes()) <= 120, sizes_of_changes()


@pytest.mark.parametrize("before, after", CHANGES)
def test_files_do_not_differ_by_much(before, after):
    """Docblocks and marks included, which the others leave out."""
    files = [paths.ROOT / stage / "kernel.cu" for stage in (before, after)]
    done = subprocess.run(["diff", *files], capture_output=True, text=True)
    assert sum(line[0] in "<>" for line in done.stdout.splitlines()) <= 120


def test_changes_are_small():
    assert statistics.median(sizes_of_changes()) <= 60, sizes_of_changes()
