"""Shared by the tests: a small clone with fake tools, so that nothing is installed; the build."""
import hashlib
import os
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "common" / "python"))

# By what takes their time: a worker takes a whole group.
GROUPS = {"test_mutants": "compiling mutants", "test_student": "compiling",
          "test_grading": "compiling", "test_launcher": "waiting", "test_scheduler": "waiting",
          "test_sweep": "waiting"}


@pytest.hookimpl(tryfirst=True)  # before xdist reads the marks
def pytest_collection_modifyitems(items) -> None:
    """Groups for `pytest --dist loadgroup`: within one, tests stay in order on one worker."""
    for item in items:
        item.add_marker(pytest.mark.xdist_group(GROUPS.get(item.module.__name__, "others")))


FAKE_TOOLS = {
    # Says it is g++ 12 when asked for its macros.
    "c++": 'echo "#define __GNUC__ 12"; echo "#define __GNUC_MINOR__ 2"',
    "ninja": 'case "$*" in *-n*) [ -e "$2/built" ] && echo "ninja: no work to do.";; '
             '*) echo 1.11.1;; esac',
    # Configures and builds by touching files; behaves as $FAKE_CMAKE says.
    "cmake": """
        case "$1" in
          --version) echo "cmake version 3.25.1" ;;
          --preset)
            echo "configure $2" >> "$FAKE_LOG"
            mkdir -p "build/$2"
            echo "CMAKE_HOME_DIRECTORY:INTERNAL=$PWD" > "build/$2/CMakeCache.txt"
            case "$FAKE_CMAKE" in
              configure-fails) echo "CMake Error at here: it broke"; exit 1 ;;
              configure-killed) kill -9 $PPID; exit 1 ;;
              disk-full) echo "write: No space left on device"; exit 1 ;;
            esac
            touch "build/$2/build.ninja" ;;
          --build)
            echo "build $2" >> "$FAKE_LOG"
            case "$FAKE_CMAKE" in
              build-fails) printf '[1/2] Building\\nFAILED: x.o \\n/usr/bin/c++ -c x\\n'
                           printf 'x.cpp:3: error: no\\n'; exit 1 ;;
              build-waits) echo started >> "$FAKE_LOG"; sleep 30 ;;
              build-short) echo started >> "$FAKE_LOG"; sleep 3 ;;
            esac
            mkdir -p "$2/bin"; cp "$FAKE_COMPARE" "$2/bin/fa2-compare"; touch "$2/built" ;;
        esac""",
}
FAKE_COMPARE = """#!/bin/sh
echo "compare $*" >> "$FAKE_LOG"
out=build/results/compare
while [ $# -gt 0 ]; do [ "$1" = --out ] && out=$2; shift; done
mkdir -p "$out"; echo '{}' > "$out/compare.json"
echo "the table"
exit ${FAKE_STATUS:-0}
"""


class Clone:
    """A clone of the launcher alone, in a path with a space and an umlaut."""

    def __init__(self, folder: Path):
        self.root = folder / "a clone, f\u00fcr alle"
        self.tools = folder / "tools"
        self.log = folder / "calls"
        self.log.touch()
        package = self.root / "common" / "python" / "fa2course"
        shutil.copytree(ROOT / "common" / "python" / "fa2course" / "launcher", package / "launcher",
                        ignore=shutil.ignore_patterns("__pycache__"))
        shutil.copytree(ROOT / "common" / "python" / "requirements",
                        package.parent / "requirements")
        (package / "__init__.py").touch()
        (package / "report.py").write_text("import sys; print('picture in', sys.argv[1])\n")
        for name in ("fa2", "CMakePresets.json", "common/cmake/stages.cmake"):
            (self.root / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, self.root / name)
        for number, name in ((1, "stage1_naive"), (2, "stage2_fa1")):
            (self.root / name).mkdir()
            (self.root / name / "kernel.cu").write_text(f"same\nstage {number}\n")
        self.tools.mkdir()
        for name, body in FAKE_TOOLS.items():
            self.add_tool(name, body)
        compare = folder / "fake_compare"
        compare.write_text(FAKE_COMPARE)
        compare.chmod(0o755)
        self.env = {"FAKE_LOG": str(self.log), "FAKE_COMPARE": str(compare), "FA2_NO_INSTALL": "1",
                    "CXX": str(self.tools / "c++"), "HOME": str(folder),
                    "CUDACXX": "", "CMAKE_PREFIX_PATH": str(folder / "libs"), "TERM": "xterm",
                    "PATH": f"{self.tools}:{Path(sys.executable).parent}:/usr/bin:/bin"}
        for header in ("boost/context/fiber.hpp", "catch2/catch.hpp", "CLI/CLI.hpp",
                       "nlohmann/json.hpp"):
            (folder / "libs" / "include" / header).parent.mkdir(parents=True, exist_ok=True)
            (folder / "libs" / "include" / header).touch()
        (folder / "libs" / "lib").mkdir()
        (folder / "libs" / "lib" / "libboost_context.a").touch()
        self.make_venv("report", "test", "notebooks", "profile")

    def add_tool(self, name: str, body: str) -> None:
        path = self.tools / name
        path.write_text(f"#!/bin/sh\n{textwrap.dedent(body)}\n")
        path.chmod(0o755)

    def make_venv(self, *groups: str) -> None:
        """An environment that looks installed; its Python is the one of the tests."""
        venv = self.root / "build" / "venv"
        (venv / "bin").mkdir(parents=True, exist_ok=True)
        (venv / "bin" / "python").unlink(missing_ok=True)
        (venv / "bin" / "python").symlink_to(sys.executable)
        version = sys.version.split()[0]
        for group in groups:
            text = (self.root / "common/python/requirements" / f"{group}.txt").read_bytes()
            (venv / f"{group}.stamp").write_text(
                f"{hashlib.sha256(text).hexdigest()} {version} {venv}\n")

    def command(self, *arguments: str) -> list[str]:
        return [str(self.root / "fa2"), *arguments]

    def run(self, *arguments: str, **env: str) -> subprocess.CompletedProcess:
        return subprocess.run(self.command(*arguments), cwd=self.root, env=self.env | env,
                              text=True, stdin=subprocess.DEVNULL, capture_output=True, timeout=60)

    def start(self, *arguments: str, **env: str) -> subprocess.Popen:
        return subprocess.Popen(self.command(*arguments), cwd=self.root, env=self.env | env,
                                text=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, start_new_session=True)

    def calls(self) -> list[str]:
        """What the fake tools did, in order."""
        return self.log.read_text().splitlines()


@pytest.fixture
def clone(tmp_path) -> Clone:
    return Clone(tmp_path)


@pytest.fixture(scope="session")
def build_dir() -> Path:
    """The build folder that ./fa2 test built; skips without one."""
    folder = os.environ.get("FA2_BUILD_DIR")
    if not folder:
        pytest.skip("FA2_BUILD_DIR is not set: run by ./fa2 test")
    return Path(folder)


@pytest.fixture
def built(build_dir, monkeypatch):
    """attention() takes the library of that folder."""
    from fa2course import library

    monkeypatch.setenv("FA2_LIBRARY", str(build_dir / "lib" / "libfa2course.so"))
    library.load.cache_clear()
    yield
    library.load.cache_clear()
