"""Progress for people: one line per step, rewritten in place on a terminal, and plain lines (start,
every 30 s, end) in a log. Progress goes to stderr, so stdout holds results only."""
import os
import shutil
import sys
import threading
import time

HEARTBEAT_S = 30


def is_terminal(stream) -> bool:
    return stream.isatty() and os.environ.get("TERM", "dumb") != "dumb"


def say(message: str) -> None:
    """One line to the person at the terminal."""
    print(f"fa2: {message}", file=sys.stderr, flush=True)


def seconds(value: float) -> str:
    if value < 1:
        return f"{value:.1f} s"
    if value < 120:
        return f"{value:.0f} s"
    return f"{int(value) // 60} min {int(value) % 60:02d} s"


class Step:
    """A step of the set-up or build: `with Step("build (sim)") as step: step.update("3/10")`."""

    def __init__(self, title: str):
        self.title = title
        self.state = ""
        self.note = ""  # shown on the last line
        self._live = is_terminal(sys.stderr)
        self._stop = threading.Event()
        self._lock = threading.Lock()

    def __enter__(self) -> "Step":
        self._start = time.monotonic()
        self._last_line = self._start
        if self._live:
            self._draw()
        else:
            say(f"{self.title} ...")
        self._thread = threading.Thread(target=self._tick, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, kind, value, traceback) -> None:
        self._stop.set()
        self._thread.join()
        took = seconds(time.monotonic() - self._start)
        if self._live:
            sys.stderr.write("\r\x1b[K")
        if kind is None:
            say(f"{self.title}: {self.note + ', ' if self.note else 'done, '}{took}")
        elif not issubclass(kind, KeyboardInterrupt):
            say(f"{self.title}: failed after {took}")

    def update(self, state: str) -> None:
        self.state = state
        if self._live:
            self._draw()

    def _tick(self) -> None:
        while not self._stop.wait(0.5):
            if self._live:
                self._draw()
            elif time.monotonic() - self._last_line >= HEARTBEAT_S:
                self._last_line = time.monotonic()
                state = f" {self.state}" if self.state else ""
                say(f"{self.title} ...{state} ({seconds(self._last_line - self._start)} so far)")

    def _draw(self) -> None:
        with self._lock:
            took = seconds(round(time.monotonic() - self._start))
            line = f"fa2: {self.title} ... {self.state + ', ' if self.state else ''}{took}"
            width = shutil.get_terminal_size().columns - 1
            sys.stderr.write(f"\r\x1b[K{line[:width]}")
            sys.stderr.flush()
