"""System packages: with rights they are installed by apt-get; without, what is missing is named."""
import os
import re
import shutil
import sys

from . import process, toolchain
from .console import Step, say
from .errors import UserError
from .process import output_of

APT_OPTIONS = ["-q", "-y", "-o", "DPkg::Lock::Timeout=300", "--no-install-recommends"]


def missing(with_libraries: bool = True) -> dict[str, str]:
    """What is not here: {what it is: the Debian package that brings it}."""
    absent = {}
    if not toolchain.compiler():
        absent["C++ compiler"] = "g++"
    if not toolchain.tool("cmake"):
        absent["CMake"] = "cmake"
    if not toolchain.tool("ninja"):
        absent["Ninja"] = "ninja-build"
    if not toolchain.has_venv():
        absent["Python venv"] = "python3-venv"
    if with_libraries:
        absent |= {lib.name: lib.package for lib in toolchain.LIBRARIES if not lib.found()}
    return absent


def install_command(packages: list[str]) -> str:
    """What a person types to install them."""
    sudo = "" if os.geteuid() == 0 else "sudo "
    return f"{sudo}apt-get install {' '.join(packages)}"


def rights() -> list[str] | None:
    """What to put before a command to run it as root; None when that cannot be done."""
    if os.environ.get("FA2_NO_INSTALL") or not shutil.which("apt-get"):
        return None
    if os.geteuid() == 0:
        return []
    if not shutil.which("sudo"):
        return None
    if output_of(["sudo", "-n", "true"]) is not None:
        return ["sudo", "-n"]
    return ["sudo"] if sys.stdin.isatty() and sys.stderr.isatty() else None


def apt_get(sudo: list[str], arguments: list[str], log: str) -> tuple[int, str]:
    command = [*sudo, "env", "DEBIAN_FRONTEND=noninteractive", "LC_ALL=C", "apt-get", *APT_OPTIONS]
    # The clone's lock is not handed on: a package may start a service that would keep it.
    return process.run_logged(command + arguments, log, hold_lock=False,
                              interactive=sudo == ["sudo"])


def install(packages: list[str], sudo: list[str]) -> str:
    """Installs packages. Returns "" or why it did not work."""
    if sudo == ["sudo"]:
        say(f"sudo may ask for your password, to run: {install_command(packages)}")
        if process.run_foreground(["sudo", "-v"]) != 0:
            return "sudo was refused"
        sudo = ["sudo", "-n"]
    with Step(f"system packages ({' '.join(packages)})") as step:
        status, output = apt_get(sudo, ["install", *packages], "apt_install")
        if status != 0 and "dpkg --configure -a" in output:  # an earlier run was killed
            process.run_logged([*sudo, "dpkg", "--configure", "-a"], "dpkg_configure",
                               hold_lock=False)
        if status != 0:  # the lists may be missing (a fresh container) or old
            _, updated = apt_get(sudo, ["update"], "apt_update")
            status, output = apt_get(sudo, ["install", *packages], "apt_install")
            output = updated + output
        if status == 0:
            return ""
        step.note = "not installed"
    errors = re.findall(r"^(?:E|W|Err):? ?(.*)$", output, re.MULTILINE)
    return errors[-1].strip() if errors else f"apt-get ended with status {status}"


def ensure(with_libraries: bool) -> dict[str, str]:
    """Installs what is missing, where that is allowed. Returns what is still missing."""
    absent = missing(with_libraries)
    sudo = rights() if absent else None
    if not absent or sudo is None:
        return absent
    reason = install(sorted(set(absent.values())), sudo)
    if reason:
        say(f"apt-get could not install them: {reason}")
    return missing(with_libraries)


def require_compiler(absent: dict[str, str]) -> None:
    """Raises when there is no compiler: nothing but the system's packages brings one."""
    if "C++ compiler" not in absent:
        return
    old = toolchain.compilers()
    reason = f"{old[0]} is too old" if old else "no C++ compiler was found"
    raise UserError(
        f"{reason}; the course needs g++ {toolchain.MIN_GCC} or later, or clang++ "
        f"{toolchain.MIN_CLANG} or later. Install one: {install_command(['g++'])}")
