"""Timing of alternatives, interleaved so that the load of the machine affects all alike."""

from __future__ import annotations

import contextlib
import os
import statistics
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple


class Timed(NamedTuple):
    """The median time of several calls, and the last result."""

    seconds: float
    result: Any


def interleave(n_runs: int, *calls: Callable[[], Any]) -> list[Timed]:
    """Time every call once, then every call again, and so on."""
    times: list[list[float]] = [[] for _ in calls]
    results: list[Any] = [None] * len(calls)
    for _ in range(n_runs):
        for row, call in enumerate(calls):
            start = time.perf_counter()
            results[row] = call()
            times[row].append(time.perf_counter() - start)
    medians = map(statistics.median, times)
    return [Timed(*pair) for pair in zip(medians, results, strict=True)]


@contextlib.contextmanager
def on_one_core() -> Iterator[bool]:
    """Pin this thread, and those it starts, to one core; yield whether the system can."""
    if not hasattr(os, "sched_setaffinity"):
        yield False
        return
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(before)})
    try:
        yield True
    finally:
        os.sched_setaffinity(0, before)
