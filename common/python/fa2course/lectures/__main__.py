"""`./fa2 lectures`, with its packages at hand: python -m fa2course.lectures [--refresh|--check]"""
import sys

from nbclient.exceptions import CellExecutionError

from . import blocks, counts, figures, notebooks, site
from ..launcher import paths


def made() -> dict:
    """What refreshing would write: path -> text. Notebooks are apart."""
    texts = {path: blocks.refreshed(path) for path in blocks.files()}
    texts |= {figures.FOLDER / f"{name}.svg": str(draw()) for name, draw in figures.FIGURES.items()}
    return texts


def refresh() -> int:
    changed = 0
    for path, text in made().items():
        if paths.read_or(path) != text:
            paths.write_whole(path, text)
            print(f"rewritten: {path.relative_to(paths.ROOT)}", flush=True)
            changed += 1
    for name in notebooks.NAMES:
        path = notebooks.path_of(name)
        before = notebooks.texts(notebooks.nbformat.read(path, as_version=4))
        notebook = notebooks.execute(path)
        if notebooks.texts(notebook) != before:
            notebooks.write(path, notebook)
            print(f"rewritten: lectures/{name}.ipynb", flush=True)
            changed += 1
    print(f"{changed} files rewritten")
    return 0


def check() -> int:
    stale = [path.relative_to(paths.ROOT) for path, text in made().items()
             if paths.read_or(path) != text]
    for path in stale:
        print(f"{path} is not what its commands give now (./fa2 lectures --refresh rewrites it)")
    if not stale:
        print("every output block and picture is what its command gives")
    return 1 if stale else 0


def build() -> int:
    for name in notebooks.NAMES:
        notebooks.execute(notebooks.path_of(name))
        print(f"lectures/{name}.ipynb runs", flush=True)
    print(f"The lectures: {site.build()}")
    return 0


def main(arguments: list[str]) -> int:
    try:
        return {"--refresh": refresh, "--check": check}.get("".join(arguments), build)()
    except (blocks.Wrong, counts.Missing) as error:
        print(f"fa2 lectures: {error}", file=sys.stderr)
        return 2 if isinstance(error, counts.Missing) else 1
    except CellExecutionError as error:
        last = str(error).strip().splitlines()[-1]
        print(f"fa2 lectures: a cell of a notebook failed: {last}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
