"""Two ./fa2 in one clone: the second waits while the first sets up or builds."""
import contextlib
import fcntl
import os

from . import paths
from .console import say

_descriptor: int | None = None


@contextlib.contextmanager
def exclusive():
    """Holds the clone's lock. Children that get `inherited()` hold it too: when ./fa2 is killed,
    the next one waits for what the dead one left running: it would build into the same folder."""
    global _descriptor
    if _descriptor is not None:  # already held by an outer call
        yield
        return
    paths.STATE.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(paths.STATE / "lock", os.O_RDWR | os.O_CREAT, 0o644)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("another ./fa2 is setting up or building in this clone; waiting for it "
                "(Ctrl-C to give up)")
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        _descriptor = descriptor
        yield
    finally:
        _descriptor = None
        os.close(descriptor)


def inherited() -> tuple[int, ...]:
    """What to pass as pass_fds to a child that works in the build folder."""
    return () if _descriptor is None else (_descriptor,)
