"""Flags for the eye of the instructor: copies of solutions, of each other, and code that reaches
out of the kernel. A flag changes no points."""
import functools
import hashlib
import re
from collections import defaultdict
from pathlib import Path

from fa2course.launcher import paths, stages

from .submissions import Submission

TOKEN = re.compile(r"""
    //[^\n]*(?:\\\n[^\n]*)* | /\*.*?\*/           # comments
  | (?P<string>"(?:\\.|[^"\\\n])*" | '(?:\\.|[^'\\\n])*')
  | (?P<name>[A-Za-z_]\w*)
  | (?P<other>\d[\w.']* | \#\# | \S)""", re.VERBOSE | re.DOTALL)

# What a kernel has no use for. Strings too: a path in one is as telling.
REACHING_OUT = re.compile(
    r"\b(asm|__asm__|system|popen|exec[lv]\w*|v?fork|syscall|dlopen|dlsym|ptrace|mmap|mprotect|"
    r"f(?:re)?open|[oi]?fstream|filesystem|unlink|getenv|setenv|socket|connect|sigaction|_?_?exit|"
    r"quick_exit|abort|atexit|setjmp|longjmp|pthread_\w+|reinterpret_cast|const_cast|extern|"
    r"__attribute__|sim|Machine|Session|counters|jsonl)\b|/proc|/dev/|\.\./|##")


def tokens(kernel: bytes) -> list[tuple[str, str]]:
    """Without comments and spacing."""
    text = kernel.decode("utf-8", "replace")
    return [(match.lastgroup, match[0]) for match in TOKEN.finditer(text) if match.lastgroup]


def fingerprint(kernel: bytes) -> str:
    """Equal for two kernels that differ in comments, spacing, names and texts alone: every name
    becomes the number of its first use. The last lines, which name the stage, do not count."""
    numbers: dict[str, int] = {}
    words = []
    for kind, text in tokens(kernel):
        if text == "FA2_STAGE":
            break
        words.append(f"#{numbers.setdefault(text, len(numbers))}" if kind == "name" else
                     '""' if kind == "string" else text)
    return hashlib.sha256("\0".join(words).encode()).hexdigest()


def published() -> dict[str, str]:
    """The fingerprint of every kernel in the course, and what it is."""
    found = {}
    for name in stages.names():
        folder = paths.ROOT / name
        for path in sorted(folder.glob("*.cu"), key=lambda p: p.name == "kernel.cu"):
            found[fingerprint(path.read_bytes())] = str(path.relative_to(paths.ROOT))
    return found


def reaching_out(kernel: bytes) -> list[str]:
    """Words that a kernel has no use for, beyond those in the published kernels of the course."""
    found = set()
    for _, text in tokens(kernel):
        found |= {match[0] for match in REACHING_OUT.finditer(text)}
    includes = re.findall(rb'^[ \t]*#[ \t]*include[ \t]*(\S+)', kernel, re.MULTILINE)
    found |= {f"#include {name.decode('utf-8', 'replace')}" for name in includes
              if not re.fullmatch(rb'"common/device/\w+\.h"|<(algorithm|array|cmath|cstdint|'
                                  rb'iterator|limits|type_traits|utility)>', name)}
    return sorted(found - usual())


@functools.cache
def usual() -> set[str]:
    """What the course's own kernels use: no reason to look twice."""
    words = set()
    for name in stages.names():
        path: Path = paths.ROOT / name / "kernel.cu"
        for _, text in tokens(path.read_bytes()):
            words |= {match[0] for match in REACHING_OUT.finditer(text)}
    return words


def flags(submissions: list[Submission]) -> dict[tuple[str, int], list[str]]:
    """What to look at, per student and stage."""
    solutions = published()
    alike: dict[tuple[int, str], list[str]] = defaultdict(list)
    prints = {}
    for s in submissions:
        if s.kernel is not None:
            prints[s] = fingerprint(s.kernel)
            alike[s.stage, prints[s]].append(s.student)
    found: dict[tuple[str, int], list[str]] = {}
    for s, print_ in prints.items():
        said = []
        if print_ in solutions:
            said.append(f"equals {solutions[print_]} (but for comments and names)")
        others = [student for student in alike[s.stage, print_] if student != s.student]
        if others:
            said.append(f"equals the submission of {', '.join(others)} (but for comments and "
                        "names)")
        words = reaching_out(s.kernel)
        if words:
            said.append(f"reaches out of the kernel: {', '.join(words)}")
        found[s.student, s.stage] = said
    return found
