"""The same work under Ray Data: on a cluster that is there (``RAY_ADDRESS``), or on this machine.

Files are read by Ray's tasks, one a file; actors, each with its own annotator, write the shards.
All nodes must see the store, the input and the output under the same paths. Which shard a chunk
becomes is counted before, so that the result is that of the local engine, and a shard that was
written before its actor was lost is not done again.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from biograft.annotation.inputs import Chunk, TextFile, read_chunks
from biograft.annotation.work import Job, annotate_chunk, done_before
from biograft.corpus.shards import read_report, shard_path
from biograft.errors import MissingExtraError

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
            _work(ray, job, _plan(files, counts, chunk_bytes), workers)
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


def _work(ray: Any, job: Job, rows: list[dict[str, Any]], workers: int) -> None:
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
