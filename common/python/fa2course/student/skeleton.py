"""What ./fa2 start puts in place: generated from the solutions, so it cannot drift from them.

Stage N >= 3: stage N-1's solution with the lines to change marked; which lines, a diff of the two
solutions says. Stages 1 and 2: the solution with pieces cut out, the frame. The task is the section
"Task" of the stage's hints.md.
"""
import difflib
import re
import textwrap
from dataclasses import dataclass

from fa2course.launcher import paths, stages
from fa2course.launcher.errors import UserError

from . import hints

COLUMNS = 100
MERGE_GAP = 3  # unchanged lines between two hunks that become one mark
CLOSING_LINES = 6  # that a mark may be made longer by, to close what it opens
# The first lines of what only an extra changes: one more argument on its way, the list of variants.
EXTRA = {6: ("fa2_forward(const Problem p", "void forward(const Problem& p", "stream, p, x);",
             "constexpr Variant variants")}

# What only tiles of 256 rows need: the key tiles that a warp's rows see, and V released in the head
# of the loop.
TALL = " seen", "kv.release_V(j)"


@dataclass(frozen=True)
class Cut:
    """A piece of a solution that a frame leaves out: the lines between the first line that contains
    `after` and the next one that contains `before`; both stay."""
    after: str
    before: str
    task: str         # what the mark in its place says
    keep: str = ""    # what stands there besides
    within: str = ""  # search from the first line that contains this on


FRAMES = {
    1: [
        Cut("Fragment<S_tag, Br / 16, Bc / warps / 8> S;", "/// One warp per row",
            "S = Q K^T for this warp's columns: multiply, mask, and write the rows below Nq to the "
            "S of the Workspace (row-major, `columns` columns).",
            keep="}\n\n"),
        Cut("reg<stat_tag> m = -INFINITY;", "const reg<stat_tag> inv_l",
            "the row's maximum m (in log2 units: times scale) and sum l. Each lane takes every "
            "32nd key below `seen`; the lanes share their parts through `partial`, in the order "
            "that warp_barrier() makes.",
            keep="  reg<stat_tag> l = 0.f;\n"),
        Cut("reg<S_tag> pair[2] = {0.f, 0.f};", "store2(P + k",
            "P of the keys k and k + 1, normalized; 0 from `seen` on."),
        Cut("block_barrier();  // both tiles have landed",
            "block_barrier();  // every warp is done",
            "O += P V for this warp's columns: 16 keys at a time, P's blocks by ldmatrix_x4.",
            within="multiply_O(const Problem"),
    ],
    2: [
        Cut("const int lane = recomputed(lane_id());", "/// Adds what the other warps gave",
            "sub-goal 2: keep the blocks of this warp's own rows in `own`, and write the others to "
            "partial_O, for each pair of warps in a place of its own.",
            keep="  own.fill(0.f);\n}\n\n", within="void send_partials"),
        Cut("const int lane = recomputed(lane_id());", "/// O and LSE of the query rows",
            "sub-goal 2: add the blocks that the other warps wrote for this warp's rows.",
            keep="}\n\n", within="void add_partials"),
        Cut("if (owner) {", "block_barrier();  // every m is written",
            "sub-goal 1: `owned` is this thread's row. Find m_new from m and the row's partial "
            "maxima (in log2 units: times scale), then alpha; keep m_new in m_smem.",
            keep="    }\n", within="reg<stat_tag> alpha"),
        Cut("UNROLL for (int r = 0; r < S.rows; ++r) {", "const auto P = pack",
            "sub-goal 1: per row, P = exp2(scale S - m) in place of S, with the m of the row in "
            "m_smem; and, in partial_smem, its sum over this lane's columns (exponentiate).",
            keep="    }\n", within="every m is written"),
        Cut("if (owner) {", "UNROLL for (int slice",
            "sub-goal 1: l_new from alpha, l and the row's partial sums; keep it in l_smem, and "
            "the factors f_O = alpha l / l_new and f_P = 1 / l_new in f_O_smem and f_P_smem.",
            keep="    }\n\n", within="every partial sum is written"),
        Cut("add_partials<warps>(own, partial_O_smem);", "kv.release_V(j);",
            "sub-goal 1: O = f_O O + f_P P V for the 4 elements per lane and row of this slice, "
            "O(r, 4 * slice) and on. P V is in `own`, once the exchange (sub-goal 2) fills it.",
            keep="    }\n", within="Fragment<O_tag, O_rows / 16, 2> own;"),
    ],
}


def solution(stage: int) -> str:
    """The published kernel.cu, without the lines that mark its change."""
    path = paths.ROOT / stages.find(str(stage)) / "kernel.cu"
    try:
        return stages.unmarked(path.read_text())
    except OSError:
        raise UserError(f"{path.relative_to(paths.ROOT)} is not there "
                        f"(git checkout {path.parent.name} brings it back)") from None


def skeleton(stage: int) -> str:
    """The file that a student starts from."""
    if stage in FRAMES:
        return task(stage) + "\n".join(cut_out(stage, split(solution(stage))[1])) + "\n"
    return task(stage) + "\n".join(marked(stage, split(solution(stage - 1))[1],
                                          split(solution(stage))[1])) + "\n"


def from_mine(stage: int, mine: str) -> str:
    """A student's own stage N-1 as the start of stage N: no marks, since nobody knows its lines."""
    body = [line for line in split(mine)[1]
            if not re.match(rf"\s*// (TODO stage {stage - 1} \(|\.\.\. to here \()", line)]
    return task(stage, "What stands below is your own stage "
                f"{stage - 1}") + "\n".join(renamed(stage, body)) + "\n"


def split(text: str) -> tuple[list[str], list[str]]:
    """The docblock at the top of a kernel, and the rest."""
    lines = text.splitlines()
    end = next((n for n, line in enumerate(lines) if not line.startswith("//")), len(lines))
    return lines[:end], lines[end:]


def task(stage: int, what: str = "") -> str:
    """The docblock of a skeleton. `what` says what stands below it."""
    if not what and stage in FRAMES:
        what = "This is a frame: it compiles, and its pieces are missing"
    elif not what:
        what = f"What stands below is stage {stage - 1}, and right"
    marks = "" if "your own" in what else f"\"TODO stage {stage}\" marks the places. "
    text = (f"Stage {stage}, your task: {hints.of(stage).task}\n\n{what}. {marks}./fa2 check "
            f"{stage} says how far you are, ./fa2 hint {stage} helps.")
    lines = []
    for paragraph in text.split("\n\n"):
        if paragraph.startswith("    "):  # a formula or a table
            lines += paragraph.splitlines()
        else:
            words = re.sub(r"\./fa2 (\w+) ", r"./fa2~\1~", " ".join(paragraph.split()))
            lines += [line.replace("~", " ") for line in textwrap.wrap(words, COLUMNS - 3)]
        lines.append("")
    return "".join(f"// {line}".rstrip() + "\n" for line in lines[:-1])


# ---- stages 3 to 6: marks in the stage before ----

def marked(stage: int, old: list[str], new: list[str]) -> list[str]:
    """The old body with marks around what the new one changes, and the new stage's name."""
    hunks = merged(stage, old, hunks_of(old, new))
    out, at = [], 0
    for number, (begin, end) in enumerate(hunks, 1):
        out += old[at:begin]
        count = f"{number} of {len(hunks)}"
        note = ", only for the extra" if is_extra(stage, old[begin:end]) else ""
        indent = indentation(old[begin:end] or old[begin - 1:begin])
        if begin == end:
            out.append(f"{indent}// TODO stage {stage} ({count}): something is missing here")
        else:
            out.append(f"{indent}// TODO stage {stage} ({count}{note}): change from here ...")
            out += old[begin:end]
            out.append(f"{indent}// ... to here ({count})")
        at = end
    out += old[at:]
    return renamed(stage, out)


def renamed(stage: int, lines: list[str]) -> list[str]:
    """Stage N-1's body under the name of stage N."""
    old, new = stages.find(str(stage - 1)), stages.find(str(stage))
    return [line.replace(f"FA2_STAGE({old}) = {{\"{old}\", {stage - 1},",
                         f"FA2_STAGE({new}) = {{\"{new}\", {stage},") for line in lines]


def hunks_of(old: list[str], new: list[str]) -> list[tuple[int, int]]:
    """The ranges of old lines that change, without what is no task: the tile table (no part of the
    idea) and what only its tall tiles need (TALL), the stage's name, comments alone, and the place
    to which a line moves (it is marked where it is)."""
    table = range(index(old, "constexpr TileRow row("),
                  index(old, "};", "constexpr TileRow tiles") + 1)
    matcher = difflib.SequenceMatcher(None, old, new, autojunk=False)
    changes = [change for change in matcher.get_opcodes() if change[0] != "equal"]
    gone = {code(line) for _, begin, end, *_ in changes for line in old[begin:end]}
    hunks = []
    for _, begin, end, new_begin, new_end in changes:
        added = [code(line) for line in new[new_begin:new_end] if code(line)]
        if begin in table and end - 1 <= table[-1]:
            continue
        if "FA2_STAGE(" in "".join(old[begin:end]):
            continue
        if any(text in "".join(new[new_begin:new_end] or old[begin:end]) for text in TALL):
            continue
        if not any(map(code, old[begin:end])) and gone.issuperset(added):
            continue
        while begin < end and not old[end - 1].strip():
            end -= 1
        while begin < end and not old[begin].strip():
            begin += 1
        hunks.append((begin, end))
    return hunks


def code(line: str) -> str:
    """A line without its comment."""
    return line.split("//")[0].strip()


def balanced(lines: list[str], begin: int, end: int) -> tuple[int, int]:
    """The range, a few lines longer where it opens what these lines close: a mark must not end
    inside a statement. (Not to the end of a function, whose first line alone changes.)"""
    for longer in range(end, min(end + CLOSING_LINES, len(lines)) + 1):
        text = "".join(map(code, lines[begin:longer]))
        if all(text.count(a) <= text.count(b) for a, b in ("{}", "()")):
            return begin, longer
    return begin, end


def is_extra(stage: int, lines: list[str]) -> bool:
    """Whether nothing but the stage's extra needs a change of these lines."""
    return bool(lines) and any(text in lines[0] for text in EXTRA.get(stage, ()))


def merged(stage: int, lines: list[str], hunks: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Hunks that are close together are one, unless a function or its loop ends between them, or one
    of them is for the extra and the other is not."""
    out: list[tuple[int, int]] = []
    for begin, end in hunks:
        gap = lines[out[-1][1]:begin] if out else []
        if (out and begin - out[-1][1] <= MERGE_GAP
                and not any(re.match("(  )?}", line) for line in gap)
                and is_extra(stage, lines[slice(*out[-1])]) == is_extra(stage, lines[begin:end])):
            out[-1] = balanced(lines, out[-1][0], max(end, out[-1][1]))
        else:
            out.append(balanced(lines, begin, end))
    return out


def indentation(lines: list[str]) -> str:
    line = next((line for line in lines if line.strip()), "")
    return line[:len(line) - len(line.lstrip())]


def index(lines: list[str], text: str, behind: str = "", start: int = 0) -> int:
    """The first line from `start` on that contains `text`, after one that contains `behind`."""
    if behind:
        start = index(lines, behind, start=start)
    for n in range(start, len(lines)):
        if text in lines[n]:
            return n
    raise UserError(f"no skeleton can be made: the solution has no line with \"{text}\"", 1)


# ---- stages 1 and 2: frames ----

def cut_out(stage: int, lines: list[str]) -> list[str]:
    cuts = FRAMES[stage]
    for number, cut in enumerate(cuts, 1):
        begin = index(lines, cut.after, start=index(lines, cut.within) if cut.within else 0) + 1
        end = index(lines, cut.before, start=begin)
        indent = indentation(lines[begin:end])
        mark = textwrap.wrap(f"TODO stage {stage} ({number} of {len(cuts)}): {cut.task}",
                             COLUMNS - 3 - len(indent))
        lines = (lines[:begin] + [f"{indent}// {line}" for line in mark] + cut.keep.splitlines() +
                 lines[end:])
    return lines
