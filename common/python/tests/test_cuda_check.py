"""The nvcc check, on recorded output of ptxas and with a fake nvcc."""
import pytest

from fa2course import cuda_check
from fa2course.launcher import gpu, paths

REPORT = """\
ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function '_ZN3fa26kernelILi64EEEvNS_7ProblemE' for 'sm_80'
ptxas info    : Function properties for _ZN3fa26kernelILi64EEEvNS_7ProblemE
    {stack} bytes stack frame, {stores} bytes spill stores, {loads} bytes spill loads
ptxas info    : Used 168 registers, used 1 barriers, 16 bytes smem, 488 bytes cmem[0]
"""


def test_report_of_ptxas():
    kernel, = cuda_check.parse(REPORT.format(stack=8, stores=12, loads=4))
    assert (kernel.registers, kernel.stack, kernel.spill_stores, kernel.spill_loads,
            kernel.shared) == (168, 8, 12, 4, 16)


@pytest.fixture
def course(tmp_path, monkeypatch):
    """A course of one kernel with one header, and an nvcc that prints what course.output says."""
    (tmp_path / "stage1_x").mkdir()
    (tmp_path / "stage1_x/kernel.cu").write_text('#include "common/a.h"\n')
    (tmp_path / "common").mkdir()
    (tmp_path / "common/a.h").write_text("// one\n")
    nvcc = tmp_path / "nvcc"
    output, calls = tmp_path / "output", tmp_path / "calls"
    nvcc.write_text(f'#!/bin/sh\n[ "$1" = --version ] && echo "release 13.0" && exit\n'
                    f'echo x >> {calls}; cat {output}; ! grep -q "error" {output}\n')
    nvcc.chmod(0o755)
    monkeypatch.setattr(paths, "ROOT", tmp_path)
    monkeypatch.setattr(paths, "BUILD", tmp_path / "build")
    monkeypatch.setattr(gpu, "find_nvcc", lambda: str(nvcc))

    class Course:
        root = tmp_path

        def check(self, text):
            output.write_text(text)
            return cuda_check.check(None, ["80"], 1)[0]

        def compiled(self):
            return len(calls.read_text().splitlines()) if calls.exists() else 0

    return Course()


def test_clean_kernel_passes(course):
    assert course.check(REPORT.format(stack=0, stores=0, loads=0)).ok


@pytest.mark.parametrize("spill", [dict(stack=0, stores=4, loads=0),
                                   dict(stack=0, stores=0, loads=4),
                                   dict(stack=16, stores=0, loads=0)])
def test_spills_fail(course, spill):
    result = course.check(REPORT.format(**spill))
    assert not result.ok and "stage1_x/kernel.cu for sm_80 spills" in result.problem


@pytest.mark.parametrize("line", ["k.cu(3): warning #177-D: unused", "k.cu(3): error: no"])
def test_warnings_and_errors_fail(course, line):
    result = course.check(line)
    assert not result.ok and line in result.problem


def test_only_what_changed_is_compiled(course):
    clean = REPORT.format(stack=0, stores=0, loads=0)
    course.check(clean)
    course.check(clean)
    assert course.compiled() == 1
    (course.root / "common/a.h").write_text("// two\n")
    course.check(clean)
    assert course.compiled() == 2


@pytest.mark.parametrize("spilled, ok", [(0, True), (4, False)])
def test_only_a_kernel_that_prints_may_use_the_stack(course, spilled, ok):
    printing = REPORT.replace("6kernelI", "12print_matrixI")
    assert course.check(printing.format(stack=16, stores=spilled, loads=0)).ok == ok
