"""Registers per thread of every kernel of the stages, as nvcc's assembler reports them: what keeps
blocks off an SM besides shared memory. The report is committed, so that a prediction needs no nvcc.

    python -m fa2course.predict.registers      compiles what changed, and writes registers.json
"""
import json
import sys
from pathlib import Path

REPORT = Path(__file__).with_name("registers.json")
ARCHITECTURES = ("80", "90")  # those that ./fa2 test compiles anyway


def file_of(stage: str) -> str:
    """The kernels of a stage, or of a variant beside one ("stage2_fa1/kv_outer")."""
    return f"{stage}.cu" if "/" in stage else f"{stage}/kernel.cu"


def simulator_name(kernel: str) -> str:
    """A kernel as the simulator calls it: its own element types stand for CUDA's."""
    return kernel.replace("__half", "half").replace("__nv_bfloat16", "bfloat16")


def load() -> dict:
    return json.loads(REPORT.read_text())


def registers(report: dict, stage: str, cc: int) -> dict[str, int]:
    """By kernel, for this compute capability; empty for a stage that the report does not know. The
    8.x share an instruction set: what was compiled for sm_86 and sm_89 had sm_80's registers."""
    arch = "90" if cc >= 90 else "80"
    return {name: by_arch[arch]
            for name, by_arch in report["kernels"].get(file_of(stage), {}).items()}


def main() -> int:
    from fa2course import cuda_check
    from fa2course.launcher import gpu, paths

    nvcc = gpu.find_nvcc()
    if not nvcc:
        print("fa2: no nvcc here: install the CUDA Toolkit 12.0 or later", file=sys.stderr)
        return 2
    files = [f for f in cuda_check.sources(None)
             if f.startswith("stage") and f.count("/") == 1]  # not the warm-ups
    kernels: dict[str, dict[str, dict[str, int]]] = {}
    for file, arch in [(f, a) for f in files for a in ARCHITECTURES]:
        result = cuda_check.compile_one(file, arch, nvcc)  # or the kept result of ./fa2 test
        if not result.ok:
            print(result.problem, file=sys.stderr)
            return 1
        for kernel in result.kernels:
            name = simulator_name(kernel.name)
            kernels.setdefault(result.file, {}).setdefault(name, {})[result.arch] = kernel.registers
    ordered = {file: dict(sorted(named.items())) for file, named in sorted(kernels.items())}
    text = json.dumps({"nvcc": gpu.nvcc_version(nvcc),
                       "kernels": ordered}, indent=1)
    paths.write_whole(REPORT, text + "\n")
    print(f"written: {REPORT.relative_to(paths.ROOT)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
