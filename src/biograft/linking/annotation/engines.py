"""Annotation engines: local processes, or Ray Data actors.

The local engine opens the annotator once and forks, so that the workers share its memory; if an
index needs torch, or the system cannot fork, each worker opens its own. Chunks wait in a bounded
queue, so that memory does not grow with the input.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

from biograft.compute import Finished, Workers, run_in_order
from biograft.linking.annotation.pipeline import Annotator
from biograft.linking.annotation.work import (
    Chunk,
    Job,
    TextFile,
    annotate_chunk,
    read_chunks,
    read_finished,
)
from biograft.linking.cluster import ray_cluster
from biograft.text.input_config import InputConfig
from biograft.text.shards import read_report, shard_path


def run_local(job: Job, chunks: Iterable[Chunk], workers: int) -> Iterator[dict[str, Any]]:
    """Annotate chunks, and yield their reports in order; finished shards are not made again.

    The workers share the memory of the annotator, unless its index needs torch.
    """
    execution = Workers(
        n=workers,
        place=str(job.out),
        remedy="take fewer --workers and continue with --resume",
        fork=job.config.index is None,
    )
    return run_in_order(partial(_annotate, job.out), _unfinished(job, chunks), job, execution)


def _unfinished(job: Job, chunks: Iterable[Chunk]) -> Iterator[Chunk | Finished[dict[str, Any]]]:
    for chunk in chunks:
        report = read_finished(job.out, chunk.index)
        yield chunk if report is None else Finished(report)


def _annotate(out: Path, annotator: Annotator, chunk: Chunk) -> dict[str, Any]:
    return annotate_chunk(annotator, chunk, out)


def run_ray(
    job: Job, files: Sequence[TextFile], workers: int, chunk_bytes: int
) -> Iterator[dict[str, Any]]:
    """Annotate the chunks of all files with Ray actors; yield the reports in order."""
    with ray_cluster(workers, "annotating with --engine ray") as ray:
        import ray.data

        counting = ray.remote(_count_chunks)
        counts = ray.get([counting.remote(file, chunk_bytes) for file in files])
        if sum(counts):
            _run_ray_data(ray, job, _plan_chunks(files, counts, chunk_bytes), workers)
    for index in range(sum(counts)):
        yield read_report(shard_path(job.out, index))


def _count_chunks(file: TextFile, chunk_bytes: int) -> int:
    return sum(1 for _ in read_chunks([file], chunk_bytes))


def _plan_chunks(
    files: Sequence[TextFile], counts: Sequence[int], chunk_bytes: int
) -> list[dict[str, Any]]:
    """Return a row per file, with the index of its first shard."""
    rows, first = [], 0
    for file, count in zip(files, counts, strict=True):
        if count:
            rows.append({**_file_columns(file), "index": first, "chunk_bytes": chunk_bytes})
        first += count
    return rows


def _file_columns(file: TextFile) -> dict[str, str]:
    """Return a file as columns of a table."""
    return {
        "path": str(file.path),
        "form": file.form,
        "display_path": file.display_path,
        "reading": json.dumps(asdict(file.reading)),
    }


def _file(row: dict[str, Any]) -> TextFile:
    reading = InputConfig(**json.loads(str(row["reading"])))
    return TextFile(Path(str(row["path"])), str(row["form"]), str(row["display_path"]), reading)


def _run_ray_data(ray: Any, job: Job, rows: list[dict[str, Any]], workers: int) -> None:
    logging.getLogger("ray.data").setLevel(logging.ERROR)
    context = ray.data.DataContext.get_current()
    bars, context.enable_progress_bars = context.enable_progress_bars, False
    try:
        chunks = ray.data.from_items(rows, override_num_blocks=len(rows)).flat_map(
            _read, fn_args=(job,)
        )
        written = chunks.map_batches(
            _RayActor,
            fn_constructor_args=(job,),
            batch_size=1,
            batch_format="numpy",
            num_cpus=1,
            compute=ray.data.ActorPoolStrategy(size=workers),
        )
        for _ in written.iter_batches(batch_size=None):
            pass  # the shards are written by the actors
    finally:
        context.enable_progress_bars = bars


def _read(row: dict[str, Any], job: Job) -> Iterator[dict[str, Any]]:
    """Read the chunks of a file that have no shard yet."""
    file = _file(row)
    for chunk in read_chunks([file], int(row["chunk_bytes"]), int(row["index"])):
        if read_finished(job.out, chunk.index) is None:
            position = {"index": chunk.index, "first": chunk.first, "rejected": chunk.rejected}
            yield {**_file_columns(chunk.file), **position, "data": chunk.data}


class _RayActor:
    """An actor of Ray Data with an annotator of its own."""

    def __init__(self, job: Job) -> None:
        self._job, self._annotator = job, job.open()

    def __call__(self, batch: dict[str, Any]) -> dict[str, Any]:
        keys = list(batch)
        for values in zip(*batch.values(), strict=True):
            row = dict(zip(keys, values, strict=True))
            chunk = Chunk(
                int(row["index"]), _file(row), int(row["first"]), bytes(row["data"]),
                str(row["rejected"]),
            )  # fmt: skip
            annotate_chunk(self._annotator, chunk, self._job.out)
        return {"index": batch["index"]}
