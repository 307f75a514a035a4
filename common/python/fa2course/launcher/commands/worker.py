"""./fa2 worker ADDRESS"""
import importlib.util
import os
import re
import sys

from .. import build, gpu, paths, process, venv
from ..errors import UserError
from ..options import Parser
from .compare import commit

SUMMARY = "lends this machine to ./fa2 grade and compare --scheduler"
HELP = """
usage: ./fa2 worker ADDRESS [--threads N]
       ./fa2 worker --serve [--port N] [--host ADDRESS]

Starts a Dask worker for a scheduler (ADDRESS, e.g. tcp://10.0.0.5:8786), or with --serve the
scheduler itself. Every machine has a clone of the course at the same commit. A worker computes what
./fa2 grade --scheduler and ./fa2 compare --scheduler send, until Ctrl-C. On a machine with several
GPUs start one for each: CUDA_VISIBLE_DEVICES=1 ./fa2 worker ADDRESS

  --threads N     submissions at once (default: one per core)
  --serve         run the scheduler, on port 8786
  --port N        another port
  --host ADDRESS  listen there alone (default: 127.0.0.1; 0.0.0.0 for all)

Whoever reaches the port can run programs on all of its machines: keep it on a network you trust.

exit status: that of Dask; 2 cannot run here
"""


def resource(gpu_name: str) -> str:
    """What a worker offers for comparisons, one at a time: its GPU, or the simulator."""
    return "fa2-" + (re.sub(r"[^a-z0-9]+", "-", gpu_name.lower()).strip("-") or "simulator")


def run(arguments: list[str]) -> int:
    parser = Parser("worker")
    parser.add_argument("address", nargs="?")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--serve", action="store_true")
    parser.add_argument("--port", type=int, default=8786)
    parser.add_argument("--host", default="127.0.0.1")
    options = parser.parse_args(arguments)
    if options.serve == bool(options.address):
        raise UserError("either an ADDRESS to work for, or --serve (see ./fa2 worker --help)")
    if importlib.util.find_spec("distributed"):
        python = sys.executable
    else:
        try:
            python = str(venv.ensure(["scheduler", "report"]))
        except venv.Unavailable as error:
            raise UserError(f"Dask could not be installed: {error}") from None
    if options.serve:
        return process.run_foreground([python, "-m", "distributed.cli.dask_scheduler",
                                       "--host", options.host, "--port", str(options.port),
                                       "--no-dashboard", "--dashboard-address", "127.0.0.1:0"])
    found = gpu.look()
    build.ensure_built("sim", ["fa2-check", "fa2-compare"])
    if found.usable:
        build.ensure_built("cuda", ["fa2-compare"])
    offered = resource(found.gpus[0] if found.usable else "")
    return process.run_foreground(
        [python, "-m", "distributed.cli.dask_worker", options.address, "--nworkers", "1",
         "--nthreads", str(options.threads), "--resources", f"{offered}=1", "--no-dashboard",
         "--local-directory", str(paths.BUILD / "worker")],
        env=process.environment() | {"FA2_COMMIT": commit()})
