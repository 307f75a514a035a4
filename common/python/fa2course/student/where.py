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


QUAD_SUM = {  # where l must be whole
    1: "the lanes of a warp must share their parts of l",
    2: "the owner of a row must add all the partial sums of its row, from every lane and warp",
    3: "the owner of a row must add all the partial sums of its row, from every lane and warp",
    4: "the owner of a row must add the partial sums of the quad's four lanes",
    5: "quad_sum() must add each tile's sum over the four lanes of the quad",
    6: "l[r] = quad_sum(l[r]) must stand once, behind the loop and before both store_O and store_LSE",
}


CARRIED = ("when m grows, the l so far must be rescaled by alpha = exp2(m - m_new), once, before the "
           "tile's own sum is added")


def pattern_text(pattern: dict, stage: int, one_tile_is_right: bool) -> str:
    """Which of O and LSE are wrong, and what that says of m, l and P V; "" if nothing."""
    O_wrong, LSE_wrong = pattern["O_wrong"], pattern["LSE_wrong"]
    l_is_not = (CARRIED if one_tile_is_right else QUAD_SUM[stage])
    if not O_wrong and LSE_wrong:
        text = "O is right everywhere: LSE alone is wrong"
        low, high = pattern.get("l", (0, 0))
        if 0 < low and high < 1:
            return (f"{text}, and too small, as if l were a part of the row's sum. O was divided by "
                    f"a whole l, and LSE was not made from it: {QUAD_SUM[stage]}.")
        return (f"{text}. It is m / log2(e) + log(l): store_LSE() makes it from the m (in log2 units) "
                "and the l that stand after the last tile.")
    multiple = pattern.get("multiple")
    both = "O and LSE are both wrong" if LSE_wrong else "LSE is right, and O is wrong"
    if multiple == "lane":
        return (f"{both}: each lane's elements of a row of O are the right ones times a number of the "
                "lane's own. The four numbers fit parts of one sum: every lane divided by its own "
                f"part of l. The parts never met: {QUAD_SUM[stage]}.")
    if multiple == "row":
        low, high = (f"{factor:.3g}" for factor in pattern["factors"])
        factor = low if low == high else f"{low} to {high}, one number per row"
        if LSE_wrong and pattern["l_fits"]:
            return (f"{both}, by one factor: each wrong row of O is the right one times {factor}, and "
                    f"LSE is off by as much. So m and P V are right, and l is not: {l_is_not}.")
        if not LSE_wrong:
            return (f"{both} by a factor: each wrong row is the right one times {factor}. So m, l and "
                    "P V are right: look at how O is divided by l, or rescaled.")
    if O_wrong and not LSE_wrong:
        return ("LSE is right, so S, m and l are: look at P V, at how O is rescaled and divided, and "
                "at what is stored.")
    return ""


# What a problem of steps.py is there for: follows a wrong result on it.
PROBLEMS = {
    "inputs=negative": "On this problem every score is far below 0. Which value does m start with? "
                       "With -inf the first tile's maximum takes its place; with 0, or any number "
                       "that is not below every score, every exponential is 0.",
    "inputs=ascending": "On this problem the maximum of every row grows from tile to tile. What was "
                        "summed with the old m, l and O, must be rescaled by "
                        "alpha = exp2(m - m_new).",
    "inputs=nan_first_head": "On this problem the first head of Q, K and V is all NaN, and no other "
                             "head may see it. Which head of K and V does a query head read?",
    "layout=": "On this problem rows and heads do not follow each other in memory: every address "
               "needs the tensor's own strides.",
    "k=0": "On this problem there is no key at all, and the loop over tiles does not run once.",
}


def problem_text(spec: str) -> str:
    words = spec.split()
    return next((text for key, text in PROBLEMS.items()
                 if any(word == key or key.endswith("=") and word.startswith(key)
                        for word in words)), "")


STATISTICS = ("partial", "m", "l", "f_O", "f_P")  # arrays of stages 2 to 4


def finding_text(result: dict, stage: int, kernel: Path, scratch: Path) -> str:
    """The simulator's message; where it names a line of common/device, also the lines of the kernel
    that lead there."""
    text = shorten(str(result["message"]), kernel, scratch)
    if stage == 4 and result.get("array") in STATISTICS and result.get("rule") in (
            "shared-memory race", "read of unwritten shared memory"):
        text += ("\n  stage 4 the statistics of a row are one warp's own affair: the thread that owns "
                 "the row must be a lane\n          of the warp that holds it (owned, owner). Then "
                 "warp_barrier() is the barrier to put here; block_barrier()\n          is for what "
                 "warps share, the copies of K and V, and kv has it.")
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
