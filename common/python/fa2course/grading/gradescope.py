"""The results.json of Gradescope's autograder, for one submission.

Format: https://gradescope-autograders.readthedocs.io/en/latest/specs/ ("Output format"). Students
see steps and messages. Flags go into extra_data, which they do not see.
"""


def results(student: dict, points: dict[str, dict[str, float]]) -> dict:
    tests = [test for entry in student["stages"] for test in tests_of(entry, points)]
    return {"score": student["points"],
            "output": "\n".join(map(headline, student["stages"])),
            "output_format": "text",
            "visibility": "visible",
            "stdout_visibility": "hidden",
            "extra_data": {f"stage{entry['stage']}": {key: entry[key]
                                                      for key in ("flags", "sha256", "counters")}
                           for entry in student["stages"]},
            "tests": tests}


def headline(entry: dict) -> str:
    if entry["state"] == "not handed in":
        return (f"Stage {entry['stage']}: not handed in. The file must be called kernel.cu, or "
                f"stage{entry['stage']}/kernel.cu.")
    if entry["state"] != "graded":
        return f"Stage {entry['stage']}: {entry['state']}"
    solved = "solved" if entry["solved"] else f"stopped at \"{entry['first_failure']['title']}\""
    return f"Stage {entry['stage']}: {solved}, {entry['passed']} of {entry['of']} steps"


def tests_of(entry: dict, points: dict[str, dict[str, float]]) -> list[dict]:
    worth = points[f"stage{entry['stage']}"]
    tests = []
    for n, step in enumerate(entry["steps"], 1):
        passed = step["status"] == "passed"
        output = step["message"]
        if step["status"] == "skipped":
            output = "not reached: an earlier step failed"
        tests.append({"name": f"Stage {entry['stage']}: {step['title']}", "name_format": "text",
                      "number": f"{entry['stage']}.{n}", "max_score": worth.get(step["name"], 0),
                      "score": worth.get(step["name"], 0) if passed else 0,
                      "status": "passed" if passed else "failed",
                      "output": output, "output_format": "text", "visibility": "visible"})
    return tests
