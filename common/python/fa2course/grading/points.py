"""Points per step, from a small TOML file."""
import tomllib
from pathlib import Path

from fa2course.launcher import stages
from fa2course.launcher.errors import UserError
from fa2course.student.check import step_names

DEFAULT = Path(__file__).with_name("points.toml")


def read(path: Path | None) -> dict[int, dict[str, float]]:
    """{stage: {step: points}} for every stage of the course."""
    path = path or DEFAULT
    try:
        with open(path, "rb") as file:
            tables = tomllib.load(file)
    except OSError as error:
        raise UserError(f"the points file {path} cannot be read: {error.strerror}") from None
    except tomllib.TOMLDecodeError as error:
        raise UserError(f"the points file {path} is no TOML: {error}") from None
    numbers = [stages.number(name) for name in stages.names()]
    steps = {number: [name for name, _ in step_names(number)] for number in numbers}
    known = {name for names in steps.values() for name in names}
    for table, entries in tables.items():
        if not isinstance(entries, dict):
            raise UserError(f"{path}: \"{table}\" stands outside a table; [default] holds the "
                            "points")
        if table != "default" and table not in {f"stage{number}" for number in numbers}:
            raise UserError(f"{path}: there is no table [{table}]; known are [default] and "
                            f"[stage1] to [stage{numbers[-1]}]")
        for step, value in entries.items():
            if step not in known:
                raise UserError(f"{path}: there is no step \"{step}\"; the steps are "
                                f"{', '.join(sorted(known))}")
            if isinstance(value, bool) or not isinstance(value, int | float) or not value >= 0:
                raise UserError(f"{path}: [{table}] {step} is {value!r}; points are numbers from 0 "
                                "on")
    default = tables.get("default", {})
    return {number: {step: {**default, **tables.get(f"stage{number}", {})}.get(step, 0)
                     for step in steps[number]} for number in numbers}
