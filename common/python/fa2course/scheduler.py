"""Work for the machines of a Dask scheduler (./fa2 worker starts their workers).

Dask does the distribution: a task whose worker dies runs again on another, and a task with the same
key is run once. What stands here is what the person should hear: which workers cannot take part,
or that none is left.
"""
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from distributed import Client, Future, wait

from .launcher.errors import UserError

PATIENCE_S = 60  # without any worker that could go on


@dataclass
class Task:
    function: Callable
    arguments: tuple
    resources: dict[str, float] = field(default_factory=dict)


def connect(address: str, patience_s: float = 20) -> Client:
    try:
        return Client(address, timeout=patience_s)
    except (OSError, ValueError) as error:
        raise UserError(f"no Dask scheduler answers at {address} ({str(error).splitlines()[0]}). "
                        "Start one with ./fa2 worker --serve, and workers with ./fa2 worker "
                        "ADDRESS") from None


def workers(client: Client) -> dict[str, dict]:
    return client.scheduler_info(n_workers=-1)["workers"]


def require_workers(client: Client, describe: Callable[[], str], wanted: str) -> None:
    """That there are workers, and that `describe` says on each of them what it says here."""
    if not workers(client):
        raise UserError("the scheduler has no worker. Start some: ./fa2 worker ADDRESS")
    answers = client.run(describe, on_error="return")
    other = [f"{address} ({answer if isinstance(answer, Exception) else 'another version'})"
             for address, answer in answers.items() if answer != wanted]
    if other:
        raise UserError("these workers do not have this version of the course: "
                        f"{', '.join(other)}. Stop them, bring their clones to the same commit and "
                        "start them again.")


def run(client: Client, tasks: dict[str, Task]) -> Iterator[tuple[str, object]]:
    """Yields (key, result) as they come; the result is an Exception where a task failed."""
    futures: dict[Future, str] = {
        client.submit(task.function, *task.arguments, key=key,
                      resources=task.resources or None): key
        for key, task in tasks.items()}
    alone_since = None
    try:
        while futures:
            try:
                done = wait(list(futures), timeout=2, return_when="FIRST_COMPLETED").done
            except TimeoutError:
                done = set()
            for future in done:
                key = futures.pop(future)
                if future.status == "finished":
                    yield key, future.result()
                else:
                    yield key, future.exception() if future.status == "error" else lost()
            if done or able(client, [tasks[key] for key in futures.values()]):
                alone_since = None
            elif alone_since is None:
                alone_since = time.monotonic()
            elif time.monotonic() - alone_since > PATIENCE_S:
                raise UserError(f"no worker is left for {len(futures)} of {len(tasks)} tasks. "
                                "Start workers and run the same command again.", 1)
    except (OSError, RuntimeError) as error:  # Dask's words for a scheduler that is gone
        raise UserError(f"the scheduler does not answer any more ({error}). What was done is kept: "
                        "run the same command again.", 1) from None
    finally:
        client.cancel(list(futures), force=True)


def lost() -> Exception:
    return RuntimeError("the scheduler lost this task")


def able(client: Client, tasks: list[Task]) -> bool:
    """Whether some worker could take one of the tasks."""
    try:
        offers = [worker.get("resources", {}) for worker in workers(client).values()]
    except (OSError, RuntimeError):
        return False
    return any(set(task.resources) <= set(offer) for task in tasks for offer in offers)
