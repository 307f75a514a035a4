"""The command line of ./fa2 grade, behind the set-up."""
import argparse
import json
import os
from pathlib import Path

from fa2course.launcher import build, paths, stages
from fa2course.launcher.console import say
from fa2course.launcher.errors import UserError
from fa2course.launcher.options import Parser
from fa2course.launcher.paths import write_whole
from fa2course.student.check import default_build

from . import grade, gradescope, one, points, report, sandbox, submissions


def parse(arguments: list[str]) -> argparse.Namespace:
    parser = Parser("grade")
    parser.add_argument("folder", metavar="DIR", type=Path)
    parser.add_argument("--stages")
    parser.add_argument("--points", type=Path)
    parser.add_argument("--out", type=Path, default=paths.BUILD / "results" / "grades")
    parser.add_argument("--jobs", type=int, default=build.jobs())
    parser.add_argument("--format", choices=["table", "gradescope"], default="table")
    parser.add_argument("--scheduler", metavar="ADDRESS")
    parser.add_argument("--compile-seconds", type=float, default=120)
    parser.add_argument("--run-seconds", type=float, default=60)
    parser.add_argument("--memory", type=int, default=3072)
    options = parser.parse_args(arguments)
    for name in ("jobs", "compile_seconds", "run_seconds", "memory"):
        if not getattr(options, name) > 0:
            raise UserError(f"--{name.replace('_', '-')} must be more than 0")
    if not options.folder.is_dir():
        raise UserError(f"{options.folder} is no folder; it holds one per student: "
                        "NAME/stageN/kernel.cu")
    options.points = points.read(options.points)
    options.stages = options.stages and [stages.number(stages.find(word))
                                         for word in options.stages.split(",")]
    return options


def run(options: argparse.Namespace) -> int:
    settings = one.Settings(options.compile_seconds, options.run_seconds, options.memory)
    one.sweep()
    single = options.format == "gradescope"
    found = (submissions.find_one if single else submissions.find)(options.folder, options.stages)
    if options.scheduler:
        from .scheduler import remote
        engine = remote(options.scheduler)
    else:
        if protection := sandbox.protection().missing:
            say(protection)
        one.readable(default_build())  # or say that it cannot be
        engine = grade.local(options.jobs)
    out = options.out.resolve()
    graded = grade.grades(found, settings, options.points, engine, out / "known")
    if single:
        results = gradescope.results(graded["students"][0], graded["points"])
        write_whole(out / "results.json", json.dumps(results, indent=1) + "\n")
        print(f"Written: results.json in {out}")
    else:
        report.write(graded, out)
        print(table(graded))
        print(f"Written: grades.csv, grades.json and grades.html in {os.path.relpath(out)}")
    failed = [s["name"] for s in graded["students"]
              if any(e["state"] == "not graded here" for e in s["stages"])]
    if failed:
        say(f"not graded, and no verdict: {', '.join(failed)}. Run the same command again: it "
            "grades only these.")
    return 1 if failed else 0


def table(graded: dict) -> str:
    """One line per student and stage."""
    lines = [("student", "stage", "points", "first failure", "flags")]
    for student in graded["students"]:
        for entry in student["stages"]:
            failure = entry["first_failure"]
            said = ("solved" if entry["solved"] else
                    failure["title"] if entry["steps"] else entry["state"])
            lines.append((student["name"], str(entry["stage"]),
                          f"{entry['points']:g}/{entry['max_points']:g}", said,
                          "; ".join(entry["flags"])))
    widths = [max(len(line[i]) for line in lines) for i in range(len(lines[0]))]
    return "\n".join("  ".join(cell.ljust(width) for cell, width in zip(line, widths)).rstrip()
                     for line in lines)
