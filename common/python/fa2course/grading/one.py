"""Grading one kernel: the steps of ./fa2 check, with the sandbox around what touches the kernel.

Who decides: this process. The compiler and the kernel run in the sandbox. The kernel's process
hands over O, LSE and counters as files; what it prints and its exit status decide nothing. Another
process, which never loads the kernel, compares O and LSE with the reference.
"""
import atexit
import hashlib
import os
import shutil
import tempfile
import threading
from dataclasses import asdict, dataclass
from pathlib import Path

from fa2course.launcher import paths
from fa2course.launcher.errors import UserError
from fa2course.student import check as checker
from fa2course.student.compiler import Build
from fa2course.student.execute import Done, plainly

from .sandbox import Ended, Limits, MiB, Sandbox, protection, remove

FORMAT = 1
MAX_MESSAGE = 2000
PREFIX = "fa2-grade-"
SEEN_BY_COMPILER = ("common/device", "common/sim", "common/harness")


@dataclass(frozen=True)
class Settings:
    """What a grade depends on, besides the kernel and the course."""
    compile_seconds: float = 120
    run_seconds: float = 60
    memory_MiB: int = 3072
    processes: int = 64
    output_KiB: int = 256
    scratch_MiB: int = 512

    def limits(self, phase: str, timeout: float) -> Limits:
        seconds = self.compile_seconds if phase == "compile" else self.run_seconds
        return Limits(min(seconds, timeout), self.memory_MiB * MiB, self.processes,
                      self.scratch_MiB * MiB // 2, self.scratch_MiB * MiB, self.output_KiB * 1024)


def course_fingerprint() -> str:
    """Changes with anything of the course that a result depends on. Equal in two clones of one
    commit, whatever compiler built them."""
    digest = hashlib.sha256()
    files = [*sorted((paths.PYTHON_SOURCES / "fa2course" / "student").glob("*.py")), Path(__file__)]
    for folder in (*SEEN_BY_COMPILER, "common/cli/check"):
        files += sorted(path for path in (paths.ROOT / folder).glob("*.*") if path.is_file())
    for path in files:
        digest.update(path.name.encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()


def key_of(stage: int, kernel: bytes, settings: Settings, course: str) -> str:
    """Equal for what must have the same result: graded once, however often it was handed in."""
    words = [str(FORMAT), str(stage), hashlib.sha256(kernel).hexdigest(), repr(asdict(settings)),
             course]
    return hashlib.sha256("\0".join(words).encode()).hexdigest()[:32]


def open_to_others(path: Path) -> bool:
    # Bubblewrap mounts the path itself, so that the folders above do not matter.
    above = [] if protection().bubblewrap else path.parents
    return bool(path.stat().st_mode & 0o004) and all(s.stat().st_mode & 0o001 for s in above)


READABLE = threading.Lock()
COPIES: dict[Build, Build] = {}


def readable(build: Build) -> Build:
    """Where root grades, submissions run as users of their own, who must be able to read the
    course. If it lies where they cannot, in /root say, they get a copy of what they need."""
    needed = (build.program, build.course / "common" / "device" / "device.h")
    if os.geteuid() != 0 or all(map(open_to_others, needed)):
        return build
    if (build.folder / "_deps").is_dir():  # too much to copy
        raise UserError(f"{build.program} cannot be read by other users, and submissions run as "
                        f"one: chmod -R o+rX {paths.ROOT}, and o+x for the folders above it")
    with READABLE:
        if build not in COPIES:
            COPIES[build] = copy_of(build)
    return COPIES[build]


def copy_of(build: Build) -> Build:
    copy = Path(tempfile.mkdtemp(prefix=f"{PREFIX}{os.getpid()}-", dir=base())).resolve()
    atexit.register(remove, copy)
    for part in SEEN_BY_COMPILER:
        shutil.copytree(build.course / part, copy / part)
    there = Build(copy / "build", copy)
    there.program.parent.mkdir(parents=True)
    shutil.copy2(build.program, there.program)
    shutil.copy2(build.folder / "compile_commands.json", there.folder)
    for path in (copy, *copy.rglob("*")):
        path.chmod(0o755 if path.is_dir() or path == there.program else 0o644)
    return there


def grade(stage: int, kernel: bytes, settings: Settings, build: Build | None = None) -> dict:
    """The result of fa2course.student.check.check() for this kernel, and as "protection" what this
    machine lacks to grade it safely."""
    build = build or checker.default_build()
    build = readable(build)
    folder = Path(tempfile.mkdtemp(prefix=f"{PREFIX}{os.getpid()}-", dir=base())).resolve()
    try:
        folder.chmod(0o755)
        path = folder / f"stage{stage}" / "kernel.cu"
        scratch = folder / "scratch"
        path.parent.mkdir(mode=0o755)
        scratch.mkdir()
        path.write_bytes(kernel)
        path.chmod(0o644)
        execute = Executor(build, path, scratch, settings)
        try:
            result = checker.check(stage, path, scratch, execute=execute, build=build, threads=1)
        except (OSError, ValueError) as error:  # what it left behind is in the way of the next step
            if execute.ran == 0 or getattr(error, "errno", None) in EXHAUSTED:
                raise
            result = refused(stage, kernel, execute.last,
                             "the submission left its folder in a state that cannot be graded "
                             f"({type(error).__name__}).")
        return tidy(result, folder) | {"protection": protection().missing}
    finally:
        remove(folder)


def base() -> str:
    """Where the folders of gradings lie: not below the home folder or a private TMPDIR, for where
    root grades, the sandbox's user must get in."""
    return "/tmp" if os.access("/tmp", os.W_OK) else tempfile.gettempdir()


def sweep() -> None:
    """Removes what graders left that were killed."""
    for folder in Path(base()).glob(f"{PREFIX}*-*"):
        process = folder.name.removeprefix(PREFIX).split("-")[0]
        mine = folder.stat().st_uid == os.geteuid()
        if mine and process.isdigit() and not Path(f"/proc/{process}").exists():
            remove(folder)


EXHAUSTED = {12, 23, 24, 28, 122}  # ENOMEM, ENFILE, EMFILE, ENOSPC, EDQUOT: the machine's fault


def refused(stage: int, kernel: bytes, after: str, message: str) -> dict:
    """A result for a submission that no step can be taken with."""
    names = checker.step_names(stage)
    name, title = names[0] if after == "compile" else names[min(1, len(names) - 1)]
    steps = [{"name": n, "title": t, "status": "failed" if n == name else "skipped",
              "message": message if n == name else ""} for n, t in names]
    return {"stage": stage, "sha256": hashlib.sha256(kernel).hexdigest(), "steps": steps,
            "passed": 0, "of": len(names), "solved": False, "counters": {},
            "first_failure": {"step": name, "title": title, "message": message}}


def tidy(result: dict, folder: Path) -> dict:
    """The same without paths of this run, and with messages of a sane length."""
    def clean(text: str) -> str:
        text = text.replace(f"{folder}/scratch/", "").replace(f"{folder}/", "")
        text = "".join(c if c.isprintable() or c in "\n\t" else "\N{REPLACEMENT CHARACTER}"
                       for c in text)
        return text if len(text) <= MAX_MESSAGE else text[:MAX_MESSAGE] + " ..."

    steps = [step | {"message": clean(step["message"])} for step in result["steps"]]
    first = result["first_failure"]
    return {"stage": result["stage"], "sha256": result["sha256"], "passed": result["passed"],
            "of": result["of"], "solved": result["solved"], "steps": steps,
            "first_failure": first and first | {"message": clean(first["message"])},
            "counters": result["counters"]}


class Executor:
    """The `execute` of check(): the sandbox for "compile" and "run", none for "judge"."""

    def __init__(self, build: Build, kernel: Path, scratch: Path, settings: Settings):
        self.settings, self.ran, self.last = settings, 0, ""
        libraries = [path for name in ("_deps", "lib") if (path := build.folder / name).is_dir()]
        seen = [build.course / folder for folder in SEEN_BY_COMPILER]
        self.compiling = Sandbox(scratch, [*seen, *libraries, kernel])
        self.running = Sandbox(scratch, [build.program, *libraries], owner=self.compiling.owner)

    def __call__(self, phase: str, command: list[str], scratch: Path, timeout: float) -> Done:
        self.last = phase
        if phase == "judge":
            return plainly(phase, command, scratch, timeout)
        self.ran += phase == "run"
        box = self.compiling if phase == "compile" else self.running
        if phase == "compile":
            box.readable += [path for path in toolchain_of(command[0]) if path not in box.readable]
        # Compiling executes nothing of the kernel, and the checker's own link to common/ must stay.
        ended = box.run(command, self.settings.limits(phase, timeout), scrub=phase == "run")
        return told(ended, phase)


def told(ended: Ended, phase: str) -> Done:
    if phase == "compile" and ended.stopped and not ended.stopped.startswith("ran longer"):
        return Done(1, f"error: stopped: the compiler {ended.stopped}")
    if ended.status is not None:
        return Done(ended.status, ended.output)
    if ended.stopped.startswith("ran longer"):
        return Done(-9, ended.output, timed_out=True)
    return Done(-9, f"{ended.output[-20_000:]}\nStopped: it {ended.stopped}.")


def toolchain_of(compiler: str) -> list[Path]:
    """Folders that a compiler outside /usr needs."""
    found = shutil.which(compiler)
    real = Path(found or compiler).resolve()
    return [] if real.is_relative_to("/usr") else [real.parent.parent]
