"""What an untrusted program can do in the grader's sandbox: the limits hold with and without
bubblewrap, and what it leaves behind cannot mislead the grader."""
import os
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from fa2course.grading import sandbox
from fa2course.grading.sandbox import Limits, MiB, Sandbox

ROOT = Path(__file__).resolve().parents[3]
LIMITS = Limits(seconds=20, memory=200 * MiB, processes=20, file=5 * MiB, scratch=8 * MiB,
                output=64 * 1024)


def open_to_others(path: Path) -> None:
    for folder in (path, *path.parents):  # pytest's folders are its user's alone
        if os.geteuid() == 0 and os.stat(folder).st_mode & 0o005 != 0o005:
            os.chmod(folder, 0o755)


@pytest.fixture(params=["bubblewrap", "limits alone"])
def box(request, tmp_path, monkeypatch):
    if request.param == "bubblewrap" and not sandbox.protection().bubblewrap:
        pytest.skip(sandbox.protection().missing)
    if request.param == "limits alone":
        monkeypatch.setattr(sandbox, "protection", lambda: sandbox.Protection(None, "none"))
    open_to_others(tmp_path)
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    return Sandbox(scratch, limits=LIMITS)


@pytest.fixture
def bubblewrap(box):
    if not sandbox.protection().bubblewrap:
        pytest.skip("bubblewrap alone hides files and the network")
    return box


def shell(box: Sandbox, script: str, **limits) -> sandbox.Ended:
    return box.run(["/bin/bash", "-c", script], replace(LIMITS, **limits))


def test_an_ordinary_program(box):
    ended = shell(box, "echo out; echo err >&2; echo kept > file; exit 7")
    assert (ended.status, ended.stopped, ended.output) == (7, "", "out\nerr\n")
    assert (box.scratch / "file").read_text() == "kept\n"


@pytest.mark.parametrize("script, stopped", [
    ("yes", "printed more than 64 KiB"),
    ("head -c 7M /dev/zero > big; true", None),  # SIGXFSZ ends head; the shell goes on
    ("for i in 1 2 3 4; do head -c 4M /dev/zero > big$i; done; sleep 9", "left more than 8 MiB"),
    ("i=0; while :; do : > f$((i++)); done", "left more than 8 MiB"),
    ("head -c 400M /dev/zero | tail", "more than 200 MiB"),
    ("kill -SEGV $$", "segmentation fault"),
    ("kill -ABRT $$", "aborted")])
def test_bounds(box, script, stopped):
    ended = shell(box, script)
    if stopped is None:
        assert (box.scratch / "big").stat().st_size <= LIMITS.file
    else:
        assert stopped in ended.stopped and ended.status is None
    assert len(ended.output) <= LIMITS.output


@pytest.mark.parametrize("script", ["while :; do :; done", "exec sleep 100"])
def test_an_endless_program(box, script):
    start = time.monotonic()
    assert shell(box, script, seconds=1).stopped == "ran longer than 1 s"
    assert time.monotonic() - start < 20


def test_a_fork_bomb_ends_and_leaves_nothing(box):
    ended = shell(box, "b() { b | b & }; b; sleep 100", seconds=2)
    assert "more than 20 processes" in ended.stopped or "longer than" in ended.stopped
    assert sandbox._marked(box.token, box.user) == []


def test_what_left_the_process_group_is_found(box):
    ended = shell(box, "setsid sleep 77 & setsid bash -c 'sleep 78 & disown' & exit 3",
                  seconds=3)
    assert ended.status == 3 or "longer than" in ended.stopped  # the pipe may be held open
    assert sandbox._marked(box.token, box.user) == []


def test_links_and_pipes_are_gone_when_the_grader_looks(box):
    shell(box, "ln -s /etc/passwd result; mkfifo pipe; mkdir -p d/e; ln -s / d/root; echo x > "
               "d/e/f;chmod 0 d/e")
    left = {str(path.relative_to(box.scratch)) for path in box.scratch.rglob("*")}
    assert left == {"d", "d/e", "d/e/f"}


def test_nothing_else_is_there_to_read_or_write(bubblewrap, tmp_path):
    (tmp_path / "solution").write_text("secret")
    ended = shell(bubblewrap, f"cat {tmp_path}/solution; cat /etc/shadow; ls {Path.home()};"
                  f"echo x > {tmp_path}/new; echo x > /usr/new; echo x > /new; echo x > /dev/new;"
                  "rm -rf /usr/bin 2>/dev/null; ls /usr/bin/env")
    assert "secret" not in ended.output and "root:" not in ended.output
    assert ended.output.strip().endswith("/usr/bin/env")
    assert {path.name for path in tmp_path.iterdir()} == {"solution", "scratch"}
    assert not Path("/usr/new").exists()


def test_no_network_and_no_other_process(bubblewrap):
    ended = shell(bubblewrap, "cat /proc/net/dev | grep -vc -e lo: -e '|'; ls -d /proc/[0-9]* | wc "
                              "-l")
    interfaces, processes = map(int, ended.output.split())
    assert interfaces == 0 and processes < 10


def test_readable_folders_are_seen_and_read_only(bubblewrap, tmp_path):
    course = tmp_path / "course"
    course.mkdir(mode=0o755)
    (course / "header.h").write_text("text\n")
    bubblewrap.readable.append(course)
    ended = shell(bubblewrap, f"cat {course}/header.h; rm {course}/header.h; echo x > {course}/y")
    assert ended.output.startswith("text\n")
    assert [path.name for path in course.iterdir()] == ["header.h"]


def test_missing_protection_is_said(monkeypatch):
    monkeypatch.setattr(sandbox.shutil, "which", lambda name: None)
    sandbox.protection.cache_clear()
    try:
        assert "apt-get install bubblewrap" in sandbox.protection().missing
    finally:
        sandbox.protection.cache_clear()


def test_removing_a_folder_that_resists(tmp_path):
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "a" / "b" / "c").touch()
    (tmp_path / "a" / "b").chmod(0)
    (tmp_path / "a").chmod(0)
    sandbox.remove(tmp_path / "a")
    assert not (tmp_path / "a").exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives sandboxes users of their own")
def test_no_two_sandboxes_have_one_user():
    first, second = sandbox.User(), sandbox.User()
    assert first.id != second.id
    del first
    assert sandbox.User().id < second.id  # given up, so free again


FIRST_PROCESS = """
import subprocess, sys
sys.exit(subprocess.call([sys.executable, "-c", sys.argv[1], *sys.argv[2:]]))
"""
LEAVES_AN_ORPHAN = """
import sys
from pathlib import Path
from fa2course.grading import sandbox
sandbox.protection = lambda: sandbox.Protection(None, "none")
box = sandbox.Sandbox(Path(sys.argv[1]))
ended = box.run(["/bin/bash", "-c", "setsid sleep 77 >/dev/null & exit 3"])
print(ended.status, "left:", sandbox._marked(box.token, box.user))
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="a process namespace of its own needs root")
def test_orphans_are_gone_where_the_first_process_does_not_wait_for_them(tmp_path):
    """As in a container without an init: there they stay as zombies unless somebody adopts them."""
    open_to_others(tmp_path)
    done = subprocess.run(["unshare", "-pf", "--mount-proc", sys.executable, "-c", FIRST_PROCESS,
                           LEAVES_AN_ORPHAN, tmp_path], capture_output=True, text=True,
                          env=os.environ | {"PYTHONPATH": str(ROOT / "common" / "python")})
    if "unshare" in done.stderr:
        pytest.skip(f"no namespaces here: {done.stderr.strip()}")
    assert done.stdout == "3 left: []\n", done.stderr
