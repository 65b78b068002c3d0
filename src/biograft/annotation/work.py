"""What a worker does, on this machine or on another: one chunk of text in, one shard out."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from biograft.annotation.config import AnnotationConfig
from biograft.annotation.inputs import Chunk, read_records
from biograft.annotation.pipeline import Annotator
from biograft.annotation.report import AnnotationReport
from biograft.corpus.cleaning import Cleaner
from biograft.corpus.shards import AnnotatedDocument, read_report, shard_path, write_shard
from biograft.documents import Document
from biograft.errors import StoreError

_DOCUMENTS, _CHARACTERS = 512, 1 << 18
"""A batch is full with so many documents, or so much text."""


@dataclass(frozen=True, slots=True)
class Job:
    """All that a worker must know besides the text."""

    kb: Path
    out: Path
    config: AnnotationConfig

    def open(self) -> Annotator:
        """Open what annotates; it takes memory and, for large stores, time."""
        return Annotator.open(self.kb, self.config)


def annotate_chunk(annotator: Annotator, chunk: Chunk, out: Path) -> dict[str, Any]:
    """Annotate a chunk into its shard, and give the report that lies in it."""
    report = AnnotationReport()
    documents = read_records(chunk, report)
    if annotator.config.cleaning is not None:
        cleaner = Cleaner(annotator.config.cleaning)
        documents = _cleaned(documents, cleaner)
        report.cleaned = cleaner.report.counts
    annotated: list[AnnotatedDocument] = []
    for batch in _batches(documents):
        annotated += annotator.annotate(batch, report.counts)
    said = report.to_json()
    write_shard(shard_path(out, chunk.number), annotated, said)
    return said


def done_before(out: Path, number: int) -> dict[str, Any] | None:
    """Give the report of a shard that is there already and whole."""
    path = shard_path(out, number)
    if not path.exists():
        return None
    try:
        return read_report(path)
    except StoreError:
        path.unlink()  # damaged from outside, since we write whole files only: made again
        return None


def n_cores() -> int:
    """Say how many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _cleaned(documents: Iterable[Document], cleaner: Cleaner) -> Iterator[Document]:
    for document in documents:
        yield from cleaner.clean(document)


def _batches(documents: Iterable[Document]) -> Iterator[list[Document]]:
    batch: list[Document] = []
    n_characters = 0
    for document in documents:
        batch.append(document)
        n_characters += len(document.text)
        if len(batch) >= _DOCUMENTS or n_characters >= _CHARACTERS:
            yield batch
            batch, n_characters = [], 0
    if batch:
        yield batch
