"""What a student has done, in work/progress.json: committed in a fork, shown by ./fa2 status."""
import json
from dataclasses import asdict, dataclass, fields
from pathlib import Path

from fa2course.launcher import paths
from fa2course.launcher.errors import UserError

WORK = paths.ROOT / "work"
FILE = WORK / "progress.json"


def kernel(stage: int) -> Path:
    """The student's file of a stage."""
    return WORK / f"stage{stage}" / "kernel.cu"


@dataclass
class Stage:
    hints: int = 0         # how many were shown
    passed: int = 0        # steps of the last check
    of: int = 0
    failed: str = ""       # title of the step that the last check stopped at
    solved: bool = False   # some check passed all steps
    solution: bool = False  # the solution was shown


def load() -> dict[int, Stage]:
    if not FILE.exists():
        return {}
    try:
        known = {field.name for field in fields(Stage)}
        return {int(number): Stage(**{k: v for k, v in entry.items() if k in known})
                for number, entry in json.loads(FILE.read_text()).items()}
    except (ValueError, AttributeError, TypeError):
        raise UserError(f"{FILE.relative_to(paths.ROOT)} cannot be read. Mend it, or remove it to "
                        "begin anew; your kernels stay.") from None


def of(stage: int) -> Stage:
    return load().get(stage, Stage())


def update(stage: int, **changes) -> None:
    """Sets fields of a stage, e.g. update(4, hints=2)."""
    everything = load()
    entry = everything.setdefault(stage, Stage())
    for name, value in changes.items():
        setattr(entry, name, value)
    paths.write_whole(FILE, json.dumps({str(n): asdict(everything[n]) for n in sorted(everything)},
                                       indent=1) + "\n")
