"""Which Python here has PyTorch that sees the GPU. PyTorch is too large to install by ourselves."""

import os
import shutil
import subprocess
import sys

from .errors import UserError

PROBE = "import torch; print(torch.__version__ if torch.cuda.is_available() else 'no GPU')"


def candidates() -> list[str]:
    """$FA2_PYTHON, this Python, and the first python3 and python in PATH."""
    found = [os.environ.get("FA2_PYTHON"), sys.executable]
    found += [shutil.which(name) for name in ("python3", "python")]
    return list(dict.fromkeys(path for path in found if path))


def find() -> str:
    """Raises UserError with what was tried."""
    tried = []
    for path in candidates():
        try:
            done = subprocess.run(
                [path, "-c", PROBE], capture_output=True, text=True, timeout=120, check=False
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            tried.append(f"{path} ({error})")
            continue
        if done.returncode == 0 and done.stdout.strip() != "no GPU":
            return path
        why = "PyTorch sees no GPU" if done.returncode == 0 else "has no PyTorch"
        tried.append(f"{path} ({why})")
    raise UserError(
        f"PyTorch is needed, and was not found: {'; '.join(tried)}. Install it (pip install torch) "
        "and name its Python: FA2_PYTHON=/path/to/python ./fa2 ..."
    )
