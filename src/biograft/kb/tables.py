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
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from biograft.arrays import check_ends
from biograft.artifacts import ArtifactKind
from biograft.errors import StoreError
from biograft.records import IdKind, NameKind

STORE = ArtifactKind(
    format="biograft-kb",
    version=1,
    called="knowledge base",
    remedy="build the store again",
    absent="build one with `biograft kb build`",
)

LARGE_TEXT = pa.large_string()

SCHEMAS: dict[str, pa.Schema] = {
    "names": pa.schema(
        [
            ("concept", pa.uint32()),
            ("text", LARGE_TEXT),
            ("language", pa.uint16()),
            ("kind", pa.uint8()),
            ("source", pa.uint16()),
        ]
    ),
    "definitions": pa.schema(
        [
            ("concept", pa.uint32()),
            ("text", LARGE_TEXT),
            ("language", pa.uint16()),
            ("source", pa.uint16()),
        ]
    ),
    "types": pa.schema([("concept", pa.uint32()), ("type", pa.uint32())]),
    "ids": pa.schema([("concept", pa.uint32()), ("id", LARGE_TEXT), ("kind", pa.uint8())]),
    "relations": pa.schema(
        [
            ("head", pa.uint32()),
            ("relation", pa.uint16()),
            ("tail", pa.uint32()),
            ("source", pa.uint16()),
        ]
    ),
    "incoming": pa.schema([("relation_row", pa.uint32())]),
    "names_index": pa.schema([("entry", pa.uint64())]),
    "ids_index": pa.schema([("entry", pa.uint64())]),
}

GROUPED = ("names", "definitions", "types", "ids", "relations", "incoming")
"""Tables whose rows are grouped by concept, with their ends in ``concepts``."""

SCHEMAS["concepts"] = pa.schema(
    [("id", LARGE_TEXT), *((f"{table}_end", pa.uint32()) for table in GROUPED)]
)

NAME_KINDS = tuple(NameKind)
ID_KINDS = tuple(IdKind)
VOCABULARIES = ("languages", "sources", "types", "relations")


def file_name(table: str) -> str:
    """Return the file name of a table."""
    return f"{table}.arrow"


class TableWriter:
    """Writes one table, batch after batch."""

    def __init__(self, folder: Path, table: str) -> None:
        self.table, self.schema = table, SCHEMAS[table]
        self.n_rows = 0
        self._sink = pa.OSFile(str(folder / file_name(table)), "wb")
        self._writer = pa.ipc.new_file(self._sink, self.schema)

    def write(self, columns: dict[str, Any]) -> None:
        """Append a batch; columns are Arrow arrays, polars series or numpy arrays."""
        arrays = [_to_arrow(columns[field.name], field.type) for field in self.schema]
        batch = pa.record_batch(arrays, schema=self.schema)
        if batch.num_rows:
            self._writer.write_batch(batch)
            self.n_rows += batch.num_rows

    def close(self) -> None:
        """Finish the file."""
        self._writer.close()
        self._sink.close()

    def __enter__(self) -> TableWriter:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def _to_arrow(column: Any, kind: pa.DataType) -> pa.Array:
    if not isinstance(column, pa.Array | pa.ChunkedArray | np.ndarray):
        import polars as pl  # only builds pass series, and they have polars loaded

        column = column.rechunk().to_arrow(compat_level=pl.CompatLevel.oldest())
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    if not isinstance(column, pa.Array):  # ``pa.array`` would import pandas, a second's work
        numbers = np.ascontiguousarray(column, str(kind))
        return pa.Array.from_buffers(kind, len(numbers), [None, pa.py_buffer(numbers)])
    return column if column.type == kind else column.cast(kind)


def view(numbers: Any) -> memoryview:
    """View an array for reading single values as Python integers."""
    return memoryview(numbers)


class NumberColumn:
    """A column of numbers in a memory-mapped table."""

    def __init__(self, chunks: list[npt.NDArray[Any]]) -> None:
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

    def slice(self, start: int, end: int) -> npt.NDArray[Any]:
        """Return some rows, without a copy if they lie in one chunk."""
        chunk = bisect.bisect_right(self._starts, start) - 1
        first = self._starts[chunk]
        if end - first <= len(self._chunks[chunk]):
            return self._chunks[chunk][start - first : end - first]
        return self.all()[start:end]

    def take(self, rows: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return the values of some rows."""
        if len(self._chunks) == 1:
            return np.asarray(self._chunks[0][rows])
        found = np.empty(len(rows), self._chunks[0].dtype)
        chunks = np.searchsorted(self._starts, rows, "right") - 1
        for chunk, values in enumerate(self._chunks):
            here = chunks == chunk
            found[here] = values[rows[here] - self._starts[chunk]]
        return found

    def all(self) -> npt.NDArray[Any]:
        """Return the whole column as one array (a copy if it is in several chunks)."""
        return self._chunks[0] if len(self._chunks) == 1 else np.concatenate(self._chunks)


def first_of_each(values: npt.NDArray[Any], n: int) -> npt.NDArray[np.intp]:
    """Return the indices of the first ``n`` occurrences of each value, in order."""
    order = np.argsort(values, kind="stable")
    starts = np.flatnonzero(np.diff(values[order], prepend=-1))
    sizes = np.diff(starts, append=len(values))
    rank = np.arange(len(values)) - np.repeat(starts, sizes)
    return np.sort(order[rank < n])


class TextColumn:
    """A column of texts in a memory-mapped table."""

    def __init__(self, arrays: list[pa.Array]) -> None:
        chunks = [_text_chunk(array) for array in arrays] or [(np.zeros(1, np.int64), _EMPTY)]
        self._chunks = [(view(offsets), data) for offsets, data in chunks]
        self._starts = _starts([offsets[:-1] for offsets, _ in self._chunks])

    def __getitem__(self, row: int) -> str:
        chunk = bisect.bisect_right(self._starts, row) - 1
        offsets, data = self._chunks[chunk]
        position = row - self._starts[chunk]
        return str(data[offsets[position] : offsets[position + 1]], "utf-8")


_EMPTY = memoryview(b"")


def _number_chunk(array: pa.Array) -> npt.NDArray[Any]:
    """Return the numbers of an array where they lie; Arrow's own ``to_numpy`` imports pandas."""
    _, data = array.buffers()
    if array.null_count:
        raise ValueError(f"expected numbers in all rows, found {array.null_count} without one")
    numbers = np.frombuffer(data or b"", np.dtype(str(array.type)))
    return numbers[array.offset : array.offset + len(array)]


def _text_chunk(array: pa.Array) -> tuple[npt.NDArray[np.int64], memoryview]:
    _, offsets, data = array.buffers()
    positions = np.frombuffer(offsets, np.int64)[array.offset : array.offset + len(array) + 1]
    return positions, memoryview(data or b"")


def _starts(chunks: list[Any]) -> list[int]:
    total, starts = 0, []
    for chunk in chunks:
        starts.append(total)
        total += len(chunk)
    return starts


class Table:
    """One memory-mapped table of a store."""

    def __init__(self, folder: Path, name: str) -> None:
        self.path = path = folder / file_name(name)
        try:
            self._file = pa.ipc.open_file(pa.memory_map(str(path)))
            self._batches = [self._file.get_batch(k) for k in range(self._file.num_record_batches)]
            for batch in self._batches:
                batch.validate()  # that its buffers are as long as it says
        except (OSError, pa.ArrowException) as error:
            raise StoreError(
                f"{path}: missing or damaged ({error}); build the store again"
            ) from error
        self._checked = False
        if self._file.schema != SCHEMAS[name]:
            raise StoreError(f"{path}: unexpected columns; build the store again")
        self.n_rows: int = sum(batch.num_rows for batch in self._batches)

    def numbers(self, column: str) -> NumberColumn:
        """Return a column of numbers."""
        return NumberColumn([_number_chunk(batch.column(column)) for batch in self._batches])

    def texts(self, column: str) -> TextColumn:
        """Return a column of texts."""
        return TextColumn([batch.column(column) for batch in self._batches])

    def _check_texts(self) -> None:
        """Refuse texts out of their file, which Arrow would read all the same."""
        for field in self._file.schema:
            if not pa.types.is_large_string(field.type):
                continue
            for batch in self._batches:
                offsets, data = _text_chunk(batch.column(field.name))
                first, last = max(int(offsets[0]), 0), min(int(offsets[-1]), len(data))
                try:
                    check_ends(field.name, offsets, last, first=first)
                except ValueError as error:
                    raise STORE.damaged(self.path, error) from error

    def to_arrow(self) -> pa.Table:
        """Return the whole table as an Arrow table, still memory-mapped."""
        if not self._checked:
            self._check_texts()
            self._checked = True
        return pa.Table.from_batches(self._batches, self._file.schema)
