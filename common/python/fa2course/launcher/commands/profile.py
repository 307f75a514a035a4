"""./fa2 profile"""

import ctypes
import glob
import json
import os
import shutil
import sys
from pathlib import Path

from .. import build, gpu, lock, paths, process, pytorch, stages, venv
from ..console import Step
from ..errors import UserError
from ..options import Parser
from .compare import commit

SUMMARY = "Nsight Compute on one stage or the official kernel, beside the simulator's counts"
HELP = """
usage: ./fa2 profile N|official [OPTIONS]
       ./fa2 profile --read FILE.ncu-rep

Profiles one kernel at one shape with Nsight Compute and writes the report and a table of what the
lecture asks to verify: tensor-core instructions, DRAM bytes, blocks per SM; and bank conflicts,
barriers and shuffles, beside the simulator's counts of the same kernel. Needs a GPU, PyTorch (whose
Python FA2_PYTHON may name) and ncu.

  N              a stage, or "official": PyTorch's SDPA FLASH, which is the official FA2
  --seqlen N     default 4096
  --headdim N    64 or 128 (default)
  --batch N      default 2
  --heads N      default 16
  --causal       causal attention
  --variant NAME of stage 6: lazy (default) or paper
  --tiles NAME   tuned (default) or same
  --out DIR      default: build/results/profile
  --read FILE    show the table of an existing report; needs no GPU

exit status: 0 done, 1 the profiler failed, 2 cannot run here (with the reason and the fix)
"""

# What ncu prints, and what helps.
FIXES = {
    "ERR_NVGPUCTRPERM": (
        "this user may not read the GPU's counters. Run as root, or let everyone: echo 'options "
        "nvidia NVreg_RestrictProfilingToAdminUsers=0' | sudo tee /etc/modprobe.d/ncu.conf, and "
        "restart"
    ),
    "LibraryNotLoaded": (
        "the profiler cannot reach the driver here (a container or sandbox without the profiling "
        "libraries). Run on the host, or with --cap-add=SYS_ADMIN"
    ),
    "driver resource was unavailable": (
        "another profiler is using the GPU (DCGM, another ncu). Stop it and run again"
    ),
}


def parse(arguments: list[str]):
    parser = Parser("profile")
    parser.add_argument("what", metavar="N|official", nargs="?")
    for name, value in (("seqlen", 4096), ("headdim", 128), ("batch", 2), ("heads", 16)):
        parser.add_argument(f"--{name}", type=int, default=value)
    parser.add_argument("--causal", action="store_true")
    parser.add_argument("--variant", choices=["lazy", "paper"])
    parser.add_argument("--tiles", choices=["tuned", "same"], default="tuned")
    parser.add_argument("--out", type=Path, default=paths.BUILD / "results" / "profile")
    parser.add_argument("--read", type=Path)
    options = parser.parse_args(arguments)
    if bool(options.what) == bool(options.read):
        raise UserError("name a stage or 'official', or --read FILE (see ./fa2 profile --help)")
    if options.headdim not in (64, 128):
        raise UserError(f"--headdim is {options.headdim}; accepted are 64 and 128")
    for name in ("seqlen", "batch", "heads"):
        if getattr(options, name) < 1:
            raise UserError(f"--{name} is {getattr(options, name)}; it must be at least 1")
    return options


def run(arguments: list[str]) -> int:
    options = parse(arguments)
    if options.read:
        if not options.read.exists():
            raise UserError(f"{options.read} is not there")
        return show(options.read)
    official = options.what == "official"
    number = "" if official else str(stages.number(stages.find(options.what)))
    if options.variant and number != "6":
        raise UserError("--variant is for stage 6")
    ncu = find_ncu()
    found = gpu.look()
    if not found.usable:
        raise UserError(
            f"profiling needs a GPU: {found.reason}. The simulator's counts: ./fa2 compare; an "
            "H200's reports: ./fa2 profile --read notes/fa2_ncu_4096_d128.ncu-rep"
        )
    if not ncu:
        raise UserError(
            "Nsight Compute (ncu) is not installed. It comes with the CUDA Toolkit (package "
            "nsight-compute or cuda-nsight-compute-13-0), or from "
            "developer.nvidia.com/nsight-compute"
        )
    python = pytorch.find()
    build.ensure_built("cuda", ["fa2course"])
    backend = "sdpa_flash" if official else f"stage{number}"
    if options.variant == "paper":
        backend += "_paper"
    suffix = "" if backend == "stage6" else "_official" if official else f"_{backend}"
    target = options.out / f"fa2_ncu_{options.seqlen}_d{options.headdim}{suffix}.ncu-rep"
    options.out.mkdir(parents=True, exist_ok=True)
    collect(ncu, python, backend, options, target)
    about = {"backend": backend, "batch": options.batch, "heads": options.heads,
             "seqlen": options.seqlen, "headdim": options.headdim, "causal": options.causal,
             "tiles": options.tiles, "gpu_model": model_of(found.name), "driver": found.driver,
             "cuda": found.nvcc_version,
             "commit": os.environ.get("FA2_COMMIT") or commit()}  # fmt: skip
    paths.write_whole(target.with_suffix(".json"), json.dumps(about, indent=1) + "\n")
    return show(target)


def model_of(gpu: str) -> str:
    """The simulator's key for this GPU ("h200"): its limits choose the tile. The first one where
    it does not know the GPU."""
    sys.path.insert(0, str(paths.PYTHON_SOURCES))
    from fa2course import library

    c = library.load().c
    c.fa2_gpu_model_key.restype = ctypes.c_char_p
    keys = [c.fa2_gpu_model_key(i).decode() for i in range(c.fa2_gpu_model_count())]
    return next((key for key in keys if key in gpu.lower().replace(" ", "")), keys[0])


def find_ncu() -> str | None:
    places = [*sorted(glob.glob("/opt/nvidia/nsight-compute/*/ncu"), reverse=True),
              "/usr/local/cuda/bin/ncu"]  # fmt: skip
    return shutil.which("ncu") or next((p for p in places if os.access(p, os.X_OK)), None)


def collect(ncu: str, python: str, backend: str, options, target: Path) -> None:
    sys.path.insert(0, str(paths.ROOT / "common" / "bench"))
    import ncu_table

    kernel = "flash_fwd" if backend == "sdpa_flash" else "forward"
    script = paths.ROOT / "common" / "bench" / "profile_target.py"
    command = [ncu, "--clock-control", "none", "--force-overwrite", "--launch-skip", "1",
               "--launch-count", "1", "--kernel-name", f"regex:{kernel}",
               *(f"--section={name}" for name in ncu_table.SECTIONS),
               "--metrics", ",".join(ncu_table.METRICS), "--export", str(target),
               python, str(script), backend,
               *(f"--{name}={getattr(options, name)}" for name in
                 ("seqlen", "headdim", "batch", "heads", "tiles")),
               *(["--causal"] if options.causal else [])]  # fmt: skip
    if backend == "stage1":  # its largest kernel
        command[command.index("regex:forward")] = "regex:multiply_S"
    with Step(f"profile ({backend})"):
        status, output = process.run_logged(command, f"profile_{backend}")
    if status == 0 and target.exists() and "No kernels were profiled" not in output:
        return
    for sign, fix in FIXES.items():
        if sign in output:
            raise UserError(
                f"ncu could not profile: {fix} (log: {paths.LOGS}/profile_{backend}.log)"
            )
    errors = [line for line in output.splitlines() if "ERROR" in line] or [
        "it ended without a report"
    ]
    raise UserError(
        f"ncu failed: {errors[0].strip('= ')} (log: {paths.LOGS}/profile_{backend}.log)", 1
    )


def show(report: Path) -> int:
    paths.BUILD.mkdir(exist_ok=True)
    readers = sorted(glob.glob("/opt/nvidia/nsight-compute/*/extras/python"))
    if readers:  # Nsight Compute brings its own; the package from pip comes first
        os.environ["PYTHONPATH"] = f"{os.environ.get('PYTHONPATH', '')}:{readers[-1]}"
    with lock.exclusive():
        python = venv.ensure_or_system(["profile", "report"], ["ncu_report", "numpy"])
        about = paths.read_or(report.with_suffix(".json"))
        if '"stage' in about and '"counters"' not in about:  # still to be counted
            build.ensure_built("sim", ["fa2course", "fa2-counts"])
    script = paths.ROOT / "common" / "bench" / "show_profile.py"
    return process.run_foreground([str(python), str(script), str(report)])
