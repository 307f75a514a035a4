"""Running other programs: quietly into a log, or in the foreground."""
import errno
import os
import re
import shutil
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

from . import lock, paths
from .errors import UserError

FULL_DISK = re.compile(r"No space left on device|Disk quota exceeded|disk full", re.IGNORECASE)


def output_of(command: list[str], timeout: float = 20) -> str | None:
    """The program's standard output, or None when it is missing, fails or hangs."""
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL, timeout=timeout, text=True,
                              errors="replace")
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout if done.returncode == 0 else None


def environment() -> dict[str, str]:
    """The environment of every program that ./fa2 starts: its own, with caches kept in build/ where
    the home folder cannot be written."""
    env = dict(os.environ)
    env.setdefault("PATH", os.defpath)
    env["PYTHONPATH"] = str(paths.PYTHON_SOURCES)
    env["PYTHONUTF8"] = "1"
    env["PYTHONPYCACHEPREFIX"] = str(paths.BUILD / "pycache")
    env["MPLCONFIGDIR"] = str(paths.BUILD / "matplotlib")
    home = Path(env.get("HOME") or "/nonexistent")
    if not os.access(home, os.W_OK | os.X_OK):
        env.setdefault("CCACHE_DIR", str(paths.BUILD / "ccache"))
        env.setdefault("PIP_CACHE_DIR", str(paths.BUILD / "pip-cache"))
    return env


def stop(child: subprocess.Popen, group: bool = False) -> None:
    """Ends a child, or all of its process group: politely, then for good."""
    for number, patience in ((signal.SIGINT, 5), (signal.SIGTERM, 3), (signal.SIGKILL, 5)):
        if child.poll() is not None:
            return
        try:
            os.killpg(child.pid, number) if group else child.send_signal(number)
            child.wait(patience)
        except (subprocess.TimeoutExpired, ProcessLookupError):
            continue


def run_logged(command: list[str], log: str, on_line: Callable[[str], None] | None = None,
               env: dict[str, str] | None = None, cwd: Path | None = None,
               hold_lock: bool = True, interactive: bool = False) -> tuple[int, str]:
    """Runs a program with its output going to build/logs/<log>.log. Returns its exit status and
    output; raises UserError when the disk is full."""
    paths.LOGS.mkdir(parents=True, exist_ok=True)
    lines: list[str] = []
    with open(paths.LOGS / f"{log}.log", "w", errors="replace") as file:
        file.write(f"$ {' '.join(command)}\n")
        child = subprocess.Popen(
            command, cwd=cwd or paths.ROOT, env=env or environment(), text=True, errors="replace",
            stdin=None if interactive else subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, pass_fds=lock.inherited() if hold_lock else (),
            # A group of its own, so that an interrupt ends the compilers below it, too. A sudo that
            # asks for a password must stay in ours to reach the terminal.
            process_group=None if interactive else 0)
        try:
            for line in child.stdout:
                file.write(line)
                lines.append(line)
                if on_line:
                    on_line(line)
            child.wait()
        finally:
            stop(child, group=not interactive)
    output = "".join(lines)
    if child.returncode != 0 and FULL_DISK.search(output):
        raise UserError(f"the disk is full ({free_space()}). Free some space and run the same "
                        "command again.")
    return child.returncode, output


def run_foreground(command: list[str], env: dict[str, str] | None = None) -> int:
    """Runs a program that talks to the person itself. Returns its status, 128 + n for signal n."""
    try:
        child = subprocess.Popen(command, env=env or environment())
    except OSError as error:
        if error.errno == errno.ENOENT:
            raise UserError(f"{command[0]} is not there", 1) from error
        raise
    try:
        status = child.wait()
    except KeyboardInterrupt:
        # On a terminal the child got Ctrl-C as well; let it end in its own way.
        try:
            status = child.wait(2)
        except subprocess.TimeoutExpired:
            stop(child)
            status = child.returncode
        if status == 130:  # it has said so itself
            return status
        raise
    return 128 - status if status < 0 else status


def free_space() -> str:
    """For messages about a full disk."""
    try:
        free = shutil.disk_usage(paths.ROOT).free
    except OSError:
        return str(paths.ROOT)
    return f"{free / 1e6:.0f} MB free at {paths.ROOT}"
