"""The engine of ./fa2 compare --scheduler: every GPU model among the workers runs the comparison.

A task is one shape on one model, and a worker does one at a time (the resource that ./fa2 worker
offers), so that nothing else is on the GPU. All stages of a shape run in one process.
"""
import hashlib
import json
import os
import subprocess
import tempfile
import uuid
from itertools import product
from pathlib import Path

from . import scheduler
from .launcher import paths, process, stages
from .launcher.console import Step
from .launcher.errors import UserError
from .launcher.options import value_of

SIMULATOR = "fa2-simulator"
WITH_VALUE = ("--scheduler", "--out", "--seqlen", "--headdim", "--backend")


def version() -> str:
    """Changes with anything that a measurement depends on. Equal in two clones of one commit."""
    digest = hashlib.sha256()
    folders = [paths.ROOT / "common", *(paths.ROOT / name for name in stages.names())]
    for folder in folders:
        for path in sorted(folder.rglob("*")):
            if path.suffix in (".cu", ".cpp", ".h") and path.is_file():
                digest.update(path.name.encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()


def passed_on(arguments: list[str]) -> list[str]:
    """The options of the comparison itself."""
    kept, skip = [], False
    for word in arguments:
        if skip or word.split("=", 1)[0] in WITH_VALUE or word == "--quiet":
            skip = word in WITH_VALUE
            continue
        kept.append(word)
    return kept


def shapes(arguments: list[str]) -> list[list[str]]:
    """The shapes one by one, where the person named some; else one task: the program's own list."""
    named = [(option, value.split(",")) for option in ("--seqlen", "--headdim")
             if (value := value_of(option, arguments))]
    return [[word for (option, _), value in zip(named, values) for word in (option, value)]
            for values in product(*(values for _, values in named))]


def compare(address: str, arguments: list[str], run_id: str = "") -> list[dict]:
    """The result files of all tasks, to be merged."""
    run_id = run_id or uuid.uuid4().hex[:8]  # a second measurement is no repetition of the first
    with scheduler.connect(address) as client:
        scheduler.require_workers(client, version, version())
        offers = {name for worker in scheduler.workers(client).values()
                  for name in worker.get("resources", {}) if name.startswith("fa2-")}
        if not offers:
            raise UserError("none of the workers was started by ./fa2 worker, which says what GPU "
                            "it has")
        models = sorted(offers - {SIMULATOR}) or [SIMULATOR]
        backend = value_of("--backend", arguments) or ("sim" if models == [SIMULATOR] else "cuda")
        if backend == "sim":
            models = sorted(offers)[:1]  # counters are the same everywhere
        elif models == [SIMULATOR]:
            raise UserError("--backend cuda: no worker has a usable GPU")
        words = [*passed_on(arguments), "--backend", backend]
        tasks = {f"fa2-compare-{run_id}-{model}-{n}":
                 scheduler.Task(on_worker, ([*words, *shape], backend), {model: 1})
                 for model in models for n, shape in enumerate(shapes(arguments))}
        done: dict[str, dict] = {}
        with Step(f"comparing on {', '.join(models)}") as step:
            for key, result in scheduler.run(client, tasks):
                if isinstance(result, Exception):
                    raise UserError(f"a worker could not run the comparison: {result}", 2)
                done[key] = result
                step.update(f"{len(done)}/{len(tasks)}")
            step.note = f"{len(tasks)} parts"
    return [done[key] for key in tasks]  # in the order asked for, whoever was first


def on_worker(arguments: list[str], backend: str) -> dict:
    """Runs fa2-compare and returns its compare.json."""
    folder = Path(os.environ.get("FA2_BUILD_DIR") or paths.preset_dir(backend))
    with tempfile.TemporaryDirectory() as out:
        ended = subprocess.run(
            [str(folder / "bin" / "fa2-compare"), *arguments, "--quiet", "--out", out],
            env=process.environment(), text=True, capture_output=True, check=False)
        if ended.returncode not in (0, 1):
            said = ended.stderr.strip().splitlines()
            raise RuntimeError(said[-1] if said else f"fa2-compare ended with {ended.returncode}")
        return json.loads((Path(out) / "compare.json").read_text())
