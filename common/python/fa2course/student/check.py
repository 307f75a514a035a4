"""The check of one kernel, step by step. What ./fa2 check and ./fa2 grade call.

    result = check(4, Path("work/stage4/kernel.cu"), scratch_folder)
"""
import hashlib
import json
import os
import shutil
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from fa2course.launcher import paths, stages
from fa2course.launcher.errors import UserError

from . import rules, steps, where
from .compiler import Build, compile_kernel, shorten, shown
from .execute import Execute, plainly

FORMAT = 1
RUN_TIMEOUT_S = 120
LONG_COMPILE = 3  # the step bf16 takes 1.5 (stage 1) to 3 times (stages 3 to 6) the first compilation
MAX_RESULTS = 4_000_000  # bytes that what the kernel's process wrote may have

Progress = Callable[[dict], None]


class Failed(Exception):
    """The step failed; the text is for the learner."""


def default_build(backend: str = "sim") -> Build:
    """The build folder that ./fa2 made: build/sim, or $FA2_BUILD_DIR."""
    folder = os.environ.get("FA2_BUILD_DIR") if backend == "sim" else None
    build = Build(Path(folder) if folder else paths.preset_dir(backend))
    if not build.program.is_file():
        raise UserError(f"{build.program} is not built; ./fa2 check builds it")
    return build


def step_names(stage: int, gpu: bool = False) -> list[tuple[str, str]]:
    """Name and title of every step of a stage's check, in order."""
    listed = [("compiles", "compiles")] + [(s.name, s.title) for s in steps.steps_of(stage)]
    return listed + ([(s.name, s.title) for s in steps.GPU] if gpu else [])


def check(stage: int, kernel: Path, scratch: Path, *, progress: Progress | None = None,
          execute: Execute = plainly, build: Build | None = None, quick: bool = False,
          gpu: Build | None = None, threads: int = 0) -> dict:
    """Runs the steps until one fails.

    kernel    the kernel.cu to check; it is compiled where it is, nothing of it is executed here
    scratch   a folder of this check alone; compiling and running write nowhere else
    progress  called with {"step", "title", "status"} when a step begins ("running", with
              "expected_s": None, or about how long a long step takes) and ends
    execute   runs the phases "compile", "run" and "judge" (see execute.py): where a sandbox goes
    build     the course's build folder (default: build/sim)
    quick     only what the first instance (fp16, d = 64) tells: skips "bf16", counts on it alone
    gpu       a build folder with CUDA: adds the step "gpu"
    threads   of the simulator (0: all cores)

    Returns {"format", "stage", "name", "kernel", "sha256", "steps": [{"name", "title", "status":
    "passed" | "failed" | "skipped", "message"}], "passed", "of", "solved", "first_failure": None or
    {"step", "title", "message"}, "counters": {problem: {counter: value}}, "gpu": None or {...}}.
    The same kernel gives the same result, but for the times of a GPU.
    """
    return Checker(stage, Path(kernel).resolve(), Path(scratch).resolve(),
                   progress or (lambda _: None), execute, build or default_build(), quick, gpu,
                   threads).run()


class Checker:
    def __init__(self, stage: int, kernel: Path, scratch: Path, progress: Progress,
                 execute: Execute, build: Build, quick: bool, gpu: Build | None, threads: int):
        self.stage, self.kernel, self.scratch, self.progress = stage, kernel, scratch, progress
        self.execute, self.build, self.quick, self.gpu = execute, build, quick, gpu
        self.threads = threads
        self.first_compile_s = 0.0
        self.compiled: dict[tuple[str, str], Path] = {}
        self.counters: dict[str, dict[str, int]] = {}
        self.timing: dict | None = None

    def run(self) -> dict:
        self.scratch.mkdir(parents=True, exist_ok=True)
        todo: list[tuple[str, str, Callable[[], str]]] = [
            ("compiles", "compiles", lambda: self.compile("first"))]
        for step in steps.steps_of(self.stage):
            todo.append((step.name, step.title, lambda step=step: self.run_step(step)))
        if self.gpu:
            for step in steps.GPU:
                todo.append((step.name, step.title, lambda step=step: self.run_gpu(step)))
        done, failure = [], None
        for name, title, action in todo:
            status, message = "skipped", ""
            if self.quick and name == "bf16":
                message = "not asked for"
            elif failure is None:
                self.progress({"step": name, "title": title, "status": "running",
                               "expected_s": self.expected_seconds(name)})
                try:
                    message = action() or ""
                    status = "passed"
                except Failed as error:
                    status, message = "failed", str(error)
                    failure = {"step": name, "title": title, "message": message}
            entry = {"name": name, "title": title, "status": status, "message": message}
            done.append(entry)
            self.progress({"step": name, "title": title, "status": status, "message": message})
        return {
            "format": FORMAT, "stage": self.stage, "name": stages.find(str(self.stage)),
            "kernel": shown(self.kernel), "sha256": digest(self.kernel), "steps": done,
            "passed": sum(entry["status"] == "passed" for entry in done),
            "of": len([entry for entry in done if entry["message"] != "not asked for"]),
            "solved": failure is None and not self.quick, "first_failure": failure,
            "counters": self.counters, "gpu": self.timing}

    def expected_seconds(self, step: str) -> float | None:
        """About how long a long step will take here; None for a short one."""
        if step == "bf16" and ("sim", "all") not in self.compiled:
            return LONG_COMPILE * self.first_compile_s
        return None

    # ---- one step ----

    def compile(self, part: str, backend: str = "sim") -> str:
        """Compiles what is not compiled yet."""
        if (backend, part) not in self.compiled:
            build = self.build if backend == "sim" else self.gpu
            began = time.monotonic()
            compiled = compile_kernel(build, self.kernel, self.scratch, part, self.execute, backend)
            if part == "first":
                self.first_compile_s = time.monotonic() - began
            if compiled.problem:
                raise Failed(compiled.problem)
            self.compiled[backend, part] = compiled.library
        return ""

    def run_step(self, step: steps.Step) -> str:
        part = "first" if self.quick else step.part
        self.compile(part)
        library = self.compiled["sim", part]
        rows = self.rows(library, part, self.build)
        cases = step.cases(rows)
        results, verdicts = self.run_cases(step.name, library, cases, self.build, "sim")
        self.require_right(cases, results, verdicts, step.advice,
                           one_tile_is_right=step.name not in ("one_tile", "exchange"))
        if step.name == "counters":
            self.require_counts(cases, results, verdicts)
        return ""

    def run_gpu(self, step: steps.Step) -> str:
        self.compile("all", "cuda")
        library = self.compiled["cuda", "all"]
        cases = step.cases(self.rows(library, "all", self.gpu))
        results, verdicts = self.run_cases(step.name, library, cases, self.gpu, "cuda")
        self.require_right(cases, results, verdicts, "On the simulator it is right.")
        last = results[-1]
        self.timing = {"gpu": last["gpu"], "problem": cases[-1].json()["spec"], **last["timing"]}
        recorded = recorded_ms(stages.find(str(self.stage)), last["gpu"])
        published = f"; recorded for the published stage: {recorded:.3f} ms" if recorded else ""
        return (f"{self.timing['median_ms']:.3f} ms, {self.timing['tflops']:.0f} TFLOP/s on "
                f"{last['gpu']} ({self.timing['problem']}){published}")

    def rows(self, library: Path, part: str, build: Build) -> list[steps.Row]:
        """The kernel's tile table, without repetitions; of a `first` build only what is in it."""
        out = self.scratch / "stage.json"
        out.unlink(missing_ok=True)
        done = self.execute("run", [str(build.program), "describe", str(library), str(out)],
                            self.scratch, 20)
        if done.returncode != 0 or not out.is_file():
            raise Failed(f"the kernel cannot be loaded (the program {done.why()})."
                         + self.said(done.output))
        rows, seen = [], set()
        try:
            for variant in json.loads(read(out))["variants"]:
                for index, row in enumerate(variant["tiles"]):
                    tile = tuple(int(n) for n in row["tile"])
                    key = (variant["name"], int(row["d"]), tile)
                    if key in seen or (part == "first" and index > 0):
                        continue
                    if int(row["shared_bytes"]) > MAX_SHARED:
                        continue
                    seen.add(key)
                    rows.append(steps.Row(str(variant["name"]), index, str(row["mode"]), key[1],
                                          tile))
        except (KeyError, TypeError, ValueError):
            raise Failed("what the kernel says of its tile table cannot be read.") from None
        if not rows or len(rows) > 64 or any(not 0 < n <= 512 for row in rows for n in row.tile):
            raise Failed("the kernel's tile table has no row that fits a GPU of this course.")
        if part == "first" and (rows[0].mode != "same" or rows[0].d != 64):
            raise Failed("the first row of the tile table must be TileMode::same with d = 64.")
        if part == "all":  # the counters are read on these rows
            for variant in sorted({row.variant for row in rows}):
                if {r.d for r in rows if r.variant == variant and r.mode == "same"} != {64, 128}:
                    raise Failed("the tile table needs rows TileMode::same for d = 64 and d = 128.")
        return rows

    def run_cases(self, name: str, library: Path, cases: list[steps.Case], build: Build,
                  backend: str) -> tuple[list[dict], list[dict]]:
        """What the kernel's process says of each case, and what the judge says."""
        folder = self.scratch / name
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        file = folder / "cases.json"
        text = json.dumps({"cases": [case.json() for case in cases]})
        file.write_text(text)
        command = [str(build.program), "run", str(library), str(file), str(folder), "--backend",
                   backend, "--threads", str(self.threads)]
        done = self.execute("run", command, self.scratch, RUN_TIMEOUT_S)
        results = self.results_of(folder, cases, done)
        with tempfile.TemporaryDirectory() as private:  # where the kernel's process could not write
            file = Path(private) / "cases.json"
            file.write_text(text)
            judged = self.execute("judge", [str(build.program), "judge", str(file), str(folder)],
                                  self.scratch, RUN_TIMEOUT_S)
        if judged.returncode != 0:
            raise Failed(f"the judge {judged.why()}: {self.words(judged.output)}")
        return results, json.loads(judged.output)

    def results_of(self, folder: Path, cases: list[steps.Case], done) -> list[dict]:
        results = []
        try:
            for line in read(folder / "results.jsonl").splitlines():
                results.append(dict(json.loads(line)))
        except (OSError, ValueError, TypeError):
            results = []
        if len(results) < len(cases):
            spec = cases[len(results)].json()["spec"]
            raise Failed(f"the kernel's process {done.why()} on the problem \"{spec}\"."
                         + self.said(done.output))
        return results[:len(cases)]

    # ---- what went wrong ----

    def require_right(self, cases, results, verdicts, advice: str,
                      one_tile_is_right: bool = True) -> None:
        for case, result, verdict in zip(cases, results, verdicts, strict=True):
            problem = case.json()["spec"]
            if case.row.variant:
                problem += f", variant {case.row.variant}"
            status = result.get("status")
            if status == "finding":
                exchange = case.only_LSE and result.get("array") == "partial_O"
                raise Failed(f"on the problem \"{problem}\" the simulator found a\n"
                             + where.finding_text(result, self.stage, self.kernel, self.scratch)
                             + (EXCHANGE if exchange else ""))
            if status != "ran":
                raise Failed(f"on the problem \"{problem}\": "
                             + self.words(str(result.get("message"))))
            if result.get("damage"):
                raise Failed(f"on the problem \"{problem}\" memory was changed {result['damage']}.")
            if not verdict["ok"]:
                text = f"on the problem \"{problem}\": {verdict['message']}"
                if verdict.get("where"):
                    verdict["where"]["d"] = case.row.d
                    text += "\n" + where.place_of(verdict["where"], self.stage, case.row.tile)
                pattern = verdict.get("pattern")
                hints = [where.pattern_text(pattern, self.stage, one_tile_is_right)
                         if pattern else "",
                         where.problem_text(case.json()["spec"]), advice]
                raise Failed("\n".join([text, *filter(None, hints)]))
            self.require_grid(case, result, verdict)

    def require_counts(self, cases, results, verdicts) -> None:
        for case, result, verdict in zip(cases, results, verdicts, strict=True):
            spec = case.json()["spec"]
            if case.row.variant:
                spec += f" variant={case.row.variant}"
            try:
                counters = {name: int(value) for name, value in result["counters"].items()}
                counters["workspace_bytes"] = int(result["workspace_bytes"])
                message = rules.first_broken(self.stage, case.row.variant, counters,
                                             verdict["sizes"])
            except (KeyError, TypeError, ValueError, AttributeError):
                raise Failed("the counters cannot be read.") from None
            self.counters[spec] = counters
            if message:
                raise Failed(f"{message}\n(on the problem \"{spec}\")")

    def require_grid(self, case, result, verdict) -> None:
        """Of a right result: did heavy blocks start first, and those behind the last q tile return?"""
        message = ""
        try:
            if case.blocks:
                message = rules.wrong_order([int(n) for n in result["mma_of_blocks"]])
            elif case.max_grid_y < steps.MAX_GRID_Y:
                message = rules.idle_blocks_work(result["counters"], verdict["sizes"])
        except (KeyError, TypeError, ValueError):
            raise Failed("what the blocks did cannot be read.") from None
        if message:
            raise Failed(f"{message}\n(on the problem \"{case.json()['spec']}\")")

    def said(self, output: str) -> str:
        """What a program printed before it ended, for the end of a message."""
        words = self.words(output)
        return f" It said:\n{words}" if words else ""

    def words(self, text: str) -> str:
        return shorten("\n".join(text.strip().splitlines()[-12:]), self.kernel, self.scratch)


EXCHANGE = ("\nThat is the exchange, sub-goal 2; it ends the kernel, so sub-goal 1 cannot be "
            "judged before it is mended or taken out.")
MAX_SHARED = 232_448  # bytes of shared memory per block, of the largest GPU that the course knows


def recorded_ms(name: str, gpu: str) -> float | None:
    """The time of the published stage on the problem of steps.timed(), if recorded on this GPU."""
    for path in sorted((paths.ROOT / "notes" / "results").glob("*.json")):
        try:
            for record in json.loads(path.read_text())["records"]:
                shape = record["shape"]
                if (record["stage"] == name and record["environment"]["gpu"] == gpu
                        and record["tile_mode"] == "same" and record["dtype"] == "fp16"
                        and (shape["B"], shape["Hq"], shape["Hkv"], shape["d"]) == (2, 16, 16, 128)
                        and shape["Nq"] == shape["Nk"] == 4096 and not shape["causal"]):
                    return record["time_ms"]
        except (OSError, ValueError, KeyError, TypeError):
            continue  # another kind of file
    return None


def digest(path: Path) -> str:
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError:
        return ""


def read(path: Path) -> str:
    """A file that a kernel's process wrote: a plain file of a sane size, or ValueError."""
    if path.is_symlink() or not path.is_file() or path.stat().st_size > MAX_RESULTS:
        raise ValueError
    return path.read_text(errors="replace")
