"""Runs the notebooks, and compares what they print with what is committed."""
import os
from pathlib import Path

import nbformat
from nbclient import NotebookClient

from . import counts
from ..launcher import paths

FOLDER = paths.ROOT / "lectures"
NAMES = ["online_softmax", "reading_counters", "reading_a_sweep"]
TIMEOUT_S = 600  # for a machine that is busy with other tests


def path_of(name: str) -> Path:
    return FOLDER / f"{name}.ipynb"


def execute(path: Path) -> nbformat.NotebookNode:
    """The notebook with fresh outputs. Raises nbclient's CellExecutionError when a cell fails."""
    counts.build_dir()  # a sentence now instead of a trace from inside a cell
    for variable, folder in (("JUPYTER_RUNTIME_DIR", "jupyter"), ("IPYTHONDIR", "ipython"),
                             ("MPLCONFIGDIR", "matplotlib")):  # the home folder may be read-only
        os.environ.setdefault(variable, str(paths.BUILD / folder))
    notebook = nbformat.read(path, as_version=4)
    client = NotebookClient(notebook, timeout=TIMEOUT_S, startup_timeout=TIMEOUT_S,
                            kernel_name="python3", resources={"metadata": {"path": str(FOLDER)}})
    client.execute()
    clean(notebook)
    return notebook


def clean(notebook: nbformat.NotebookNode) -> None:
    """Leaves away what differs from run to run and from machine to machine."""
    notebook.metadata = {"kernelspec": {"display_name": "Python 3", "language": "python",
                                        "name": "python3"},
                         "language_info": {"name": "python"}}
    for cell in notebook.cells:
        cell.metadata = {}
        if cell.cell_type == "code":
            cell.outputs = joined(cell.outputs)
            for output in cell.outputs:
                if "metadata" in output:
                    output.metadata = {}


def joined(outputs: list) -> list:
    """One stream for what a cell printed: the kernel cuts it at any place."""
    kept = []
    for output in outputs:
        if kept and output.output_type == "stream" == kept[-1].output_type:
            kept[-1].text += output.text
        else:
            kept.append(output)
    return kept


def texts(notebook: nbformat.NotebookNode) -> list[str]:
    """What each code cell prints, pictures left aside (fonts differ between machines)."""
    return ["".join(part.get("text", part.get("data", {}).get("text/plain", ""))
                    for part in cell.outputs
                    if "image/png" not in part.get("data", {}))
            for cell in notebook.cells if cell.cell_type == "code"]


def write(path: Path, notebook: nbformat.NotebookNode) -> None:
    paths.write_whole(path, nbformat.writes(notebook) + "\n")
