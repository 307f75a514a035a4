"""What goes wrong around the programs: kills, full disks, odd folders, locales and terminals."""
import json
import random
import re
import resource
import signal
import subprocess
import time
from pathlib import Path

import pytest

FILES = {"compare.json", "compare.csv", "compare.md"}
SMALL = ["--backend", "sim", "--seqlen", "32", "--heads", "1", "--full", "--threads", "1"]


@pytest.fixture
def compare(build_dir):
    def command(out: Path, *more: str) -> list[str]:
        return [str(build_dir / "bin" / "fa2-compare"), *SMALL, *more, "--out", str(out)]
    return command


def run(command: list[str], **options) -> subprocess.CompletedProcess:
    return subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          timeout=120, **options)


def rows_without_what_varies(path: Path) -> list[dict]:
    rows = json.loads(path.read_text(encoding="utf-8"))["records"]
    for row in rows:
        row["environment"]["date"] = ""
    return rows


def test_killed_at_any_moment_leaves_whole_files_and_the_next_run_works(compare, tmp_path):
    out = tmp_path / "out"
    began = time.monotonic()
    assert run(compare(out)).returncode == 0
    took = time.monotonic() - began
    whole = {name: (out / name).stat().st_size for name in FILES}
    moments = random.Random(1)
    for _ in range(4):
        child = subprocess.Popen(compare(out), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(moments.uniform(0.3, 1) * took)
        child.kill()
        child.wait()
        json.loads((out / "compare.json").read_text())
        for name, size in whole.items():  # the same but for the date and the time
            assert abs((out / name).stat().st_size - size) < 100
    assert run(compare(out)).returncode == 0


def test_full_disk_is_one_sentence_and_leaves_nothing(compare, tmp_path):
    def no_room():  # as a full disk: every write fails
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))

    done = run(compare(tmp_path / "out"), preexec_fn=no_room)
    assert done.returncode == 2
    assert re.fullmatch(r"fa2 compare: Cannot write .*: .*\. Choose another folder with --out DIR, "
                        r"or make room there\.\n", done.stderr)
    assert list((tmp_path / "out").iterdir()) == []


@pytest.mark.parametrize("words", [
    ["fa2-compare", *SMALL, "--stages", "6"], ["fa2-compare", "--help"],
    ["fa2-fuzz", "--backend", "sim", "--count", "1"], ["fa2-counts", "plan"],
    ["fa2-warmup", "3"],
])  # fmt: skip
def test_output_that_cannot_be_written_is_no_success(build_dir, tmp_path, words):
    with open("/dev/full", "w") as full:
        done = subprocess.run([build_dir / "bin" / words[0], *words[1:]], cwd=tmp_path, stdout=full,
                              stderr=subprocess.PIPE, text=True, timeout=60)
    assert done.returncode == 2
    assert "The output could not be written. Is the disk full?" in done.stderr


def test_two_at_once_into_one_folder(compare, tmp_path):
    both = [subprocess.Popen(compare(tmp_path), stdout=subprocess.DEVNULL,
                             stderr=subprocess.DEVNULL) for _ in range(2)]
    assert [child.wait(120) for child in both] == [0, 0]
    assert {path.name for path in tmp_path.iterdir()} == FILES
    json.loads((tmp_path / "compare.json").read_text())


def test_locales_folders_and_narrow_logs(compare, tmp_path):
    """German decimal commas, a folder with spaces and umlauts, no terminal, 60 columns."""
    results = []
    for locale in ("C", "de_DE.UTF-8"):
        out = tmp_path / f"Übung 1, {locale}"
        environment = {"LANG": locale, "LC_ALL": locale, "COLUMNS": "60", "HOME": "/proc",
                       "PATH": "/usr/bin:/bin"}
        done = run(compare(out, "--stages", "2,6"), env=environment, encoding="utf-8")
        assert done.returncode == 0, done.stderr
        for stream in (done.stdout, done.stderr):
            assert "\r" not in stream and "\x1b" not in stream
        wide = [line for line in done.stdout.splitlines()
                if len(line) > 60 and str(out) not in line]
        assert not wide
        results.append(rows_without_what_varies(out / "compare.json"))
        assert ";" not in (out / "compare.csv").read_text(encoding="utf-8").splitlines()[1]
    assert results[0] == results[1]


def test_a_failing_seed_is_told_by_number(build_dir):
    """The program's words about a seed are those that repeat it."""
    fuzz = [str(build_dir / "bin" / "fa2-fuzz"), "--count", "2", "--seed", "5", "--stage", "2"]
    first, second = run(fuzz), run(fuzz)
    assert first.returncode == 0 and first.stdout == second.stdout
    assert "Random problems from seed 5 on." in first.stdout
    assert "2 random problems, none wrong." in first.stdout
    wrong = run([fuzz[0], "--stage", "seven"])
    assert wrong.returncode == 2 and len(wrong.stderr.splitlines()) == 1
