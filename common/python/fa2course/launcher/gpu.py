"""Is there a GPU that the course can use? A plain answer, with the reason when there is none."""
import glob
import json
import os
import re
import shutil
import subprocess
from dataclasses import asdict, dataclass, field
from pathlib import Path

from . import paths

MIN_CC = 8.0
MIN_CUDA = (12, 0)


@dataclass
class Gpu:
    usable: bool
    reason: str  # why it cannot be used; "" when it can
    name: str = ""
    cc: str = ""  # compute capability, e.g. "9.0"
    driver: str = ""
    driver_cuda: str = ""  # the newest CUDA that the driver runs
    nvcc: str = ""
    nvcc_version: str = ""
    gpus: list[str] = field(default_factory=list)


def find_nvcc() -> str | None:
    """nvcc from $CUDACXX, PATH, $CUDA_HOME, /usr/local/cuda or the newest /usr/local/cuda-*."""
    roots = [os.environ.get(name, "") for name in ("CUDA_HOME", "CUDA_PATH")]
    installed = sorted(glob.glob("/usr/local/cuda-*"),
                       key=lambda path: [int(n) for n in re.findall(r"\d+", path)], reverse=True)
    candidates = [os.environ.get("CUDACXX"), shutil.which("nvcc"),
                  *(f"{root}/bin/nvcc" for root in [*roots, "/usr/local/cuda", *installed] if root)]
    return next((path for path in candidates if path and os.access(path, os.X_OK)), None)


def run(command: list[str]) -> tuple[int, str]:
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, timeout=30, text=True, errors="replace")
        return done.returncode, done.stdout
    except subprocess.TimeoutExpired:
        return 1, "no answer within 30 s"
    except OSError as error:
        return 1, str(error)


def nvcc_version(nvcc: str) -> str:
    found = re.search(r"release (\d+\.\d+)", run([nvcc, "--version"])[1])
    return found.group(1) if found else ""


def find_smi() -> str | None:
    for path in (shutil.which("nvidia-smi"), "/usr/lib/wsl/lib/nvidia-smi"):
        if path and os.access(path, os.X_OK):
            return path
    return None


def numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", version))


def detect() -> Gpu:
    """Looks without a cache; takes a second or two where there is a GPU."""
    nvcc = find_nvcc() or ""
    found = Gpu(False, "", nvcc=nvcc, nvcc_version=nvcc_version(nvcc) if nvcc else "")
    found.reason = obstacle(found)
    found.usable = not found.reason
    return found


def obstacle(found: Gpu) -> str:
    """Why no GPU can be used, or "". Fills in what it sees."""
    smi = find_smi()
    if not smi:
        return "no NVIDIA GPU here (nvidia-smi not found)"
    status, text = run([smi, "--query-gpu=name,compute_cap,driver_version",
                        "--format=csv,noheader"])
    rows = [[cell.strip() for cell in line.split(",")] for line in text.splitlines()]
    rows = [row for row in rows if len(row) == 3 and re.fullmatch(r"\d+\.\d+", row[1])]
    if status != 0 or not rows:
        line = (text.strip().splitlines() or ["no GPU"])[0].rstrip(".")
        return f"nvidia-smi finds no GPU: {line}"
    if os.environ.get("CUDA_VISIBLE_DEVICES", "0").strip() in ("", "-1", "NoDevFiles"):
        return "CUDA_VISIBLE_DEVICES hides the GPU"
    found.gpus = [f"{name} (compute capability {cc})" for name, cc, _ in rows]
    found.name, found.cc, found.driver = max(rows, key=lambda row: float(row[1]))
    if float(found.cc) < MIN_CC:
        return (f"the {found.name} has compute capability {found.cc}; the kernels need {MIN_CC} "
                "(Ampere) or later")
    if not found.nvcc:
        return (f"there is a {found.name}, but no nvcc: install the CUDA Toolkit 12.0 or later, "
                "or set CUDA_HOME")
    if numbers(found.nvcc_version) < MIN_CUDA:
        return (f"nvcc is {found.nvcc_version or 'unknown'} ({found.nvcc}); CUDA 12.0 or later is "
                "needed")
    # CUDA's minor versions are compatible: a driver for 12.2 runs what nvcc 12.8 made, not nvcc 13.
    header = re.search(r"CUDA (?:UMD )?Version:\s*(\d+\.\d+)", run([smi])[1])
    found.driver_cuda = header.group(1) if header else ""
    if header and numbers(found.driver_cuda)[0] < numbers(found.nvcc_version)[0]:
        return (f"the driver {found.driver} runs CUDA {found.driver_cuda} at most, and nvcc is "
                f"{found.nvcc_version}: update the driver, or install a CUDA {found.driver_cuda} "
                "toolkit")
    status, known = run([found.nvcc, "--list-gpu-arch"])
    if status == 0 and f"compute_{found.cc.replace('.', '')}" not in known.split():
        return (f"nvcc {found.nvcc_version} does not know the {found.name} (compute capability "
                f"{found.cc}): install a newer CUDA Toolkit")
    return ""


def cache_key() -> str:
    """Changes when the answer may: another boot, driver, toolkit or environment."""
    nvcc = find_nvcc()
    parts = [paths.read_or(Path("/proc/sys/kernel/random/boot_id")).strip(),
             paths.read_or(Path("/proc/driver/nvidia/version")).strip(),
             str(sorted(glob.glob("/dev/nvidia*"))), str(find_smi()), str(nvcc),
             str(os.stat(nvcc).st_mtime_ns if nvcc else 0)]
    parts += [os.environ.get(name, "<unset>") for name in ("CUDA_VISIBLE_DEVICES", "CUDA_HOME")]
    return "|".join(parts)


def look() -> Gpu:
    """As detect(), remembered until something changes."""
    cache = paths.STATE / "gpu.json"
    key = cache_key()
    try:
        kept = json.loads(cache.read_text())
        if kept["key"] == key:
            return Gpu(**kept["gpu"])
    except (OSError, ValueError, KeyError, TypeError):
        pass
    found = detect()
    paths.write_whole(cache, json.dumps({"key": key, "gpu": asdict(found)}, indent=1))
    return found
