"""The command lines of the commands: strict, and wrong ones get one sentence."""
import argparse
import re

from .errors import UserError


class Parser(argparse.ArgumentParser):
    """argparse that raises UserError instead of printing a usage block and exiting."""

    def __init__(self, command: str):
        super().__init__(prog=f"./fa2 {command}", add_help=False, allow_abbrev=False)

    def error(self, message: str):
        raise UserError(f"{message} (see {self.prog} --help)")


def check_known(command: str, help_text: str, arguments: list[str]) -> None:
    """Refuses an option that the help does not name, before any set-up is done for it."""
    known = set(re.findall(r"(?<![\w-])--[a-z][a-z_-]*", help_text))
    for word in arguments:
        if word == "--":
            return
        option = word.split("=", 1)[0]
        if option.startswith("--") and option not in known:
            raise UserError(f"there is no option {option} (see ./fa2 {command} --help)")


def value_of(option: str, arguments: list[str]) -> str | None:
    """The value of --option VALUE or --option=VALUE, the last one given."""
    value = None
    for i, word in enumerate(arguments):
        if word == option and i + 1 < len(arguments):
            value = arguments[i + 1]
        elif word.startswith(f"{option}="):
            value = word.split("=", 1)[1]
    return value
