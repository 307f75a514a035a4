"""./fa2 lectures"""
import os
import webbrowser

from .. import build, lock, paths, process, venv
from ..console import say
from ..options import Parser

SUMMARY = "runs the notebooks, and builds and opens the lectures"
HELP = """
usage: ./fa2 lectures [--refresh | --check | --no-open]

Runs the notebooks of lectures/ and builds the lectures as HTML in build/lectures. On a desktop it
opens them (formulas need a connection). They read as well on GitHub: start at
lectures/00_overview.md.

  --refresh   rewrites the output blocks, pictures, README tables and notebooks from the code as it
              is now (after a change of a kernel, a counter or a recorded result)
  --check     only says which of these are out of date; notebooks are left aside
  --no-open   builds, and opens nothing

exit status: 0 done, 1 a notebook failed or something is out of date, 2 cannot run here
"""


def run(arguments: list[str]) -> int:
    parser = Parser("lectures")
    choice = parser.add_mutually_exclusive_group()
    for option in ("--refresh", "--check", "--no-open"):
        choice.add_argument(option, action="store_true")
    options = parser.parse_args(arguments)
    paths.BUILD.mkdir(exist_ok=True)
    with lock.exclusive():
        build.ensure_tools()
        python = venv.ensure_or_system(["report", "notebooks"],
                                       ["matplotlib", "pandas", "nbclient", "nbconvert"])
        build.ensure_built("sim", ["fa2-compare", "fa2-warmup"])
    mode = "--refresh" if options.refresh else "--check" if options.check else None
    environment = process.environment() | {"FA2_BUILD_DIR": str(paths.preset_dir("sim"))}
    status = process.run_foreground(
        [str(python), "-m", "fa2course.lectures", *([mode] if mode else [])], env=environment)
    page = paths.BUILD / "lectures" / "index.html"
    on_a_desktop = os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")
    if status == 0 and not mode and not options.no_open and on_a_desktop:
        say(f"opening {page}")
        webbrowser.open(page.as_uri())
    return status
