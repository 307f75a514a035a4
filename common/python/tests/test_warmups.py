"""The warm-ups before stage 1: short, and their README shows what they print."""
import re
import subprocess
from pathlib import Path

import pytest

WARMUP = Path(__file__).resolve().parents[3] / "stage1_naive" / "warmup"


def test_each_is_at_most_40_lines():
    files = sorted(WARMUP.glob("*.cu"))
    assert [file.name[0] for file in files] == ["1", "2", "3", "4", "5"]
    for file in files:
        assert len(file.read_text().splitlines()) <= 40, f"{file.name} is too long to be a warm-up"


def output_of(build_dir: Path, *arguments: str) -> subprocess.CompletedProcess:
    program = build_dir / "bin" / "fa2-warmup"
    if not program.exists():
        pytest.skip("fa2-warmup is not built")
    return subprocess.run([program, *arguments], capture_output=True, text=True, check=False)


def test_readme_shows_the_real_output(build_dir):
    block = re.search(r"```\n(3  the swizzle.*?)```", (WARMUP / "README.md").read_text(), re.DOTALL)
    done = output_of(build_dir, "3")
    assert done.returncode == 0
    assert block.group(1).strip() == done.stdout.strip()


def test_prints_the_fragment_map_and_the_mistakes(build_dir):
    shown = output_of(build_dir).stdout
    assert "   4.0000   4.0000   5.0000   5.0000   6.0000   6.0000   7.0000   7.0000" in shown
    assert "use of a cp.async destination before its wait" in shown
    assert shown.count(" ok ") == 6


def test_refuses_other_numbers(build_dir):
    done = output_of(build_dir, "6")
    assert done.returncode == 1 and "1 to 5" in done.stderr


def test_the_command_builds_and_runs(clone):
    clone.run("warmup")  # the fake build makes no such program
    assert [call.split("/")[-1] for call in clone.calls()] == ["configure sim", "sim"]
    program = clone.root / "build" / "sim" / "bin" / "fa2-warmup"
    program.write_text('#!/bin/sh\necho "warm-up $*"; exit 3\n')
    program.chmod(0o755)
    done = clone.run("warmup", "4")
    assert done.stdout == "warm-up 4\n" and done.returncode == 3
    done = clone.run("warmup", "6")
    assert done.returncode == 2 and "choose from 1, 2, 3, 4, 5" in done.stderr
