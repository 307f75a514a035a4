"""Where in the student's file, and on which warp, a mistake lies."""
import re
from pathlib import Path

from fa2course.launcher import paths

from .compiler import shorten, shown

DEVICE = paths.ROOT / "common" / "device"


def ranges(numbers: list[int]) -> str:
    """[0, 1, 2, 5] -> "0-2, 5"."""
    parts: list[list[int]] = []
    for n in numbers:
        if parts and n == parts[-1][1] + 1:
            parts[-1][1] = n
        else:
            parts.append([n, n])
    return ", ".join(str(a) if a == b else f"{a}-{b}" for a, b in parts)


def place_of(where: dict, stage: int, tile: list[int]) -> str:
    """Which tile and warp the first wrong element of O lies in, and how far the damage goes."""
    Br, _, warps, _ = tile
    first = where["first"]
    row = first["row"] % Br
    text = f"It lies in query tile {first['row'] // Br}, row {row} of it, "
    if stage == 1:  # warps split the columns of O
        d = where["d"]
        text += f"column {first['column']}: warp {first['column'] * warps // d}'s."
    else:
        text += f"which warp {row * warps // Br} writes."
    rows, columns = where["rows_in_tile"], where["columns"]
    text += f" {where['wrong']:,} of {where['elements']:,} elements are wrong"
    if len(rows) <= Br // 2:
        text += f", all in rows {ranges(rows)} of their tile"
    if len(columns) <= where["d"] // 2:
        text += f", all in columns {ranges(columns)}"
    return text + "."


def finding_text(result: dict, kernel: Path, scratch: Path) -> str:
    """The simulator's message; where it names a line of common/device, also the lines of the kernel
    that lead there."""
    text = shorten(str(result["message"]), kernel, scratch)
    file, line = Path(str(result.get("file"))), result.get("line")
    if file.resolve() == kernel.resolve() or not isinstance(line, int) or line <= 0:
        return text
    calls = lines_that_call(file.name, line, kernel)
    if calls:
        name, lines = calls
        places = ", ".join(f"{shown(kernel)}:{n}" for n in lines[:6])
        text += f"\n  yours   that is inside {name}(), called at {places}"
    return text


def functions(path: Path) -> list[tuple[int, str]]:
    """Where each function of a header begins, and its name."""
    found = []
    for n, text in enumerate(path.read_text().splitlines(), 1):
        match = re.match(
            r"\s*(?:template\b.*>\s*)?__device__ (?:__forceinline__|inline)\s+(.*)", text)
        if match:
            names = re.findall(r"(\w+)\(", match.group(1))
            if names:
                found.append((n, names[0]))
    return found


def lines_that_call(header: str, line: int, kernel: Path) -> tuple[str, list[int]] | None:
    """The function of common/device that holds this line, or one that calls it, which the kernel
    calls; and the lines where."""
    path = DEVICE / header
    if not path.is_file():
        return None
    inside = [name for n, name in functions(path) if n <= line]
    if not inside:
        return None
    source = kernel.read_text(errors="replace").splitlines()
    todo, seen = [inside[-1]], set()
    while todo:
        name = todo.pop(0)
        if name in seen:
            continue
        seen.add(name)
        lines = [n for n, text in enumerate(source, 1)
                 if re.search(rf"\b{name}\s*[(<]", text.split("//")[0])]
        if lines:
            return name, lines
        todo += callers(name)
    return None


def callers(name: str) -> list[str]:
    """The functions of common/device that call this one."""
    found = []
    for path in sorted(DEVICE.glob("*.h")):
        text = path.read_text().splitlines()
        starts = functions(path)
        for n, line in enumerate(text, 1):
            if re.search(rf"\b{name}\s*[(<]", line) and (n, name) not in starts:
                inside = [caller for at, caller in starts if at <= n]
                if inside and inside[-1] != name:
                    found.append(inside[-1])
    return found
