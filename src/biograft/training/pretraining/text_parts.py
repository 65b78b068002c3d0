"""Packing by parts: every shard of annotated text is packed by itself, by several processes.

A part is a shard, or a copy of it with substituted entities. It appears under its name when it is
complete, so that interrupted packing continues with the next one. No sequence reaches from one
part into another, so that the parts, joined in their order, do not depend on the processes.
"""

from __future__ import annotations

import json
import os
import shutil
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from biograft.artifacts import ArtifactKind, describe_files, new_folder
from biograft.compute import Finished, Workers, run_in_order
from biograft.errors import OutputError, StoreError
from biograft.kb import KnowledgeBase
from biograft.text.segmentation import Segmentation
from biograft.text.shards import SHARDS, Shards, read_shard
from biograft.training.pretraining.packed_text import GrowingArray, array_kinds, write_sequences
from biograft.training.pretraining.packing import Packer
from biograft.training.pretraining.stream_configs import AnnotatedTextConfig
from biograft.training.pretraining.substitution import IndexedDocument, SynonymSubstitution
from biograft.training.pretraining.tokenisation import (
    DocumentTokenizer,
    PackingCounts,
    SegmentFinder,
)

PLAN = ArtifactKind(
    format="biograft-packing",
    version=1,
    called="packing in progress",
    remedy="remove the folder; it is begun again",
    file="packing.json",
    keys=("made_from",),
)
PART = ArtifactKind(
    format="biograft-packed-part",
    version=1,
    called="part of packed text",
    remedy="remove the folder; it is packed again",
    file="part.json",
    keys=("counts", "files"),
)
_ROWS_AT_ONCE = 1 << 20


class TextPart(NamedTuple):
    """A shard, or a copy of it (``copy`` from 0; None: the original)."""

    number: int
    shard: Path
    first: int
    """The number of its first document."""
    n_documents: int
    copy: int | None


def list_parts(shards: Shards, config: AnnotatedTextConfig) -> list[TextPart]:
    """List the parts in their order: the originals of all shards, then copies of all of them."""
    passes: list[int | None] = [None]
    if config.substitution is not None:
        passes = [None] * config.substitution.originals + [*range(config.substitution.copies)]
    sizes = [_n_documents(path) for path in shards.paths]
    firsts = [sum(sizes[:n]) for n in range(len(sizes))]
    rows = [
        (path, first, size, copy)
        for copy in passes
        for path, first, size in zip(shards.paths, firsts, sizes, strict=True)
    ]
    return [TextPart(number, *row) for number, row in enumerate(rows)]


def _n_documents(shard: Path) -> int:
    try:
        return int(pq.read_metadata(shard).num_rows)
    except (OSError, pa.ArrowException) as error:
        raise SHARDS.damaged(shard, error) from error


@dataclass(frozen=True, slots=True)
class PackingJob:
    """Shared data of all parts: settings, tokenizer, entities, output folder."""

    config: AnnotatedTextConfig
    tokenizer: Any
    entities: Sequence[str]
    """The ids of the entity table, by row."""
    frequencies: pa.Table
    """All entities of the text with their ``count``, for substitution."""
    forms: Mapping[tuple[str, str], Counter[str]]
    """The names of the mentions, for substitution."""
    kb: Path | None
    special: Mapping[str, int]
    labels: Sequence[str]
    folder: Path
    alone: bool
    """Whether one process packs everything, and may use several threads."""

    def open(self) -> _PartPacker:
        """Open what a process needs."""
        if not self.alone:
            os.environ["TOKENIZERS_PARALLELISM"] = "false"  # of this worker process
        return _PartPacker(self)

    def path(self, part: TextPart) -> Path:
        """Return the folder of a part."""
        return self.folder / f"part-{part.number:05}"


class _PartPacker:
    """Packs parts; holds what is the same for all of them."""

    def __init__(self, job: PackingJob) -> None:
        self._job, config = job, job.config
        folder = config.segmentation
        segments = SegmentFinder(Segmentation.open(folder)) if folder else None
        rows = {entity: row for row, entity in enumerate(job.entities)}
        self._tokenizer = DocumentTokenizer(job.tokenizer, rows, config.min_score, segments)
        self._substitution = None
        if config.substitution is not None and job.kb is not None:
            kb = KnowledgeBase.open(job.kb)
            self._substitution = SynonymSubstitution(
                kb, config.substitution, job.frequencies, job.forms
            )

    def pack(self, part: TextPart) -> dict[str, int]:
        """Write the sequences of a part, and return its counts."""
        job = self._job
        packer = Packer(job.config, job.special["first"], job.special["separator"])
        documents = self._tokenizer.tokenise(self._read(part), packer.counts)
        with new_folder(job.path(part), overwrite=True) as work:
            write_sequences(work, packer.pack(documents), job.labels)
            counts = packer.counts.to_json()
            PART.write(work, {"counts": counts, "files": describe_files(work)})
        return counts

    def _read(self, part: TextPart) -> Iterator[IndexedDocument]:
        documents = read_shard(part.shard)
        if self._substitution is not None:
            yield from self._substitution.read(documents, part.copy, part.first)
            return
        for number, document in enumerate(documents, part.first):
            yield IndexedDocument(number, document)


def pack_parts(job: PackingJob, parts: Sequence[TextPart], n: int) -> Iterator[dict[str, int]]:
    """Pack the parts that are missing with ``n`` processes; yield the counts of all, in order."""
    workers = Workers(
        n=n,
        place=str(job.folder),
        remedy="set a smaller stream.workers and start again; finished parts are kept",
    )
    return run_in_order(_pack, _unfinished(job, parts), job, workers)


def _pack(packer: _PartPacker, part: TextPart) -> dict[str, int]:
    return packer.pack(part)


def _unfinished(
    job: PackingJob, parts: Sequence[TextPart]
) -> Iterator[TextPart | Finished[dict[str, int]]]:
    for part in parts:
        counts = _read_counts(job.path(part))
        yield part if counts is None else Finished(counts)


def _read_counts(folder: Path) -> dict[str, int] | None:
    """Return the counts of a complete part; None if there is none."""
    if not PART.is_at(folder):
        return None
    try:
        manifest = PART.read(folder)
        PART.check_files(folder, manifest)
    except StoreError:
        return None  # damaged from outside: it is packed again
    return dict(manifest["counts"])


def open_plan(folder: Path, made_from: Mapping[str, Any]) -> None:
    """Create the folder of parts; keep those of an interrupted run that packed the same."""
    if PLAN.is_at(folder):
        if PLAN.read(folder)["made_from"] == json.loads(json.dumps(made_from)):
            return
        shutil.rmtree(folder)
    elif not PLAN.is_free(folder):
        raise OutputError(f"{folder}: holds no parts of packed text; remove it or move it away")
    PLAN.write(folder, {"made_from": made_from})


def join_parts(folder: Path, parts: Sequence[Path], labels: Sequence[str]) -> None:
    """Write the arrays of all parts, one after the other, as arrays of a folder."""
    with ExitStack() as stack:
        arrays = {
            name: stack.enter_context(GrowingArray(folder / f"{name}.npy", *kind))
            for name, kind in array_kinds(labels).items()
        }
        for part in parts:
            shift = np.array([[arrays["tokens"].n_rows, arrays["mentions"].n_rows, 0, 0]])
            for name, array in arrays.items():
                rows = np.load(part / f"{name}.npy", mmap_mode="r", allow_pickle=False)
                for first in range(0, len(rows), _ROWS_AT_ONCE):
                    some = rows[first : first + _ROWS_AT_ONCE]
                    array.add(some + shift if name == "sequences" else some)


def sum_counts(counts: Iterator[Mapping[str, int]] | Sequence[Mapping[str, int]]) -> dict[str, int]:
    """Add the counts of parts."""
    total = PackingCounts().to_json()
    for some in counts:
        for name, n in some.items():
            total[name] += n
    return total
