"""The hints of a stage: its hints.md, with the sections Task, Hint 1, Hint 2 and Hint 3."""
import re
from dataclasses import dataclass

from fa2course.launcher import paths, stages
from fa2course.launcher.errors import UserError

SECTIONS = ["Task", "Hint 1", "Hint 2", "Hint 3"]


@dataclass(frozen=True)
class Hints:
    task: str
    hints: tuple[str, str, str]


def of(stage: int) -> Hints:
    path = paths.ROOT / stages.find(str(stage)) / "hints.md"
    try:
        text = path.read_text()
    except OSError:
        raise UserError(f"{path.relative_to(paths.ROOT)} is not there "
                        f"(git checkout {path.parent.name} brings it back)") from None
    parts = re.split(r"^## (.+)\n", text, flags=re.MULTILINE)
    found = {title.strip(): body.strip("\n")
             for title, body in zip(parts[1::2], parts[2::2], strict=True)}
    if list(found) != SECTIONS or not all(found.values()):
        raise UserError(f"{path.relative_to(paths.ROOT)} must have the sections "
                        f"{', '.join(SECTIONS)}", 1)
    return Hints(found["Task"], tuple(found[name] for name in SECTIONS[1:]))
