"""Shares a compiled loop among threads: each does a range of it, and none waits for Python.

What a loop writes for one turn depends on that turn alone, so that the number of threads changes
no number that comes out.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from itertools import pairwise
from typing import Any

_WORTH_SHARING = 64
"""Turns below which a loop is done by the thread that asks."""


def n_threads() -> int:
    """Count the cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@cache
def _crew() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(n_threads(), "biograft-embedding")


def in_parts(loop: Callable[..., Any], n: int, *arguments: Any) -> None:
    """Call ``loop(first, last, *arguments)`` so that all of range(n) is done."""
    workers = n_threads()
    if workers == 1 or n < _WORTH_SHARING:
        loop(0, n, *arguments)
        return
    bounds = [n * k // workers for k in range(workers + 1)]
    crew = _crew()
    parts = pairwise(bounds[1:])
    waiting = [crew.submit(loop, first, last, *arguments) for first, last in parts]
    loop(0, bounds[1], *arguments)
    for part in waiting:
        part.result()
