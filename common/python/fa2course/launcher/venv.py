"""The Python environment in build/venv, with pinned packages.

A requirements file is installed once: its stamp, written last, holds what was installed. An
environment that was left half-made (killed, disk full) has the marker `installing`: made anew.
"""
import hashlib
import re
import shutil
import subprocess
import sys
import urllib.request
from pathlib import Path

from . import paths, process, toolchain
from .console import Step, say
from .errors import UserError

# For a Python without ensurepip, as Debian's without python3-venv: pip installs itself from this.
PIP_URL = ("https://files.pythonhosted.org/packages/c9/bc/"
           "b7db44f5f39f9d0494071bddae6880eb645970366d0a200022a1a93d57f5/"
           "pip-25.0.1-py3-none-any.whl")
PIP_SHA256 = "c46efd13b6aa8279f33f2864459c8ce587ea6a1a59ee20de055868d8f7688f7f"

PYTHON = paths.VENV / "bin" / "python"
MARKER = paths.VENV / "installing"


class Unavailable(Exception):
    """The packages could not be installed; the text says why."""


# Where pip reaches no index, its last words are that it found no package there.
UNREACHED = {
    "CERTIFICATE_VERIFY_FAILED": "pip does not trust the certificate of the package index, perhaps "
                                 "a proxy's; PIP_CERT=FILE names the certificates to trust",
    "Temporary failure in name resolution|Name or service not known|Network is unreachable|"
    "Connection refused|ConnectTimeoutError|ReadTimeoutError|ProxyError":
        "pip does not reach the package index; is there a network, or a proxy to name in "
        "HTTPS_PROXY?",
}


def why_not(output: str) -> str:
    """What kept pip from installing, in one sentence; "" if it does not say."""
    for signs, reason in UNREACHED.items():
        if re.search(signs, output):
            return reason
    errors = [line for line in output.splitlines() if line.startswith("ERROR: ")]
    return errors[-1][len("ERROR: "):] if errors else ""


def wanted(group: str) -> str:
    """What the stamp of an up-to-date group contains. An environment knows its own path, so a moved
    clone needs a new one."""
    text = (paths.REQUIREMENTS / f"{group}.txt").read_bytes()
    return f"{hashlib.sha256(text).hexdigest()} {sys.version.split()[0]} {paths.VENV}\n"


def stamp(group: str) -> Path:
    return paths.VENV / f"{group}.stamp"


def is_ready(group: str) -> bool:
    return not MARKER.exists() and paths.read_or(stamp(group)) == wanted(group)


def ensure(groups: list[str]) -> Path:
    """The Python that has these groups installed. Raises Unavailable."""
    todo = [group for group in groups if not is_ready(group)]
    if not todo:
        return PYTHON
    with Step(f"Python environment ({', '.join(todo)})") as step:
        if not usable():
            create()
        MARKER.touch()
        files = [part for group in todo
                 for part in ("-r", str(paths.REQUIREMENTS / f"{group}.txt"))]
        status, output = process.run_logged(
            [str(PYTHON), "-m", "pip", "install", "--disable-pip-version-check", "--no-input",
             "--progress-bar", "off", "--only-binary", ":all:", "--retries", "2", "--timeout", "20",
             *files], "pip",
            on_line=lambda line: step.update(line.split(" (")[0].strip()[:40]))
        if status != 0:
            step.note = "not installed"
            reason = why_not(output) or f"pip ended with status {status}"
            MARKER.unlink()  # pip installs nothing unless it has everything
            raise Unavailable(f"{reason.rstrip('.')} (log: {paths.LOGS / 'pip.log'})")
        for group in todo:
            paths.write_whole(stamp(group), wanted(group))
        MARKER.unlink()
    return PYTHON


def usable() -> bool:
    """Whether build/venv is whole, of this Python, and in the place where it was made."""
    if MARKER.exists() or not PYTHON.exists():
        return False
    made_for = process.output_of([str(PYTHON), "-c", "import pip, sys; print(sys.prefix, "
                                  "sys.version.split()[0])"])
    return (made_for or "").strip() == f"{paths.VENV} {sys.version.split()[0]}"


def create() -> None:
    shutil.rmtree(paths.VENV, ignore_errors=True)
    with_pip = toolchain.has_venv()
    options = [] if with_pip else ["--without-pip"]
    status, output = process.run_logged([sys.executable, "-m", "venv", *options, str(paths.VENV)],
                                        "venv")
    if status != 0:
        raise Unavailable(f"python3 -m venv failed: {(output.strip().splitlines() or ['?'])[-1]}")
    if not with_pip:
        wheel = paths.VENV / PIP_URL.rsplit("/", 1)[1]
        try:
            with urllib.request.urlopen(PIP_URL, timeout=30) as answer:
                data = answer.read()
        except OSError as error:
            raise Unavailable("python3-venv is not installed, and pip could not be fetched: "
                              f"{error}")
        if hashlib.sha256(data).hexdigest() != PIP_SHA256:
            raise Unavailable(f"{PIP_URL} is not the file it was")
        wheel.write_bytes(data)
        status, output = process.run_logged(
            [str(PYTHON), f"{wheel}/pip", "install", "--no-index", str(wheel)], "venv")
        if status != 0:
            raise Unavailable("pip could not be installed into build/venv")


def ensure_or_system(groups: list[str], modules: list[str]) -> Path:
    """As ensure(); where pip reaches no index, this Python will do if it has the modules."""
    try:
        return ensure(groups)
    except Unavailable as error:
        check = subprocess.run([sys.executable, "-c", f"import {', '.join(modules)}"],
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        if check.returncode == 0:
            say(f"{sys.executable} has {', '.join(modules)}: going on with it")
            return Path(sys.executable)
        raise UserError(f"the Python packages {', '.join(modules)} are missing and could not be "
                        f"installed into build/venv: {error}") from None
