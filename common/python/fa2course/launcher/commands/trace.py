"""./fa2 trace N"""
from pathlib import Path

from .. import build, paths, stages
from ..errors import UserError
from ..options import Parser, check_known

SUMMARY = "a picture of time: one block's warps, and the grid over the SMs, without a GPU"
HELP = """
usage: ./fa2 trace N... [OPTIONS]

Draws what the warps of one block of stage N do (QK MMA, softmax, barrier wait, PV MMA, exchange,
rescale, epilogue), and which block runs on which SM when. Times are those of the course's model, in
cycles: a prediction from the simulator's counters, not a measurement (notes/prediction.md). No GPU
is needed.

Writes trace_stageN.json, to be opened in https://ui.perfetto.dev or chrome://tracing (one cycle is
shown as one nanosecond), and trace_stageN.svg. Stage 6 has two, "paper" and "lazy".

  N                stages: 3, stage3 or their folders
  --gpu MODEL      h200 (default), a100, rtx4090, rtx3090, l4
  --key-tiles N    key tiles that the block walks over (default: 3)
  --tiles NAME     same (default), same_b or tuned
  --headdim N      64 (default) or 128
  --dtype NAME     fp16 (default) or bf16
  --batch N, --heads N, --seqlen N, --full
                   the shape whose grid is shown (default: B1 H8 N2048, causal)
  --format LIST    json,svg (default: both)
  --out DIR        folder (default: build/results/trace)
"""


def run(arguments: list[str]) -> int:
    check_known("trace", HELP, arguments)
    parser = Parser("trace")
    parser.add_argument("stage", metavar="N", nargs="+")
    parser.add_argument("--gpu", default="h200")
    parser.add_argument("--key-tiles", type=int, default=3)
    for option, default in (("tiles", "same"), ("headdim", "64"), ("dtype", "fp16"),
                            ("batch", "1"), ("heads", "8"), ("seqlen", "2048")):
        parser.add_argument(f"--{option}", default=default)
    parser.add_argument("--full", action="store_true")
    parser.add_argument("--format", default="json,svg")
    parser.add_argument("--out", type=Path, default=paths.BUILD / "results" / "trace")
    options = parser.parse_args(arguments)
    names = [stages.find(word) for word in options.stage]
    formats = options.format.split(",")
    if unknown := [word for word in formats if word not in ("json", "svg")]:
        raise UserError(f"--format has \"{unknown[0]}\"; accepted are json, svg.")
    if not 1 <= options.key_tiles <= 64:
        raise UserError(f"--key-tiles is {options.key_tiles}; it must be between 1 and 64.")

    build.ensure_built("sim", ["fa2-counts"])
    from fa2course.predict import counts, table, trace

    program = paths.preset_dir("sim") / "bin" / "fa2-counts"
    for name in names:
        shape = ["--gpu", options.gpu, "--stages", str(stages.number(name)),
                 "--full" if options.full else "--causal"]
        for option in ("tiles", "headdim", "dtype", "batch", "heads", "seqlen"):
            shape += [f"--{option}", getattr(options, option)]
        try:
            pictures = trace.make(program, shape, options.key_tiles)
        except (table.Refused, counts.CountsFailed) as error:
            raise UserError(str(error)) from None
        for picture in pictures:
            print(trace.summary(picture))
            for kind, draw in (("json", trace.chrome), ("svg", trace.svg)):
                if kind in formats:
                    file = options.out / f"{trace.file_stem(picture)}.{kind}"
                    paths.write_whole(file, draw(picture))
                    print(f"  written: {file}")
    return 0
