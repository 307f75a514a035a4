"""Counters of the simulator and recorded GPU results, for pictures, README tables and notebooks."""
import functools
import json
import os
import subprocess
import tempfile
from pathlib import Path

from ..launcher import paths

RECORDED = paths.ROOT / "notes" / "results" / "h200.json"


class Missing(Exception):
    """Something that must be built or recorded first, in a sentence for a person."""


def build_dir() -> Path:
    """The build that has fa2-compare: $FA2_BUILD_DIR (set by ./fa2 test), else a preset's."""
    given = os.environ.get("FA2_BUILD_DIR")
    for folder in [Path(given)] if given else [paths.preset_dir("sim"), paths.preset_dir("cuda")]:
        if (folder / "bin" / "fa2-compare").exists():
            return folder
    raise Missing("fa2-compare is not built yet. ./fa2 compare --backend sim builds and runs it.")


def run(arguments: list[str], out: Path) -> str:
    """fa2-compare's standard output; its files go to `out`. The time zone and terminal of the
    machine must not show in it."""
    environment = os.environ | {"LC_ALL": "C.UTF-8", "COLUMNS": "100", "NO_COLOR": "1"}
    done = subprocess.run([build_dir() / "bin" / "fa2-compare", *arguments, "--out", out],
                          cwd=paths.ROOT, env=environment, capture_output=True, text=True)
    if done.returncode not in (0, 1):
        reason = done.stderr.strip() or "no stage can run it"
        raise Missing(f"fa2-compare {' '.join(arguments)}: {reason}")
    return done.stdout


@functools.cache
def output(arguments: str) -> str:
    """What `./fa2 compare ARGUMENTS` prints."""
    with tempfile.TemporaryDirectory() as folder:
        return run(arguments.split(), Path(folder))


@functools.cache
def records(arguments: str) -> list[dict]:
    """The records of `./fa2 compare ARGUMENTS` on the simulator. common/cli/README.md describes
    them."""
    with tempfile.TemporaryDirectory() as folder:
        run(["--backend", "sim", "--quiet", *arguments.split()], Path(folder))
        return json.loads((Path(folder) / "compare.json").read_text())["records"]


def name(record: dict) -> str:
    """'6 lazy' for a record of stage 6's row lazy."""
    return f"{record['number']} {record['variant']}".strip()


def stages(arguments: str) -> dict[str, dict]:
    """{'2': record, ..., '6 lazy': record} of one shape."""
    return {name(record): record for record in records(arguments)}


@functools.cache
def recorded() -> list[dict]:
    """The committed results of an H200 that are right."""
    if not RECORDED.exists():
        raise Missing(f"{RECORDED.relative_to(paths.ROOT)} is missing (git checkout brings it "
                      "back)")
    return [record for record in json.loads(RECORDED.read_text())["records"]
            if record["tflops"] and record["ok"] and record["backend"] == "cuda"]


def recorded_at(B: int, H: int, N: int, d: int, causal: bool = False, tiles: str = "same",
                dtype: str = "fp16") -> dict[str, dict]:
    """{'2': record, ...} of the recorded stages at one shape; empty where none was measured."""
    wanted = {"B": B, "Hq": H, "Hkv": H, "Nq": N, "Nk": N, "d": d, "causal": causal}
    return {name(record): record for record in recorded()
            if record["shape"] == wanted and record["tile_mode"] == tiles
            and record["dtype"] == dtype and "/" not in record["stage"]}


def shared_bytes(counters: dict, purpose: str) -> int:
    return counters[f"shared_load_bytes_{purpose}"] + counters[f"shared_store_bytes_{purpose}"]


def wavefronts(counters: dict) -> int:
    return sum(counters[f"shared_wavefronts_{use}"] for use in ("tiles", "statistics", "partial_o"))


def global_bytes(counters: dict) -> int:
    return counters["global_load_bytes"] + counters["global_store_bytes"]


def multiplies_on_O(counters: dict) -> int:
    return counters["fp32_mul_O"] + counters["fp32_fma_O"]
