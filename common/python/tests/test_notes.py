"""The checker of references from notes into code, and the course's own note."""
import subprocess
from pathlib import Path

import pytest

from fa2course import notes_check
from fa2course.launcher import paths
from fa2course.launcher.commands import notes
from fa2course.launcher.errors import UserError

ROOT = Path(__file__).resolve().parents[3]
NOTE = ROOT / "notes" / "fa2_code_notes.md"
KERNEL = "one\nint two = Br / warps;\nint three = two;\nfour four_5\n"


@pytest.mark.parametrize("note", [NOTE, *(ROOT / "lectures").glob("0[89]_*.md")],
                         ids=lambda note: note.name)
def test_our_notes_hold(note):
    for reference in notes_check.find(note.read_text(), note, ROOT):
        if reference.commit is None:
            notes_check.check(reference, notes_check.read_ours(ROOT))


def test_our_note_is_about_every_stage_and_both_versions():
    references = notes_check.find(NOTE.read_text(), NOTE, ROOT)
    ours = {reference.path.split("_")[0] for reference in references if reference.commit is None}
    assert {f"stage{n}" for n in range(2, 7)} <= ours
    assert {notes_check.FA1, notes_check.FA2} <= {reference.commit for reference in references}


@pytest.fixture
def course(tmp_path, monkeypatch):
    """A course of one kernel; check(text) checks a note of it."""
    (tmp_path / "stage2_x").mkdir()
    (tmp_path / "stage2_x" / "kernel.cu").write_text(KERNEL)
    (tmp_path / "notes").mkdir()
    monkeypatch.setattr(paths, "ROOT", tmp_path)

    class Course:
        root = tmp_path
        note = tmp_path / "notes" / "mine.md"

        def check(self, text, *arguments):
            self.note.write_text(text)
            return notes.run([*arguments, str(self.note)])

        def refusal(self, text, *arguments):
            with pytest.raises(UserError) as refused:
                self.check(text, *arguments)
            return refused.value
    return Course()


@pytest.mark.parametrize("text", [
    "stage2_x/kernel.cu:2 `two`",
    "stage2_x/kernel.cu:2: `two`, `Br / warps`",
    "see `stage2_x/kernel.cu:2` `Br  /  warps;`, which",
    "[kernel.cu:2](../stage2_x/kernel.cu#L2) `two`",
    "[stage2_x/kernel.cu:2-3](../stage2_x/kernel.cu#L2-L3) `Br`, `three`",
    "kernel.cu:2 `two`",  # the only one of that name
    "| a | [kernel.cu:4](../stage2_x/kernel.cu#L4) `four_5` |",
])
def test_accepts(course, text):
    assert course.check(text) == 0


@pytest.mark.parametrize("text, sentence", [
    ("stage2_x/kernel.cu:3 `Br`", "does not have `Br`: it stands in line 2"),
    ("stage2_x/kernel.cu:2 `two`, `six`", "does not have `six`: it is nowhere"),
    ("stage2_x/kernel.cu:1 `two`", "it stands in lines 2, 3"),
    ("stage2_x/kernel.cu:4 `four_`", "does not have `four_`"),  # only a part of an identifier
    ("stage2_x/kernel.cu:9 `two`", "the file has 4 lines"),
    ("stage2_x/kernel.cu:0 `two`", "the file has 4 lines"),
    ("stage2_x/none.cu:2 `two`", "there is no such file"),
    ("stage2_x/kernel.cu:2 and `two`", "name in backticks"),
    ("stage2_x/kernel.cu:3-2 `two`", "the last line is before the first"),
    ("[kernel.cu:3](../stage2_x/kernel.cu#L2) `two`", "the link goes to line 2, its text says 3"),
    ("[other.cu:2](../stage2_x/kernel.cu#L2) `two`", "the link goes to stage2_x/kernel.cu"),
    ("[kernel.cu:2](../stage2_x/kernel.cu) `two`", "needs #L"),
    ("[kernel.cu:2](../../x/kernel.cu#L2) `two`", "leaves the repository"),
    (f"[a.h:2]({notes_check.OFFICIAL}/blob/main/a.h#L2) `two`", "must be a permalink"),
    ("nothing about code", "has no reference into code"),
])
def test_refuses(course, text, sentence):
    refused = course.refusal(text)
    assert refused.status == 1 and sentence in str(refused)


def test_asks_which_file(course):
    (course.root / "stage3_y").mkdir()
    (course.root / "stage3_y" / "kernel.cu").write_text(KERNEL)
    refused = course.refusal("kernel.cu:2 `two`")
    assert ("mine.md:1: kernel.cu:2: which of stage2_x/kernel.cu, stage3_y/kernel.cu?"
            in str(refused))


def test_names_the_place_in_the_note(course):
    assert str(course.refusal("\n\nstage2_x/kernel.cu:3 `Br`")).startswith(
        "notes/mine.md:3: stage2_x/kernel.cu:3 does not")


def test_fix_moves_lines(course):
    text = ("[kernel.cu:{0}](../stage2_x/kernel.cu#L{0}) `Br`, stage2_x/kernel.cu:{1} `four_5`\n"
            "[kernel.cu:{2}-{3}](../stage2_x/kernel.cu#L{2}-L{3}) `Br`, `three`")
    assert course.check(text.format(1, 9, 1, 2), "--fix") == 0
    assert course.note.read_text() == text.format(2, 4, 2, 3)


def test_fix_leaves_what_is_not_one_place(course):
    text = "stage2_x/kernel.cu:1 `two`"
    assert course.refusal(text, "--fix").status == 1
    assert course.note.read_text() == text


@pytest.fixture
def official(tmp_path):
    """A clone that stands for the official one."""
    clone = tmp_path / "clone"
    (clone / "csrc").mkdir(parents=True)
    (clone / "csrc" / "a.h").write_text("void one();\n")
    git = ["git", "-C", str(clone), "-c", "user.name=x", "-c", "user.email=x@example.org"]
    for arguments in (["init", "-q"], ["add", "."], ["commit", "-q", "-m", "x"]):
        subprocess.run([*git, *arguments], check=True)
    return clone


def head(clone: Path) -> str:
    return subprocess.run(["git", "-C", str(clone), "rev-parse", "HEAD"], check=True,
                          capture_output=True, text=True).stdout.strip()


def test_official_is_read_at_the_commit(course, official):
    link = f"[a.h:1]({notes_check.OFFICIAL}/blob/{head(official)}/csrc/a.h#L1)"
    (official / "csrc" / "a.h").write_text("changed\n")  # what is checked out does not matter
    assert course.check(f"{link} `one`", "--official", str(official)) == 0
    refused = course.refusal(f"{link} `two`", "--official", str(official))
    assert refused.status == 1 and "csrc/a.h:1 at " in str(refused)
    assert course.check(f"{link} `two`") == 0  # without --official it is not looked at


def test_official_without_the_commit(course, official):
    refused = course.refusal("softmax.h:132 `row_max`", "--official", str(official))
    assert refused.status == 2 and "does not have v2.8.3. Fetch it: git -C" in str(refused)
    refused = course.refusal("fmha/softmax.h:1 `x`", "--official", str(official))
    assert "does not have v1.0.9" in str(refused)


def test_official_that_is_no_repository(course, tmp_path):
    (tmp_path / "empty").mkdir()
    refused = course.refusal("softmax.h:132 `row_max`", "--official", str(tmp_path / "empty"))
    assert refused.status == 2 and "is no git repository. Clone it" in str(refused)


def test_unreadable_note(course):
    with pytest.raises(UserError) as refused:
        notes.run([str(course.root / "none.md")])
    assert refused.value.status == 2 and "cannot be read: No such file" in str(refused.value)


def test_reverse_index_has_every_official_line_of_the_tables():
    text = NOTE.read_text()
    begin, end = text.index("\n## Reverse index"), text.index("\n## Debugging an FA2 patch")
    references = [r for r in notes_check.find(text, NOTE, ROOT) if r.commit]
    index = {(r.commit, r.path, r.first) for r in references if begin < r.start < end}
    tables = {(r.commit, r.path, r.first) for r in references
              if text.index("\n## Change 0") < r.start < begin and
              text[text.rindex("\n", 0, r.start) + 1] == "|"}
    assert tables and tables == index
