"""./fa2 as a person meets it: real bash and Python, fake cmake and compiler."""
import os
import re
import signal
import subprocess
import time

import pytest


def assert_sentence(done, status: int, *parts: str) -> None:
    """The exit status, no stack trace, and what the message must say."""
    assert done.returncode == status, done.stderr
    assert "Traceback" not in done.stderr + (done.stdout or "")
    for part in parts:
        assert part in done.stderr, done.stderr


def wait_for(clone, line: str) -> None:
    deadline = time.monotonic() + 20
    while line not in clone.calls():
        assert time.monotonic() < deadline, f"never saw {line!r}: {clone.calls()}"
        time.sleep(0.02)


# ---- command line ----

def test_help_names_every_command(clone):
    done = clone.run("--help")
    assert done.returncode == 0
    for name in ("compare", "test", "diff", "doctor"):
        assert re.search(rf"^  {name} ", done.stdout, re.MULTILINE)
        shown = clone.run(name, "--help")
        assert shown.returncode == 0 and f"./fa2 {name}" in shown.stdout
    assert clone.calls() == []  # help sets nothing up


def test_no_command_is_a_usage_error(clone):
    done = clone.run()
    assert done.returncode == 2 and "usage" in done.stderr


@pytest.mark.parametrize("arguments, says", [
    (["frobnicate"], "no command 'frobnicate'"),
    (["compare", "--frobnicate"], "no option --frobnicate"),
    (["compare", "--backend", "tpu"], '"tpu"'),
    (["test", "--frobnicate"], "--frobnicate"),
    (["test", "7"], "no stage '7'"),
    (["diff"], "N"),
    (["diff", "1"], "first stage"),
    (["diff", "nine"], "no stage 'nine'"),
    (["doctor", "extra"], "extra"),
])
def test_wrong_usage_is_one_sentence_and_sets_nothing_up(clone, arguments, says):
    done = clone.run(*arguments)
    assert_sentence(done, 2, says)
    assert len(done.stderr.splitlines()) == 1
    assert clone.calls() == []


def test_diff_shows_the_change_only(clone):
    for word in ("2", "stage2", "stage2_fa1"):
        done = clone.run("diff", word)
        assert done.returncode == 0
        assert "-stage 1" in done.stdout and "+stage 2" in done.stdout
        assert "+same" not in done.stdout
    assert "1 lines added, 1 removed" in clone.run("diff", "2", "--stat").stdout


# ---- set-up and build ----

def test_first_run_sets_up_then_runs_and_the_second_only_runs(clone):
    done = clone.run("compare", "--seqlen", "64")
    assert done.returncode == 0, done.stderr
    assert clone.calls() == ["configure sim", f"build {clone.root}/build/sim",
                             "compare --seqlen 64 --backend sim"]
    assert "the table" in done.stdout and "picture in" in done.stdout
    assert "running on the simulator: no NVIDIA GPU" in done.stderr
    for step in ("configure (sim)", "build (sim)"):
        assert f"{step}: done" in done.stderr
    assert "\r" not in done.stderr and "\x1b" not in done.stderr  # no terminal: plain lines

    before = os.times()
    again = clone.run("compare", "--seqlen", "64")
    after = os.times()
    assert again.returncode == 0 and clone.calls()[3:] == ["compare --seqlen 64 --backend sim"]
    assert "configure" not in again.stderr and "build" not in again.stderr
    # Of processor time, two Pythons and a shell: a busy machine makes it no longer.
    assert (after.children_user + after.children_system
            - before.children_user - before.children_system) < 2


def test_status_of_compare_is_passed_on(clone):
    assert clone.run("compare", FAKE_STATUS="1").returncode == 1
    assert clone.run("compare", FAKE_STATUS="2").returncode == 2


def test_from_another_folder_the_results_stay_in_the_clone(clone, tmp_path):
    done = subprocess.run(clone.command("compare"), cwd=tmp_path, env=clone.env,
                          capture_output=True)
    assert done.returncode == 0
    assert (clone.root / "build/results/compare/compare.json").exists()


def test_bare_environment(clone):
    """env -i: no PATH, no HOME, no LANG. Here the system's own tools are found."""
    env = {"FA2_NO_INSTALL": "1"}
    done = subprocess.run(clone.command("--help"), cwd=clone.root, env=env, capture_output=True,
                          text=True)
    if "Python 3.11" in done.stderr:
        pytest.skip("the system's Python is older than 3.11")
    assert done.returncode == 0 and "compare" in done.stdout


def test_read_only_home_and_c_locale(clone):
    done = clone.run("compare", HOME="/proc", LANG="C", LC_ALL="C")
    assert done.returncode == 0, done.stderr


def test_no_compiler_and_no_rights_names_the_command(clone):
    clone.env["CXX"] = "/nonexistent/c++"
    done = clone.run("compare")
    assert_sentence(done, 2, "no C++ compiler", "apt-get install g++")


def test_old_compiler_is_refused(clone):
    clone.add_tool("c++", 'echo "#define __GNUC__ 9"')
    assert_sentence(clone.run("compare"), 2, "g++ 9.0.0", "too old", "apt-get install g++")


def test_moved_clone_configures_anew(clone):
    assert clone.run("compare").returncode == 0
    clone.root = clone.root.rename(clone.root.with_name("moved"))
    clone.make_venv("report", "test")
    assert clone.run("compare").returncode == 0
    assert clone.calls().count("configure sim") == 2


def test_other_compiler_configures_anew(clone):
    assert clone.run("compare").returncode == 0
    clone.add_tool("other-c++", 'echo "#define __GNUC__ 13"')
    assert clone.run("compare", CXX=str(clone.tools / "other-c++")).returncode == 0
    assert clone.calls().count("configure sim") == 2


# ---- faults ----

def test_failing_configure_is_tried_anew_once_then_told(clone):
    done = clone.run("compare", FAKE_CMAKE="configure-fails")
    assert_sentence(done, 2, "CMake Error at here: it broke", "configure_sim.log")
    assert clone.calls().count("configure sim") == 2
    assert clone.run("compare").returncode == 0  # and the next run heals


def test_failing_build_shows_the_compilers_words(clone):
    done = clone.run("compare", FAKE_CMAKE="build-fails")
    assert_sentence(done, 1, "x.cpp:3: error: no", "build_sim.log")
    assert "/usr/bin/c++ -c" not in done.stderr
    assert clone.run("compare").returncode == 0


def test_full_disk_is_one_sentence(clone):
    done = clone.run("compare", FAKE_CMAKE="disk-full")
    assert_sentence(done, 2, "the disk is full")


@pytest.mark.parametrize("words", [["--help"], ["doctor"], ["diff", "2"], ["compare", "--help"]])
def test_full_stdout_is_a_sentence(clone, words):
    with open("/dev/full", "w") as full:
        done = subprocess.run(clone.command(*words), env=clone.env, stdout=full,
                              stderr=subprocess.PIPE, text=True)
    assert_sentence(done, 2, "the disk is full")


def test_closed_pipe_is_quiet(clone):
    done = subprocess.run(f"'{clone.root}/fa2' --help | true", shell=True, env=clone.env,
                          capture_output=True, text=True)
    assert "Traceback" not in done.stderr and "Exception" not in done.stderr


def test_killed_configure_heals(clone):
    killed = clone.start("compare", FAKE_CMAKE="configure-killed")
    killed.communicate(timeout=30)
    assert killed.returncode == -signal.SIGKILL
    done = clone.run("compare")
    assert done.returncode == 0, done.stderr
    assert clone.calls().count("configure sim") == 2


@pytest.mark.parametrize("number, status", [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_interrupted_build_ends_its_children_and_heals(clone, number, status):
    run = clone.start("compare", FAKE_CMAKE="build-waits")
    wait_for(clone, "started")
    run.send_signal(number)
    _, said = run.communicate(timeout=30)
    assert run.returncode == status
    assert said.splitlines()[-1] == "fa2: interrupted" and "Traceback" not in said
    assert clone.run("compare").returncode == 0


def test_two_at_once_take_turns(clone):
    first = clone.start("compare", FAKE_CMAKE="build-short")
    wait_for(clone, "started")
    second = clone.run("compare")
    first.communicate(timeout=30)
    assert first.returncode == 0 and second.returncode == 0
    assert "another ./fa2 is setting up" in second.stderr
    # The second found it built.
    assert sum(call.startswith("build ") for call in clone.calls()) == 1


def test_killed_build_is_waited_for(clone):
    """kill -9 of ./fa2 leaves its cmake running; the next run must not build beside it."""
    first = clone.start("compare", FAKE_CMAKE="build-short")
    wait_for(clone, "started")
    first.kill()
    second = clone.run("compare")
    first.communicate(timeout=30)
    assert second.returncode == 0 and "another ./fa2" in second.stderr


def test_picture_that_fails_is_a_warning(clone):
    (clone.root / "common/python/fa2course/report.py").write_text("raise SystemExit('no font')\n")
    done = clone.run("compare")
    assert_sentence(done, 0, "the picture could not be drawn: no font")


def test_unwritable_clone_is_one_sentence(clone):
    """As root everything may be written, so a file stands where the folder should be."""
    subprocess.run(["rm", "-rf", str(clone.root / "build")], check=True)
    (clone.root / "build").touch()
    done = clone.run("compare", PYTHONPYCACHEPREFIX="")
    assert_sentence(done, 2, "build")
    assert len(done.stderr.splitlines()) == 1


def test_doctor_names_what_is_missing(clone):
    done = clone.run("doctor")
    assert done.returncode == 0 and "g++ 12.2.0" in done.stdout
    assert "runs on" in done.stdout and "simulator" in done.stdout
    clone.env["CXX"] = "/nonexistent/c++"
    done = clone.run("doctor")
    assert done.returncode == 2
    assert re.search(r"apt-get install .*g\+\+", done.stdout)
    assert "cannot run here yet" in done.stdout
