"""Write and read the tables of a store: Arrow IPC files, memory-mapped when read."""

from __future__ import annotations

import bisect
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from biograft.errors import StoreError
from biograft.kb.layout import SCHEMAS, file_name


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
        import polars as pl  # only who builds a store has series, and has polars loaded

        column = column.rechunk().to_arrow(compat_level=pl.CompatLevel.oldest())
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    if not isinstance(column, pa.Array):
        return pa.array(column, kind)
    return column if column.type == kind else column.cast(kind)


class NumberColumn:
    """A column of numbers in a memory-mapped table."""

    def __init__(self, chunks: list[npt.NDArray[Any]]) -> None:
        self._chunks = chunks or [np.zeros(0, np.uint32)]
        self._starts = _starts(self._chunks)

    def __len__(self) -> int:
        return self._starts[-1] + len(self._chunks[-1])

    def __getitem__(self, row: int) -> int:
        chunk = bisect.bisect_right(self._starts, row) - 1
        return int(self._chunks[chunk][row - self._starts[chunk]])

    def slice(self, start: int, end: int) -> npt.NDArray[Any]:
        """Give some rows, without a copy where they lie in one chunk."""
        chunk = bisect.bisect_right(self._starts, start) - 1
        first = self._starts[chunk]
        if end - first <= len(self._chunks[chunk]):
            return self._chunks[chunk][start - first : end - first]
        return self.all()[start:end]

    def all(self) -> npt.NDArray[Any]:
        """Give the whole column as one array (a copy if it is in several chunks)."""
        return self._chunks[0] if len(self._chunks) == 1 else np.concatenate(self._chunks)


class TextColumn:
    """A column of texts in a memory-mapped table."""

    def __init__(self, arrays: list[pa.Array]) -> None:
        self._chunks = [_text_chunk(array) for array in arrays]
        self._starts = _starts([offsets[:-1] for offsets, _ in self._chunks]) or [0]

    def __getitem__(self, row: int) -> str:
        return self.raw(row).decode()

    def raw(self, row: int) -> bytes:
        """Give the UTF-8 bytes of one row."""
        chunk = bisect.bisect_right(self._starts, row) - 1
        offsets, data = self._chunks[chunk]
        place = row - self._starts[chunk]
        return bytes(data[offsets[place] : offsets[place + 1]])


def _text_chunk(array: pa.Array) -> tuple[npt.NDArray[np.int64], memoryview]:
    _, offsets, data = array.buffers()
    places = np.frombuffer(offsets, np.int64)[array.offset : array.offset + len(array) + 1]
    return places, memoryview(data or b"")


def _starts(chunks: list[Any]) -> list[int]:
    total, starts = 0, []
    for chunk in chunks:
        starts.append(total)
        total += len(chunk)
    return starts


class Table:
    """One memory-mapped table of a store."""

    def __init__(self, folder: Path, name: str) -> None:
        path = folder / file_name(name)
        try:
            self._file = pa.ipc.open_file(pa.memory_map(str(path)))
            self._batches = [self._file.get_batch(k) for k in range(self._file.num_record_batches)]
        except (OSError, pa.ArrowException) as error:
            raise StoreError(
                f"{path}: missing or damaged ({error}); build the store again"
            ) from error
        if self._file.schema != SCHEMAS[name]:
            raise StoreError(f"{path}: unexpected columns; build the store again")
        self.n_rows: int = sum(batch.num_rows for batch in self._batches)

    def numbers(self, column: str) -> NumberColumn:
        """See a column of numbers."""
        return NumberColumn([batch.column(column).to_numpy() for batch in self._batches])

    def texts(self, column: str) -> TextColumn:
        """See a column of texts."""
        return TextColumn([batch.column(column) for batch in self._batches])

    def to_arrow(self) -> pa.Table:
        """See the whole table through Arrow, still memory-mapped."""
        return pa.Table.from_batches(self._batches, self._file.schema)
