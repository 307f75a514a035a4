"""Packages, the Python environment and small helpers of the launcher, with the network faked."""
import importlib
import re
from importlib import metadata
from pathlib import Path

import pytest
from packaging.specifiers import SpecifierSet

from fa2course.launcher import build, packages, paths, process, toolchain, venv
from fa2course.launcher import commands
from fa2course.launcher.commands import compare, test as test_command
from fa2course.launcher.errors import UserError
from fa2course.launcher.options import check_known, value_of

COMMANDS = Path(commands.__file__).parent


@pytest.fixture
def place(tmp_path, monkeypatch):
    """The launcher with its build folder in tmp_path."""
    for module, name, value in (
            (paths, "BUILD", tmp_path), (paths, "LOGS", tmp_path / "logs"),
            (paths, "VENV", tmp_path / "venv"), (paths, "STATE", tmp_path / ".fa2"),
            (venv, "PYTHON", tmp_path / "venv/bin/python"),
            (venv, "MARKER", tmp_path / "venv/installing")):
        monkeypatch.setattr(module, name, value)
    return tmp_path


@pytest.fixture
def pip(place, monkeypatch):
    """Replaces the making of environments; pip.result is what `pip install` does."""
    class Pip:
        created = installed = 0
        result = (0, "")

    def create():
        Pip.created += 1
        (place / "venv/bin").mkdir(parents=True, exist_ok=True)
        for old in (place / "venv").glob("*.stamp"):
            old.unlink()
        venv.MARKER.unlink(missing_ok=True)
        venv.PYTHON.touch()

    def run_logged(command, *args, **kwargs):
        Pip.installed += 1
        if isinstance(Pip.result, BaseException):
            raise Pip.result
        return Pip.result

    monkeypatch.setattr(venv, "create", create)
    monkeypatch.setattr(venv, "usable", lambda: venv.PYTHON.exists() and not venv.MARKER.exists())
    monkeypatch.setattr(process, "run_logged", run_logged)
    return Pip


def test_environment_is_made_once(pip):
    for _ in range(2):
        assert venv.ensure(["report"]) == venv.PYTHON
    assert (pip.created, pip.installed) == (1, 1)
    venv.ensure(["report", "test"])  # one more group, the same environment
    assert (pip.created, pip.installed) == (1, 2)


def test_changed_requirements_install_again(pip):
    venv.ensure(["report"])
    venv.stamp("report").write_text("of other requirements")
    venv.ensure(["report"])
    assert (pip.created, pip.installed) == (1, 2)


def test_killed_install_makes_a_new_environment(pip):
    pip.result = KeyboardInterrupt()
    with pytest.raises(KeyboardInterrupt):
        venv.ensure(["report"])
    pip.result = (0, "")
    venv.ensure(["report"])
    assert pip.created == 2 and venv.is_ready("report")


@pytest.mark.parametrize("sign, reason", [
    ("SSLError(SSLCertVerificationError(1, '[SSL: CERTIFICATE_VERIFY_FAILED] certificate",
     "does not trust the certificate"),
    ("NewConnectionError('Failed to establish: [Errno -3] Temporary failure in name resolution')",
     "does not reach the package index"),
    ("ProxyError('Cannot connect to proxy.', OSError('Tunnel connection failed: 403'))",
     "does not reach the package index"),
])
def test_an_index_that_was_not_reached_is_the_reason(pip, sign, reason):
    pip.result = (1, f"WARNING: Retrying after connection broken by '{sign}': /simple/numpy/\n"
                     "ERROR: No matching distribution found for numpy==9\n")
    with pytest.raises(venv.Unavailable, match=reason):
        venv.ensure(["report"])


def test_no_network_says_why_and_uses_what_python_has(pip):
    pip.result = (1, "ERROR: No matching distribution found for numpy==9\n")
    with pytest.raises(venv.Unavailable, match="No matching distribution found for numpy==9"):
        venv.ensure(["report"])
    assert venv.ensure_or_system(["report"], ["sys", "os"]).name.startswith("python")
    with pytest.raises(UserError, match="surely_not_there.*No matching distribution"):
        venv.ensure_or_system(["report"], ["surely_not_there"])


@pytest.fixture
def apt(place, monkeypatch):
    """A machine where apt-get may be used; apt.answers are the results of its calls in turn."""
    class Apt:
        calls: list[list[str]] = []
        answers: list[tuple[int, str]] = []
        absent = {"CMake": "cmake"}

    Apt.calls, Apt.answers = [], []

    def run_logged(command, *args, **kwargs):
        Apt.calls.append([word for word in command if not word.startswith("-")][-2:])
        return Apt.answers.pop(0)

    monkeypatch.setattr(packages, "rights", lambda: [])
    monkeypatch.setattr(packages, "missing", lambda with_libraries=True: dict(Apt.absent))
    monkeypatch.setattr(process, "run_logged", run_logged)
    return Apt


def test_apt_updates_its_lists_only_when_it_must(apt):
    apt.answers = [(0, "")]
    packages.ensure(True)
    assert apt.calls == [["install", "cmake"]]


def test_apt_with_empty_lists(apt):
    apt.answers = [(100, "E: Unable to locate package cmake"), (0, ""), (0, "")]
    packages.ensure(True)
    assert [call[-1] for call in apt.calls] == ["cmake", "update", "cmake"]


def test_apt_after_a_kill(apt):
    interrupted = "E: dpkg was interrupted, you must manually run 'dpkg --configure -a'"
    apt.answers = [(100, interrupted), (0, ""), (0, ""), (0, "")]
    packages.ensure(True)
    assert ["dpkg"] == [c[-1] for c in apt.calls][1:2]


def test_apt_that_fails_says_why(apt, capsys):
    apt.answers = [(100, "E: no"), (100, ""), (100, "E: Failed to fetch x: no network")]
    assert packages.ensure(True) == apt.absent
    assert "Failed to fetch x: no network" in capsys.readouterr().err


def test_no_rights_without_permission(monkeypatch):
    monkeypatch.setenv("FA2_NO_INSTALL", "1")
    assert packages.rights() is None


def test_missing_tools_come_by_pip_or_are_named(monkeypatch):
    monkeypatch.setattr(packages, "ensure", lambda with_libraries: {"CMake": "cmake"})

    def unavailable(groups):
        raise venv.Unavailable("no network")

    monkeypatch.setattr(venv, "ensure", unavailable)
    with pytest.raises(UserError, match="CMake not found.*no network.*apt-get install cmake"):
        build.ensure_tools()


def test_failed_fetch_names_the_packages(monkeypatch):
    monkeypatch.setattr(toolchain.Library, "found", lambda self: self.name != "CLI11")
    text = build.explain_configure("sim", "x\nCMake Error at y:\n  Failed to download\n")
    assert "CMake Error at y" in text and "apt-get install libcli11-dev" in text
    assert "libboost-context-dev" not in text


def test_options():
    check_known("x", "  --seqlen-k N  --out DIR", ["--seqlen-k", "--out=3", "--", "--other"])
    with pytest.raises(UserError, match="--seq "):
        check_known("x", "--seqlen", ["--seq"])
    assert value_of("--out", ["--out", "a", "--out=b"]) == "b"
    assert value_of("--out", ["--out"]) is None


@pytest.mark.parametrize("name", [path.stem for path in COMMANDS.glob("[a-z]*.py")])
def test_every_option_that_a_help_shows_is_known(name):
    text = importlib.import_module(f"fa2course.launcher.commands.{name}").HELP
    shown = re.findall(r"(?<![\w-])--[A-Za-z][\w-]*", text)
    check_known(name, text, shown)


def test_counts_of_junit(tmp_path):
    path = tmp_path / "x.xml"
    path.write_text('<testsuite tests="5" failures="1" errors="0" skipped="1"/>')
    assert str(test_command.read_junit(path)) == "3 passed, 1 failed, 1 skipped"
    path.write_text("<testsuites><testsuite tests='2' failures='0' errors='1'/></testsuites>")
    assert str(test_command.read_junit(path)) == "1 passed, 1 failed"
    path.write_text("<testsuite")  # ctest was killed
    assert test_command.read_junit(path) is None


def test_ctest_failures_are_shown_without_the_rest():
    output = """\
      Start  1: a
 1/2 Test  #1: a ....   Passed    0.00 sec
      Start  2: b
 2/2 Test  #2: b ....***Failed    0.00 sec
b.cpp:3: FAILED
50% tests passed, 1 tests failed out of 2
The following tests FAILED:
	  2 - b (Failed)
"""
    shown = test_command.failures_of_ctest(output)
    assert "b.cpp:3: FAILED" in shown and "2 - b" in shown and "Passed" not in shown


def test_full_disk_in_a_log(place):
    with pytest.raises(UserError, match="the disk is full"):
        process.run_logged(["sh", "-c", "echo 'x: No space left on device'; exit 1"], "x")


def test_files_are_written_whole(tmp_path, monkeypatch):
    path = tmp_path / "x"
    paths.write_whole(path, "old")

    def half(file, content):
        file.open("wb").write(content[:1])
        raise OSError(28, "full")

    monkeypatch.setattr(paths.Path, "write_bytes", half)
    with pytest.raises(OSError):
        paths.write_whole(path, "new")
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_compare_help_is_that_of_the_program(build_dir):
    """The launcher refuses options that its help does not name, so the two must agree."""
    import re
    import subprocess

    program = build_dir / "bin" / "fa2-compare"
    shown = subprocess.run([program, "--help"], capture_output=True, text=True, check=True).stdout
    pattern = r"(?<![\w-])--[a-z][a-z-]*"
    options = set(re.findall(r"^\s+(?:-\w,)?(--[a-z][a-z-]*)", shown, re.MULTILINE)) - {"--help"}
    of_the_launcher = {"--help", "--merge", "--scheduler", "--peers"}
    assert options == set(re.findall(pattern, compare.HELP)) - of_the_launcher


def test_headers_without_their_library_do_not_count(tmp_path, monkeypatch):
    """Ubuntu's libboost-dev has Boost.Context's headers, but not what they call."""
    monkeypatch.setattr(toolchain, "header", lambda name: tmp_path / "include" / name)
    boost = next(lib for lib in toolchain.LIBRARIES if lib.name == "Boost.Context")
    assert not boost.found()
    (tmp_path / "lib" / "x86_64-linux-gnu").mkdir(parents=True)
    (tmp_path / "lib" / "x86_64-linux-gnu" / "libboost_context.a").touch()
    assert boost.found()


def test_build_failure_shows_errors_but_no_command_lines():
    text = build.explain_build("sim", """\
[1/3] Building CXX object a.o
FAILED: b.o
/usr/bin/ccache /usr/bin/c++ -O2 -c b.cpp
/clone/stage3_fa2_seqpar/c++ar/b.cpp:7:1: error: no such thing
ninja: build stopped: subcommand failed.
""")
    assert "b.cpp:7:1: error: no such thing" in text and "-O2" not in text and "[1/3]" not in text


@pytest.mark.parametrize("names, found", [
    (("g++-14", "gcc-14"), "gcc-14"), (("clang++-19", "clang-19"), "clang-19"),
    (("g++-14",), None), (("g++-14", "gcc-14", "cc"), None)])
def test_compiler_with_a_version_in_its_name(tmp_path, monkeypatch, names, found):
    """Without a program called cc, CMake would find no C compiler."""
    for name in names:
        (tmp_path / name).write_text("")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CC", raising=False)
    compiler = toolchain.Compiler(str(tmp_path / names[0]), "g++", "14.2.0")
    monkeypatch.setattr(toolchain, "compiler", lambda: compiler)
    monkeypatch.setattr(toolchain, "tool", lambda name: name)
    arguments = [word for word in build.configure_arguments("sim", "cmake") if "C_COMPILER" in word]
    assert arguments == ([f"-DCMAKE_C_COMPILER={tmp_path / found}"] if found else [])


def pinned() -> list[str]:
    texts = (path.read_text() for path in sorted(paths.REQUIREMENTS.glob("*.txt")))
    return re.findall(r"^([\w.-]+)==", "\n".join(texts), re.MULTILINE)


@pytest.mark.parametrize("name", pinned())
def test_pinned_package_takes_the_oldest_python(name):
    """The launcher promises 3.11; Debian 12 has 3.11.2."""
    try:
        wanted = metadata.metadata(name).get("Requires-Python")
    except metadata.PackageNotFoundError:
        pytest.skip(f"{name} is not in this environment")
    assert SpecifierSet(wanted or "").contains("3.11.0")
