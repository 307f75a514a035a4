"""Finding and reading submissions: DIR/NAME/stageN/kernel.cu, or NAME/work/stageN/kernel.cu as in a
student's fork."""
import os
import re
import stat
from dataclasses import dataclass
from pathlib import Path

from fa2course.launcher import stages
from fa2course.launcher.errors import UserError

MAX_BYTES = 1 << 20


@dataclass(frozen=True)
class Submission:
    student: str
    stage: int
    kernel: bytes | None  # None: there is none, or `problem` says why it cannot be read
    problem: str = ""


def find(folder: Path, wanted: list[int] | None) -> list[Submission]:
    """Every student with every stage that is graded: the wanted ones, else those that anyone handed
    in. In the order of names and stages."""
    students = sorted((entry for entry in folder.iterdir()
                       if entry.is_dir() and not entry.name.startswith(".")), key=lambda p: p.name)
    found = {student.name: stages_of(student) for student in students}
    graded = wanted or sorted({number for there in found.values() for number in there})
    if not graded or not any(found.values()):
        raise UserError(f"{folder} holds no submission: NAME/stageN/kernel.cu, or "
                        "NAME/work/stageN/kernel.cu, is looked for")
    return [read(student, number, found[student.name].get(number))
            for student in students for number in graded]


def find_one(folder: Path, wanted: list[int] | None) -> list[Submission]:
    """The submission of one student, as Gradescope lays it into a folder. A kernel.cu that lies
    there by itself is of the one stage that is wanted."""
    found = stages_of(folder)
    if wanted and len(wanted) == 1 and not found and os.path.lexists(folder / "kernel.cu"):
        found = {wanted[0]: folder / "kernel.cu"}
    if not found and not wanted:
        raise UserError(f"{folder} holds no stageN/kernel.cu. Name the stage that is graded: "
                        "--stages 4")
    return [read(folder, number, found.get(number)) for number in wanted or sorted(found)]


def stages_of(student: Path) -> dict[int, Path]:
    """The stages for which a student has a folder with a kernel.cu. A fork of the course has its
    own in work/; the published solutions beside it are not the student's."""
    known = {stages.number(name) for name in stages.names()}
    found: dict[int, Path] = {}
    base = student / "work" if (student / "work").is_dir() else student
    for folder in sorted(base.glob("stage*")):
        number = re.fullmatch(r"stage(\d)(_\w+)?", folder.name)
        if number and int(number[1]) in known and os.path.lexists(folder / "kernel.cu"):
            found[int(number[1])] = folder / "kernel.cu"
    return found


def read(student: Path, stage: int, path: Path | None) -> Submission:
    if path is None:
        return Submission(student.name, stage, None, "not handed in")
    try:
        return Submission(student.name, stage, read_plain(path, student.parent))
    except ValueError as error:
        return Submission(student.name, stage, None, str(error))


def read_plain(path: Path, root: Path) -> bytes:
    """A file's bytes. A link would make the grader read whatever it points at: it is refused, also
    as a folder on the way. Raises ValueError with a sentence."""
    for part in (path, *path.parents):
        if part == root:
            break
        if part.is_symlink():
            raise ValueError(f"{part.relative_to(root)} is a link; hand in the file itself")
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError as error:
        raise ValueError(f"kernel.cu cannot be read: {error.strerror}") from None
    with open(descriptor, "rb") as file:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise ValueError("kernel.cu is no plain file")
        if status.st_size > MAX_BYTES:
            raise ValueError(f"kernel.cu has {status.st_size:,} bytes; at most {MAX_BYTES:,} are "
                             "read")
        return file.read(MAX_BYTES)
