"""grades.json, grades.csv and grades.html."""
import csv
import io
import json
from html import escape
from pathlib import Path

from fa2course.launcher.paths import write_whole


def write(grades: dict, folder: Path) -> None:
    write_whole(folder / "grades.json", json.dumps(grades, indent=1, ensure_ascii=False) + "\n")
    write_whole(folder / "grades.csv", to_csv(grades))
    write_whole(folder / "grades.html", page(grades))


# ---- CSV -----------------------------------------------------------------------------------------

FIELDS = ("points", "max_points", "state", "solved", "passed", "of")


def harmless(text: str) -> str:
    """A spreadsheet takes a cell that begins like this for a formula; this one is a student's."""
    return f"'{text}" if text[:1] in tuple("=+-@\t\r") else text


def to_csv(grades: dict) -> str:
    """One line per student and stage; counters are those of the first problem counted."""
    entries = [(student["name"], entry)
               for student in grades["students"] for entry in student["stages"]]
    names = list(dict.fromkeys(name for _, entry in entries for name in first_counters(entry)))
    out = io.StringIO()
    table = csv.writer(out, lineterminator="\n")
    table.writerow(["student", "stage", *FIELDS, "failed_step", "message", "flags", "sha256",
                    *names])
    for student, entry in entries:
        failure = entry["first_failure"] or {"step": "", "message": ""}
        counters = first_counters(entry)
        table.writerow([harmless(student), entry["stage"], *(entry[field] for field in FIELDS),
                        failure["step"], harmless(failure["message"]),
                        harmless("; ".join(entry["flags"])), entry["sha256"],
                        *(counters.get(name, "") for name in names)])
    return out.getvalue()


def first_counters(entry: dict) -> dict[str, int]:
    return next(iter(entry["counters"].values()), {})


# ---- HTML ----------------------------------------------------------------------------------------

STYLE = """
:root { color-scheme: light; }
body { margin: 0 auto; max-width: 76rem; padding: 1.2rem 1.5rem 4rem; background: #fbfbf9;
       color: #22262b; font: 16px/1.45 system-ui, "Liberation Sans", Arial, sans-serif; }
h1 { font-size: 1.8rem; margin: .4rem 0; }
h2 { font-size: 1.25rem; margin: 1.8rem 0 .3rem; border-top: 1px solid #c9cbc6;
     padding-top: .7rem; }
h3 { font-size: 1.05rem; margin: 1rem 0 .2rem; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { padding: .25rem .8rem .25rem 0; text-align: right; border-bottom: 1px solid #e3e4e0; }
th:first-child, td:first-child { text-align: left; }
.all { color: #10704f; font-weight: 600; } .none { color: #b3211b; } .some { color: #8a5a00; }
.flag { background: #fff1c9; padding: 0 .3rem; border-radius: 3px; font-size: .9rem; }
.quiet { color: #5b626a; }
ol { list-style: none; padding: 0; margin: .2rem 0; display: flex; flex-wrap: wrap;
     gap: .15rem .9rem; }
pre { background: #f1f1ec; padding: .6rem .8rem; overflow-x: auto; white-space: pre-wrap;
      border-left: 3px solid #b3211b; font-size: .88rem; }
summary { cursor: pointer; }
a { color: inherit; }
.warn { border: 1px solid #b3211b; padding: .5rem .8rem; }
"""
MARKS = {"passed": ("✓", "all"), "failed": ("✗", "none"), "skipped": ("·", "quiet")}


def page(grades: dict) -> str:
    students = grades["students"]
    stages = list(dict.fromkeys(e["stage"] for s in students for e in s["stages"]))
    heads = "".join(f"<th>stage {stage}</th>" for stage in stages)
    rows = "\n".join(summary_row(student, n) for n, student in enumerate(students))
    missing = escape(grades["protection"])
    warning = f'<p class="warn">{missing}.</p>' if missing else ""
    details = "\n".join(details_of(student, n) for n, student in enumerate(students))
    return f"""<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Grades: FlashAttention-2, one change at a time</title><style>{STYLE}</style></head><body>
<h1>Grades</h1>
<p class="quiet">{len(students)} students. A flag is for your eye; it takes no points.</p>
{warning}
<div class="scroll"><table>
<thead><tr><th>student</th>{heads}<th>points</th><th>flags</th></tr></thead>
<tbody>{rows}</tbody></table></div>
{details}
</body></html>
"""


def style_of(entry: dict) -> str:
    return "all" if entry["solved"] else "some" if entry["points"] else "none"


def number(value: float) -> str:
    return f"{value:g}"


def summary_row(student: dict, n: int) -> str:
    cells = "".join(f'<td class="{style_of(e)}" title="{escape(e["state"])}">'
                    f'{number(e["points"])} / {number(e["max_points"])}</td>'
                    for e in student["stages"])
    flags = sum(len(entry["flags"]) for entry in student["stages"])
    mark = f'<span class="flag">{flags}</span>' if flags else ""
    return (f'<tr><td><a href="#s{n}">{escape(student["name"])}</a></td>{cells}'
            f'<td>{number(student["points"])} / {number(student["max_points"])}</td>'
            f'<td>{mark}</td></tr>')


def details_of(student: dict, n: int) -> str:
    stages = "".join(map(stage_of, student["stages"]))
    return f'<h2 id="s{n}">{escape(student["name"])}</h2>{stages}'


def stage_of(entry: dict) -> str:
    said = ("solved" if entry["solved"] else
            f"{entry['passed']} of {entry['of']} steps" if entry["state"] == "graded" else
            entry["state"])
    steps = "".join(f'<li class="{MARKS[s["status"]][1]}">{MARKS[s["status"]][0]} '
                    f'{escape(s["title"])}</li>' for s in entry["steps"])
    failure = entry["first_failure"]
    shown = (f'<pre>{escape(failure["title"])}: {escape(failure["message"])}</pre>'
             if failure and entry["steps"] else "")
    flags = "".join(f'<p><span class="flag">{escape(flag)}</span></p>' for flag in entry["flags"])
    return (f'<h3>stage {entry["stage"]}: <span class="{style_of(entry)}">{escape(said)}</span>, '
            f'{number(entry["points"])} of {number(entry["max_points"])} points</h3>'
            f"<ol>{steps}</ol>{shown}{flags}{counters_of(entry)}")


def counters_of(entry: dict) -> str:
    problems = entry["counters"]
    if not problems:
        return ""
    names = list(dict.fromkeys(name for counters in problems.values() for name in counters
                               if any(c.get(name) for c in problems.values())))
    heads = "".join(f"<th>{escape(problem)}</th>" for problem in problems)
    rows = "".join(f"<tr><td>{escape(name)}</td>" + "".join(
        f"<td>{counters.get(name, 0):,}</td>" for counters in problems.values()) + "</tr>"
        for name in names)
    return ('<details><summary class="quiet">counters</summary><div class="scroll">'
            f"<table><thead><tr><th></th>{heads}</tr></thead><tbody>{rows}</tbody></table>"
            "</div></details>")
