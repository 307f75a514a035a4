"""Runs one program that is not trusted: in bubblewrap where it is present, with limits in any case.

Two layers. The kernel keeps the program in: namespaces (bubblewrap) take away the network, other
processes and every file but those named here; resource limits bound each process. A watcher in this
process bounds what the kernel does not: all processes of the program together, their memory, what
they print and what they leave in the scratch folder. Whoever passes a bound is killed with all of
its processes.
"""
import ctypes
import fcntl
import functools
import os
import re
import resource
import secrets
import selectors
import shutil
import signal
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

MiB = 1 << 20
TICK_S = 0.1
STOP = threading.Event()  # when set, what runs is killed and nothing is started: Ctrl-C
SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/etc/alternatives",
          "/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d")
FIRST_USER, USERS = 60_000, 500  # ids that no system account has
WITHOUT = ("a submission can reach the network and read what everyone may read, other submissions "
           "and solutions too; only the limits hold")


@dataclass(frozen=True)
class Limits:
    """Of one program, with all the processes that it starts."""
    seconds: float = 60
    memory: int = 3072 * MiB
    processes: int = 64  # threads count
    file: int = 256 * MiB  # a single one
    scratch: int = 512 * MiB  # all files left there
    output: int = MiB // 4


@dataclass(frozen=True)
class Ended:
    status: int | None  # of exit; None when it was killed
    stopped: str  # why it was killed, in words; "" when it ended by itself
    output: str


@dataclass(frozen=True)
class Protection:
    """What holds on this machine."""
    bubblewrap: str | None
    missing: str = ""  # a sentence; empty when all holds


@functools.cache
def protection() -> Protection:
    """Tries bubblewrap once: it may be there and not be allowed to make namespaces."""
    bwrap = shutil.which("bwrap")
    if not bwrap:
        return Protection(None, "bubblewrap is not installed (apt-get install bubblewrap): "
                          + WITHOUT)
    try:
        tried = subprocess.run([*_namespaces(bwrap), *_mounts([]), "--", "/bin/true"],
                               capture_output=True, text=True, timeout=20, check=False)
        reason = tried.stderr.strip() or "it fails" if tried.returncode != 0 else ""
    except subprocess.TimeoutExpired:
        reason = "it hangs"
    if reason:
        return Protection(None, f"bubblewrap cannot run here ({reason.splitlines()[-1]}): "
                                f"{WITHOUT}")
    return Protection(bwrap)


def _namespaces(bwrap: str) -> list[str]:
    arguments = [bwrap, "--unshare-pid", "--unshare-net", "--unshare-ipc", "--unshare-uts",
                 "--unshare-cgroup-try", "--die-with-parent", "--new-session",
                 "--hostname", "grading", "--cap-drop", "ALL"]
    if os.geteuid() != 0:
        return [*arguments, "--unshare-user"]
    # Root needs no user namespace, and becomes nobody inside (see Sandbox.command).
    return [*arguments, "--cap-add", "CAP_SETUID", "--cap-add", "CAP_SETGID"]


def _mounts(readable: list[Path]) -> list[str]:
    arguments = []
    for path in SYSTEM:
        if os.path.islink(path):
            arguments += ["--symlink", os.readlink(path), path]
        elif os.path.exists(path):
            arguments += [*_parents(Path(path)), "--ro-bind", path, path]
    arguments += ["--proc", "/proc", "--dev", "/dev"]
    for path in readable:
        arguments += [*_parents(path), "--ro-bind", str(path), str(path)]
    return arguments


def _parents(path: Path) -> list[str]:
    """Folders on the way to a mount. Those that bubblewrap makes by itself only root may enter."""
    return [word for parent in reversed(path.parents[:-1]) for word in ("--dir", str(parent))]


class User:
    """A user id that no other sandbox here has while this object lives. Only for root."""
    FOLDER = Path("/run/fa2-grade-users")

    def __init__(self):
        self.FOLDER.mkdir(mode=0o700, exist_ok=True)
        for self.id in range(FIRST_USER, FIRST_USER + USERS):
            self._lock = open(self.FOLDER / str(self.id), "w")  # given up with this object
            try:
                fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return
            except BlockingIOError:
                self._lock.close()
        raise RuntimeError(f"all {USERS} user ids for sandboxes are taken")


@dataclass
class Sandbox:
    """Where programs run: they may write in `scratch` and read `readable`, besides the system.
    Where root grades, each sandbox has a user of its own, who owns nothing but `scratch`."""
    scratch: Path
    readable: list[Path] = field(default_factory=list)
    limits: Limits = Limits()
    owner: User | None = None  # of the scratch folder, where sandboxes share one

    def __post_init__(self):
        _adopt_orphans()
        self.scratch = self.scratch.resolve()
        self.token = secrets.token_hex(16)
        self.user = None
        if os.geteuid() == 0:
            self.owner = self.owner or User()
            self.user = self.owner.id
            os.chown(self.scratch, self.user, self.user)

    def command(self, command: list[str], limits: Limits) -> list[str]:
        bwrap = protection().bubblewrap
        inside = [*self._become(), *self._bounds(limits, in_namespace=bwrap is not None),
                  "/usr/bin/env", "-C", str(self.scratch), *command]
        if not bwrap:
            return inside
        scratch = str(self.scratch)
        return [*_namespaces(bwrap), *_mounts(self.readable), *_parents(self.scratch),
                "--bind", scratch, scratch, "--chdir", "/",
                # Nothing else may be written, not even the memory that bubblewrap's root lies in.
                "--remount-ro", "/dev", "--remount-ro", "/", "--", *inside]

    def _become(self) -> list[str]:
        if self.user is None:
            return []
        return ["/usr/bin/setpriv", f"--reuid={self.user}", f"--regid={self.user}",
                "--clear-groups", "--no-new-privs", "--"]

    def _bounds(self, limits: Limits, in_namespace: bool) -> list[str]:
        """What the kernel holds each process to."""
        bounds = {"cpu": int(limits.seconds * 8) + 1,  # several threads may be at work
                  "fsize": limits.file, "core": 0, "nofile": 256,
                  "as": limits.memory + 1024 * MiB}  # libraries and stacks that are never used
        if self.user is not None or (in_namespace and _kernel() >= (5, 14)):
            bounds["nproc"] = limits.processes  # else it would count this user's other processes
        arguments = ["/usr/bin/prlimit"]
        for name, value in bounds.items():
            _, hard = resource.getrlimit(getattr(resource, f"RLIMIT_{name.upper()}"))
            value = value if hard == resource.RLIM_INFINITY else min(value, hard)
            arguments.append(f"--{name}={value}")
        return [*arguments, "--"]

    def environment(self) -> dict[str, str]:
        scratch = str(self.scratch)
        return {"PATH": "/usr/local/bin:/usr/bin:/bin", "LC_ALL": "C.UTF-8", "HOME": scratch,
                "TMPDIR": scratch, "FA2_SANDBOX": self.token}

    def run(self, command: list[str], limits: Limits | None = None, scrub: bool = True) -> Ended:
        """Runs a program. When it returns, nothing of it is alive, and (scrub) the scratch folder
        holds plain files and folders only."""
        limits = limits or self.limits
        deadline = time.monotonic() + limits.seconds
        self._hand_over()
        child = subprocess.Popen(
            self.command(command, limits), cwd="/", env=self.environment(),
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            start_new_session=True)
        try:
            output, stopped = _watch(child, limits, self.scratch, deadline)
        finally:
            self._end(child)
            child.stdout.close()
            if scrub:
                _scrub(self.scratch)
        status = child.returncode
        if status > 128 and not stopped:
            status = 128 - status  # bubblewrap reports signal n as 128 + n
        if not stopped and status < 0:
            stopped = _signal_name(-status)
        return Ended(None if stopped else status, stopped, output)

    def _hand_over(self) -> None:
        """What the grader has put into the scratch folder belongs to the sandbox's user, too."""
        if self.user is None:
            return
        for folder, folders, files in os.walk(self.scratch):
            for name in (*folders, *files):
                os.chown(os.path.join(folder, name), self.user, self.user, follow_symlinks=False)

    def _end(self, child: subprocess.Popen) -> None:
        """Kills the program with all that it started. In bubblewrap one signal does it, since the
        namespace dies with its first process; without, what left the process group is looked up."""
        try:
            os.killpg(child.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        child.wait()
        for _ in range(500):
            left = _marked(self.token, self.user)
            if not left:
                return
            for process in left:
                try:
                    os.kill(process, signal.SIGKILL)
                    os.waitpid(process, os.WNOHANG)  # it has become this process's child
                except (ProcessLookupError, ChildProcessError):
                    pass
            time.sleep(0.01)


def _adopt_orphans() -> None:
    """What a submission leaves running becomes this process's child, which can see it end. The first
    process of a container often does not look after orphans: they would stay as zombies."""
    PR_SET_CHILD_SUBREAPER = 36
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def _kernel() -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", os.uname().release)[:2])


def _marked(token: str, user: int | None) -> list[int]:
    """The processes that carry a sandbox's token in their environment, or belong to its user."""
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            owner = os.stat(f"/proc/{name}").st_uid
            if owner == user or token in Path(f"/proc/{name}/environ").read_text(errors="replace"):
                found.append(int(name))
        except OSError:
            continue  # ended meanwhile, or another user's
    return found


def _walk(folder: Path) -> Iterator[tuple[str, list[str]]]:
    """Every folder in it with the names of what is no folder (links included). Folders that were
    made unreadable are opened on the way."""
    os.chmod(folder, 0o700)
    for path, folders, files in os.walk(folder):
        links = [name for name in folders if os.path.islink(os.path.join(path, name))]
        for name in set(folders) - set(links):
            os.chmod(os.path.join(path, name), 0o700)
        yield path, files + links


def _scrub(scratch: Path) -> None:
    """Removes links, pipes and devices: the grader must not follow or wait for what a submission
    left. Nothing of the submission runs any more."""
    for folder, names in _walk(scratch):
        for name in names:
            path = os.path.join(folder, name)
            if not stat.S_ISREG(os.lstat(path).st_mode):
                os.unlink(path)


def _signal_name(number: int) -> str:
    names = {signal.SIGXFSZ: "wrote a file larger than allowed",
             signal.SIGXCPU: "used more processor time than allowed",
             signal.SIGSEGV: "crashed (segmentation fault)", signal.SIGABRT: "aborted",
             signal.SIGKILL: "was killed", signal.SIGFPE: "crashed (arithmetic error)",
             signal.SIGBUS: "crashed (bus error)", signal.SIGILL: "crashed (illegal instruction)"}
    return names.get(number, f"was ended by signal {number}")


# ---- The watcher ---------------------------------------------------------------------------------


class Processes:
    """All processes of the machine, read at most once per tick however many sandboxes ask."""

    def __init__(self):
        self._lock = threading.Lock()
        self._read_at = 0.0
        self._children: dict[int, list[tuple[int, int, int]]] = {}
        self._page = os.sysconf("SC_PAGE_SIZE")

    def below(self, root: int) -> list[tuple[int, int, int]]:
        """(process, threads, resident bytes) of everything that `root` started, and of itself."""
        with self._lock:
            if time.monotonic() - self._read_at > TICK_S / 2:
                self._children = self._read()
                self._read_at = time.monotonic()
            children = self._children
        found, todo = [], [root]
        while todo:
            below = children.get(todo.pop(), [])
            found += below
            todo += [process for process, _, _ in below]
        return found

    def _read(self) -> dict[int, list[tuple[int, int, int]]]:
        children: dict[int, list[tuple[int, int, int]]] = {}
        for name in os.listdir("/proc"):
            if not name.isdigit():
                continue
            try:
                with open(f"/proc/{name}/stat", "rb") as file:
                    fields = file.read().rpartition(b")")[2].split()
            except OSError:
                continue  # it has ended meanwhile
            children.setdefault(int(fields[1]), []).append(
                (int(name), int(fields[17]), int(fields[21]) * self._page))
        return children


PROCESSES = Processes()


def _watch(child: subprocess.Popen, limits: Limits, scratch: Path,
           deadline: float) -> tuple[str, str]:
    """Reads what the program prints until it ends or passes a bound: (output, which bound)."""
    pieces, size, stopped = [], 0, ""
    os.set_blocking(child.stdout.fileno(), False)
    next_look = next_walk = 0.0
    with selectors.DefaultSelector() as selector:
        selector.register(child.stdout, selectors.EVENT_READ)
        while not stopped:
            if selector.select(TICK_S):
                piece = child.stdout.read1(65536)
                if piece == b"":
                    break
                pieces.append(piece)
                size += len(piece)
            now = time.monotonic()
            if STOP.is_set():
                stopped = "was interrupted"
            elif size > limits.output:
                stopped = f"printed more than {_bytes(limits.output)}"
            elif now > deadline:
                stopped = f"ran longer than {limits.seconds:g} s"
            elif now > next_look:
                next_look = now + TICK_S
                stopped = _too_much(child.pid, limits)
            if not stopped and now > next_walk:
                taken = _size_of(scratch, limits.scratch)
                next_walk = time.monotonic() + max(0.25, 10 * (time.monotonic() - now))
                if taken > limits.scratch:
                    stopped = f"left more than {_bytes(limits.scratch)} in its folder"
            if child.poll() is not None and not stopped:
                # Without namespaces a process that was left behind may hold the pipe open.
                piece = child.stdout.read()
                pieces.append(piece or b"")
                break
    if not stopped and child.poll() is None:
        try:
            child.wait(max(0.0, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            stopped = f"ran longer than {limits.seconds:g} s"
    output = b"".join(pieces)[:limits.output].decode("utf-8", "replace")
    return output, stopped


def _too_much(root: int, limits: Limits) -> str:
    below = PROCESSES.below(root)
    if sum(threads for _, threads, _ in below) > limits.processes + 3:  # bubblewrap's own
        return f"started more than {limits.processes} processes or threads"
    if sum(memory for _, _, memory in below) > limits.memory:
        return f"used more than {_bytes(limits.memory)} of memory"
    return ""


def _size_of(folder: Path, enough: int) -> int:
    """Bytes on disk below a folder; stops counting once it is too much. An entry counts 4 KiB at
    least, so that a million empty files are too much as well."""
    total, todo = 0, [str(folder)]
    while todo and total <= enough:
        try:
            with os.scandir(todo.pop()) as entries:
                for entry in entries:
                    status = entry.stat(follow_symlinks=False)
                    total += max(4096, status.st_blocks * 512)
                    if entry.is_dir(follow_symlinks=False):
                        todo.append(entry.path)
                    if total > enough:
                        break
        except OSError:
            continue  # removed meanwhile, or made unreadable
    return total


def _bytes(value: int) -> str:
    return f"{value / MiB:g} MiB" if value >= MiB else f"{value / 1024:g} KiB"


def remove(folder: Path) -> None:
    """Deletes a scratch folder, whatever modes its contents were given."""
    for _ in _walk(folder):
        pass
    shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":  # python -m fa2course.grading.sandbox: what holds here
    print(protection().missing or "all protections hold")
    sys.exit(1 if protection().missing else 0)
