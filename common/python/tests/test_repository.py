"""What holds for the repository as a whole: one list of stages, one format."""
import ctypes
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from fa2course.launcher import stages

ROOT = Path(__file__).resolve().parents[3]


def test_every_stage_folder_is_in_the_list():
    folders = sorted(path.parent.name for path in ROOT.glob("stage*/kernel.cu"))
    assert folders == sorted(stages.names())
    for name in folders:
        for file in ("kernel.cu", "test.cpp", "README.md", "CMakeLists.txt"):
            assert (ROOT / name / file).exists(), f"{name}/{file} is missing"


def test_stages_built(build_dir):
    library = ctypes.CDLL(str(build_dir / "lib" / "libfa2course.so"))
    library.fa2_stage_name.restype = ctypes.c_char_p
    built = [library.fa2_stage_name(0, i).decode() for i in range(library.fa2_stage_count(0))]
    assert [name for name in built if "/" not in name] == stages.names()


def test_stages_tested(build_dir):
    listed = subprocess.run(["ctest", "--test-dir", build_dir, "-N"], capture_output=True,
                            text=True, check=True).stdout
    tested = {match for match in re.findall(r": (stage\d+_\w+)_test/", listed)}
    assert tested == set(stages.names())


def test_stages_compared(build_dir, tmp_path):
    subprocess.run([build_dir / "bin" / "fa2-compare", "--backend", "sim", "--batch", "1",
                    "--heads", "1", "--seqlen", "16", "--headdim", "64", "--full", "--quiet",
                    "--out", tmp_path], check=True)
    text = (tmp_path / "compare.json").read_text()
    compared = re.findall(r'"stage": ?"(stage\d+_\w+)"', text)
    json.loads(text)
    assert list(dict.fromkeys(compared)) == stages.names()


def test_stages_in_the_readme():
    rows = re.findall(r"^\|.*?\b(stage\d+_\w+)", (ROOT / "README.md").read_text(), re.MULTILINE)
    assert list(dict.fromkeys(rows)) == stages.names()


def test_format():
    clang_format = Path(sys.executable).with_name("clang-format")
    if not clang_format.exists():
        found = shutil.which("clang-format")
        version = found and subprocess.run([found, "--version"], capture_output=True,
                                           text=True).stdout
        if "version 14." not in (version or ""):
            pytest.skip("clang-format 14 is not here")
        clang_format = found
    files = [path for folder in ("common", "stage*") for kind in ("h", "cpp", "cu")
             for path in ROOT.glob(f"{folder}/**/*.{kind}")]
    done = subprocess.run([clang_format, "--dry-run", *files], capture_output=True, text=True)
    complaint = rf"^(?:{re.escape(str(ROOT))}/)?(\S+?):\d+:\d+: (?:warning|error)"
    wrong = sorted(set(re.findall(complaint, done.stderr, re.MULTILINE)))
    assert not wrong, f"clang-format -i {' '.join(wrong)}"
