"""The student's loop: skeletons, hints, the check and its messages. Checks are quick ones (fp16,
d = 64, the first tile), in the real code of every step; two run at a time."""
import json
import re
import shutil
import subprocess
import sys
import threading
import time
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import pytest
from conftest import ROOT
from fa2course import mutants
from fa2course.launcher import build, gpu, paths, stages
from fa2course.launcher.commands import check as command
from fa2course.launcher.commands import compare
from fa2course.launcher.errors import UserError
from fa2course.student import check as checker
from fa2course.student import (
    compiler,
    execute,
    hints,
    progress,
    rules,
    skeleton,
    steps,
    where,
)

STAGES = range(1, 7)
# Where the skeleton of each stage must fail, and a word of the message that says why.
FIRST_FAILURE = {1: ("lse", "LSE"), 2: ("online_update", "LSE"), 3: ("counters", "query tiles"),
                 4: ("counters", "partial O"), 5: ("counters", "statistics"),
                 6: ("counters", "divided by l")}


def solution(stage: int) -> str:
    return skeleton.solution(stage)


def replaced(text: str, old: str, new: str, count: int = 1) -> str:
    assert text.count(old) >= 1, f"the kernel has no {old!r} any more"
    return text.replace(old, new, count)


def substituted(text: str, pattern: str, new: str) -> str:
    text, count = re.subn(pattern, new, text)
    assert count == 1, f"the kernel has {pattern!r} {count} times"
    return text


def sub_goal_1_solved() -> str:
    """Stage 2's frame with the online update filled in, and the exchange still missing."""
    frames, skeleton.FRAMES = skeleton.FRAMES, {2: skeleton.FRAMES[2][:2]}
    try:
        return skeleton.skeleton(2)
    finally:
        skeleton.FRAMES = frames


def mutant_text(label: str) -> str:
    mutant = mutants.find(label)
    return mutants.sources(mutant)[f"{mutant.stage}/kernel.cu"]


MISTAKES = {
    "does not compile": (4, lambda: replaced(solution(4), "kv.start();", "kv.begin();")),
    "race": (4, lambda: substituted(solution(4), r"\n *warp_barrier\(\);  // this warp's f_O.*",
                                    "")),
    "wrong warp": (5, lambda: replaced(
        solution(5), "quad_sum(exponentiate(S, r, scale, m_new));",
        "quad_sum(exponentiate(S, r, scale, m_new)) * (warp_id() == 2 ? 2.f : 1.f);")),
    "causal": (5, lambda: substituted(solution(5), r"if \(kv.hides_keys.*\n\s*mask",
                                      "if (!p.causal) mask")),
    "exits": (3, lambda: replaced(solution(3), "void forward(const Problem& p,",
                                  "[[gnu::constructor]] void cheat() { puts(\"ok\"); exit(0); }\n\n"
                                  "void forward(const Problem& p,")),
    "lightest first": (3, lambda: mutant_text("3/lightest_tile_first")),
    "no guard": (3, lambda: substituted(solution(3), r"if \(i >= ceil_div.*return;", "")),
    "LSE alone": (6, lambda: replaced(
        replaced(solution(6), "l[r] = quad_sum(l[r]);", ""), "reciprocal_or_zero(l[r])",
        "reciprocal_or_zero(quad_sum(l[r]))")),
    "parts of l": (6, lambda: mutant_text("6/sum_not_combined")),
    "l too large": (6, lambda: replaced(solution(6), "= quad_sum(l[r])",
                                        "= quad_sum(quad_sum(l[r]))")),
    "not divided": (6, lambda: replaced(solution(6), "return reciprocal_or_zero(l[r]);",
                                        "return 1.f;")),
    "l not rescaled": (6, lambda: replaced(solution(6), "l[r] *= alpha;", "")),
    "O not rescaled": (6, lambda: mutant_text("6/O_keeps_the_stale_maximum")),
    "m starts at 0": (5, lambda: replaced(solution(5), "m[r] = -INFINITY,", "m[r] = 0.f,")),
    "owner in another warp": (4, lambda: replaced(
        replaced(solution(4), "owned = S_row0 + lane_id();", "owned = threadIdx.x;"),
        "owner = lane_id() < S_rows;", "owner = owned < Br;")),
    "heads along y": (3, lambda: mutant_text("3/heads_along_y")),
    "z ignored": (3, lambda: mutant_text("3/z_ignored")),
    "y without end": (3, lambda: mutant_text("3/y_without_end")),
    "includes": (4, lambda: f"#include \"{ROOT}/stage4_fa2_warps/kernel.cu\"\n"),
}


def planted() -> dict[str, mutants.Mutant]:
    """One planted wrong kernel of each stage: of the stages 1, 3 and 5 one that the values or the
    simulator give away, of the others one that only its counters do."""
    chosen = {}
    for name in stages.names():
        number = stages.number(name)
        found = [m for m in mutants.load(name) if m.only_kernel and not m.row and m.tile == "first"
                 and (m.verdict == "counters") == (number % 2 == 0)]
        if found:
            chosen[f"planted {number}"] = found[0]
    return chosen


class Checks:
    """Quick checks of many kernels, started together, two at a time."""

    def __init__(self, folder: Path, build_dir: Path):
        self.folder, self.build = folder, checker.Build(build_dir)
        self.pool = ThreadPoolExecutor(2)
        self.running: dict[str, Future] = {}
        for stage in STAGES:
            self.start(f"skeleton {stage}", stage, skeleton.skeleton(stage))
            self.start(f"solution {stage}", stage, solution(stage))
        for stage in (2, 4):
            self.start(f"stage {stage - 1} as {stage}", stage, solution(stage - 1))
        self.start("sub-goal 1", 2, sub_goal_1_solved())
        self.planted = planted()
        for name, mutant in self.planted.items():
            self.start(name, int(name[-1]), mutants.sources(mutant)[f"{mutant.stage}/kernel.cu"])
        for name, (stage, text) in MISTAKES.items():
            self.start(name, stage, text())

    def start(self, name: str, stage: int, text: str) -> None:
        folder = self.folder / name.replace(" ", "_")
        folder.mkdir()
        (folder / "kernel.cu").write_text(text)
        self.running[name] = self.pool.submit(
            checker.check, stage, folder / "kernel.cu", folder / "scratch", build=self.build,
            quick=True, threads=1)

    def result(self, name: str) -> dict:
        return self.running[name].result()

    def failure(self, name: str) -> tuple[str, str]:
        failure = self.result(name)["first_failure"]
        assert failure, f"{name} passed"
        return failure["step"], failure["message"]


@pytest.fixture(scope="module")
def checks(tmp_path_factory, build_dir) -> Checks:
    checks = Checks(tmp_path_factory.mktemp("checks"), build_dir)
    yield checks
    checks.pool.shutdown(cancel_futures=True)


@pytest.mark.parametrize("stage", STAGES)
def test_skeleton_fails_where_the_change_is(checks, stage):
    step, message = checks.failure(f"skeleton {stage}")
    wanted, word = FIRST_FAILURE[stage]
    assert step == wanted, message
    assert word in message


@pytest.mark.parametrize("stage", STAGES)
def test_solution_passes(checks, stage):
    result = checks.result(f"solution {stage}")
    assert result["first_failure"] is None
    assert result["passed"] == result["of"]
    assert result["counters"]
    json.dumps(result)


@pytest.mark.parametrize("stage, word", [(2, "global memory"), (4, "partial O")])
def test_stage_before_is_rejected_by_counters(checks, stage, word):
    step, message = checks.failure(f"stage {stage - 1} as {stage}")
    assert step == "counters"
    assert message.startswith("correct, but") and word in message


def test_sub_goals_of_stage_2_are_checked_one_by_one(checks):
    step, message = checks.failure("sub-goal 1")
    assert step == "exchange"
    assert "O[batch 0, head 0, row 0, column 0]" in message and "LSE is right" in message
    assert "look at f_O and f_P" in message


def test_compile_error_is_in_the_compilers_words(checks):
    step, message = checks.failure("does not compile")
    assert step == "compiles"
    assert re.search(r"kernel\.cu:\d+:\d+: error: .*begin", message)


def test_race_names_the_line(checks):
    step, message = checks.failure("race")
    assert step == "one_tile"
    lines = (checks.folder / "race" / "kernel.cu").read_text().splitlines()
    found = re.search(r"kernel\.cu:(\d+)", message)
    assert found and "f_" in lines[int(found.group(1)) - 1], message
    assert "shared-memory race" in message or "unwritten" in message


def test_wrong_result_names_the_warp(checks):
    step, message = checks.failure("wrong warp")
    assert step == "one_tile"
    assert "row 32, column 0] is" in message and "expected" in message
    assert "which warp 2 writes" in message
    assert "all in rows 32-47 of their tile" in message


def test_causal_mistake_fails_there(checks):
    step, message = checks.failure("causal")
    assert step == "causal" and "bottom right" in message


@pytest.mark.parametrize("name, words", [
    ("lightest first", ["correct, but", "The first q tile starts first", "query_tile()"]),
    ("no guard", ["correct, but a block behind the last q tile", "return where i >="]),
    ("heads along y", ["correct, but", "heads belong along x", "query_tile()"]),
    ("z ignored", ["was never written", "3 blocks along y", "blockIdx.z"]),
    ("y without end", ["launch refused", "in place of a GPU's 65535", "grid_of()"])])
def test_grid_is_checked_for_its_order_and_its_end(checks, name, words):
    step, message = checks.failure(name)
    assert step == "grid", message
    assert all(word in message for word in words), message


@pytest.mark.parametrize("name, wanted, words", [
    ("LSE alone", "one_tile", ["LSE alone is wrong", "part of the row's sum", "quad_sum"]),
    ("parts of l", "one_tile", ["O and LSE are both wrong", "its own part of l", "quad_sum"]),
    ("l too large", "one_tile", ["by one factor", "times 0.25,", "l is not", "quad_sum"]),
    ("not divided", "one_tile", ["LSE is right, and O is wrong by a factor", "divided by l"]),
    ("l not rescaled", "many_tiles", ["by one factor", "rescaled by alpha"]),
    ("O not rescaled", "many_tiles", ["LSE is right, so S, m and l are", "O is rescaled"]),
    ("m starts at 0", "many_tiles", ["inputs=negative", "Which value does m start with? With -inf"]),
    ("owner in another warp", "one_tile", ["stage 4", "a lane", "warp_barrier() is the barrier"])])
def test_wrong_softmax_says_which_part_of_it(checks, name, wanted, words):
    step, message = checks.failure(name)
    assert step == wanted, message
    text = " ".join(message.split())
    assert all(word in text for word in words), message


def test_printing_ok_and_leaving_is_no_success(checks):
    step, message = checks.failure("exits")
    assert step == "one_tile" and "status 0" in message


def test_kernel_must_stand_by_itself(checks):
    step, message = checks.failure("includes")
    assert step == "compiles" and "stage4_fa2_warps/kernel.cu" in message


@pytest.mark.parametrize("stage", STAGES)
def test_planted_mistake_gets_the_verdict_expected(checks, stage):
    mutant = checks.planted.get(f"planted {stage}")
    assert mutant, f"no mutant of stage {stage} fits; see planted()"
    step, message = checks.failure(f"planted {stage}")
    if mutant.verdict == "counters":
        assert step == "counters" and message.startswith("correct, but")
    else:
        words = "expected|never written" if mutant.verdict == "wrong" else mutant.verdict
        assert step not in ("compiles", "counters") and re.search(words, message)


def test_own_kernel_takes_part_in_the_comparison(checks, tmp_path):
    checks.result("skeleton 3")
    library = checks.folder / "skeleton_3" / "scratch" / "first.so"
    done = subprocess.run(
        [str(checks.build.folder / "bin" / "fa2-compare"), "--backend", "sim", "--quiet",
         "--stages=3,4", "--seqlen=128", "--headdim=64", "--full", f"--mine=3={library}",
         "--out", str(tmp_path)],
        check=False, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    records = json.loads((tmp_path / "compare.json").read_text())["records"]
    assert [record["stage"] for record in records] == [
        "stage3_fa2_seqpar", "stage3_fa2_seqpar/mine", "stage4_fa2_warps"]
    own = records[1]
    assert own["ok"] and own["counters"]["blocks"] < records[0]["counters"]["blocks"]


def test_own_kernel_takes_part_on_a_gpu(tmp_path):
    """A library of its own runtime and its own launch(), in a program that has both as well."""
    if not gpu.look().usable:
        pytest.skip("no GPU here")
    build.ensure_built("cuda", ["fa2-compare", "fa2-check"])
    made = checker.Build(paths.preset_dir("cuda"))
    (tmp_path / "kernel.cu").write_text(
        replaced(solution(3), "log2_scale(p);", "1.05f * log2_scale(p);"))
    for kernel, right in (ROOT / stages.find("3") / "kernel.cu", True), (tmp_path / "kernel.cu",
                                                                         False):
        compiled = compiler.compile_kernel(made, kernel, tmp_path / str(right), "first",
                                           execute.plainly, "cuda")
        assert not compiled.problem
        done = subprocess.run(
            [str(made.folder / "bin" / "fa2-compare"), "--backend", "cuda", "--quiet",
             "--stages=3", "--seqlen=256", "--headdim=64", f"--mine=3={compiled.library}",
             "--out", str(tmp_path)], check=False, capture_output=True, text=True, timeout=60)
        records = json.loads((tmp_path / "compare.json").read_text())["records"]
        assert [record["ok"] for record in records[:2]] == [True, right], done.stdout
        assert right or "refused" not in records[1]["reason"]


# ---- without a build ----

def test_a_kernel_for_the_gpu_keeps_its_own_launch(tmp_path):
    (tmp_path / "compile_commands.json").write_text(json.dumps([
        {"file": "/x/stage1_naive/kernel.cu", "command": "nvcc -O3 -x cu -c kernel.cu -o k.o"}]))
    words = compiler.compile_command(compiler.Build(tmp_path), tmp_path / "a.cu", tmp_path / "a.so",
                                     tmp_path, "all", "cuda")
    assert any(word.startswith("-Xlinker=") and "-Bsymbolic" in word for word in words)


def test_own_kernels_are_those_of_the_stages_asked_for(tmp_path, monkeypatch):
    for number in (3, 5, 6):
        (tmp_path / f"stage{number}").mkdir()
        (tmp_path / f"stage{number}" / "kernel.cu").write_text("")
    monkeypatch.setattr(progress, "WORK", tmp_path)
    monkeypatch.setattr(compiler, "compile_kernel", lambda build, kernel, *_, **__:
                        compiler.Compiled(kernel.with_name("all.so")))
    assert [word[:2] for word in compare.own_kernels("sim", [""])] == ["3=", "5=", "6="]
    assert [word[:2] for word in compare.own_kernels("sim", ["2", "6"])] == ["6="]
    with pytest.raises(UserError, match="no kernel of --stages 4; it has stage 3, 5, 6"):
        compare.own_kernels("sim", ["4"])


@pytest.mark.parametrize("stage", STAGES)
def test_hints_exist(stage):
    found = hints.of(stage)
    assert len(found.hints) == 3 and found.task
    for text in found.hints:
        assert len(text) > 100


@pytest.mark.parametrize("stage", STAGES)
def test_skeleton_has_nothing_of_the_answer(stage):
    """No line that only the solution has, but for what every C++ file has, and the tile table."""
    text = skeleton.skeleton(stage)
    lines = {line.strip() for line in skeleton.split(text)[1]}
    assert f"TODO stage {stage} (1 of" in text
    assert f"FA2_STAGE(stage{stage}_" in text
    assert all(len(line) <= 100 for line in text.splitlines())
    solved = skeleton.split(solution(stage))[1]
    if stage > 2:
        known = {line.strip() for line in skeleton.split(solution(stage - 1))[1]}
        assert known - lines == {line for line in known if line.startswith("FA2_STAGE")}
        answer = {line.strip() for line in solved} - known
        assert lines & answer <= {line for line in answer if line.startswith("FA2_STAGE")}
    else:
        missing = [line for line in solved if line.strip() not in lines]
        assert len(missing) > 10


@pytest.mark.parametrize("stage", range(3, 7))
def test_marks_stand_around_whole_statements(stage):
    """Each around code, closing what it opens (but for the first line of a function), right at it."""
    text = skeleton.skeleton(stage)
    marks = re.findall(r"^( *)// TODO stage \d \((\d+) of \d+[^)]*\): change from here \.\.\.\n(.*?)"
                       r"^( *)// \.\.\. to here \(\2 of", text, re.MULTILINE | re.DOTALL)
    inserts = text.count("something is missing here")
    assert len(marks) + inserts == text.count(f"// TODO stage {stage} (") >= 3
    for indent, number, body, end_indent in marks:
        lines = body.splitlines()
        assert lines[0].strip() and lines[-1].strip() and indent == end_indent, f"mark {number}"
        assert any(skeleton.code(line) for line in lines), f"mark {number} has no code"
        opened = [body.count(a) - body.count(b) for a, b in ("{}", "()")]
        assert opened == [0, 0] or re.search(r"(attend|fa2_forward)\(.*\{\n$", body), body


def test_marks_of_the_extra_say_so():
    marked = re.findall(r"TODO stage 6 \(\d of \d(, only for the extra)?\): .*\n(.*)\n",
                        skeleton.skeleton(6))
    extra = {line.strip()[:12] for note, line in marked if note}
    assert extra == {"fa2_forward(", "void forward"}
    assert any("store_O" in line for note, line in marked if not note)
    assert "only for the extra" not in skeleton.skeleton(5)
    assert "The marks that say so" in hints.of(6).task


def test_change_markers_are_no_part_of_a_kernel():
    for stage in STAGES:
        assert "[change]" not in skeleton.skeleton(stage) + solution(stage)


def test_from_mine_keeps_ones_own_code():
    mine = replaced(skeleton.skeleton(4), "O.fill(0.f);", "O.fill(0.f);  // mine")
    text = skeleton.from_mine(5, mine)
    assert "// mine" in text and "TODO stage 4" not in text and "... to here" not in text
    assert "Stage 5, your task" in text and 'FA2_STAGE(stage5_fa2_registers) = {"stage5' in text
    assert "your own stage 4" in text


def test_steps_of_a_check():
    assert [name for name, _ in checker.step_names(4)] == [
        "compiles", "one_tile", "many_tiles", "causal", "ragged", "gqa_masked", "bf16", "counters",
        "grid"]
    names = [name for name, _ in checker.step_names(2, gpu=True)]
    assert names[1:3] == ["online_update", "exchange"]
    assert checker.step_names(2, gpu=True)[-1][0] == "gpu"


def test_problems_follow_the_tile():
    assert steps.fill("h=2 q={2*Br-1} k={Bc+77}", (64, 128, 4, 1)) == "h=2 q=127 k=205"


@pytest.mark.parametrize("terminal", [True, False])
def test_long_step_says_beforehand_how_long_it_takes(monkeypatch, capsys, terminal):
    monkeypatch.setattr(command.console, "is_terminal", lambda _: terminal)
    session = command.Session(3, ROOT / "kernel.cu", "sim", keep=False)
    session.began = time.monotonic()
    step = {"step": "bf16", "title": "bf16 and all"}
    session.show({**step, "status": "running", "expected_s": 12.3})
    said = "  ..  bf16 and all: compiles them all, about 12 s"
    assert capsys.readouterr().out == said + ("\r" if terminal else "\n")
    session.show({**step, "status": "passed", "message": ""})
    assert capsys.readouterr().out.startswith("\x1b[K  ok" if terminal else "  ok")
    session.show({**step, "status": "running", "expected_s": None})
    assert capsys.readouterr().out == ("  ..  bf16 and all\r" if terminal else "")


def test_long_step_is_expected_from_the_first_compilation(tmp_path, monkeypatch):
    """Not asked of a build: the compiler and the runs are played."""
    events = []

    def compiled(build, kernel, scratch, part, *_):
        time.sleep(0.2)
        return compiler.Compiled(tmp_path)

    monkeypatch.setattr(checker, "compile_kernel", compiled)
    monkeypatch.setattr(checker.Checker, "rows", lambda *_: [
        steps.Row("", 0, "same", 64, (64, 128, 4, 1))])
    monkeypatch.setattr(checker.Checker, "run_cases", lambda *_: ([], []))
    for name in ("require_right", "require_counts"):
        monkeypatch.setattr(checker.Checker, name, lambda *_, **__: None)
    checker.check(3, tmp_path / "kernel.cu", tmp_path, progress=events.append,
                  build=compiler.Build(tmp_path))
    expected = {e["step"]: e["expected_s"] for e in events if e["status"] == "running"}
    assert 0.5 < expected.pop("bf16") < 10
    assert set(expected.values()) == {None}


def test_rule_message():
    rule = next(rule for rule in rules.RULES if "statistics still go" in rule.problem)
    counters = {"shared_load_bytes_statistics": 100_000, "shared_store_bytes_statistics": 22_880}
    assert rule.message(5, counters, {"T": 10}) == (
        "correct, but the statistics still go through shared memory: 12,288 bytes per tile, "
        "stage 5 needs 0.")


def test_ranges():
    assert where.ranges([0, 1, 2, 5, 7, 8]) == "0-2, 5, 7-8"


def test_finding_inside_a_helper_names_the_callers():
    """A line of common/device says little; the lines of the kernel that lead there say more."""
    header = ROOT / "common" / "device" / "tile.h"
    line = next(n for n, text in enumerate(header.read_text().splitlines(), 1)
                if "ldmatrix_x4(B, K_rows" in text)
    kernel = ROOT / "stage4_fa2_warps" / "kernel.cu"
    name, lines = where.lines_that_call("tile.h", line, kernel)
    assert name == "multiply_QK"
    assert "multiply_QK(" in kernel.read_text().splitlines()[lines[0] - 1]


def test_interrupted_run_leaves_nothing(tmp_path):
    with pytest.raises(execute.Interrupted):
        execute.plainly("run", ["sleep", "30"], tmp_path, 60, interrupted=lambda: True)
    done = execute.plainly("run", ["sleep", "30"], tmp_path, 0.2)
    assert done.timed_out and done.why() == "did not end in time"
    done = execute.plainly("run", ["sh", "-c", "echo hi; kill -11 $$"], tmp_path, 10)
    assert "signal 11" in done.why() and done.output == "hi\n"


def test_watch_starts_over_within_a_second_of_a_save(tmp_path, monkeypatch, capsys):
    kernel = tmp_path / "kernel.cu"
    kernel.write_text("1")
    began: list[float] = []
    saved: list[float] = []

    def fake_check(stage, kernel, scratch, *, progress, execute, **_):
        began.append(time.monotonic())
        if len(began) == 1:  # a long one: somebody saves in the middle of it
            threading.Timer(0.3, save).start()
            execute("run", ["sleep", "30"], tmp_path, 60)
        if len(began) == 2:  # done: the next save starts another
            threading.Timer(0.3, save).start()
            return {"solved": False, "passed": 1, "of": 2, "first_failure": None}
        raise KeyboardInterrupt

    def save():
        saved.append(time.monotonic())
        kernel.write_text("saved " * len(saved))

    monkeypatch.setattr(checker, "check", fake_check)
    session = command.Session(3, kernel, "sim", keep=False)
    with pytest.raises(KeyboardInterrupt):
        session.watch()
    assert len(began) == 3
    assert began[1] - saved[0] < 1 and began[2] - saved[1] < 1
    assert "starting over" in capsys.readouterr().out


# ---- the commands, in a clone without a build ----

@pytest.fixture
def fork(tmp_path) -> Path:
    for name in ["fa2", "common/cmake/stages.cmake", *(f"{p.parent.name}/{p.name}" for pattern in (
            "stage*/kernel.cu", "stage*/hints.md") for p in ROOT.glob(pattern))]:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, tmp_path / name)
    shutil.copytree(ROOT / "common/python/fa2course", tmp_path / "common/python/fa2course",
                    ignore=shutil.ignore_patterns("__pycache__"))
    return tmp_path


def fa2(fork: Path, *arguments: str, text: str = "") -> subprocess.CompletedProcess:
    return subprocess.run([str(fork / "fa2"), *arguments], cwd=fork, check=False, input=text,
                          text=True, capture_output=True, timeout=60,
                          env={"PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin",
                               "HOME": str(fork), "FA2_NO_INSTALL": "1"})


def test_start_never_overwrites(fork):
    kernel = fork / "work" / "stage3" / "kernel.cu"
    assert fa2(fork, "start", "3").returncode == 0
    assert kernel.read_text() == skeleton.skeleton(3)
    kernel.write_text("mine\n")
    refused = fa2(fork, "start", "3")
    assert refused.returncode == 1 and "--force" in refused.stderr
    assert kernel.read_text() == "mine\n"
    forced = fa2(fork, "start", "3", "--force")
    assert forced.returncode == 0 and "kernel.old1.cu" in forced.stdout
    assert (kernel.parent / "kernel.old1.cu").read_text() == "mine\n"
    assert kernel.read_text() == skeleton.skeleton(3)
    fa2(fork, "start", "3", "--force")
    assert (kernel.parent / "kernel.old2.cu").exists()


def test_start_from_mine(fork):
    missing = fa2(fork, "start", "4", "--from", "mine")
    assert missing.returncode == 2 and "work/stage3/kernel.cu is not there" in missing.stderr
    assert fa2(fork, "start", "2", "--from", "mine").returncode == 2
    fa2(fork, "start", "3")
    with open(fork / "work" / "stage3" / "kernel.cu", "a") as file:
        file.write("// the end, mine\n")
    assert fa2(fork, "start", "4", "--from", "mine").returncode == 0
    assert "// the end, mine" in (fork / "work" / "stage4" / "kernel.cu").read_text()


def test_hints_come_one_by_one_and_status_counts_them(fork):
    first, second = fa2(fork, "hint", "4").stdout, fa2(fork, "hint", "4").stdout
    assert "hint 1 of 3" in first and "hint 2 of 3" in second
    assert "hint 1 of 3" in fa2(fork, "hint", "4", "1").stdout
    assert "hint 3 of 3" in fa2(fork, "hint", "4").stdout
    assert fa2(fork, "hint", "4", "9").returncode == 2
    status = fa2(fork, "status").stdout
    assert re.search(r"^stage4_fa2_warps\s+-\s+-\s+3 of 3", status, re.MULTILINE)
    assert "next: ./fa2 start 1" in status


def test_solution_asks(fork):
    refused = fa2(fork, "solution", "3")
    assert refused.returncode == 2 and "--yes" in refused.stderr
    shown = fa2(fork, "solution", "3", "--yes")
    assert shown.returncode == 0 and re.search(r"^\+.*query_tile\(\)", shown.stdout, re.MULTILINE)
    assert "the solution was shown" in fa2(fork, "status").stdout


def test_check_of_nothing_says_what_to_do(fork):
    answer = fa2(fork, "check", "5")
    assert answer.returncode == 2 and "./fa2 start 5" in answer.stderr


def test_damaged_progress_is_a_sentence(fork):
    (fork / "work").mkdir()
    (fork / "work" / "progress.json").write_text("{")
    answer = fa2(fork, "status")
    assert answer.returncode == 2 and "progress.json cannot be read" in answer.stderr
