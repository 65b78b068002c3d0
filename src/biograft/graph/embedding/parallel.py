"""Compiled loops run on several threads, each on a range of the rows.

What a loop writes for one row depends on that row alone, so the number of threads does not change
the results.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from itertools import pairwise
from typing import Any

MIN_PARALLEL_ROWS = 64
"""Loops with fewer rows run on the calling thread alone."""


def n_threads() -> int:
    """Return the number of cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@cache
def thread_pool() -> ThreadPoolExecutor:
    """Return the pool that all loops share."""
    return ThreadPoolExecutor(n_threads(), "biograft-embedding")


def run_parallel(loop: Callable[..., Any], n: int, *arguments: Any) -> None:
    """Call ``loop(first, last, *arguments)`` on ranges that cover range(n), in parallel."""
    workers = n_threads()
    if workers == 1 or n < MIN_PARALLEL_ROWS:
        loop(0, n, *arguments)
        return
    bounds = [n * k // workers for k in range(workers + 1)]
    pool = thread_pool()
    ranges = pairwise(bounds[1:])
    futures = [pool.submit(loop, first, last, *arguments) for first, last in ranges]
    loop(0, bounds[1], *arguments)
    for future in futures:
        future.result()
