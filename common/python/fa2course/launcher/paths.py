"""Where things are. Everything that ./fa2 makes lies under build/, which git ignores."""
import os
from pathlib import Path

ROOT = Path(__file__).resolve().parents[4]
BUILD = ROOT / "build"
STATE = BUILD / ".fa2"  # stamps and caches of the launcher
LOGS = BUILD / "logs"
VENV = BUILD / "venv"
PYTHON_SOURCES = ROOT / "common" / "python"
REQUIREMENTS = PYTHON_SOURCES / "requirements"


def preset_dir(preset: str) -> Path:
    """The build folder of a CMake preset."""
    return BUILD / preset


def write_whole(path: Path, content: str | bytes) -> None:
    """Writes a file so that it is there whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        temporary.write_bytes(content.encode() if isinstance(content, str) else content)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def read_or(path: Path, default: str = "") -> str:
    """The text of a file, or `default` when it cannot be read."""
    try:
        return path.read_text(errors="replace")
    except OSError:
        return default
