"""./fa2 <command> [options]: finds the command, and turns every error into a sentence."""
import importlib
import os
import pkgutil
import signal
import sys
import traceback

from . import commands, paths
from .errors import Terminated, UserError, sentence

USAGE = """usage: ./fa2 COMMAND [OPTIONS]

FlashAttention-2, one change at a time. The first run of a command does all set-up.

commands:
{commands}

./fa2 COMMAND --help tells more.
exit status: 0 done, 1 wrong or failed, 2 cannot run here (with the reason and the way out)"""

ORDER = ["compare", "test", "start", "check", "hint", "diff", "grade", "worker", "sweep",
         "profile", "lectures", "fuzz", "doctor"]


def command_names() -> list[str]:
    """The commands that exist: one module each in launcher/commands."""
    names = [module.name for module in pkgutil.iter_modules(commands.__path__)]
    return sorted(names, key=lambda name: (ORDER.index(name) if name in ORDER else 99, name))


def load(name: str):
    return importlib.import_module(f"{commands.__name__}.{name}")


def usage() -> str:
    rows = [f"  {name:<10} {load(name).SUMMARY}" for name in command_names()]
    return USAGE.format(commands="\n".join(rows))


def dispatch(arguments: list[str]) -> int:
    if not arguments:
        print(usage(), file=sys.stderr)
        return 2
    name, *rest = arguments
    if name in ("-h", "--help", "help"):
        if name == "help" and rest:
            return dispatch([rest[0], "--help"])
        print(usage())
        return 0
    if name not in command_names():
        raise UserError(f"there is no command '{name}'. The commands are: "
                        f"{', '.join(command_names())} (./fa2 --help).")
    command = load(name)
    if "-h" in rest or "--help" in rest:
        print(command.HELP.strip())
        return 0
    return command.run(rest)


def on_signal(number, frame):
    raise Terminated(128 + number)


def report(message: str) -> None:
    try:
        print(f"fa2: {message}", file=sys.stderr, flush=True)
    except OSError:
        pass  # stderr itself is full or closed


def main(arguments: list[str]) -> int:
    # Also where the shell started us with SIGINT ignored (in the background of a script).
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, on_signal)
    signal.signal(signal.SIGHUP, on_signal)
    try:
        status = dispatch(arguments)
        sys.stdout.flush()
        return status
    except UserError as error:
        report(str(error))
        return error.status
    except KeyboardInterrupt as error:
        report("interrupted")
        return getattr(error, "status", 130)
    except BrokenPipeError:
        return 141
    except OSError as error:
        report(sentence(error))
        return 2
    except Exception as error:  # a mistake of ours: no stack trace for the user, but keep it
        if os.environ.get("FA2_DEBUG"):
            raise
        where = paths.LOGS / "launcher_error.log"
        try:
            paths.write_whole(where, traceback.format_exc())
            kept = f"; details in {where}"
        except OSError:
            kept = " (FA2_DEBUG=1 shows where)"
        report(f"the launcher failed: {type(error).__name__}: {error}{kept}")
        return 1


if __name__ == "__main__":
    status = main(sys.argv[1:])
    try:
        sys.stdout.flush()
    except OSError:
        pass
    sys.stderr.flush()
    os._exit(status)  # no complaint at exit about a closed or full stdout
