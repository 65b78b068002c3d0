"""Times two ways of doing the same in turn, so that both meet the machine in the same mood."""

from __future__ import annotations

import contextlib
import os
import statistics
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple


class Timed(NamedTuple):
    """The median time of something that was done several times, and what it gave last."""

    seconds: float
    result: Any


def in_turn(n_runs: int, *calls: Callable[[], Any]) -> list[Timed]:
    """Do all of them, then all again, and so on."""
    times: list[list[float]] = [[] for _ in calls]
    results: list[Any] = [None] * len(calls)
    for _ in range(n_runs):
        for place, call in enumerate(calls):
            start = time.perf_counter()
            results[place] = call()
            times[place].append(time.perf_counter() - start)
    medians = map(statistics.median, times)
    return [Timed(*pair) for pair in zip(medians, results, strict=True)]


@contextlib.contextmanager
def on_one_core() -> Iterator[bool]:
    """Keep this thread, and those it starts, on one core; say whether the system can."""
    if not hasattr(os, "sched_setaffinity"):
        yield False
        return
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(before)})
    try:
        yield True
    finally:
        os.sched_setaffinity(0, before)
