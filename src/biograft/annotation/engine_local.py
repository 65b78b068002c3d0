"""All cores of this machine, one process each.

What annotates is opened once, before the processes part from this one, so that they share its
memory; where an index needs torch, or processes cannot part so, each opens its own. Chunks wait in
a queue of bounded length, so memory does not grow with the input.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from typing import Any

from biograft.annotation.inputs import Chunk
from biograft.annotation.pipeline import Annotator
from biograft.annotation.work import Job, annotate_chunk, done_before
from biograft.errors import OutputError

_WAITING = 2
"""Chunks that are read ahead for each worker."""

_working: Annotator | None = None
"""What this process annotates with, if it is a worker."""


def run_local(job: Job, chunks: Iterable[Chunk], workers: int) -> Iterator[dict[str, Any]]:
    """Annotate chunks, and give their reports in order; shards that are there are not made again.

    One worker is this process itself.
    """
    if workers == 1:
        yield from _run_here(job, chunks)
        return
    forked = job.config.index is None and "fork" in multiprocessing.get_all_start_methods()
    context = multiprocessing.get_context("fork" if forked else "spawn")
    opened: Annotator | Job = job.open() if forked else job
    pool = ProcessPoolExecutor(workers, context, _begin, (opened,))
    try:
        yield from _run_in(pool, job, chunks, workers * _WAITING)
    except BrokenProcessPool as error:
        raise OutputError(
            f"{job.out}: a worker ended before its time (out of memory?); take fewer --workers "
            "and go on with --resume"
        ) from error
    finally:
        pool.shutdown(cancel_futures=True)


def _run_here(job: Job, chunks: Iterable[Chunk]) -> Iterator[dict[str, Any]]:
    annotator: Annotator | None = None
    for chunk in chunks:
        said = done_before(job.out, chunk.number)
        if said is None:
            annotator = annotator or job.open()
            said = annotate_chunk(annotator, chunk, job.out)
        yield said


def _run_in(
    pool: ProcessPoolExecutor, job: Job, chunks: Iterable[Chunk], most: int
) -> Iterator[dict[str, Any]]:
    """Keep so many chunks on their way at most."""
    waiting: deque[Future[dict[str, Any]] | dict[str, Any]] = deque()
    for chunk in chunks:
        while len(waiting) >= most:
            yield _report(waiting.popleft())
        said = done_before(job.out, chunk.number)
        waiting.append(pool.submit(_work, chunk, job.out) if said is None else said)
    while waiting:
        yield _report(waiting.popleft())


def _report(waiting: Future[dict[str, Any]] | dict[str, Any]) -> dict[str, Any]:
    return waiting if isinstance(waiting, dict) else waiting.result()


def _begin(opened: Annotator | Job) -> None:
    """Make a process a worker: it ends with its parent, and leaves interrupts to it."""
    global _working  # noqa: PLW0603 - the one thing a worker keeps from chunk to chunk
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    _working = opened.open() if isinstance(opened, Job) else opened


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _work(chunk: Chunk, out: Any) -> dict[str, Any]:
    if _working is None:
        raise RuntimeError("a worker was given work before it was ready")
    return annotate_chunk(_working, chunk, out)
