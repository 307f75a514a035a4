#!/usr/bin/env python3
"""Compiles every .cu file with nvcc and refuses warnings and register spills. Needs no GPU.

    ./common/python/fa2course/cuda_check.py [--arch 80,86,89,90] [--table] [stage2_fa1 ...]

One result per file and architecture, kept in build/cuda_check/ under a hash of everything that goes
into it, so only what changed is compiled again. Standard library only.
"""
import argparse
import concurrent.futures
import hashlib
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

if __name__ == "__main__":  # called as a script: make the package importable
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from fa2course.launcher import gpu, lock, paths, process  # noqa: E402

FLAGS = ["-std=c++20", "-O3", "-lineinfo", "-Werror", "all-warnings", "-Xcompiler=-Wall,-Wextra",
         "-DFA2_WITH_CUDA=1", "-Xptxas", "-v"]


@dataclass
class Kernel:
    """What ptxas says about one kernel."""
    name: str
    registers: int
    stack: int  # bytes of stack frame per thread
    spill_stores: int  # bytes per thread
    spill_loads: int
    shared: int  # static shared memory, bytes per block


@dataclass
class Result:
    """One .cu file compiled for one architecture."""
    file: str
    arch: str
    output: str  # of a failed compilation, "" otherwise
    kernels: list[Kernel]

    @property
    def spilling(self) -> list[Kernel]:
        # printf's arguments lie on the stack: a kernel that prints for learning is called print_...
        return [k for k in self.kernels if k.spill_stores or k.spill_loads or
                (k.stack and not k.name.startswith("print_"))]

    @property
    def ok(self) -> bool:
        return not self.output and not self.spilling

    @property
    def problem(self) -> str:
        where = f"{self.file} for sm_{self.arch}"
        if self.output:
            return f"{where} does not compile cleanly:\n{self.output.rstrip()}"
        lines = [f"  {k.name}: {k.spill_stores} bytes of spill stores, {k.spill_loads} of loads, "
                 f"{k.stack} of stack frame, {k.registers} registers" for k in self.spilling]
        return "\n".join([f"{where} spills registers or uses the stack:", *lines])


def sources(only: list[str] | None) -> list[str]:
    """Every .cu file of the course, or those in the named folders, relative to the root."""
    found = [path.relative_to(paths.ROOT).as_posix()
             for pattern in ("stage*/**/*.cu", "common/**/*.cu") for path in
             paths.ROOT.glob(pattern)]
    return sorted(f for f in found if only is None or f.split("/")[0] in only)


def repeats(file: str) -> bool:
    """Whether a variant is its stage's kernel.cu with another launch: the same device code."""
    text = (paths.ROOT / file).read_text()
    return bool(re.search(r'#include ".*kernel\.cu"', text)) and "__device__" not in text and \
        "__global__" not in text


def closure(file: str) -> list[str]:
    """The file and every file of the course that it includes, directly or not."""
    seen, todo = [], [file]
    while todo:
        name = todo.pop()
        if name in seen or not (paths.ROOT / name).is_file():
            continue
        seen.append(name)
        text = (paths.ROOT / name).read_text(errors="replace")
        todo += re.findall(r'^\s*#\s*include\s+"([^"]+)"', text, re.MULTILINE)
    return sorted(seen)


def key(file: str, arch: str, nvcc: str) -> str:
    """Changes when the result may."""
    digest = hashlib.sha256(repr((arch, nvcc, gpu.nvcc_version(nvcc), FLAGS)).encode())
    digest.update(Path(__file__).read_bytes())
    for name in closure(file):
        digest.update(name.encode() + b"\0" + (paths.ROOT / name).read_bytes())
    return digest.hexdigest()


def demangled(names: list[str]) -> list[str]:
    """Names as in the source; the mangled ones where c++filt is missing."""
    try:
        done = subprocess.run(["c++filt"], input="\n".join(names), stdout=subprocess.PIPE,
                              text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return names
    shown = done.stdout.splitlines()
    return shown if len(shown) == len(names) else names


def parse(output: str) -> list[Kernel]:
    """The kernels in ptxas's report: one `Compiling entry function` each."""
    kernels = []
    for part in re.split(r"ptxas info\s*: Compiling entry function ", output)[1:]:
        def number(pattern: str, part=part) -> int:
            found = re.search(pattern, part)
            return int(found.group(1)) if found else 0

        kernels.append(Kernel(
            name=re.match(r"'([^']+)'", part).group(1),
            registers=number(r"Used (\d+) registers"),
            stack=number(r"(\d+) bytes stack frame"),
            spill_stores=number(r"(\d+) bytes spill stores"),
            spill_loads=number(r"(\d+) bytes spill loads"),
            shared=number(r"(\d+) bytes smem")))
    for kernel, name in zip(kernels, demangled([k.name for k in kernels])):
        kernel.name = re.sub(r"fa2::(on_gpu::)?|\(anonymous namespace\)::|^void ", "",
                             name.split("(fa2::Problem")[0])
    return kernels


_running: dict[Path, subprocess.Popen] = {}


def compile_one(file: str, arch: str, nvcc: str) -> Result:
    """Compiles, or reads the kept result."""
    keep = paths.BUILD / "cuda_check" / f"{file.replace('/', '-')}-sm_{arch}.json"
    wanted = key(file, arch, nvcc)
    try:
        kept = json.loads(keep.read_text())
        if kept["key"] == wanted:
            return Result(file, arch, kept["output"], [Kernel(**k) for k in kept["kernels"]])
    except (OSError, ValueError, KeyError, TypeError):
        pass
    keep.parent.mkdir(parents=True, exist_ok=True)
    scratch = keep.with_suffix(f".{os.getpid()}.o")
    command = [nvcc, *FLAGS, "-gencode", f"arch=compute_{arch},code=sm_{arch}",
               "-I", str(paths.ROOT), "-c", str(paths.ROOT / file), "-o", str(scratch)]
    child = _running[keep] = subprocess.Popen(command, stdin=subprocess.DEVNULL,
                                              stdout=subprocess.PIPE,
                                              stderr=subprocess.STDOUT, text=True, errors="replace",
                                              pass_fds=lock.inherited(), process_group=0,
                                              env=process.environment())
    try:
        output, _ = child.communicate()
    finally:
        process.stop(child, group=True)
        scratch.unlink(missing_ok=True)
        del _running[keep]
    failed = child.returncode != 0 or re.search(r"\bwarning\b", output)
    result = Result(file, arch, output if failed else "", parse(output))
    if child.returncode >= 0 and not process.FULL_DISK.search(output):  # not one that was killed
        paths.write_whole(keep, json.dumps({"key": wanted} | asdict(result), indent=1))
    return result


def check(only: list[str] | None, architectures: list[str], jobs: int,
          progress: Callable[[str], None] = lambda state: None) -> list[Result]:
    """Compiles the .cu files of the folders `only` (None: all) for each architecture, e.g. "80"."""
    nvcc = gpu.find_nvcc()
    files = [file for file in sources(only) if not repeats(file)]
    work = [(file, arch) for file in files for arch in architectures]
    results = []
    pool = concurrent.futures.ThreadPoolExecutor(jobs)
    waiting = [pool.submit(compile_one, file, arch, nvcc) for file, arch in work]
    try:
        for done in concurrent.futures.as_completed(waiting):
            results.append(done.result())
            progress(f"{len(results)}/{len(work)}")
    except BaseException:  # interrupted, or the disk is full
        pool.shutdown(wait=False, cancel_futures=True)
        for child in list(_running.values()):
            process.stop(child, group=True)
        raise
    pool.shutdown()
    return sorted(results, key=lambda result: (result.file, int(re.sub(r"\D", "", result.arch))))


def table(results: list[Result]) -> str:
    """Registers, static shared memory and spills of every kernel."""
    rows = [f"{'file':<28} {'sm':>4} {'regs':>5} {'smem':>6} {'stack':>6} {'spill st/ld':>12}  "
            "kernel"]
    for result in results:
        for k in result.kernels:
            rows.append(f"{result.file:<28} {result.arch:>4} {k.registers:>5} {k.shared:>6} "
                        f"{k.stack:>6} {f'{k.spill_stores}/{k.spill_loads}':>12}  {k.name}")
    return "\n".join(rows)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("folder", nargs="*", help="stage folders (default: every .cu file)")
    parser.add_argument("--arch", default="80,90", help="architectures, e.g. 80,86,89,90")
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--table", action="store_true",
                        help="print registers and spills per kernel")
    options = parser.parse_args()
    if not gpu.find_nvcc():
        print("fa2: no nvcc here: install the CUDA Toolkit 12.0 or later", file=sys.stderr)
        return 2
    only = [folder.rstrip("/") for folder in options.folder] or None
    if only and (unknown := [f for f in only if not sources([f])]):
        print(f"fa2: no .cu file in {unknown[0]}", file=sys.stderr)
        return 2
    results = check(only, options.arch.split(","), options.jobs)
    if options.table:
        print(table(results))
    failed = [result for result in results if not result.ok]
    for result in failed:
        print(result.problem)
    print(f"{len(results) - len(failed)} passed, {len(failed)} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
