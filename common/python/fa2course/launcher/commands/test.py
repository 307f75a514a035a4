"""./fa2 test [N]"""
import os
import re
import xml.etree.ElementTree as ElementTree
from dataclasses import dataclass
from pathlib import Path

from .. import build, gpu, lock, paths, process, stages, toolchain, venv
from ..console import Step, say
from ..errors import UserError
from ..options import Parser

SUMMARY = "builds, then runs all tests or those of stage N"
HELP = """
usage: ./fa2 test [N] [OPTIONS]

Runs the C++ tests of every stage and of what is under them, the Python tests (launcher, reports),
the format check, and, where nvcc is installed, compiles every kernel for sm_80 and sm_90 and
refuses warnings and spills. With N, the C++ tests and the nvcc check of that stage only.

  N               a stage: 2, stage2 or its folder
  --backend NAME  sim or cuda (default: both if a GPU is usable, else sim)
  --asan          the simulator under AddressSanitizer and UBSan (preset sim-asan)

exit status: 0 all passed, 1 a test failed or the build did, 2 cannot run here
"""


@dataclass
class Counts:
    passed: int = 0
    failed: int = 0
    skipped: int = 0

    def __add__(self, other: "Counts") -> "Counts":
        return Counts(self.passed + other.passed, self.failed + other.failed,
                      self.skipped + other.skipped)

    def __str__(self) -> str:
        skipped = f", {self.skipped} skipped" if self.skipped else ""
        return f"{self.passed} passed, {self.failed} failed{skipped}"


def run(arguments: list[str]) -> int:
    parser = Parser("test")
    parser.add_argument("stage", metavar="N", nargs="?")
    parser.add_argument("--backend", choices=["sim", "cuda"])
    parser.add_argument("--asan", action="store_true")
    options = parser.parse_args(arguments)
    stage = stages.find(options.stage) if options.stage else None
    if options.asan and options.backend == "cuda":
        raise UserError("--asan is for the simulator; leave --backend cuda away")
    preset = "sim-asan" if options.asan else build.choose(options.backend)

    paths.BUILD.mkdir(exist_ok=True)
    with lock.exclusive():
        build.ensure_tools()
        groups = ["test", "report", "notebooks", "profile", "scheduler"]
        python = None if stage else venv.ensure_or_system(groups, ["pytest", "xdist"])
        build.ensure_built(preset, [stage] if stage else [])
    total = run_cpp(preset, stage)
    if not stage:
        total += run_python(python, preset)
    if gpu.find_nvcc():
        total += run_cuda_check(stage)
    print(total, flush=True)
    return 0 if total.failed == 0 and total.passed > 0 else 1


def read_junit(path: Path) -> Counts | None:
    """The counts of a JUnit file as ctest and pytest write it; None when there is none."""
    try:
        root = ElementTree.parse(path).getroot()
    except (OSError, ElementTree.ParseError):
        return None
    suites = [root] if root.tag == "testsuite" else root.findall("testsuite")
    counts = Counts()
    for suite in suites:
        number = {name: int(suite.get(name) or 0)
                  for name in ("tests", "failures", "errors", "skipped", "disabled")}
        skipped = number["skipped"] + number["disabled"]
        failed = number["failures"] + number["errors"]
        counts += Counts(number["tests"] - failed - skipped, failed, skipped)
    return counts


def run_cpp(preset: str, stage: str | None) -> Counts:
    folder = paths.preset_dir(preset)
    report = paths.LOGS / "ctest.xml"
    report.unlink(missing_ok=True)
    command = [toolchain.tool("ctest"), "--test-dir", str(folder), "-j", str(build.jobs()),
               "--output-on-failure", "--no-tests=error", "--output-junit", str(report)]
    if stage:
        command += ["-R", f"^{stage}_test"]
    with Step(f"C++ tests ({preset})") as step:
        def progress(line: str) -> None:
            count = re.match(r"\s*(\d+/\d+) Test\s+#", line)
            if count:
                step.update(count.group(1))

        status, output = process.run_logged(command, f"ctest_{preset}", progress)
        counts = read_junit(report)
        if counts is None or (status != 0 and counts.failed == 0):
            counts = (counts or Counts()) + Counts(failed=1)
        step.note = str(counts)
    if counts.failed:
        print(failures_of_ctest(output), flush=True)
    return counts


def failures_of_ctest(output: str) -> str:
    """The outputs of the failed tests and the closing list of their names."""
    kept, keep = [], False
    for line in output.splitlines():
        if re.match(r"\s*\d+/\d+ Test\s+#", line):
            keep = "Passed" not in line and "Skipped" not in line
        elif re.match(r"\s*Start\s+\d+: |\d+% tests passed", line):
            keep = False
        elif line.startswith("The following tests FAILED"):
            keep = True
        if keep:
            kept.append(line)
    return "\n".join(kept) or output


def run_python(python: Path, preset: str) -> Counts:
    report = paths.LOGS / "pytest.xml"
    report.unlink(missing_ok=True)
    env = process.environment() | {"FA2_BUILD_DIR": str(paths.preset_dir(preset))}
    done = 0
    with Step("Python tests") as step:
        def progress(line: str) -> None:
            nonlocal done
            if re.search(r" (PASSED|FAILED|ERROR|SKIPPED|XFAIL)", line):
                done += 1
                step.update(str(done))

        status, output = process.run_logged(
            [str(python), "-m", "pytest", "-v", "--color=no", "--tb=short", f"--junitxml={report}",
             "-n", str(min(2, build.jobs())), "--dist", "loadgroup",
             "-c", str(paths.PYTHON_SOURCES / "pyproject.toml"),
             str(paths.PYTHON_SOURCES / "tests")],
            "pytest", progress, env=env)
        counts = read_junit(report)
        if counts is None or (status != 0 and counts.failed == 0):
            counts = (counts or Counts()) + Counts(failed=1)
        step.note = str(counts)
    if counts.failed:
        at = re.search(r"^=+ (FAILURES|ERRORS) =+$", output, re.MULTILINE)
        print(output[at.start() if at else 0:], flush=True)
    return counts


def run_cuda_check(stage: str | None) -> Counts:
    from fa2course import cuda_check

    architectures = os.environ.get("FA2_CHECK_ARCHITECTURES", "80,90").split(",")
    with Step(f"nvcc check (sm_{', sm_'.join(architectures)})") as step:
        with lock.exclusive():
            results = cuda_check.check([stage] if stage else None, architectures, build.jobs(),
                                       step.update)
        failed = [result for result in results if not result.ok]
        counts = Counts(len(results) - len(failed), len(failed))
        step.note = str(counts)
    for result in failed:
        print(result.problem, flush=True)
    if failed:
        say("./common/python/fa2course/cuda_check.py --table shows registers and spills")
    return counts
