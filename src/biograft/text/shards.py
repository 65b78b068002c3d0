"""Annotated text on disk: Parquet shards of documents with linked spans.

==========================  ==============================================================
``part-00000.parquet`` ...  documents in the order of the input
``frequencies.parquet``     the number of spans of each concept
``manifest.json``           format, store, settings, counts; written last, so that a folder
                            without it is not finished
==========================  ==============================================================

A shard appears under its name when it is complete. Its metadata holds the report of its
annotation, so that interrupted work can be resumed.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from biograft.artifacts import ArtifactKind, new_file
from biograft.errors import StoreError
from biograft.text.tables import check_expansion

SHARDS = ArtifactKind(
    format="biograft-shards",
    version=1,
    called="folder of annotated text",
    remedy="run `biograft corpus annotate` again",
    absent="make one with `biograft corpus annotate`, or finish it with --resume",
    keys=("n_shards", "n_documents"),
)
SPAN = pa.struct(
    [("start", pa.int32()), ("end", pa.int32()), ("concept", pa.string()), ("score", pa.float32())]
)
SCHEMA = pa.schema(
    [
        ("id", pa.string()),
        ("text", pa.string()),
        ("language", pa.string()),
        ("mentions", pa.list_(SPAN)),
    ]
)
_REPORT = b"biograft"
_BATCH_ROWS, _READ_ROWS = 4096, 256


class LinkedSpan(NamedTuple):
    """A span of text and the concept it is linked to."""

    start: int
    """Character offset of its first character."""
    end: int
    """Character offset behind its last character."""
    concept: str
    """Id of the concept."""
    score: float
    """Score of the linking, from 0 to 1."""


@dataclass(frozen=True, slots=True)
class AnnotatedDocument:
    """A text and its linked spans, which are disjoint and sorted."""

    id: str
    """Id of the document."""
    text: str
    """Its text, which the offsets refer to."""
    spans: tuple[LinkedSpan, ...] = ()
    """Linked spans."""
    language: str = ""
    """Language of the text; empty if unknown."""


def shard_path(folder: Path, index: int) -> Path:
    """Return the path of a shard.

    Args:
        folder: Folder of the shards.
        index: Number of the shard.
    """
    return folder / f"part-{index:05}.parquet"


def to_table(documents: Iterable[AnnotatedDocument]) -> pa.Table:
    """Convert documents into a table; equal documents give equal tables."""
    rows = list(documents)
    spans = [span for document in rows for span in document.spans]
    ends = [0]
    for document in rows:
        ends.append(ends[-1] + len(document.spans))
    columns_of_spans = zip(*spans, strict=True) if spans else ([] for _ in SPAN)
    values = pa.StructArray.from_arrays(
        [pa.array(c, field.type) for c, field in zip(columns_of_spans, SPAN, strict=True)],
        fields=list(SPAN),
    )
    columns = [
        pa.array([document.id for document in rows], pa.string()),
        pa.array([document.text for document in rows], pa.string()),
        pa.array([document.language for document in rows], pa.string()),
        pa.ListArray.from_arrays(pa.array(ends, pa.int32()), values, type=SCHEMA.field(3).type),
    ]
    return pa.table(columns, schema=SCHEMA)


def write_shard(
    path: Path, documents: Iterable[AnnotatedDocument], report: Mapping[str, Any]
) -> None:
    """Write a shard, complete or not at all, with the report of its annotation.

    Args:
        path: File to write; one that exists is replaced.
        documents: Annotated documents.
        report: Report of their annotation.
    """
    metadata = {_REPORT: json.dumps(report, ensure_ascii=False, sort_keys=True).encode()}
    table = to_table(documents).replace_schema_metadata(metadata)
    with new_file(path, overwrite=True) as file:
        pq.write_table(table, file, compression="zstd")


def read_report(path: Path) -> dict[str, Any]:
    """Read the report of a shard."""
    try:
        metadata = pq.read_schema(path).metadata or {}
        report: dict[str, Any] = json.loads(metadata[_REPORT])
    except (OSError, pa.ArrowException, KeyError, ValueError, RecursionError) as error:
        raise SHARDS.damaged(path, error) from error
    return report


class Shards:
    """A folder of annotated text, open for reading.

    Args:
        folder: Folder of the shards.
        manifest: Its manifest.
    """

    def __init__(self, folder: Path, manifest: dict[str, Any]) -> None:
        self.folder, self.manifest = folder, manifest
        self.paths = [shard_path(folder, n) for n in range(manifest["n_shards"])]

    @classmethod
    def open(cls, folder: str | Path) -> Shards:
        """Open a finished folder; a missing or truncated shard raises a ``StoreError``."""
        folder = Path(folder)
        manifest = SHARDS.read(folder)
        SHARDS.check_files(folder, manifest)
        for key, most in (("n_shards", len(manifest["files"])), ("n_documents", 1 << 62)):
            if type(manifest[key]) is not int or not 0 <= manifest[key] <= most:
                raise SHARDS.damaged(folder / SHARDS.file, f"{key} is {manifest[key]!r}")
        return cls(folder, manifest)

    def __len__(self) -> int:
        return int(self.manifest["n_documents"])

    def __iter__(self) -> Iterator[AnnotatedDocument]:
        for path in self.paths:
            yield from read_shard(path)


def read_shard(path: Path) -> Iterator[AnnotatedDocument]:
    """Read the documents of one shard, in batches."""
    try:
        with pq.ParquetFile(path) as file:
            if not file.schema_arrow.equals(SCHEMA):
                raise StoreError(f"{path}: has other columns than annotated text; {SHARDS.remedy}")
            check_expansion(path, file)
            for batch in file.iter_batches(_READ_ROWS):
                for row in batch.to_pylist():
                    spans = tuple(LinkedSpan(**span) for span in row["mentions"])
                    yield AnnotatedDocument(row["id"], row["text"], spans, row["language"])
    except (OSError, pa.ArrowException, ValueError, TypeError) as error:  # or it is not UTF-8
        raise SHARDS.damaged(path, error) from error
