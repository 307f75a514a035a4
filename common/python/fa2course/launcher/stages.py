"""The stages of the course, from the one list: common/cmake/stages.cmake."""
import re

from . import paths
from .errors import UserError

LIST = paths.ROOT / "common" / "cmake" / "stages.cmake"
# The lines around what a kernel.cu changes against the stage before it.
CHANGE_MARK = re.compile(r"^[ \t]*// \[(end of )?change\](\n|$)", re.MULTILINE)


def names() -> list[str]:
    """The stages' folders, in order."""
    body = re.search(r"set\(FA2_STAGES(.*?)\)", LIST.read_text(), re.DOTALL).group(1)
    return re.findall(r"^\s*(stage\d+_\w+)", body, re.MULTILINE)


def number(name: str) -> int:
    return int(re.match(r"stage(\d+)_", name).group(1))


def unmarked(kernel: str) -> str:
    """The text of a kernel.cu without the lines that mark its change."""
    return CHANGE_MARK.sub("", kernel)


def find(word: str) -> str:
    """The stage with this number or folder ("2", "stage2", "stage2_fa1"). Raises UserError."""
    for name in names():
        if word.rstrip("/") in (str(number(name)), f"stage{number(name)}", name):
            return name
    known = ", ".join(f"{number(name)} ({name})" for name in names())
    raise UserError(f"there is no stage '{word}'. The stages are {known}.")
