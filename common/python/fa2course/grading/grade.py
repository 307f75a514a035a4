"""Grading a folder: which kernels, on which processors, what is known already, what comes out."""
import json
import time
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from dataclasses import asdict
from pathlib import Path

from fa2course.launcher.console import Step
from fa2course.launcher.paths import write_whole
from fa2course.student.check import default_build, step_names

from . import copies, one, sandbox
from .submissions import Submission

FORMAT = "fa2-grades"
VERSION = 1

# A way of grading many: takes {key: (stage, kernel)}, yields (key, result) as they come. A result
# with the one field "error" means that it could not be graded here: not the student's fault.
Engine = Callable[[dict[str, tuple[int, bytes]], one.Settings], Iterator[tuple[str, dict]]]


def local(jobs: int) -> Engine:
    """On this machine, several at once. Each is processes of its own; the threads only wait."""
    def engine(todo, settings):
        build = default_build()

        def work(item) -> dict:
            stage, kernel = item
            try:
                return one.grade(stage, kernel, settings, build)
            except Exception as error:  # the machine's fault: full disk, no processes left
                return {"error": f"{type(error).__name__}: {error}"}

        pool = ThreadPoolExecutor(jobs)
        try:
            running = {pool.submit(work, item): key for key, item in todo.items()}
            while running:
                for future in wait(running, return_when=FIRST_COMPLETED).done:
                    yield running.pop(future), future.result()
        finally:  # when interrupted, what has begun is killed and its verdict forgotten
            sandbox.STOP.set()
            pool.shutdown(cancel_futures=True)
            sandbox.STOP.clear()
    return engine


def results_of(submissions: list[Submission], settings: one.Settings, engine: Engine,
               memory: Path) -> tuple[dict[str, dict], dict[Submission, str]]:
    """The result of every kernel, by key, and every submission's key. Each different kernel is
    graded once; what `memory` holds from an earlier run is not graded again."""
    course = one.course_fingerprint()
    keys = {s: one.key_of(s.stage, s.kernel, settings, course) for s in submissions if s.kernel}
    wanted = {key: (s.stage, s.kernel) for s, key in keys.items()}
    results = {key: known for key in wanted if (known := recall(memory, key))}
    todo = {key: item for key, item in wanted.items() if key not in results}
    memory.mkdir(parents=True, exist_ok=True)
    with Step("grading") as step:
        start, known = time.monotonic(), len(results)
        step.update(bar(known, len(wanted)))
        for key, result in engine(todo, settings):
            results[key] = result
            if "error" not in result:
                write_whole(memory / f"{key}.json", json.dumps(result, indent=1))
            done = len(results) - known
            left = (time.monotonic() - start) / done * (len(wanted) - len(results))
            step.update(f"{bar(len(results), len(wanted))}, about {left / 60:.0f} min left")
        step.note = f"{len(wanted)} kernels" + (f", {known} known from before" if known else "")
    return results, keys


def recall(memory: Path, key: str) -> dict | None:
    try:
        return json.loads((memory / f"{key}.json").read_text())
    except (OSError, ValueError):
        return None


def bar(done: int, of: int, width: int = 20) -> str:
    filled = width * done // of if of else width
    return f"[{'#' * filled}{'.' * (width - filled)}] {done}/{of}"


def grades(submissions: list[Submission], settings: one.Settings,
           points: dict[int, dict[str, float]], engine: Engine, memory: Path) -> dict:
    """What grades.json holds. Free of times, so that the same submissions give the same file."""
    results, keys = results_of(submissions, settings, engine, memory)
    flags = copies.flags(submissions)
    students: dict[str, list[dict]] = {}
    for s in submissions:
        result = results[keys[s]] if s in keys else not_graded(s)
        entry = grade_entry(s, result, points[s.stage])
        entry["flags"] = flags.get((s.student, s.stage), [])
        students.setdefault(s.student, []).append(entry)
    return {
        "format": FORMAT, "version": VERSION, "settings": asdict(settings),
        "protection": "; ".join(sorted({result.get("protection", "") for result in
                                        results.values()} - {""})),
        "points": {f"stage{stage}": points[stage]
                   for stage in sorted({s.stage for s in submissions})},
        "students": [{"name": name, "points": total(entries, "points"),
                      "max_points": total(entries, "max_points"), "stages": entries}
                     for name, entries in students.items()]}


def total(entries: list[dict], field: str) -> float:
    return round(sum(entry[field] for entry in entries), 6)


def not_graded(s: Submission) -> dict:
    """A result for what was not handed in, or is no readable file."""
    return one.refused(s.stage, b"", "compile", s.problem or "kernel.cu is empty") | {"sha256": ""}


def grade_entry(s: Submission, result: dict, points: dict[str, float]) -> dict:
    entry = {"stage": s.stage, "points": 0, "max_points": round(sum(points.values()), 6),
             "state": "graded", "solved": False, "passed": 0, "of": len(step_names(s.stage)),
             "first_failure": None, "steps": [], "counters": {}, "sha256": ""}
    if "error" in result:  # to be graded again: no verdict
        return entry | {"state": "not graded here", "first_failure": {
            "step": "", "title": "not graded", "message": f"{result['error']}. Run it again."}}
    passed = [step["name"] for step in result["steps"] if step["status"] == "passed"]
    entry |= {name: result[name] for name in ("solved", "passed", "of", "first_failure", "steps",
                                              "counters", "sha256")}
    if s.kernel is None:
        entry |= {"state": s.problem, "steps": []}
    return entry | {"points": round(sum(points.get(name, 0) for name in passed), 6)}
