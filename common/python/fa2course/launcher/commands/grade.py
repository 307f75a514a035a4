"""./fa2 grade DIR"""
import importlib.util

from .. import build, process, venv
from ..errors import UserError

SUMMARY = "grades a folder of submissions, each in a sandbox"
HELP = """
usage: ./fa2 grade DIR [OPTIONS]

Grades NAME/stageN/kernel.cu (or NAME/work/stageN/kernel.cu, as in a student's fork) for every NAME
in DIR with the steps of ./fa2 check, on the simulator. Each runs by itself without network, with
limits on time, memory, processes and files, and sees nothing but what it needs (bubblewrap; where
that is missing, it is said). Writes grades.csv, grades.json and grades.html. A second run grades
only what is new. common/python/fa2course/grading/README.md says what is protected, and what is not.

  --stages LIST        stages by number, e.g. 2,4 (default: those that anyone handed in)
  --points FILE        points per step (default: common/python/fa2course/grading/points.toml)
  --out DIR            folder of the results (default: build/results/grades)
  --jobs N             submissions at once (default: one per core)
  --format gradescope  DIR is one submission; writes OUT/results.json for Gradescope
  --scheduler ADDRESS  spread over the workers of a Dask scheduler, e.g. tcp://10.0.0.5:8786; start
                       them with ./fa2 worker
  --compile-seconds S  limit on compiling (default: 120)
  --run-seconds S      limit on one step (default: 60)
  --memory MIB         limit on memory (default: 3072)

exit status: 0 all graded, whatever the grades, 1 something could not be graded, 2 cannot run here
"""


def run(arguments: list[str]) -> int:
    from fa2course.grading import command

    options = command.parse(arguments)
    build.ensure_built("sim", ["fa2-check"])
    if options.scheduler and not importlib.util.find_spec("distributed"):
        return in_venv(["grade", *arguments])
    return command.run(options)


def in_venv(words: list[str]) -> int:
    """The same command by the Python that has Dask, which nothing else needs."""
    try:
        python = venv.ensure(["scheduler"])
    except venv.Unavailable as error:
        raise UserError(f"--scheduler needs Dask, which could not be installed: {error}") from None
    return process.run_foreground([str(python), "-m", "fa2course.launcher", *words])
