"""The engine of ./fa2 grade --scheduler: every kernel is a task."""
from collections.abc import Iterator
from dataclasses import asdict

from fa2course import scheduler
from fa2course.launcher.console import say

from . import one, sandbox
from .grade import Engine


def remote(address: str) -> Engine:
    def engine(todo: dict[str, tuple[int, bytes]],
               settings: one.Settings) -> Iterator[tuple[str, dict]]:
        if not todo:
            return
        with scheduler.connect(address) as client:
            scheduler.require_workers(client, one.course_fingerprint, one.course_fingerprint())
            for worker, missing in client.run(protection).items():
                if missing:
                    say(f"{worker}: {missing}")
            tasks = {f"fa2-grade-{key}": scheduler.Task(grade, (stage, kernel, asdict(settings)))
                     for key, (stage, kernel) in todo.items()}
            for key, result in scheduler.run(client, tasks):
                if isinstance(result, Exception):
                    result = {"error": f"{type(result).__name__}: {result}"}
                yield key.removeprefix("fa2-grade-"), result
    return engine


def protection() -> str:
    return sandbox.protection().missing


def grade(stage: int, kernel: bytes, settings: dict) -> dict:
    """On a worker."""
    return one.grade(stage, kernel, one.Settings(**settings))
