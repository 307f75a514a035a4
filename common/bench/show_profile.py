"""Prints and writes the table of one report: show_profile.py FILE.ncu-rep

FILE.json beside it names the shape; the simulator's counts of the same kernel are added to it.
"""

import json
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "common" / "python"), str(ROOT / "common" / "bench")]

import ncu_table  # noqa: E402


def simulate(about: dict) -> dict[str, int]:
    """Counts of one head on the simulator, times the heads: every head does the same."""
    import numpy as np

    from fa2course import attention

    _, number, variant = (about["backend"].replace("stage", "_", 1) + "__").split("_")[:3]
    rng = np.random.default_rng(0)
    shape = (1, 1, about["seqlen"], about["headdim"])
    q, k, v = (rng.standard_normal(shape).astype(np.float16) for _ in "qkv")
    counters: dict[str, int] = {}
    attention(
        q, k, v, stage=int(number), variant=variant or ("lazy" if number == "6" else ""),
        tiles=about["tiles"], causal=about["causal"], counters=counters,
    )  # fmt: skip
    return {name: value * about["batch"] * about["heads"] for name, value in counters.items()}


def main(words: list[str]) -> int:
    path = Path(words[0])
    about_file = path.with_suffix(".json")
    try:
        about = json.loads(about_file.read_text())
        report = ncu_table.read(path)
    except (OSError, ValueError, RuntimeError, ncu_table.NoReader) as error:
        print(f"fa2 profile: {path} cannot be read: {error}", file=sys.stderr)
        return 2
    if about["backend"].startswith("stage") and "counters" not in about:
        print("fa2 profile: counting one head on the simulator", file=sys.stderr, flush=True)
        about["counters"] = simulate(about)
        write(about_file, json.dumps(about, indent=1) + "\n")
    shape = ncu_table.Shape(*(about[name] for name in ("batch", "heads", "seqlen", "headdim",
                                                       "causal")))  # fmt: skip
    rows = ncu_table.table(report, shape, about.get("counters"))
    lines = [f"{report.gpu}, driver {about['driver']}, CUDA {about['cuda']}, commit "
             f"{about['commit']}. {shape}, tiles {about['tiles']}."]  # fmt: skip
    text = ncu_table.markdown(f"Nsight Compute: {about['backend']}", lines, rows)
    write(path.with_suffix(".md"), text)
    widths = [max(len(row[i]) for row in rows) for i in range(4)]
    print(lines[0] + "\n")
    for row in rows:
        print("  ".join(cell.strip().ljust(w) for cell, w in zip(row, widths)).rstrip())
    print(f"\nWritten: {path.with_suffix('.md')}")
    return 0


def write(path: Path, text: str) -> None:
    temporary = path.with_name(f".{path.name}.tmp")
    temporary.write_text(text)
    temporary.replace(path)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
