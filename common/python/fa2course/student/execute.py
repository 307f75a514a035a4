"""Running a program for the checker. The grader passes its own function of this kind, which puts a
sandbox around the phases that handle foreign code."""
import contextlib
import os
import resource
import signal
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

MAX_OUTPUT = 64 * 1024       # bytes of output that anyone looks at
MAX_FILE = 1024 * 1024 * 1024  # bytes that a file may grow to


@dataclass(frozen=True)
class Done:
    returncode: int  # negative: ended by that signal
    output: str      # stdout and stderr together, the end of it
    timed_out: bool = False

    def why(self) -> str:
        """How it ended, for a sentence."""
        if self.timed_out:
            return "did not end in time"
        if self.returncode < 0:
            number = -self.returncode
            name = signal.strsignal(number) or "unknown"
            return f"died of signal {number} ({name.lower()})"
        return f"ended with status {self.returncode}"


class Interrupted(Exception):
    """Nobody waits for the result any more."""


class Execute(Protocol):
    """phase: "compile" (reads the kernel, writes only into scratch), "run" (loads the compiled
    kernel, writes only into scratch) or "judge" (never loads the kernel: trusted)."""

    def __call__(self, phase: str, command: list[str], scratch: Path, timeout: float) -> Done: ...


def plainly(phase: str, command: list[str], scratch: Path, timeout: float,
            interrupted: Callable[[], bool] = lambda: False) -> Done:
    """No sandbox, only limits on time and on the size of files: for one's own kernel. Raises
    Interrupted, with everything ended, once `interrupted` says so."""
    path = scratch / f"{phase}.output"
    deadline = time.monotonic() + timeout
    timed_out = False
    with open(path, "wb") as output:
        child = subprocess.Popen(
            command, cwd=scratch, stdin=subprocess.DEVNULL, stdout=output,
            stderr=subprocess.STDOUT, process_group=0)
        try:
            with contextlib.suppress(ProcessLookupError):  # it has ended already
                resource.prlimit(child.pid, resource.RLIMIT_FSIZE, (MAX_FILE, MAX_FILE))
            while child.poll() is None and not timed_out:
                try:
                    child.wait(0.1)
                except subprocess.TimeoutExpired:
                    timed_out = time.monotonic() > deadline
                if interrupted():
                    raise Interrupted
        finally:
            try:
                os.killpg(child.pid, signal.SIGKILL)
            except (ProcessLookupError, PermissionError):
                pass
            child.wait()
    return Done(child.returncode, tail(path), timed_out)


def tail(path: Path) -> str:
    with open(path, "rb") as file:
        file.seek(max(0, path.stat().st_size - MAX_OUTPUT))
        return file.read().decode(errors="replace")
