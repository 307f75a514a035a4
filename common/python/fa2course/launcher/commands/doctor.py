"""./fa2 doctor"""
import platform
import re
import shutil
import sys
from pathlib import Path

from .. import gpu, packages, paths, stages, toolchain, venv
from ..errors import UserError
from ..process import output_of

SUMMARY = "what was found here, what is missing, and the command that mends it"
HELP = """
usage: ./fa2 doctor

Shows what was found (compiler, CMake, CUDA, GPU, Python, packages), what is missing and the command
that mends it. It changes nothing.

exit status: 0 the course can run here, 2 it cannot yet
"""


class Report:
    """Lines `ok  what: found` and `--  what: missing`, and the commands that mend."""

    def __init__(self):
        self.fixes: list[str] = []
        self.blocked = False

    def found(self, what: str, value: str) -> None:
        print(f"  ok  {what + ':':<22} {value}")

    def missing(self, what: str, value: str, fix: str = "", blocks: bool = False) -> None:
        print(f"  --  {what + ':':<22} {value}")
        if fix and fix not in self.fixes:
            self.fixes.append(fix)
        self.blocked |= blocks


def run(arguments: list[str]) -> int:
    if arguments:
        raise UserError(f"doctor takes no arguments, and got '{arguments[0]}' (./fa2 doctor "
                        "--help)")
    report = Report()
    system(report)
    absent = packages.missing()
    build_tools(report, absent)
    python(report)
    backends(report)
    print()
    automatic = packages.rights() is not None
    if absent and automatic:
        print("./fa2 compare and ./fa2 test install what is missing by themselves:")
        print(f"  {packages.install_command(sorted(set(absent.values())))}")
        report.blocked = False
    elif absent:
        report.fixes.insert(0, packages.install_command(sorted(set(absent.values()))))
    if report.fixes:
        print("To mend what is missing:")
        for fix in report.fixes:
            print(f"  {fix}")
    if not absent and not report.blocked:
        print("Everything that the simulator needs is here.")
    elif report.blocked:
        print("The course cannot run here yet.")
    return 2 if report.blocked else 0


def system(report: Report) -> None:
    release = dict(re.findall(r'^(\w+)="?([^"\n]*)"?$',
                              paths.read_or(Path("/etc/os-release")), re.MULTILINE))
    report.found("system", f"{release.get('PRETTY_NAME', platform.system())}, {platform.machine()}")
    free = shutil.disk_usage(paths.ROOT).free / 1e9
    text = f"{free:.1f} GB free at {paths.ROOT}"
    if free < 1.5:
        report.missing("disk", f"{text}; set-up and build need about 1.5 GB")
    else:
        report.found("disk", text)
    built = [name for name in ("sim", "cuda", "sim-asan")
             if (paths.preset_dir(name) / ".fa2_configured").exists()]
    report.found("stages", ", ".join(stages.names()))
    report.found("build folders", ", ".join(f"build/{name}" for name in built) or "none yet")


def build_tools(report: Report, absent: dict[str, str]) -> None:
    compiler = toolchain.compiler()
    if compiler:
        report.found("C++ compiler", str(compiler))
    else:
        old = toolchain.compilers()
        report.missing("C++ compiler", f"{old[0]} is too old" if old else "none", blocks=True)
    for what, name in (("CMake", "cmake"), ("Ninja", "ninja")):
        path = toolchain.tool(name)
        if not path:
            report.missing(what, f"none{' (3.24 or later)' if name == 'cmake' else ''}; "
                           "pip can bring it into build/venv")
            continue
        version = (output_of([path, "--version"]) or "").split("\n")[0]
        report.found(what, f"{version.removeprefix('cmake version ')} ({path})")
    for library in toolchain.LIBRARIES:
        if library.name in absent:
            report.missing(library.name, "not installed; without apt-get, CMake fetches it")
        else:
            report.found(library.name, str(library.where()))
    ccache = shutil.which("ccache")
    report.found("ccache", ccache or "none (it only makes rebuilding faster)")


def python(report: Report) -> None:
    report.found("Python", f"{sys.version.split()[0]} ({sys.executable})")
    if not toolchain.has_venv():
        report.missing("Python venv", "not installed")
    for group, what in (("report", "numpy, matplotlib"), ("test", "pytest, clang-format")):
        if venv.is_ready(group):
            report.found(f"packages ({group})", f"{what} in build/venv")
        else:
            report.found(f"packages ({group})", f"{what}: installed when first needed")


def backends(report: Report) -> None:
    found = gpu.detect()
    if found.nvcc:
        report.found("nvcc", f"{found.nvcc_version} ({found.nvcc})")
    else:
        report.found("nvcc", "none (only the GPU backend needs it)")
    for name in found.gpus:
        report.found("GPU", f"{name}, driver {found.driver}, CUDA {found.driver_cuda or '?'}")
    if found.usable:
        report.found("runs on", "the GPU; --backend sim for the simulator")
    else:
        report.found("runs on", f"the simulator: {found.reason}")
