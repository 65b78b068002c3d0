"""Worker processes: jobs done on the cores of this machine, their results in order.

What the jobs share is opened once and forked, so that the workers share its memory; where it cannot
be, each worker opens its own. Jobs wait in a bounded queue, so that memory does not grow with their
number.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from functools import cache
from typing import Any, Generic, Protocol, TypeVar

from biograft.errors import BiograftError, OutputError

J = TypeVar("J")
R = TypeVar("R")
_JOBS_PER_WORKER = 2
"""Jobs that are read ahead per worker."""

_opened: Any = None
"""Shared data of the jobs of this process, if it is a worker."""


class Opener(Protocol):
    """Opens what all jobs share."""

    def open(self) -> Any:
        """Open it, which may take memory and time."""


@dataclass(frozen=True, slots=True)
class Finished(Generic[R]):
    """A job that an earlier run has done, with its result."""

    result: R


@dataclass(frozen=True, slots=True, kw_only=True)
class Workers:
    """Execution of jobs: the number of processes (one is this process itself).

    Without ``fork`` each process opens its own. ``place`` and ``remedy`` are for the message when a
    worker is killed.
    """

    n: int
    place: str
    remedy: str
    fork: bool = True


def n_cores() -> int:
    """Return the number of cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def run_in_order(
    work: Callable[[Any, J], R],
    jobs: Iterable[J | Finished[R]],
    opener: Opener,
    workers: Workers,
) -> Iterator[R]:
    """Do ``work(opened, job)`` for all jobs, and yield the results in their order."""
    if workers.n == 1:
        open_once = cache(opener.open)
        for job in jobs:
            yield job.result if isinstance(job, Finished) else work(open_once(), job)
        return
    forked = workers.fork and "fork" in multiprocessing.get_all_start_methods()
    context = multiprocessing.get_context("fork" if forked else "spawn")
    given = (opener.open(), True) if forked else (opener, False)
    pool = ProcessPoolExecutor(workers.n, context, _start_worker, given)
    try:
        yield from _run_pool(pool, work, jobs, workers.n * _JOBS_PER_WORKER)
    except BrokenProcessPool as error:
        raise OutputError(
            f"{workers.place}: a worker ended early (out of memory?); {workers.remedy}"
        ) from error
    finally:
        pool.shutdown(cancel_futures=True)


def _run_pool(
    pool: ProcessPoolExecutor,
    work: Callable[[Any, J], R],
    jobs: Iterable[J | Finished[R]],
    max_pending: int,
) -> Iterator[R]:
    """Do jobs in a pool with at most ``max_pending`` of them submitted."""
    pending: deque[Future[R] | Finished[R]] = deque()
    for job in jobs:
        while len(pending) >= max_pending:
            yield _result(pending.popleft())
        pending.append(job if isinstance(job, Finished) else pool.submit(_work, work, job))
    while pending:
        yield _result(pending.popleft())


def _result(pending: Future[R] | Finished[R]) -> R:
    return pending.result if isinstance(pending, Finished) else pending.result()


def _start_worker(given: Any, is_open: bool) -> None:
    """Set up a worker process, which ends with its parent and leaves interrupts to it."""
    global _opened  # noqa: PLW0603 - the one thing a worker keeps from job to job
    leave_interrupts_to_parent()
    threading.Thread(target=_end_with_parent, daemon=True).start()
    try:
        _opened = given if is_open else given.open()
    except BiograftError as error:
        _opened = error  # raised with the first job: a pool only tells that its worker died


def leave_interrupts_to_parent() -> None:
    """Let the parent end this worker: an interrupt reaches all processes of a terminal."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _work(work: Callable[[Any, J], R], job: J) -> R:
    if _opened is None:
        raise RuntimeError("a worker got a job before it was ready")
    if isinstance(_opened, BiograftError):
        raise _opened
    return work(_opened, job)
