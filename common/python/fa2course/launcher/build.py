"""Set-up and build: system packages, CMake configure, CMake build. Cheap when nothing changed."""
import hashlib
import json
import os
import re
import shutil
from pathlib import Path

from . import gpu, lock, packages, paths, process, toolchain, venv
from .console import Step, say
from .errors import UserError

MAX_SHOWN = 60  # lines of a failure
NETWORK = re.compile(r"download|fetch|clone|resolve host|cannot be reached", re.IGNORECASE)


def explain_configure(preset: str, output: str) -> str:
    errors = re.split(r"^CMake Error", output, maxsplit=1, flags=re.MULTILINE)
    lines = ("CMake Error" + errors[1] if len(errors) > 1 else output).strip().splitlines()
    hint = ""
    absent = [lib.package for lib in toolchain.LIBRARIES if not lib.found()]
    if absent and NETWORK.search(output):
        hint = ("\nThese are not installed, and could not be fetched. Install them: "
                f"{packages.install_command(absent)}")
    return (f"cmake --preset {preset} failed:\n" + "\n".join(lines[:MAX_SHOWN]) + hint +
            f"\n(log: {paths.LOGS / f'configure_{preset}.log'})")


def jobs() -> int:
    """Compiler processes at once: one per core, and a gigabyte of free memory for each."""
    cores = len(os.sched_getaffinity(0))
    free = re.search(r"^MemAvailable:\s+(\d+) kB", paths.read_or(Path("/proc/meminfo")),
                     re.MULTILINE)
    return max(1, min(cores, int(free.group(1)) // 1_000_000 if free else cores))


def configure_arguments(preset: str, cmake: str) -> list[str]:
    arguments = [cmake, "--preset", preset, f"-DCMAKE_MAKE_PROGRAM={toolchain.tool('ninja')}"]
    compiler = toolchain.compiler()
    if compiler:
        arguments.append(f"-DCMAKE_CXX_COMPILER={compiler.path}")
        # CMake looks for cc, gcc or clang. Debian's g++-14 alone brings gcc-14 only.
        if compiler.for_c and not os.environ.get("CC") and not shutil.which("cc"):
            arguments.append(f"-DCMAKE_C_COMPILER={compiler.for_c}")
    if preset == "cuda":
        arguments.append(f"-DCMAKE_CUDA_COMPILER={gpu.find_nvcc()}")
    if os.environ.get("FA2_WERROR"):
        arguments.append("-DFA2_WERROR=ON")
    return arguments


def stamp_text(preset: str, arguments: list[str]) -> str:
    presets = hashlib.sha256((paths.ROOT / "CMakePresets.json").read_bytes()).hexdigest()
    gpus = gpu.look().gpus if preset == "cuda" else []
    return json.dumps({"arguments": arguments, "root": str(paths.ROOT), "presets": presets,
                       "gpus": gpus}, indent=1)


def configure(preset: str) -> None:
    """cmake --preset, when it was never done, was killed, or something it depends on changed. (A
    changed CMakeLists.txt is Ninja's to notice.)"""
    folder = paths.preset_dir(preset)
    cmake = toolchain.tool("cmake")
    arguments = configure_arguments(preset, cmake)
    stamp = folder / ".fa2_configured"
    wanted = stamp_text(preset, arguments)
    if paths.read_or(stamp) == wanted and (folder / "build.ninja").exists():
        return
    home = re.search(r"^CMAKE_HOME_DIRECTORY:INTERNAL=(.*)$",
                     paths.read_or(folder / "CMakeCache.txt"), re.MULTILINE)
    stamp.unlink(missing_ok=True)
    if not home or home.group(1) != str(paths.ROOT) or not (folder / "build.ninja").exists():
        shutil.rmtree(folder, ignore_errors=True)  # never finished, or from before the clone moved
    with Step(f"configure ({preset})"):
        status, output = process.run_logged(arguments, f"configure_{preset}")
        if status != 0 and not NETWORK.search(output):  # an old cache may be the reason
            shutil.rmtree(folder, ignore_errors=True)
            status, output = process.run_logged(arguments, f"configure_{preset}")
        if status != 0:
            raise UserError(explain_configure(preset, output))
    paths.write_whole(stamp, wanted)


def compile_all(preset: str, targets: list[str]) -> None:
    """cmake --build. Raises UserError (status 1) with the compiler's words."""
    folder = paths.preset_dir(preset)
    command = [toolchain.tool("cmake"), "--build", str(folder), "-j", str(jobs())]
    if targets:
        command += ["--target", *targets]
    env = process.environment() | {"NINJA_STATUS": "[%f/%t] "}
    if is_up_to_date(folder, targets):
        return
    with Step(f"build ({preset})") as step:
        def progress(line: str) -> None:
            count = re.match(r"\[(\d+/\d+)\]", line)
            if count:
                step.update(count.group(1))

        status, output = process.run_logged(command, f"build_{preset}", progress, env=env)
        if status != 0 and "ninja: error: " in output and "missing and no known rule" not in output:
            say("the build folder is damaged; configuring anew")
            (folder / ".fa2_configured").unlink(missing_ok=True)
            shutil.rmtree(folder / "CMakeFiles", ignore_errors=True)
            (folder / "build.ninja").unlink(missing_ok=True)
            configure(preset)
            status, output = process.run_logged(command, f"build_{preset}", progress, env=env)
        if status != 0:
            raise UserError(explain_build(preset, output), 1)
        warnings = len(re.findall(r"\bwarning:|warning #", output))
        if warnings:
            step.note = f"{warnings} warnings (log: {paths.LOGS / f'build_{preset}.log'})"


def is_up_to_date(folder, targets: list[str]) -> bool:
    """Asks Ninja without building (a tenth of a second)."""
    ninja = toolchain.tool("ninja")
    answer = process.output_of([ninja, "-C", str(folder), "-n", *targets], timeout=120)
    return answer is not None and "no work to do" in answer


def explain_build(preset: str, output: str) -> str:
    """The compiler's own words, without the command lines."""
    failed = re.search(r"^FAILED: ", output, re.MULTILINE)
    lines = output[failed.start():].splitlines() if failed else output.splitlines()
    shown = [line for line in lines
             if not re.match(r"\[\d+/\d+\] |FAILED: |ninja: build stopped", line)
             and not re.match(r"(: && )?\S*/(ccache|[\w-]*(c|g|clang)\+\+(-\d+)?|nvcc|ar|cmake) ",
                              line)]
    more = len(shown) - MAX_SHOWN
    text = "\n".join(shown[:MAX_SHOWN]) + (f"\n... {more} more lines" if more > 0 else "")
    return f"the build failed:\n{text}\n(log: {paths.LOGS / f'build_{preset}.log'})"


def ensure_tools() -> None:
    """Everything but the libraries, by apt-get or, without rights, by pip; else says what to do."""
    configured = any((folder / ".fa2_configured").exists() for folder in paths.BUILD.glob("*"))
    absent = packages.ensure(with_libraries=not configured)
    packages.require_compiler(absent)
    tools = [name for name in ("CMake", "Ninja") if name in absent]
    if tools:
        try:
            venv.ensure(["tools"])
        except venv.Unavailable as error:
            needed = [absent[name] for name in tools]
            raise UserError(f"{' and '.join(tools)} not found, and pip could not bring them: "
                            f"{error}. Install them: {packages.install_command(needed)}") from None


def ensure_built(preset: str, targets: list[str] = ()) -> None:
    """All of it; the lock makes a second ./fa2 wait."""
    paths.BUILD.mkdir(exist_ok=True)
    with lock.exclusive():
        ensure_tools()
        configure(preset)
        compile_all(preset, list(targets))


def choose(backend: str | None, quiet: bool = False) -> str:
    """The preset for a backend the user asked for ("sim", "cuda") or left open (None). Says why
    when it is not the GPU."""
    if backend == "sim":
        return "sim"
    paths.BUILD.mkdir(exist_ok=True)
    found = gpu.look()
    if backend == "cuda" and not found.usable:
        raise UserError(f"--backend cuda: {found.reason}. The simulator runs anywhere: --backend "
                        "sim")
    if not found.usable and not quiet:
        say(f"running on the simulator: {found.reason}")
    return "cuda" if found.usable else "sim"
