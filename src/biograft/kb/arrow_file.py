"""The columns of an Arrow IPC file, memory-mapped without pyarrow, which takes long to import.

The parts of the format that a store has are read: whole numbers, and texts (``large_string``),
none of them missing, uncompressed. The layout of the metadata (flatbuffers: tables with their
fields by number) is that of ``File.fbs``, ``Schema.fbs`` and ``Message.fbs`` of the Arrow project.
Every offset is checked against the file; what does not fit is a ``ValueError``.
"""

from __future__ import annotations

import mmap
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from biograft.arrays import Array, Ints

TEXT = "large_string"

_MAGIC = b"ARROW1"
_CONTINUED = 0xFFFFFFFF
_INT, _LARGE_TEXT = 2, 20
"""Types of columns, and the kind of message that holds a part of a table."""
_RECORD_BATCH = 3
_MAX_COLUMNS = 1000


class TextChunk(NamedTuple):
    """The texts of a part of a column: where each begins in the bytes, and where the last ends."""

    offsets: Ints
    data: memoryview


class ArrowFile(NamedTuple):
    """The columns of a file, by name: their types, and their parts as they lie in the file.

    There are no parts where the type of a column is unknown, which is empty then.
    """

    types: dict[str, str]
    chunks: dict[str, list[Array | TextChunk]]
    n_rows: int


def open_arrow(path: Path) -> ArrowFile:
    """Map the columns of a file; ``OSError`` or ``ValueError`` if it cannot be read."""
    with path.open("rb") as file:
        data = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
    try:
        return _read(data)
    except (struct.error, IndexError, UnicodeDecodeError) as error:
        raise ValueError(f"not an Arrow file: {error}") from error


def _read(data: memoryview) -> ArrowFile:
    if bytes(data[: len(_MAGIC)]) != _MAGIC or bytes(data[-len(_MAGIC) :]) != _MAGIC:
        raise ValueError("not an Arrow file, or not all of it")
    behind = len(data) - len(_MAGIC) - 4
    size = _number("<i", data, behind)
    footer = _root(_part(data, behind - size, size))
    types = dict(_columns(footer.table(1)))
    chunks: dict[str, list[Array | TextChunk]] = {name: [] for name in types}
    n_rows = 0
    if not all(types.values()):
        return ArrowFile(types, chunks, n_rows)
    for block in footer.structs(3, "<qi4xq"):
        n, buffers = _buffers(data, *block)
        n_rows += n
        for name, kind in types.items():
            chunks[name].append(_chunk(kind, n, buffers))
        if next(buffers, None) is not None:
            raise ValueError("it has buffers of no column")
    return ArrowFile(types, chunks, n_rows)


class _Table(NamedTuple):
    """A table of flatbuffers: a position in the bytes of a message."""

    data: memoryview
    at: int

    def field(self, number: int) -> int | None:
        """Return where a field is; None if the table lacks it."""
        entries = self.at - _number("<i", self.data, self.at)
        entry = 4 + 2 * number
        if entry >= _number("<H", self.data, entries):
            return None
        offset = _number("<H", self.data, entries + entry)
        return self.at + offset if offset else None

    def value(self, number: int, form: str) -> int:
        """Return a number; 0 is not written."""
        at = self.field(number)
        return 0 if at is None else _number(form, self.data, at)

    def table(self, number: int) -> _Table:
        """Return a table within."""
        return _Table(self.data, self._target(number))

    def text(self, number: int) -> str:
        """Return a text."""
        at = self._target(number)
        return str(_part(self.data, at + 4, _number("<I", self.data, at)), "utf-8")

    def tables(self, number: int) -> Iterator[_Table]:
        """Yield the tables of a list."""
        at = self._target(number)
        for row in range(min(_number("<I", self.data, at), _MAX_COLUMNS)):
            entry = at + 4 + 4 * row
            yield _Table(self.data, entry + _number("<I", self.data, entry))

    def structs(self, number: int, form: str) -> list[tuple[Any, ...]]:
        """Return the tuples of numbers of a list."""
        if self.field(number) is None:
            return []
        at = self._target(number)
        size = struct.calcsize(form) * _number("<I", self.data, at)
        return list(struct.iter_unpack(form, _part(self.data, at + 4, size)))

    def _target(self, number: int) -> int:
        at = self.field(number)
        if at is None:
            raise ValueError("its description is not complete")
        return at + _number("<I", self.data, at)


def _root(data: memoryview) -> _Table:
    return _Table(data, _number("<I", data, 0))


def _number(form: str, data: memoryview, at: int) -> int:
    if at < 0:  # struct would count from the end
        raise ValueError("a position lies before its beginning")
    number: int = struct.unpack_from(form, data, at)[0]
    return number


def _part(data: memoryview, start: int, size: int) -> memoryview:
    if not 0 <= start <= start + size <= len(data):
        raise ValueError(f"a part of {size} bytes at {start} is not within its {len(data)} bytes")
    return data[start : start + size]


def _columns(schema: _Table) -> Iterator[tuple[str, str]]:
    """Yield the name and type of each column; the type of one that stores lack is empty."""
    if schema.value(0, "<h"):
        raise ValueError("its numbers have the order of bytes of another processor")
    for field in schema.tables(1):
        kind, name = field.value(2, "<B"), field.text(0)
        if kind == _INT:
            form = field.table(3)
            sign = "" if form.value(1, "<B") else "u"
            bits = form.value(0, "<i")
            yield name, f"{sign}int{bits}" if bits in (8, 16, 32, 64) else ""
        else:
            yield name, TEXT if kind == _LARGE_TEXT else ""


def _buffers(
    data: memoryview, start: int, size: int, body: int
) -> tuple[int, Iterator[memoryview]]:
    """Return the number of rows in a part of the table, and its buffers in their order."""
    head = _part(data, start, size)
    before = 8 if _number("<I", head, 0) == _CONTINUED else 4
    message = _root(head[before:])
    if message.value(1, "<B") != _RECORD_BATCH:
        raise ValueError("a part of it is no part of a table")
    batch = message.table(2)
    if batch.field(3) is not None:
        raise ValueError("it is compressed")
    n_rows = batch.value(0, "<q")
    for length, n_missing in batch.structs(1, "<qq"):
        if length != n_rows or n_missing:
            raise ValueError(f"expected {n_rows} values, found {length}, {n_missing} missing")
    within = _part(data, start + size, body)
    parts = [_part(within, at, length) for at, length in batch.structs(2, "<qq")]
    return n_rows, iter(parts)


def _chunk(kind: str, n_rows: int, buffers: Iterator[memoryview]) -> Array | TextChunk:
    """Return a part of a column."""
    next(buffers, None)  # which values are missing: none
    first, form = next(buffers, memoryview(b"")), np.dtype(kind if kind != TEXT else np.int64)
    n = n_rows + 1 if kind == TEXT else n_rows
    if n < 0 or len(first) < n * form.itemsize:
        raise ValueError(f"expected {n} numbers, found {len(first)} bytes")
    numbers = np.frombuffer(first, form, n)
    if not numbers.flags.aligned:
        raise ValueError("its numbers do not lie at multiples of their size")
    return TextChunk(numbers, next(buffers, memoryview(b""))) if kind == TEXT else numbers
