"""./fa2 compare"""
import importlib.util
import os
import subprocess
from pathlib import Path

from .. import build, lock, paths, peers, process, stages, venv
from ..console import Step, say
from ..errors import UserError
from ..options import Parser, check_known, value_of
from .grade import in_venv

SUMMARY = "runs every stage on the same problems, checks and compares them"
HELP = """
usage: ./fa2 compare [OPTIONS]

Runs every stage on the same problems, checks each against a double-precision reference, and shows
what each change moved: times on a GPU (compute capability 8.0 or later, with nvcc 12.0 or later),
counters on the built-in simulator, which needs no GPU. The first run does all set-up.

shapes (every combination):
  --batch N          batch size
  --heads N          query heads
  --heads-kv N       key/value heads; --heads is a multiple of it
  --seqlen LIST      queries and keys, e.g. 512,1024
  --seqlen-k N       keys, where there are not as many as queries
  --headdim LIST     head dims: 64, 128
  --causal           causal attention only
  --full             full attention only (neither flag: both)

  --dtype LIST       fp16 (default), bf16
  --stages LIST      stages by number, e.g. 1,2 (default: all)
  --tiles LIST       same (default): one tile for all stages; same_b: the second common tile, stages
                     4-6 at head dim 64; tuned: each stage's best
  --peers            on a GPU also PyTorch's backends, the flash-attn package and Triton's kernels,
                     in turn with the stages, where installed (FA2_PYTHON names PyTorch's Python)
  --variants         also the variants beside the stages
  --mine             also your own kernels in work/ (of --stages), each beside its stage and held
                     against the variant of the same name, where it has one
  --backend NAME     sim or cuda (default: a GPU if one is usable)
  --gpu MODEL        h200, a100, rtx4090, rtx3090 or l4: the simulator takes its limits, and a
                     prediction for it is added, of any size (default: the sweep of a GPU)
  --threads N        threads of the simulator (default: all cores)
  --merge FILE...    run nothing: join compare.json files of several machines, by GPU
  --scheduler ADDR   run on every GPU model among the workers of a Dask scheduler (or, without any,
                     on their simulators) and merge by GPU; start workers with ./fa2 worker
  --against FILE     say which rows differ from this compare.json of an earlier run
  --out DIR          folder for compare.json, .csv, .md, .png and .html
                     (default: build/results/compare)
  --quiet            print errors only

exit status: 0 done, 1 a result is wrong (or differs: --against), 2 cannot run here
"""


def run(arguments: list[str]) -> int:
    check_known("compare", HELP, arguments)
    if "--merge" in arguments:
        return merge_files(arguments)
    if value_of("--scheduler", arguments):
        return run_on_workers(arguments)
    backend = value_of("--backend", arguments)
    if backend not in (None, "sim", "cuda"):
        raise UserError(f"--backend is \"{backend}\"; accepted are sim, cuda.")
    quiet = "--quiet" in arguments
    predicting = backend != "cuda" and value_of("--gpu", arguments) is not None
    preset = build.choose("sim" if predicting else backend, quiet)
    python = set_up(preset, ["fa2-counts"] if predicting else [])
    out = Path(value_of("--out", arguments) or paths.BUILD / "results" / "compare").resolve()
    if not value_of("--out", arguments) and Path.cwd() != paths.ROOT:
        arguments = [*arguments, "--out", str(out)]
    if backend is None and preset == "sim":
        arguments = [*arguments, "--backend", "sim"]  # the reason has been said
    if "--mine" in arguments:
        asked = (value_of("--stages", arguments) or "").split(",")
        arguments = [word for word in arguments if word != "--mine"]
        arguments += [f"--mine={word}" for word in own_kernels(preset, asked)]
    os.environ.setdefault("FA2_COMMIT", commit())  # every record names it
    with_peers = "--peers" in arguments
    arguments = [word for word in arguments if word != "--peers"]
    status = (compare_and_predict if predicting else compare)(preset, arguments, out, python)
    if with_peers and status in (0, 1):
        status = max(status, peers.run(preset, out, quiet))
    return status


def compare(preset: str, arguments: list[str], out: Path, python: Path | None) -> int:
    status = process.run_foreground(
        [str(paths.preset_dir(preset) / "bin" / "fa2-compare"), *arguments])
    if status in (0, 1) and python and (out / "compare.json").exists():
        draw(python, out, "--quiet" in arguments)
    return status


def compare_and_predict(preset: str, arguments: list[str], out: Path, python: Path | None) -> int:
    """The comparison on the simulator, unless it would take minutes, and what this GPU would do."""
    from fa2course.predict import counts, table

    program, quiet = paths.preset_dir(preset) / "bin" / "fa2-counts", "--quiet" in arguments
    try:
        planned = table.plan(program, [w for w in arguments if not w.startswith("--mine=")])
        status = 0
        if table.simulator_minutes(planned, arguments) < 1:
            status = compare(preset, arguments, out, python)
        elif not quiet:
            say("too large to simulate in a minute: predicted only, from the counters of small "
                "shapes")
        if status in (0, 1):
            table.report(program, planned, out, f"fa2 compare {' '.join(arguments)}", quiet)
        return status
    except (table.Refused, counts.CountsFailed) as error:
        raise UserError(str(error)) from None


def own_kernels(preset: str, asked: list[str]) -> list[str]:
    """Compiles every work/stageN/kernel.cu of the stages asked for ([""]: all); "N=FILE" for each."""
    from fa2course.student import compiler, execute, progress

    found, there = [], []
    for number in map(stages.number, stages.names()):
        kernel = progress.kernel(number)
        if not kernel.is_file():
            continue
        there.append(str(number))
        if asked != [""] and str(number) not in [word.strip() for word in asked]:
            continue
        scratch = paths.BUILD / "mine" / f"stage{number}"
        with Step(f"compile {compiler.shown(kernel)}"):
            compiled = compiler.compile_kernel(
                compiler.Build(paths.preset_dir(preset)), kernel, scratch, "all", execute.plainly,
                backend=preset)
        if compiled.problem:
            raise UserError(f"{compiler.shown(kernel)}: {compiled.problem}", 1)
        found.append(f"{number}={compiled.library}")
    if there and not found:
        raise UserError(f"--mine: work/ has no kernel of --stages {','.join(asked)}; it has stage "
                        f"{', '.join(there)}.")
    if not found:
        raise UserError("--mine: there is no kernel in work/. ./fa2 start N puts one in place.")
    return found


def merge_files(arguments: list[str]) -> int:
    """compare --merge A.json B.json ... [--out DIR]"""
    from fa2course import merge

    parser = Parser("compare")
    parser.add_argument("--merge", nargs="+", type=Path, required=True)
    parser.add_argument("--out", type=Path, default=paths.BUILD / "results" / "merged")
    parser.add_argument("--quiet", action="store_true")
    options = parser.parse_args(arguments)
    results, left_out = merge.merge(map(merge.read, options.merge),
                                    f"fa2 compare --merge {' '.join(map(str, options.merge))}")
    return show(results, options.out.resolve(), options.quiet,
                f", {left_out} left out because they are there twice" if left_out else "")


def run_on_workers(arguments: list[str]) -> int:
    """compare --scheduler ADDRESS [OPTIONS]"""
    for option in ("--mine", "--peers"):
        if option in arguments:
            raise UserError(f"{option} and --scheduler do not go together")
    if not importlib.util.find_spec("distributed"):
        return in_venv(["compare", *arguments])
    from fa2course import merge
    from fa2course.compare_workers import compare

    out = Path(value_of("--out", arguments) or paths.BUILD / "results" / "compare").resolve()
    results, _ = merge.merge(compare(value_of("--scheduler", arguments), arguments),
                             f"fa2 compare {' '.join(arguments)}")
    return show(results, out, "--quiet" in arguments)


def show(results: dict, out: Path, quiet: bool, note: str = "") -> int:
    """Writes merged results with their picture and page, and one line per GPU."""
    from fa2course import merge

    merge.write(results, out)
    if not quiet:
        print(merge.summary(results))
        print(f"Written: compare.json and compare.csv in {out}{note}")
    try:
        draw(venv.ensure_or_system(["report"], ["matplotlib", "numpy"]), out, quiet)
    except UserError as error:
        say(f"no picture: {error}")
    return merge.exit_status(results)


def commit() -> str:
    """The commit of the course, "-dirty" with local changes; empty where git cannot say."""
    try:
        return subprocess.run(["git", "-C", str(paths.ROOT), "describe", "--always", "--dirty",
                               "--abbrev=12"], capture_output=True, text=True).stdout.strip()
    except OSError:
        return ""


def set_up(preset: str, besides: list[str] = ()) -> Path | None:
    """Everything up to the built program. Returns the Python that draws the picture, or None."""
    paths.BUILD.mkdir(exist_ok=True)
    with lock.exclusive():
        build.ensure_tools()
        try:
            python = venv.ensure_or_system(["report"], ["matplotlib", "numpy"])
        except UserError as error:
            say(f"no picture: {error}")
            python = None
        build.ensure_built(preset, ["fa2-compare", *besides])
    return python


def draw(python: Path, out: Path, quiet: bool) -> None:
    """The picture; without it the comparison is still whole."""
    status, output = process.run_logged([str(python), "-m", "fa2course.report", str(out)], "report")
    lines = output.strip().splitlines()
    if status != 0:
        say(f"the picture could not be drawn: {lines[-1] if lines else f'status {status}'} "
            f"(log: {paths.LOGS / 'report.log'})")
    elif lines and not quiet:
        print("\n".join(lines))
