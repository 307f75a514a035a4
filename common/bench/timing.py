"""Times of a GPU: median over 20 runs after 10 warm-ups, with device events, backends in turn, and
in another order in every round: the GPU's clock follows the power that it drew some milliseconds
before, so nobody may always come after the same one."""

import random
import statistics
from collections.abc import Callable
from dataclasses import dataclass

import torch

RUNS, WARM_UPS = 20, 10
REPLAY_BELOW = 8192  # rows: shorter calls are replayed from a CUDA graph, all backends alike


@dataclass
class Time:
    ms: float
    spread: float  # (slowest - fastest) / median


def input_sets(bytes_of_one: int) -> int:
    """So many sets of inputs that they do not stay in the L2 cache."""
    return max(1, -(-2 * torch.cuda.get_device_properties().L2_cache_size // bytes_of_one))


def captured(calls: list[Callable]) -> Callable:
    """All the calls as one CUDA graph, so that the time of the host does not count."""
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        calls[0]()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for call in calls:
            call()
    return graph.replay


def median_times(calls: dict[str, list[Callable]], replay: bool) -> dict[str, Time | Exception]:
    """calls[name]: the same work on each set of inputs. A backend that fails has its exception."""
    results: dict[str, Time | Exception] = {}
    todo: dict[str, list[Callable]] = {}
    for name, one in calls.items():
        try:
            todo[name] = [captured(one)] if replay else one
            for i in range(WARM_UPS):
                todo[name][i % len(todo[name])]()
            torch.cuda.synchronize()
        except (RuntimeError, torch.OutOfMemoryError) as error:
            results[name] = error
            todo.pop(name, None)
            torch.cuda.empty_cache()
    events: dict[str, list] = {name: [] for name in todo}
    for i in range(RUNS):
        for name in random.Random(i).sample(list(todo), len(todo)):
            one = todo[name]
            start, end = torch.cuda.Event(True), torch.cuda.Event(True)
            start.record()
            one[i % len(one)]()
            end.record()
            events[name].append((start, end))
    torch.cuda.synchronize()
    for name, pairs in events.items():
        times = [a.elapsed_time(b) / (len(calls[name]) if replay else 1) for a, b in pairs]
        middle = statistics.median(times)
        results[name] = Time(middle, (max(times) - min(times)) / middle)
    return results
