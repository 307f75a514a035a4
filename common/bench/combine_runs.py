#!/usr/bin/env python3
"""Joins compare.json files of several processes on one GPU: notes/results/h200.json was made so.

  combine_runs.py RUN.json... --out FILE

Of every row: the median of the processes' median times; as spread the largest of the processes' own
spreads and of (slowest - fastest) / median between them; and how many processes measured it.
"""

import argparse
import json
import statistics
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "common" / "python"))

from fa2course import merge  # noqa: E402
from fa2course.launcher.errors import UserError  # noqa: E402
from fa2course.launcher.paths import write_whole  # noqa: E402


def combined(same: list[dict]) -> dict:
    """One record of those that several processes measured for the same row."""
    timed = [record for record in same if record["time_ms"]]
    if not timed:
        return same[0] | {"processes": len(same)}
    times = [record["time_ms"] for record in timed]
    median = statistics.median(times)
    between = (max(times) - min(times)) / median
    record = min(timed, key=lambda r: abs(r["time_ms"] - median)).copy()
    scale = record["time_ms"] / median
    for rate in ("tflops", "requested_gbps"):
        if record.get(rate):
            record[rate] *= scale
    record.update(time_ms=median, spread=max(between, *(r["spread"] for r in timed)),
                  processes=len(timed))  # fmt: skip
    return record


def combine_peers(files: list[dict]) -> list[dict]:
    """What `compare --peers` has added to the files."""
    rows: dict[tuple, list[dict]] = {}
    for peer in (peer for results in files for peer in results.get("peers", [])):
        key = (peer["backend"], *peer["shape"].values(), peer["dtype"], peer["tile_mode"])
        rows.setdefault(key, []).append(peer)
    return [combined(same) for same in rows.values()]


def combine(files: list[dict], command: str) -> dict:
    rows: dict[tuple, list[dict]] = {}
    for results in files:
        for record in results["records"]:
            rows.setdefault(merge.key_of(record), []).append(record)
    machines = {merge.machine_of(record) for same in rows.values() for record in same}
    if len(machines) > 1:
        raise UserError(f"the files are of several machines ({machines}); combine those of one")
    wrong = [r["stage"] for same in rows.values() for r in same if not r["ok"] and r["time_ms"]]
    if wrong:
        raise UserError(f"{wrong[0]} was wrong in one of the files", 1)
    joined = files[0] | {"command": command, "records": [combined(same) for same in rows.values()]}
    if peers := combine_peers(files):
        joined["peers"] = peers
    return joined


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("files", nargs="+", type=Path, metavar="RUN.json")
    parser.add_argument("--out", required=True, type=Path, metavar="FILE")
    options = parser.parse_args()
    try:
        files = [merge.read(path) for path in options.files]
        commands = dict.fromkeys(results["command"].split(" --out")[0] for results in files)
        results = combine(files, "; ".join(commands))
    except UserError as error:
        print(f"combine_runs: {error}", file=sys.stderr)
        return error.status
    write_whole(options.out, json.dumps(results, indent=1) + "\n")
    counts = [record["processes"] for record in results["records"]]
    print(f"{len(counts)} rows, of {min(counts)} to {max(counts)} processes each: {options.out}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
