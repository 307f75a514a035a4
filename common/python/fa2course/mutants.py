"""Wrong kernels that must be rejected: reads common/testing/mutants/*.txt, makes their sources,
compiles and tries them on the simulator. The format is described in
common/testing/mutants/README.md. Standard library only.

    for mutant in load("stage4_fa2_warps"):
        sources(mutant)["stage4_fa2_warps/kernel.cu"]   # the whole wrong file
"""
import json
import os
import re
import shlex
import shutil
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

from fa2course.launcher import paths, stages
from fa2course.launcher.errors import UserError

FOLDER = paths.ROOT / "common" / "testing" / "mutants"
DEFAULT_PROBLEM = "causal h=2 q=150 k=270"  # ragged against every tile, and several of each
# What each stage's own tests say of its counters; stage 3's also of the order of its blocks.
COUNTERS_TEST = "*counts what its algorithm says"
ORDER_TEST = {"stage3_fa2_seqpar": ["*starts with the heaviest block"]}
DISPATCH = "common/device/dispatch.h"
TIMEOUT = 300  # seconds of a compilation or a run

# Keeps dispatch() from compiling what no mutant runs: bf16, and the later rows of the tile table
# (the first two are d = 64 and d = 128).
FEWER_INSTANCES = (
    ("((r == row ? launch_one(type, constant<r>{}) : void()), ...);",
     "([&] { if constexpr (r < FA2_ROWS) if (r == row) launch_one(type, constant<r>{}); }(), "
     "...);"),
    ("by_row(bfloat16{}, std::make_integer_sequence<int, rows>{});",
     'throw Error("this mutant is compiled for fp16 only");'))


@dataclass
class Edit:
    file: str  # relative to the root
    old: str
    new: str
    line: int  # of the mutant's file


@dataclass
class Mutant:
    stage: str
    name: str
    line: int
    mistake: str = ""
    verdict: str = ""
    row: str = ""  # of the stage's variants; "": the first
    tile: str = "first"
    grid_y: str = "65535"  # blocks that a grid may have along y
    problems: list[str] = field(default_factory=list)
    edits: list[Edit] = field(default_factory=list)

    @property
    def label(self) -> str:
        return f"{self.stage}/{self.name}"

    @property
    def only_kernel(self) -> bool:
        """True if the mistake is in kernel.cu alone, not in a primitive under it."""
        return all(edit.file == f"{self.stage}/kernel.cu" for edit in self.edits)


def parse(text: str, stage: str, where: str) -> list[Mutant]:
    """The mutants of one file. Raises UserError naming the line that is wrong."""
    mutants: list[Mutant] = []
    file, last = f"{stage}/kernel.cu", ""
    for number, line in enumerate(text.splitlines(), 1):
        key, _, value = line.partition(" ")
        value = value.strip()
        if not line.strip() or line.startswith("#"):
            last = ""
        elif key == "name":
            mutants.append(Mutant(stage, value, number))
            file = f"{stage}/kernel.cu"
        elif not mutants:
            raise UserError(f"{where}:{number}: a mutant begins with its name, not with "
                            f"\"{key}\"", 1)
        elif key == "in":
            file = value
        elif key == "try":
            mutants[-1].problems.append(value)
        elif key in ("mistake", "verdict", "row", "tile", "grid_y"):
            setattr(mutants[-1], key, value)
        elif key == "-":
            if last != "-":
                mutants[-1].edits.append(Edit(file, "", "", number))
            mutants[-1].edits[-1].old += line[2:] + "\n"
        elif key == "+" and mutants[-1].edits:
            mutants[-1].edits[-1].new += line[2:] + "\n"
        else:
            raise UserError(f"{where}:{number}: \"{key}\" is not known here (see the README.md)", 1)
        last = key if line.strip() else ""
    for mutant in mutants:
        if not (mutant.mistake and mutant.verdict and mutant.edits):
            raise UserError(f"{where}:{mutant.line}: {mutant.name} needs a mistake, a verdict and "
                            "an edit", 1)
        mutant.problems = mutant.problems or [DEFAULT_PROBLEM]
    return mutants


def load(stage: str | None = None) -> list[Mutant]:
    """The mutants of a stage, or of all stages."""
    found = []
    for name in [stage] if stage else stages.names():
        path = FOLDER / f"{name}.txt"
        if not path.exists():
            raise UserError(f"{path.relative_to(paths.ROOT)} is not there: every stage has a file "
                            "of mutants", 1)
        found += parse(path.read_text(), name, path.relative_to(paths.ROOT).as_posix())
    return found


def find(label: str) -> Mutant:
    """The mutant called "stage4_fa2_warps/mask_sign"; the stage may be a number."""
    stage, _, name = label.partition("/")
    for mutant in load(stages.find(stage)):
        if mutant.name == name:
            return mutant
    raise UserError(f"there is no mutant {label} (./fa2 mutants lists them)")


def replace_once(text: str, old: str, new: str) -> str | None:
    """`text` with `old` replaced, which must stand there once but for white space; else None."""
    pattern = r"\s+".join(re.escape(word) for word in old.split())
    found = list(re.finditer(pattern, text))
    if len(found) != 1:
        return None
    return text[:found[0].start()] + new.rstrip("\n") + text[found[0].end():]


def sources(mutant: Mutant) -> dict[str, str]:
    """The files that the mutant changes, by their path from the root, each whole. Raises UserError
    if an edit no longer fits."""
    texts: dict[str, str] = {}
    for edit in mutant.edits:
        before = texts.get(edit.file) or stages.unmarked((paths.ROOT / edit.file).read_text())
        after = replace_once(before, edit.old, edit.new)
        if after is None:
            raise UserError(
                f"common/testing/mutants/{mutant.stage}.txt:{edit.line}: {mutant.name} no longer "
                f"fits: {edit.file} does not hold these lines exactly once:\n{edit.old}Bring the "
                "edit up to date with the file.", 1)
        texts[edit.file] = after
    return texts


@dataclass
class Result:
    verdict: str  # a mutant's kind, or "accepted", "does not compile", "cannot run"
    details: str = ""


class Bench:
    """Compiles kernels and tries them, in one build folder of the simulator."""

    def __init__(self, build: Path):
        self.build = build
        self.work = build / "mutants"
        commands = json.loads((build / "compile_commands.json").read_text())
        self.commands = {Path(entry["file"]).name: entry for entry in commands}
        shutil.rmtree(self.work, ignore_errors=True)
        self.write(self.work / "base", DISPATCH, self.small_dispatch())
        self.precompile()

    @staticmethod
    def reason_not_to_run(build: Path) -> str | None:
        """Why mutants cannot be tried in this build folder."""
        cache = paths.read_or(build / "CMakeCache.txt")
        if re.search(r"^FA2_SANITIZE:STRING=.", cache, re.MULTILINE):
            return "a sanitizer's runtime must be loaded first, before a mutant"
        if not (build / "bin" / "fa2-try").exists():
            return f"{build}/bin/fa2-try is not built"
        return None

    @staticmethod
    def write(folder: Path, file: str, text: str) -> Path:
        path = folder / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    @staticmethod
    def small_dispatch() -> str:
        text = (paths.ROOT / DISPATCH).read_text()
        for old, new in FEWER_INSTANCES:
            text = replace_once(text, old, new)
            if text is None:
                raise UserError(f"{DISPATCH} does not hold \"{old}\" exactly once; bring "
                                "FEWER_INSTANCES in common/python/fa2course/mutants.py up to "
                                "date", 1)
        return text

    def compiler(self, stage: str, folders: list[Path], rows: int) -> list[str]:
        """The stage's own command line without its files, warnings and ccache; folders of headers
        come before the course's."""
        words = shlex.split(self.commands[f"{stage}_sim.cpp"]["command"])
        while Path(words[0]).name == "ccache":
            del words[0]
        at = words.index("-o")
        flags = [word for word in words[1:at] if not word.startswith(("-W", "-O"))]
        return [words[0], *(f"-I{folder}" for folder in folders), *flags, "-w", "-O0",
                f"-DFA2_ROWS={rows}"]

    def precompile(self) -> None:
        """The headers of common/device, once for all kernels (g++; others read the text)."""
        header = self.write(self.work / "base", "common/device/device.h",
                            (paths.ROOT / "common/device/device.h").read_text())
        base = self.compiler(stages.names()[0], [self.work / "base"], 2)
        subprocess.run([*base, "-x", "c++-header", str(header), "-o", f"{header}.gch"],
                       capture_output=True, timeout=TIMEOUT, check=False)

    def compile(self, stage: str, label: str, files: dict[str, str],
                rows: int = 2) -> tuple[Path, str]:
        """A shared library of the stage with these files in place of the course's. Returns it and
        what the compiler complained of."""
        folder = self.work / label
        for file, text in files.items():
            self.write(folder, file, text)
        kernel = f"{stage}/kernel.cu"
        own_headers = any(file != kernel for file in files)
        if own_headers:  # the precompiled ones do not have them
            self.write(folder, DISPATCH, files.get(DISPATCH, self.small_dispatch()))
        wrapper = self.write(folder, "kernel.cpp", f'#include "{kernel}"\n')
        library = folder / "kernel.so"
        folders = [folder] if own_headers else [folder, self.work / "base"]
        done = subprocess.run([*self.compiler(stage, folders, rows), "-shared", str(wrapper), "-o",
                               str(library)], capture_output=True, text=True, timeout=TIMEOUT)
        return library, done.stderr if done.returncode else ""

    def run(self, command: list[str], library: Path) -> subprocess.CompletedProcess:
        env = os.environ | {"LD_PRELOAD": str(library), "ASAN_OPTIONS": ""}
        return subprocess.run(command, capture_output=True, text=True, errors="replace", env=env,
                              timeout=TIMEOUT)

    def try_kernel(self, stage: str, label: str, files: dict[str, str], problems: list[str],
                   row: str = "", tile: str = "first", grid_y: str = "65535",
                   counters: bool = True) -> Result:
        """Compiles the stage with these files, runs the problems and then, if all is right, the
        stage's own test of its counters."""
        rows = 99 if tile != "first" else 2 if counters or "d=128" in "".join(problems) else 1
        try:
            library, complaint = self.compile(stage, label, files, rows)
            if complaint:
                return Result("does not compile", complaint)
            done = self.run([str(self.build / "bin" / "fa2-try"), stage, row, tile, grid_y,
                             *problems], library)
            kind, _, details = done.stdout.partition("\n")
            if done.returncode not in (0, 1):
                return Result("cannot run", done.stderr)
            if kind != "right" or not counters:
                return Result("accepted" if kind == "right" else kind, details)
            tests = ",".join([COUNTERS_TEST] + ORDER_TEST.get(stage, []))
            done = self.run([str(self.build / "bin" / f"{stage}_test"), tests], library)
        except subprocess.TimeoutExpired as expired:
            return Result("cannot run", f"{expired.cmd[0]} took more than {TIMEOUT} s")
        if done.returncode == 0 and "No test cases matched" not in done.stdout:
            return Result("accepted")
        failed = re.findall(r"^  (CHECK\(.*\))$", done.stdout, re.MULTILINE)
        if not failed:
            return Result("cannot run", done.stdout + done.stderr)
        values = [check for check in failed if "verdict.message" in check]
        return Result("wrong" if values else "counters", (values or failed)[0])

    def try_mutant(self, mutant: Mutant) -> Result:
        return self.try_kernel(mutant.stage, mutant.label, sources(mutant), mutant.problems,
                               mutant.row, mutant.tile, mutant.grid_y,
                               counters=mutant.verdict == "counters")

    def try_original(self, stage: str) -> Result:
        """The stage as it is, on all problems of its mutants: must be accepted."""
        kernel = f"{stage}/kernel.cu"
        problems = sorted({p for m in load(stage) if m.tile == "first" for p in m.problems})
        return self.try_kernel(stage, f"{stage}/original",
                               {kernel: (paths.ROOT / kernel).read_text()}, problems)
