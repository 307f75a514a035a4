"""./fa2 grade: submissions, points, flags and files; and a folder of hostile submissions."""
import csv
import io
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from fa2course.grading import (command, copies, grade, gradescope, one, points, report, sandbox,
                               submissions)
from fa2course.grading.submissions import Submission
from fa2course.launcher import stages
from fa2course.launcher.errors import UserError
from fa2course.student.check import step_names
from fa2course.student.compiler import Build
from test_html_report import Page

ROOT = Path(__file__).resolve().parents[3]


def solution(stage: int) -> str:
    return (ROOT / stages.find(str(stage)) / "kernel.cu").read_text()


def hand_in(folder: Path, name: str, text: str, stage: int = 4, base: str = "") -> Path:
    path = folder / name / base / f"stage{stage}" / "kernel.cu"
    path.parent.mkdir(parents=True)
    path.write_text(text)
    return path


# ---- Reading -------------------------------------------------------------------------------------


def test_submissions_are_found_in_both_layouts(tmp_path):
    hand_in(tmp_path, "b", "two", 2)
    hand_in(tmp_path, "a", "four", 4, "work")
    (tmp_path / "c").mkdir()
    (tmp_path / "readme.txt").touch()
    found = [(s.student, s.stage, s.kernel, s.problem) for s in submissions.find(tmp_path, None)]
    assert found == [("a", 2, None, "not handed in"), ("a", 4, b"four", ""), ("b", 2, b"two", ""),
                     ("b", 4, None, "not handed in"), ("c", 2, None, "not handed in"),
                     ("c", 4, None, "not handed in")]
    assert [s.stage for s in submissions.find(tmp_path, [2])] == [2, 2, 2]


def test_in_a_fork_only_work_is_handed_in(tmp_path):
    hand_in(tmp_path, "a", "mine", 4, "work")
    for stage in (4, 5):  # the published solutions that every clone has
        published = tmp_path / "a" / stages.find(str(stage))
        published.mkdir()
        (published / "kernel.cu").write_text("published")
    assert [(s.stage, s.kernel) for s in submissions.find(tmp_path, None)] == [(4, b"mine")]
    found = submissions.find_one(tmp_path / "a", None)
    assert [(s.stage, s.kernel) for s in found] == [(4, b"mine")]


def test_links_and_giants_are_refused(tmp_path):
    (tmp_path / "secret").write_text("secret")
    hand_in(tmp_path, "a", "x").unlink()
    (tmp_path / "a" / "stage4" / "kernel.cu").symlink_to(tmp_path / "secret")
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "stage4").symlink_to(ROOT / "stage4_fa2_warps")
    hand_in(tmp_path, "c", "x" * (submissions.MAX_BYTES + 1))
    os.mkfifo(hand_in(tmp_path, "d", "x").with_name("pipe"))
    hand_in(tmp_path, "e", "x").unlink()
    os.mkfifo(tmp_path / "e" / "stage4" / "kernel.cu")
    problems = {s.student: s.problem for s in submissions.find(tmp_path, None)}
    assert "is a link" in problems["a"] and "is a link" in problems["b"]
    assert "at most" in problems["c"] and problems["d"] == "" and "no plain file" in problems["e"]


def test_an_empty_folder_is_a_sentence(tmp_path):
    with pytest.raises(UserError, match="stageN/kernel.cu"):
        submissions.find(tmp_path, None)
    with pytest.raises(UserError, match="no folder"):
        command.parse([str(tmp_path / "none")])


# ---- Points --------------------------------------------------------------------------------------


def test_every_step_of_every_stage_has_points():
    worth = points.read(None)
    for name in stages.names():
        number = stages.number(name)
        assert worth[number].keys() == {step for step, _ in step_names(number)}
        assert all(worth[number].values())


def test_a_stage_overrides_the_default(tmp_path):
    file = tmp_path / "points.toml"
    file.write_text("[default]\ncounters = 3\n[stage4]\ncounters = 6.5\n")
    worth = points.read(file)
    assert (worth[3]["counters"], worth[4]["counters"], worth[4]["compiles"]) == (3, 6.5, 0)


@pytest.mark.parametrize("text, sentence", [
    ("[default", "no TOML"), ("[stage9]\n", "no table"), ("counters = 3\n", "outside a table"),
    ("[default]\nspeed = 1\n", "no step \"speed\""), ("[default]\ncausal = -1\n", "from 0 on"),
    ("[default]\ncausal = nan\n", "from 0 on"), ("[default]\ncausal = true\n", "from 0 on")])
def test_wrong_points_are_a_sentence(tmp_path, text, sentence):
    (tmp_path / "points.toml").write_text(text)
    with pytest.raises(UserError, match=sentence):
        points.read(tmp_path / "points.toml")


# ---- Flags ---------------------------------------------------------------------------------------


def test_copies_are_seen_through_names_and_comments():
    text = solution(4)
    disguised = text.replace("alpha", "shrink").replace("  ", " ") + "\n// all my own\n"
    other = text.replace("f_O * O", "O * f_O")
    assert other != text
    found = copies.flags([Submission("a", 4, text.encode()), Submission("b", 4, disguised.encode()),
                          Submission("c", 4, other.encode()), Submission("d", 3, text.encode()),
                          Submission("e", 4, None, "not handed in")])
    assert "equals stage4_fa2_warps/kernel.cu" in found["a", 4][0]
    assert "the submission of b" in found["a", 4][1] and "the submission of a" in found["b", 4][1]
    assert found["c", 4] == []
    assert found["d", 3] == found["a", 4][:1]  # another stage's solution is one, too
    assert ("e", 4) not in found


def test_published_kernels_do_not_reach_out():
    for number in map(stages.number, stages.names()):
        assert copies.reaching_out(solution(number).encode()) == []


@pytest.mark.parametrize("line", [
    'static int x = system("ls");', "#include <fstream>", '#include "../stage6/kernel.cu"',
    "extern int fa2_counter;", 'auto s = "/proc/self/mem";', "#define X sys##tem"])
def test_reaching_out_is_flagged(line):
    assert copies.reaching_out(f"{solution(4)}\n{line}\n".encode())
    assert copies.reaching_out(f"{solution(4)}\n// {line}\n".encode()) == []


# ---- Files ---------------------------------------------------------------------------------------


def result(stage: int, passed: int, message: str = "") -> dict:
    names = step_names(stage)
    steps = [{"name": name, "title": title, "status": "passed" if n < passed else
              "failed" if n == passed else "skipped", "message": message if n == passed else ""}
             for n, (name, title) in enumerate(names)]
    failed = steps[passed] if passed < len(names) else None
    return {"stage": stage, "sha256": "ab", "steps": steps, "passed": passed, "of": len(names),
            "solved": failed is None, "counters": {"q=64": {"mma": 5}} if failed is None else {},
            "first_failure": failed and {"step": failed["name"], "title": failed["title"],
                                         "message": message}}


@pytest.fixture
def graded(tmp_path) -> dict:
    """Grades with a made-up engine."""
    found = [Submission("anna", 4, b"right"), Submission("ben <b>", 4, b"wrong"),
             Submission("=cmd", 4, None, "not handed in"), Submission("eve", 4, b"unlucky")]
    answers = {b"right": result(4, len(step_names(4))) | {"protection": "no bubblewrap"},
               b"wrong": result(4, 3, "O is <i>0</i>") | {"protection": ""},
               b"unlucky": {"error": "no space"}}

    def engine(todo, settings):
        for key, (_, kernel) in todo.items():
            yield key, answers[kernel]

    return grade.grades(found, one.Settings(), points.read(None), engine, tmp_path / "known")


def test_points_add_up(graded):
    assert [(s["name"], s["points"], s["max_points"]) for s in graded["students"]] == [
        ("anna", 11, 11), ("ben <b>", 3, 11), ("=cmd", 0, 11), ("eve", 0, 11)]
    states = [s["stages"][0]["state"] for s in graded["students"]]
    assert states == ["graded", "graded", "not handed in", "not graded here"]


def test_files(graded, tmp_path):
    report.write(graded, tmp_path)
    assert json.loads((tmp_path / "grades.json").read_text()) == graded
    rows = list(csv.DictReader(io.StringIO((tmp_path / "grades.csv").read_text())))
    assert [row["student"] for row in rows] == ["anna", "ben <b>", "'=cmd", "eve"]
    assert rows[0]["mma"] == "5" and rows[1]["failed_step"] == "causal"
    read = Page((tmp_path / "grades.html").read_text())
    assert read.fetched == [] and "ben <b>" in read.text and "O is <i>0</i>" in read.text
    assert graded["protection"] == "no bubblewrap" and "no bubblewrap." in read.text
    assert "ben <b>" in command.table(graded)


def test_a_second_run_grades_only_what_is_new(tmp_path):
    calls = []

    def engine(todo, settings):
        calls.append(sorted(kernel for _, kernel in todo.values()))
        for key in todo:
            yield key, result(4, 8)

    def run(*kernels, settings=one.Settings()):
        found = [Submission(f"s{n}", 4, kernel) for n, kernel in enumerate(kernels)]
        return grade.grades(found, settings, points.read(None), engine, tmp_path / "known")

    first = run(b"a", b"b", b"a")
    assert run(b"a", b"b", b"a") == first
    run(b"a", b"c")
    run(b"a", settings=one.Settings(run_seconds=1))  # another limit is another verdict
    assert calls == [[b"a", b"b"], [], [b"c"], [b"a"]]


# ---- Gradescope ----------------------------------------------------------------------------------

# The fields of results.json that Gradescope documents, and what they may hold:
# https://gradescope-autograders.readthedocs.io/en/latest/specs/
FORMATS = {"text", "html", "simple_format", "md", "ansi"}
VISIBILITY = {"hidden", "after_due_date", "after_published", "visible"}
TOP = {"score": (int, float), "execution_time": (int, float), "output": str,
       "output_format": FORMATS, "test_output_format": FORMATS, "test_name_format": FORMATS,
       "visibility": VISIBILITY,
       "stdout_visibility": VISIBILITY, "extra_data": dict, "tests": list, "leaderboard": list}
TEST = {"score": (int, float), "max_score": (int, float), "status": {"passed", "failed"},
        "name": str, "name_format": FORMATS, "number": str, "output": str,
        "output_format": FORMATS, "tags": list, "visibility": VISIBILITY, "extra_data": dict}


def hold_to(fields: dict, found: dict) -> None:
    for name, value in found.items():
        allowed = fields[name]
        assert value in allowed if isinstance(allowed, set) else isinstance(value, allowed), name


def test_gradescope_format(graded):
    for student in graded["students"]:
        results = gradescope.results(student, graded["points"])
        hold_to(TOP, results)
        for test in results["tests"]:
            hold_to(TEST, test)
        assert results["score"] == sum(test["score"] for test in results["tests"])
    anna, ben = (gradescope.results(s, graded["points"]) for s in graded["students"][:2])
    assert anna["score"] == sum(test["max_score"] for test in anna["tests"]) == 11
    assert [test["status"] for test in ben["tests"]].count("passed") == 3
    assert ben["tests"][3]["output"] == "O is <i>0</i>"
    nothing = gradescope.results(graded["students"][2], graded["points"])
    assert nothing["score"] == 0 and "must be called kernel.cu" in nothing["output"]


def test_gradescope_takes_a_bare_kernel(tmp_path):
    (tmp_path / "kernel.cu").write_text("x")
    assert submissions.find_one(tmp_path, [4])[0].kernel == b"x"
    with pytest.raises(UserError, match="--stages"):
        submissions.find_one(tmp_path, None)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives submissions users of their own")
def test_a_course_that_submissions_cannot_read_is_copied(build_dir, tmp_path):
    """As a clone in /root is."""
    build = Build(tmp_path / "build", tmp_path)
    build.program.parent.mkdir(parents=True)
    shutil.copy2(build_dir / "bin" / "fa2-check", build.program)
    shutil.copy2(build_dir / "compile_commands.json", build.folder)
    for part in one.SEEN_BY_COMPILER:
        shutil.copytree(ROOT / part, tmp_path / part)
    build.program.chmod(0o700)
    copy = one.readable(build)
    assert copy != build and one.readable(build) == copy and one.readable(copy) == copy
    kernel = (ROOT / "stage1_naive" / "kernel.cu").read_bytes()
    assert one.grade(1, kernel, one.Settings(), build)["solved"]
    (build.folder / "_deps").mkdir()
    with pytest.raises(UserError, match="chmod"):
        one.readable(build)


def test_what_a_killed_grader_left_is_removed(tmp_path, monkeypatch):
    monkeypatch.setattr(one, "base", lambda: str(tmp_path))
    for name in (f"{one.PREFIX}{os.getpid()}-a", f"{one.PREFIX}99999999-b", "other-1-c"):
        (tmp_path / name / "scratch").mkdir(parents=True)
    one.sweep()
    assert sorted(path.name for path in tmp_path.iterdir()) == [f"{one.PREFIX}{os.getpid()}-a",
                                                               "other-1-c"]


# ---- Hostile submissions -------------------------------------------------------------------------

FRAME = """
#include "common/device/device.h"
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
namespace fa2::inline FA2_BACKEND {
namespace {
struct AtLoading { AtLoading() { %s; } } at_loading;
constexpr TileRow tiles[] = {{TileMode::same, 64, {64, 128, 4, 1}, 1024}};
void forward(const Problem& p, const Tensors& x, int, Stream) { %s; }
constexpr Variant variants[] = {{"", tiles, [](const Problem&) { return size_t{0}; }, forward}};
}  // namespace
FA2_STAGE(stage4) = {"stage4", 4, variants};
}
"""
HOSTILE = {  # what it does, when ("load" or "run"), and what the grader says of it
    "exit": ("puts(\"ok\"); fflush(stdout); _exit(0)", "load", ""),
    "exit_later": ("puts(\"ok\"); fflush(stdout); _exit(0)", "run", "ended with status 0"),
    "crash": ("raise(SIGSEGV)", "run", "segmentation fault"),
    "endless": ("for (;;) usleep(1000)", "run", "did not end in time"),
    "fork_bomb": ("for (;;) fork()", "run", ""),
    "output": ("for (;;) puts(\"ok ok ok ok ok ok ok ok ok ok ok ok\")", "run",
               "printed more than"),
    "memory": ("std::vector<char*> a; for (;;) { a.push_back(new char[1 << 24]()); }", "run", ""),
    "delete": ("system(\"rm -rf {root}/LICENSE {students}/* * 2>/dev/null\"); _exit(0)", "run", ""),
    "read": ("system(\"cat {root}/stage4_fa2_warps/kernel.cu {students}/honest/stage4/kernel.cu; "
             "ls {root}\"); _exit(1)", "run", "No such file"),
    "forge": ("system(\"for i in 1 2 3 4 5 6; do echo '{\\\"status\\\": \\\"ran\\\"}'; done "
              "> one_tile/results.jsonl\"); _exit(0)", "run", "outputs were not written"),
    "links": ("system(\"rm -rf one_tile; ln -s /etc one_tile; mkfifo judge.output include; "
              "ln -s /etc/passwd stage.json\")", "load", ""),
    "include": ("", "#include \"{root}/stage4_fa2_warps/kernel.cu\"", ""),
    "compile_bomb": ("", "#include \"/dev/zero\"", "the compiler"),
}


def hostile(name: str, students: Path) -> str:
    code, when, _ = HOSTILE[name]
    code, when = (text.replace("{root}", str(ROOT)).replace("{students}", str(students))
                  for text in (code, when))
    if when.startswith("#"):
        return f"{when}\n"
    return FRAME % ((code, "") if when == "load" else ("", code))


@pytest.fixture(scope="module")
def a_class(tmp_path_factory, build_dir):
    """A folder of hostile submissions around an honest one, graded, and how."""
    if not (build_dir / "bin" / "fa2-check").exists():
        pytest.skip("fa2-check is not built: run by ./fa2 test")
    if "asan" in build_dir.name:
        pytest.skip("AddressSanitizer needs more address space than the sandbox gives")
    students, out = tmp_path_factory.mktemp("class"), tmp_path_factory.mktemp("grades")
    honest = solution(4)
    hand_in(students, "honest", honest)
    for name in HOSTILE:
        hand_in(students, name, hostile(name, students))
    options = command.parse([str(students), "--out", str(out), "--run-seconds", "15",
                             "--memory", "1024", "--compile-seconds", "100", "--jobs", "2"])
    assert command.run(options) == 0
    assert (students / "honest" / "stage4" / "kernel.cu").read_text() == honest
    graded = json.loads((out / "grades.json").read_text())
    return {s["name"]: s["stages"][0] for s in graded["students"]}, options


def test_hostile_submissions_spoil_nothing(a_class):
    entries, options = a_class
    assert entries["honest"]["solved"] and entries["honest"]["points"] == 11
    for name in HOSTILE:
        entry = entries[name]
        assert entry["state"] == "graded" and not entry["solved"], name
        assert entry["points"] <= 1 and entry["first_failure"], name
    assert sorted(p.name for p in options.folder.iterdir()) == sorted([*HOSTILE, "honest"])
    assert (ROOT / "LICENSE").is_file()


@pytest.mark.parametrize("name", [name for name, (_, _, said) in HOSTILE.items() if said])
def test_what_is_said_of_it(a_class, name):
    if name in ("read", "include") and not sandbox.protection().bubblewrap:
        pytest.skip(sandbox.protection().missing)
    message = a_class[0][name]["first_failure"]["message"]
    assert HOSTILE[name][2] in message
    assert "fa2-grade-" not in message  # no path of this run: the same input, the same result
    assert "attend" not in message  # nothing of the solution


def test_an_interrupt_ends_what_runs_and_keeps_no_verdict(a_class, tmp_path):
    hand_in(tmp_path / "class", "endless", FRAME % ("for (;;) usleep(1000)", ""))
    program = ("import sys; from fa2course.launcher.__main__ import main; from fa2course.grading "
               "import command; from fa2course.launcher import build; build.ensure_built = lambda "
               "*_: None; sys.exit(main(['grade', *sys.argv[1:]]))")
    child = subprocess.Popen(
        [sys.executable, "-c", program, str(tmp_path / "class"), "--out", str(tmp_path / "out")],
        env=os.environ | {"PYTHONPATH": str(ROOT / "common/python")}, stderr=subprocess.PIPE,
        text=True)
    deadline = time.monotonic() + 100
    while not running(child.pid):
        assert time.monotonic() < deadline and child.poll() is None
        time.sleep(0.1)
    child.send_signal(signal.SIGINT)
    assert child.wait(30) == 130 and "interrupted" in child.stderr.read()
    assert list((tmp_path / "out" / "known").iterdir()) == []


def running(grader: int) -> list[str]:
    """The command lines of this grader's processes that load a kernel."""
    lines = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            lines.append(path.read_bytes().replace(b"\0", b" ").decode(errors="replace"))
        except OSError:
            continue
    return [line for line in lines
            if "fa2-check describe" in line and f"{one.PREFIX}{grader}-" in line]


def test_the_folder_of_results_is_complete_and_known_the_second_time(a_class):
    _, options = a_class
    before = (options.out / "grades.json").read_bytes()
    assert command.run(options) == 0
    assert (options.out / "grades.json").read_bytes() == before
    for name in ("grades.csv", "grades.html"):
        assert (options.out / name).stat().st_size > 1000
