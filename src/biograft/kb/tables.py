"""Storage format of a knowledge base: its tables and columns, written and memory-mapped.

A knowledge base is a folder of Arrow IPC files (any Arrow tool opens them) and
``manifest.json``. Concepts, names, languages, relations and so on are integer codes inside; the
manifest maps codes to labels under ``vocabularies``.

==================  =================================================================
``concepts.arrow``  a row a concept: ``id`` and, for each table below that is grouped by
                    concept, ``<table>_end``: the end of the concept's rows there (they begin
                    at the end of the previous concept's rows)
``names``           ``concept, text, language, kind, source``; the preferred name first
``definitions``     ``concept, text, language, source``
``types``           ``concept, type``
``ids``             ``concept, id, kind``: all ids but the primary one
``relations``       ``head, relation, tail, source``, grouped by head
``incoming``        ``relation_row``: rows of ``relations``, grouped by tail
``names_index``     ``entry``: half of the hash of a normalised name, and its row; sorted
``ids_index``       ``entry``: the same for canonical ids; rows of ``concepts``, then of ``ids``
==================  =================================================================
"""

from __future__ import annotations

import bisect
import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import numpy.typing as npt

from biograft.arrays import Array, Ints
from biograft.artifacts import ArtifactKind, check_ends
from biograft.errors import StoreError, import_extra
from biograft.kb.arrow_file import TEXT, TextChunk, open_arrow
from biograft.kb.records import IdKind, NameKind

if TYPE_CHECKING:  # it is slow to import, and only builds and whole tables need it
    import pyarrow as pa

STORE = ArtifactKind(
    format="biograft-kb",
    version=1,
    called="knowledge base",
    remedy="build the store again with `biograft kb build`",
    absent="build one with `biograft kb build`",
)

SCHEMAS: dict[str, dict[str, str]] = {
    "names": {
        "concept": "uint32",
        "text": TEXT,
        "language": "uint16",
        "kind": "uint8",
        "source": "uint16",
    },
    "definitions": {"concept": "uint32", "text": TEXT, "language": "uint16", "source": "uint16"},
    "types": {"concept": "uint32", "type": "uint32"},
    "ids": {"concept": "uint32", "id": TEXT, "kind": "uint8"},
    "relations": {"head": "uint32", "relation": "uint16", "tail": "uint32", "source": "uint16"},
    "incoming": {"relation_row": "uint32"},
    "names_index": {"entry": "uint64"},
    "ids_index": {"entry": "uint64"},
}
"""The columns of each table, with their Arrow types."""

GROUPED = ("names", "definitions", "types", "ids", "relations", "incoming")
"""Tables whose rows are grouped by concept, with their ends in ``concepts``."""

SCHEMAS["concepts"] = {"id": TEXT, **{f"{table}_end": "uint32" for table in GROUPED}}

NAME_KINDS = tuple(NameKind)
ID_KINDS = tuple(IdKind)
VOCABULARIES = ("languages", "sources", "types", "relations")


def file_name(table: str) -> str:
    """Return the file name of a table."""
    return f"{table}.arrow"


class TableWriter:
    """Writes one table, batch after batch.

    Args:
        folder: Folder of the store.
        table: Name of the table.
    """

    def __init__(self, folder: Path, table: str) -> None:
        import pyarrow as pa

        columns = SCHEMAS[table].items()
        self.schema = pa.schema([(name, pa.type_for_alias(kind)) for name, kind in columns])
        self._sink = pa.OSFile(str(folder / file_name(table)), "wb")
        self._writer = pa.ipc.new_file(self._sink, self.schema)

    def write(self, columns: dict[str, Any]) -> None:
        """Append a batch; columns are Arrow arrays, polars series or numpy arrays."""
        import pyarrow as pa

        arrays = [_to_arrow(columns[field.name], field.type) for field in self.schema]
        batch = pa.record_batch(arrays, schema=self.schema)
        if batch.num_rows:
            self._writer.write_batch(batch)

    def __enter__(self) -> TableWriter:
        return self

    def __exit__(self, *error: object) -> None:
        self._writer.close()
        self._sink.close()


def _to_arrow(column: Any, kind: pa.DataType) -> pa.Array:
    import pyarrow as pa

    if not isinstance(column, pa.Array | pa.ChunkedArray | np.ndarray):
        import polars as pl  # only builds pass series, and they have polars loaded

        column = column.rechunk().to_arrow(compat_level=pl.CompatLevel.oldest())
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    if not isinstance(column, pa.Array):  # ``pa.array`` would import pandas, a second's work
        numbers = np.ascontiguousarray(column, str(kind))
        return pa.Array.from_buffers(kind, len(numbers), [None, pa.py_buffer(numbers)])
    return column if column.type == kind else column.cast(kind)


_READ_ROWS = 1 << 16
"""Texts whose positions are read at once."""


def view(numbers: Any) -> memoryview:
    """View an array for reading single values as Python integers."""
    return memoryview(numbers)


class NumberColumn:
    """A column of numbers in a memory-mapped table."""

    def __init__(self, chunks: list[Array]) -> None:
        self._chunks = chunks or [np.zeros(0, np.uint32)]
        self._views = [view(chunk) for chunk in self._chunks]
        self._starts = _starts(self._chunks)

    def __len__(self) -> int:
        return self._starts[-1] + len(self._chunks[-1])

    def __getitem__(self, row: int) -> int:
        chunk = bisect.bisect_right(self._starts, row) - 1
        return self._views[chunk][row - self._starts[chunk]]

    @property
    def values(self) -> Any:
        """The column for reading single rows, as Python integers."""
        return self._views[0] if len(self._views) == 1 else self

    def slice(self, start: int, end: int) -> Array:
        """Return some rows, without a copy if they lie in one chunk.

        Args:
            start: First row.
            end: Row after the last.
        """
        chunk = bisect.bisect_right(self._starts, start) - 1
        first = self._starts[chunk]
        if end - first <= len(self._chunks[chunk]):
            return self._chunks[chunk][start - first : end - first]
        return self.all()[start:end]

    def take(self, rows: Array) -> Array:
        """Return the values of some rows."""
        if len(self._chunks) == 1:
            return np.asarray(self._chunks[0][rows])
        found = np.empty(len(rows), self._chunks[0].dtype)
        chunks = np.searchsorted(self._starts, rows, "right") - 1
        for chunk, values in enumerate(self._chunks):
            here = chunks == chunk
            found[here] = values[rows[here] - self._starts[chunk]]
        return found

    def all(self) -> Array:
        """Return the whole column as one array (a copy if it is in several chunks)."""
        return self._chunks[0] if len(self._chunks) == 1 else np.concatenate(self._chunks)


def first_of_each(values: Array, n: int) -> npt.NDArray[np.intp]:
    """Return the indices of the first ``n`` occurrences of each value, in order.

    Args:
        values: Values.
        n: Number of occurrences.
    """
    order = np.argsort(values, kind="stable")
    starts = np.flatnonzero(np.diff(values[order], prepend=-1))
    sizes = np.diff(starts, append=len(values))
    rank = np.arange(len(values)) - np.repeat(starts, sizes)
    return np.sort(order[rank < n])


class TextColumn:
    """A column of texts in a memory-mapped table."""

    def __init__(self, chunks: list[TextChunk]) -> None:
        self.chunks = chunks or [TextChunk(np.zeros(1, np.int64), memoryview(b""))]
        self._views = [(view(offsets), data) for offsets, data in self.chunks]
        self._starts = _starts([offsets[:-1] for offsets, _ in self.chunks])

    def __len__(self) -> int:
        return self._starts[-1] + len(self.chunks[-1].offsets) - 1

    def __getitem__(self, row: int) -> str:
        chunk = bisect.bisect_right(self._starts, row) - 1
        offsets, data = self._views[chunk]
        position = row - self._starts[chunk]
        try:
            return str(data[offsets[position] : offsets[position + 1]], "utf-8")
        except (IndexError, UnicodeDecodeError) as error:
            raise StoreError(
                f"row {row} of a table of the knowledge base cannot be read ({error}); it is "
                "damaged, build the store again"
            ) from error

    def __iter__(self) -> Iterator[str]:
        for offsets, data in self.chunks:
            for first in range(0, len(offsets) - 1, _READ_ROWS):
                ends = offsets[first : first + _READ_ROWS + 1].tolist()
                for start, end in itertools.pairwise(ends):
                    yield str(data[start:end], "utf-8")

    def take(self, rows: Ints) -> TextChunk:
        """Return some texts as one chunk, in ascending order of rows; neighbours are not copied."""
        cuts = np.searchsorted(rows, [*self._starts[1:], len(self)])
        parts = []
        for first, last, start, chunk in zip(
            [0, *cuts[:-1]], cuts, self._starts, self.chunks, strict=True
        ):
            if last > first:
                parts.append(_take(chunk, rows[first:last] - start))
        if len(parts) == 1:
            return parts[0]
        ends = [np.zeros(1, np.int64), *(np.diff(offsets) for offsets, _ in parts)]
        own = [data[int(offsets[0]) : int(offsets[-1])] for offsets, data in parts]
        return TextChunk(np.cumsum(np.concatenate(ends)), memoryview(b"".join(own)))


def _take(chunk: TextChunk, rows: Ints) -> TextChunk:
    """Return the texts of some rows of a chunk, which ascend."""
    first, last = int(rows[0]), int(rows[-1])
    if last - first == len(rows) - 1:
        return TextChunk(chunk.offsets[first : last + 2], chunk.data)
    starts = chunk.offsets[rows]
    ends = np.zeros(len(rows) + 1, np.int64)
    lengths = chunk.offsets[rows + 1] - starts
    np.cumsum(lengths, out=ends[1:])
    positions = np.arange(ends[-1]) + np.repeat(starts - ends[:-1], lengths)
    return TextChunk(ends, memoryview(np.frombuffer(chunk.data, np.uint8)[positions]))


def _starts(chunks: list[Any]) -> list[int]:
    """Return the row at which each chunk begins."""
    return [0, *itertools.accumulate(len(chunk) for chunk in chunks[:-1])]


class Table:
    """One memory-mapped table of a store.

    Args:
        folder: Folder of the store.
        name: Name of the table.
    """

    def __init__(self, folder: Path, name: str) -> None:
        self.path = folder / file_name(name)
        try:
            self._file = open_arrow(self.path)
        except (OSError, ValueError) as error:
            raise StoreError(
                f"{self.path}: missing or damaged ({error}); build the store again"
            ) from error
        if self._file.types != SCHEMAS[name]:
            raise StoreError(f"{self.path}: unexpected columns; build the store again")
        self.n_rows = self._file.n_rows
        self._is_checked = False

    def numbers(self, column: str) -> NumberColumn:
        """Return a column of numbers."""
        return NumberColumn(cast("list[Array]", self._file.chunks[column]))

    def texts(self, column: str) -> TextColumn:
        """Return a column of texts."""
        return TextColumn(cast("list[TextChunk]", self._file.chunks[column]))

    def checked_texts(self, column: str) -> TextColumn:
        """Return a column of texts, all of them within their file."""
        self._check_texts()
        return self.texts(column)

    def _check_texts(self) -> None:
        """Refuse texts out of their file, which Arrow would read all the same."""
        columns = [] if self._is_checked else self._file.types.items()
        for column, kind in columns:
            for offsets, data in self.texts(column).chunks if kind == TEXT else ():
                first, last = max(int(offsets[0]), 0), min(int(offsets[-1]), len(data))
                try:
                    check_ends(column, offsets, last, first=first)
                except ValueError as error:
                    raise STORE.damaged(self.path, error) from error
        self._is_checked = True

    def to_arrow(self) -> pa.Table:
        """Return the whole table as an Arrow table, still memory-mapped."""
        arrow = import_extra("pyarrow", "a table of Arrow")
        self._check_texts()
        try:
            with arrow.memory_map(str(self.path)) as source:
                whole: pa.Table = arrow.ipc.open_file(source).read_all()
                return whole
        except (OSError, arrow.ArrowException) as error:
            raise STORE.damaged(self.path, error) from error
