"""Compiling one kernel.cu by itself into a shared library that fa2-check loads.

The flags are those of the course's own build, read from its compile_commands.json. The kernel sees
common/ and nothing else of the repository: published solutions are not on its include path, and a
kernel that includes one all the same is refused.
"""
import json
import re
import shlex
from dataclasses import dataclass
from pathlib import Path

from fa2course.launcher import paths
from fa2course.launcher.errors import UserError

from .execute import Done, Execute

TIMEOUT_S = 600
WRAPPER = """\
// Made by ./fa2 check: the kernel as a library with one known symbol.
#include "common/device/device.h"
#undef FA2_STAGE
#define FA2_STAGE(symbol)                     \\
  extern "C" const Stage fa2_plugin_stage;    \\
  const Stage fa2_plugin_stage
#include "{kernel}"
"""
PARTS = ("first", "all")  # first: fp16 and the first row of the tile table, for an early answer


@dataclass(frozen=True)
class Build:
    """A configured build folder of the course with fa2-check in it."""
    folder: Path
    course: Path = paths.ROOT  # where the common/ lies that kernels include

    @property
    def program(self) -> Path:
        return self.folder / "bin" / "fa2-check"

    def flags(self, source: str) -> list[str]:
        """The command that compiles this source of the course, split."""
        path = self.folder / "compile_commands.json"
        try:
            entries = json.loads(path.read_text())
        except (OSError, json.JSONDecodeError):
            raise UserError(f"{path} is not there; ./fa2 check builds it") from None
        for entry in entries:
            if entry["file"].endswith(source):
                return shlex.split(entry["command"])
        raise UserError(f"{path} does not know {source}; build/ is of another version: remove it")


@dataclass(frozen=True)
class Compiled:
    library: Path
    problem: str = ""  # a message for the learner; "" when it compiled


def compile_command(build: Build, wrapper: Path, library: Path, include: Path, part: str,
                    backend: str) -> list[str]:
    gpu = backend == "cuda"
    words = build.flags("stage1_naive/kernel.cu" if gpu else "common/cli/check/run.cpp")
    kept, skip = [], False
    for word in words:
        if skip or word in ("-c", "-x", "cu", "-dc", "-Werror", "-fPIE", "-fPIC",
                            f"-I{paths.ROOT}"):
            skip = False
        elif word in ("-o", "-MF", "-MT", "-Werror=all-warnings"):
            skip = word != "-Werror=all-warnings"
        elif not word.endswith((".cpp", ".cu", "_EXPORTS")):
            kept.append(word if gpu or not word.startswith("-O") else "-O1")  # as the stages
    if Path(kept[0]).name == "ccache":  # it keeps nothing of a compilation that also links
        kept = kept[1:]
    if part == "first":
        kept.append("-DFA2_FIRST_INSTANCE")
    common = ["-I", str(include), "-shared", "-o", str(library), str(wrapper)]
    if gpu:
        # The program has a CUDA runtime and a launch() of its own, which know nothing of this kernel:
        # neither may take the other's.
        return [*kept, "-Xcompiler=-fPIC", "-Xlinker=--exclude-libs,ALL,-Bsymbolic", *common]
    return [*kept, "-fPIC", "-MMD", "-MF", str(library.with_suffix(".d")), *common]


def compile_kernel(build: Build, kernel: Path, scratch: Path, part: str, execute: Execute,
                   backend: str = "sim") -> Compiled:
    """Compiles the kernel into scratch/<part>.so (or <part>_cuda.so). Raises UserError only where
    the course itself is not there."""
    assert part in PARTS
    kernel = kernel.resolve()
    if not kernel.is_file():
        return Compiled(Path(), f"{shown(kernel)} is not there.")
    scratch.mkdir(parents=True, exist_ok=True)
    include = scratch / "include"
    include.mkdir(exist_ok=True)
    if not (include / "common").is_symlink():
        (include / "common").symlink_to(build.course / "common")
    name = part if backend == "sim" else f"{part}_cuda"
    library = scratch / f"{name}.so"
    library.unlink(missing_ok=True)
    wrapper = scratch / (f"{name}.cpp" if backend == "sim" else f"{name}.cu")
    wrapper.write_text(WRAPPER.format(kernel=kernel))
    command = compile_command(build, wrapper, library, include, part, backend)
    done = execute("compile", command, scratch, TIMEOUT_S)
    if done.timed_out:
        return Compiled(library, f"the compiler {done.why()}.")
    if done.returncode != 0 or not library.is_file():
        return Compiled(library, explain(done, kernel, scratch))
    foreign = foreign_include(library.with_suffix(".d"), kernel, wrapper, build.course)
    if foreign:
        return Compiled(library, f"the kernel includes {foreign}; a kernel.cu stands by itself: it "
                        "includes common/device/device.h and the standard library.")
    return Compiled(library)


def foreign_include(depfile: Path, kernel: Path, wrapper: Path, course: Path) -> str:
    """A file that the kernel includes and must not, or ""."""
    try:
        text = depfile.read_text(errors="replace").replace("\\\n", " ")
    except OSError:
        return ""
    for word in re.split(r"(?<!\\)\s+", text):  # a space in a path is escaped
        path = Path(word.replace("\\ ", " ").replace("\\#", "#").replace("$$", "$"))
        if word.endswith(":") or not path.is_absolute():
            continue
        path = path.resolve()
        if not (path in (kernel, wrapper.resolve()) or path.is_relative_to(course / "common")):
            return shown(path)
    return ""


def explain(done: Done, kernel: Path, scratch: Path) -> str:
    """The compiler's first errors, in its own words."""
    if "out of memory allocating" in done.output:
        return "the compiler ran out of memory."
    lines = [line for line in done.output.splitlines() if line.strip()]
    first = next((n for n, line in enumerate(lines) if re.search(r"\berror\b", line)), None)
    if first is None:
        if done.returncode < 0 or not lines:
            return f"the compiler {done.why()}."
        return "it does not compile:\n" + shorten("\n".join(lines[-12:]), kernel, scratch)
    errors = sum(bool(re.search(r"\berror:", line)) for line in lines)
    more = f"\n({errors} errors in all)" if errors > 1 else ""
    text = shorten("\n".join(lines[first:first + 10]), kernel, scratch)
    return f"it does not compile:\n{text}{more}"


def shown(path: Path) -> str:
    """A path as a person would type it in the repository."""
    return str(path.relative_to(paths.ROOT)) if path.is_relative_to(paths.ROOT) else str(path)


def shorten(text: str, kernel: Path, scratch: Path) -> str:
    """The same with paths that a person would type."""
    text = text.replace(f"{scratch}/include/", "").replace(str(kernel), shown(kernel))
    return text.replace(f"{paths.ROOT}/", "")
