"""All cores of this machine, one process each.

What annotates is opened once, before the processes part from this one, so that they share its
memory; where an index needs torch, or processes cannot part so, each opens its own. Chunks wait in
a queue of bounded length, so memory does not grow with the input.
"""

from __future__ import annotations

import logging
import multiprocessing
import os
import signal
import threading
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from typing import Any

from biograft.annotation.pipeline import Annotator
from biograft.annotation.work import Chunk, Job, TextFile, annotate_chunk, done_before, read_chunks
from biograft.corpus.shards import read_report, shard_path
from biograft.errors import MissingExtraError, OutputError

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
        waiting.append(pool.submit(_work_off, chunk, job.out) if said is None else said)
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


def _work_off(chunk: Chunk, out: Any) -> dict[str, Any]:
    if _working is None:
        raise RuntimeError("a worker was given work before it was ready")
    return annotate_chunk(_working, chunk, out)


_ROOM = 2
"""Cores beyond one for each actor: Ray Data hangs if its reading tasks find none."""


def run_ray(
    job: Job, files: Sequence[TextFile], workers: int, chunk_bytes: int
) -> Iterator[dict[str, Any]]:
    """Annotate the chunks of all files with so many actors; give the reports in order."""
    try:
        import ray
        import ray.data
    except ModuleNotFoundError as error:
        raise MissingExtraError("ray", "annotating with --engine ray") from error
    opened_here = not ray.is_initialized()
    if opened_here:
        _start(ray, workers)
    try:
        counting = ray.remote(_count_chunks)
        counts = ray.get([counting.remote(file, chunk_bytes) for file in files])
        if sum(counts):
            _work_under_ray(ray, job, _plan(files, counts, chunk_bytes), workers)
    finally:
        if opened_here:
            ray.shutdown()
    for number in range(sum(counts)):
        yield read_report(shard_path(job.out, number))


def _start(ray: Any, workers: int) -> None:
    """Join the cluster that the environment names, or start one on this machine."""
    quiet = {"log_to_driver": False, "logging_level": "ERROR"}
    if os.environ.get("RAY_ADDRESS"):
        ray.init(**quiet)
    else:
        ray.init(num_cpus=workers + _ROOM, include_dashboard=False, **quiet)


def _count_chunks(file: TextFile, chunk_bytes: int) -> int:
    return sum(1 for _ in read_chunks([file], chunk_bytes))


def _plan(
    files: Sequence[TextFile], counts: Sequence[int], chunk_bytes: int
) -> list[dict[str, Any]]:
    """Say for each file which shard is its first."""
    rows, first = [], 0
    for file, count in zip(files, counts, strict=True):
        if count:
            rows.append({**_plain(file), "number": first, "chunk_bytes": chunk_bytes})
        first += count
    return rows


def _plain(file: TextFile) -> dict[str, str]:
    """Give a file as columns of a table."""
    return {"path": str(file.path), "form": file.form, "shown": file.shown}


def _file(row: dict[str, Any]) -> TextFile:
    return TextFile(Path(str(row["path"])), str(row["form"]), str(row["shown"]))


def _work_under_ray(ray: Any, job: Job, rows: list[dict[str, Any]], workers: int) -> None:
    logging.getLogger("ray.data").setLevel(logging.ERROR)
    context = ray.data.DataContext.get_current()
    bars, context.enable_progress_bars = context.enable_progress_bars, False
    try:
        chunks = ray.data.from_items(rows, override_num_blocks=len(rows)).flat_map(
            _read, fn_args=(job,)
        )
        written = chunks.map_batches(
            _Worker,
            fn_constructor_args=(job,),
            batch_size=1,
            batch_format="numpy",
            num_cpus=1,
            compute=ray.data.ActorPoolStrategy(size=workers),
        )
        for _ in written.iter_batches(batch_size=None):
            pass  # what is written lies in the folder
    finally:
        context.enable_progress_bars = bars


def _read(row: dict[str, Any], job: Job) -> Iterator[dict[str, Any]]:
    """Read the chunks of a file that have no shard yet."""
    file = _file(row)
    for chunk in read_chunks([file], int(row["chunk_bytes"]), int(row["number"])):
        if done_before(job.out, chunk.number) is None:
            place = {"number": chunk.number, "first": chunk.first}
            yield {**_plain(file), **place, "data": chunk.data}


class _Worker:
    """An actor of Ray Data with an annotator of its own."""

    def __init__(self, job: Job) -> None:
        self._job, self._annotator = job, job.open()

    def __call__(self, batch: dict[str, Any]) -> dict[str, Any]:
        keys = list(batch)
        for values in zip(*batch.values(), strict=True):
            row = dict(zip(keys, values, strict=True))
            chunk = Chunk(int(row["number"]), _file(row), int(row["first"]), bytes(row["data"]))
            annotate_chunk(self._annotator, chunk, self._job.out)
        return {"number": batch["number"]}
