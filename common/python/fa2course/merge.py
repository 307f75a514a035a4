"""Joining files of ./fa2 compare (compare --merge): results of several machines, by GPU.

The same stage on the same problem on the same GPU model counts once: the later measurement stays.
"""
import csv
import io
import json
from collections.abc import Iterable
from pathlib import Path

from .launcher.errors import UserError
from .launcher.paths import write_whole

FORMAT, VERSION = "fa2-compare", 1


def read(path: Path) -> dict:
    try:
        results = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror}") from None
    except ValueError:
        raise UserError(f"{path} is not JSON; --merge joins compare.json files") from None
    if not isinstance(results, dict) or results.get("format") != FORMAT:
        raise UserError(f"{path} is no file of ./fa2 compare; --merge joins compare.json files")
    if results.get("version") != VERSION:
        raise UserError(f"{path} has version {results.get('version')}; only {VERSION} is known "
                        "here")
    return results


def machine_of(record: dict) -> tuple[str, str]:
    return record["backend"], record["environment"]["gpu"]


def key_of(record: dict) -> tuple:
    return (*machine_of(record), record["stage"], record["variant"],
            tuple(record["shape"].values()), record["dtype"], record["tile_mode"])


def merge(files: Iterable[dict], command: str) -> tuple[dict, int]:
    """The joined results, by GPU in the order of their first record; and how many records were left
    out because a later or the same one is there."""
    files = list(files)
    kept: dict[tuple, dict] = {}
    left_out = 0
    for results in files:
        for record in results["records"]:
            other = kept.get(key_of(record))
            left_out += other is not None
            if other is None or record["environment"]["date"] > other["environment"]["date"]:
                kept[key_of(record)] = record
    machines = list(dict.fromkeys(map(machine_of, kept.values())))
    newest = max(files, key=lambda results: results["environment"].get("date", ""), default={})
    return {"format": FORMAT, "version": VERSION, "command": command,
            "environment": newest.get("environment", {}),
            "records": sorted(kept.values(), key=lambda r: machines.index(machine_of(r)))}, left_out


# ---- Files ---------------------------------------------------------------------------------------

COLUMNS = ("stage", "variant", "backend", "shape.B", "shape.Hq", "shape.Hkv", "shape.Nq",
           "shape.Nk", "shape.d", "shape.causal", "dtype", "tile_mode", "tile.Br", "tile.Bc",
           "tile.warps", "tile.depth", "tile.smem_bytes", "time_ms", "spread", "tflops",
           "requested_gbps", "waves", "max_abs_err", "tolerance", "share_of_tolerance", "ok",
           "reason", "environment.cpu",
           "environment.gpu", "environment.driver", "environment.cuda", "environment.compiler",
           "environment.commit", "environment.date")  # those of common/cli/compare/csv.cpp


def cell(record: dict, column: str) -> str:
    value = record
    for name in column.split("."):
        value = value.get(name) if isinstance(value, dict) else None
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return "" if value is None else str(value)


def to_csv(results: dict) -> str:
    counters = list(dict.fromkeys(name for r in results["records"] for name in r["counters"] or {}))
    columns = [*COLUMNS, *(f"counters.{name}" for name in counters)]
    out = io.StringIO()
    table = csv.writer(out, lineterminator="\n")
    table.writerow([column.rpartition(".")[2] for column in columns])
    table.writerows([cell(record, column) for column in columns] for record in results["records"])
    return out.getvalue()


def write(results: dict, folder: Path) -> None:
    write_whole(folder / "compare.json", json.dumps(results, indent=1) + "\n")
    write_whole(folder / "compare.csv", to_csv(results))


def summary(results: dict) -> str:
    """One line per GPU."""
    lines = []
    for machine in dict.fromkeys(map(machine_of, results["records"])):
        rows = [r for r in results["records"] if machine_of(r) == machine]
        wrong = sum(r["ok"] is False for r in rows)
        commits = sorted({r["environment"]["commit"] for r in rows} - {""})
        lines.append(f"{machine[1]}: {len(rows)} results, "
                     + (f"{wrong} WRONG" if wrong else "none wrong")
                     + (f", commit {' and '.join(commits)}" if commits else ""))
    return "\n".join(lines)


def exit_status(results: dict) -> int:
    return 1 if any(r["ok"] is False for r in results["records"]) else 0
