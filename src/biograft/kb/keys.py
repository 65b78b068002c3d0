"""64-bit hashes of ids and of normalised names, the same for one text and for millions.

The hash of a text is the sum of its UTF-8 bytes taken eight at a time, each word mixed with a
weight of its position; the length is added and the sum mixed once more (splitmix64). This
definition is part of the store's format: no library can change it, and numpy or a compiled loop
computes it for a whole column. Names are hashed by their normalised key. ASCII text, nearly all of
UMLS, is normalised on its bytes without making Python strings; other text goes through
``text.normalise``. Every hit is compared with the text itself, so collisions do no harm.

An index is a sorted array of 64-bit entries: the upper half of the hash, then the row.
"""

from __future__ import annotations

import bisect
import itertools
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from biograft.arrays import Bytes, Flags, Ints, Uint64s
from biograft.compute import njit
from biograft.kb.names import APOSTROPHES, normalise

if TYPE_CHECKING:
    import pyarrow as pa


_CHUNK_BYTES = 1 << 18
_WORD = 8
_MASK = (1 << 64) - 1
_UPPER, _LOWER = 0xFFFFFFFF00000000, 0xFFFFFFFF
_SPACE = 32
_COLON, _ZERO, _NINE = b":09"
_STEP, _FIRST, _SECOND = 0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB
"""The constants of splitmix64."""


def hash_text(text: str) -> int:
    """Hash one text in plain Python, which is faster than numpy for so few bytes."""
    data = text.encode(errors="surrogatepass")
    total, step = len(data), 0
    for start in range(0, total, _WORD):
        step = (step + _STEP) & _MASK
        x = int.from_bytes(data[start : start + _WORD], "little") ^ step
        x = ((x ^ (x >> 30)) * _FIRST) & _MASK  # _mix_one, without a call for each word
        x = ((x ^ (x >> 27)) * _SECOND) & _MASK
        total += x ^ (x >> 31)
    return _mix_one(total & _MASK)


def _mix_one(x: int) -> int:
    """The finalizer of splitmix64: every bit of the input reaches every bit of the output."""
    x = ((x ^ (x >> 30)) * _FIRST) & _MASK
    x = ((x ^ (x >> 27)) * _SECOND) & _MASK
    return x ^ (x >> 31)


def _mix(x: Uint64s) -> Uint64s:
    """Mix a whole array, in place."""
    x ^= x >> np.uint64(30)
    x *= np.uint64(_FIRST)
    x ^= x >> np.uint64(27)
    x *= np.uint64(_SECOND)
    x ^= x >> np.uint64(31)
    return x


def hash_texts(texts: pa.Array) -> Uint64s:
    """Hash a column of texts."""
    return _by_chunks(texts, _hash_segments)


def hash_names(names: pa.Array) -> Uint64s:
    """Hash a column of names by their normalised keys."""
    return _by_chunks(names, _hash_names_chunk)


def text_buffers(column: pa.Array) -> tuple[Ints, Bytes]:
    """Return the offsets and the bytes of a large_string array, without a copy."""
    _, offsets, data = column.buffers()
    positions = np.frombuffer(offsets, np.int64)[column.offset : column.offset + len(column) + 1]
    return positions, np.frombuffer(data or b"", np.uint8)


def _by_chunks(column: pa.Array, hash_chunk: Any) -> Uint64s:
    """Hash a column in chunks of a few megabytes, on two threads (numpy releases the lock)."""
    if not len(column):
        return np.zeros(0, np.uint64)
    offsets, data = text_buffers(column)
    cuts = np.searchsorted(offsets, np.arange(offsets[0], offsets[-1], _CHUNK_BYTES)[1:])
    edges = np.unique(np.concatenate([[0], cuts, [len(column)]]))
    chunks = [
        (data[offsets[a] : offsets[b]], offsets[a : b + 1] - offsets[a])
        for a, b in itertools.pairwise(edges)
    ]
    with ThreadPoolExecutor(2) as pool:
        return np.concatenate(list(pool.map(lambda chunk: hash_chunk(*chunk), chunks)))


def _hash_segments(data: Bytes, offsets: Ints) -> Uint64s:
    """Hash the texts between offsets: mix all words, then sum over the words of each text."""
    lengths = np.diff(offsets)
    n_words = -(-lengths // _WORD)
    first_word = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(n_words, out=first_word[1:])
    padded = np.zeros(int(first_word[-1]) * _WORD, np.uint8)
    shift = (first_word[:-1] * _WORD - offsets[:-1]).astype(np.int32)
    targets = np.arange(len(data), dtype=np.int32)
    targets += np.repeat(shift, lengths)
    padded[targets] = data
    words = padded.view(np.dtype("<u8"))
    positions = np.arange(1, len(words) + 1, dtype=np.uint64)
    positions -= np.repeat(first_word[:-1].astype(np.uint64), n_words)
    running = np.zeros(len(words) + 1, np.uint64)
    np.cumsum(_mix(words ^ (positions * np.uint64(_STEP))), out=running[1:])
    sums = running[first_word[1:]] - running[first_word[:-1]]
    return _mix(sums + lengths.astype(np.uint64))


@cache
def _ascii_table() -> Bytes:
    """Map ASCII bytes to key bytes: lower case, space for punctuation, 0 for removed bytes."""
    table = np.zeros(256, np.uint8)
    for code in range(128):
        char = chr(code)
        if char in APOSTROPHES:
            table[code] = 0
        else:
            table[code] = ord(char.lower()) if char.isalnum() else _SPACE
    return table


def _hash_names_chunk(data: Bytes, offsets: Ints) -> Uint64s:
    """Hash ASCII names on their bytes, and the few others one by one."""
    hashes: Uint64s
    hashes, special = _hash_ascii_names(data, offsets, _ascii_table())
    raw = data.tobytes()
    for k in np.flatnonzero(special):
        text = raw[offsets[k] : offsets[k + 1]].decode()
        hashes[k] = hash_text(normalise(text))
    return hashes


def _hash_ascii_names_by_numpy(data: Bytes, offsets: Ints, table: Bytes) -> tuple[Uint64s, Flags]:
    key_data, key_offsets = _ascii_keys(data, offsets)
    hashes = _hash_segments(key_data, key_offsets)
    special = np.diff(key_offsets) == 0
    non_ascii = np.flatnonzero(data >= 128)
    special[np.searchsorted(offsets, non_ascii, "right") - 1] = True
    return hashes, special


@njit(work=lambda data, *_: len(data) // 500, plain=_hash_ascii_names_by_numpy)
def _hash_ascii_names(data: Bytes, offsets: Ints, table: Bytes) -> tuple[Uint64s, Flags]:
    """Hash the keys of names; also mark those that are not ASCII, or that have no key."""
    n = len(offsets) - 1
    hashes, special = np.zeros(n, np.uint64), np.zeros(n, np.bool_)
    for k in range(n):
        total, step, word = np.uint64(0), np.uint64(0), np.uint64(0)
        length, spaces = 0, 0
        for at in range(offsets[k], offsets[k + 1]):
            if data[at] >= 128:
                length = 0
                break
            byte = table[data[at]]
            if byte == 0:
                continue
            if byte == _SPACE:
                spaces = min(length, 1)  # none at the beginning, one between words
                continue
            for each in range(spaces + 1):
                part = np.uint64(byte if each == spaces else _SPACE)
                word |= part << np.uint64(8 * (length % _WORD))
                length += 1
                if length % _WORD == 0:
                    step += np.uint64(_STEP)
                    total += _mix_word(word ^ step)
                    word = np.uint64(0)
            spaces = 0
        if length % _WORD:
            step += np.uint64(_STEP)
            total += _mix_word(word ^ step)
        special[k] = length == 0
        hashes[k] = _mix_word(total + np.uint64(length))
    return hashes, special


@njit()
def _mix_word(x: Any) -> Any:
    """``_mix_one`` for compiled loops."""
    mixed = np.uint64(x)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(_FIRST)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(_SECOND)
    return mixed ^ (mixed >> np.uint64(31))


def _ascii_keys(data: Bytes, offsets: Ints) -> tuple[Bytes, Ints]:
    """Normalise ASCII texts on their bytes: map, drop apostrophes, collapse and trim spaces."""
    mapped = _ascii_table()[data]
    removed = mapped == 0
    if removed.any():
        mapped, offsets = _compress(mapped, ~removed, offsets)
    filled_bytes = mapped != _SPACE
    # keep the last space of a run unless the text ends there
    keep = filled_bytes.copy()
    keep[:-1] |= filled_bytes[1:]
    filled = np.diff(offsets) > 0
    last = offsets[1:][filled] - 1
    keep[last] = filled_bytes[last]
    # remove leading spaces, one position of every text at a time
    leading, ends = offsets[:-1][filled], last
    while len(leading):
        whitespace = ~filled_bytes[leading]
        leading, ends = leading[whitespace], ends[whitespace]
        keep[leading] = False
        on = leading < ends
        leading, ends = leading[on] + 1, ends[on]
    return _compress(mapped, keep, offsets)


def _compress(data: Bytes, keep: Flags, offsets: Ints) -> tuple[Bytes, Ints]:
    n_kept = np.zeros(len(data) + 1, np.int32)
    np.cumsum(keep, out=n_kept[1:])
    return data[keep], n_kept[offsets].astype(np.int64)


def hash_shapes(data: Bytes, offsets: Ints) -> Uint64s:
    """Hash the shapes of ids: the prefix with its colon, else the id with zeros for digits.

    Args:
        data: Bytes of the ids.
        offsets: Ends of the ids in them, after a zero.
    """
    colons = np.flatnonzero(data == _COLON)
    first = np.append(colons, len(data))[np.searchsorted(colons, offsets[:-1])]
    is_bare = first >= offsets[1:]
    lengths = np.diff(offsets)
    keep = np.arange(len(data)) <= np.repeat(np.where(is_bare, len(data), first), lengths)
    is_digit = (data >= _ZERO) & (data <= _NINE) & np.repeat(is_bare, lengths)
    return _hash_segments(*_compress(np.where(is_digit, np.uint8(_ZERO), data), keep, offsets))


def make_index(hashes: Uint64s) -> Uint64s:
    """Sort the upper halves of hashes together with their rows."""
    rows = np.arange(len(hashes), dtype=np.uint64)
    entries = (hashes & np.uint64(_UPPER)) | rows
    entries.sort()
    return entries


def first_entries(index: Uint64s, keys: Sequence[str]) -> list[int]:
    """Return the first row of an index for each of many keys; any row if it has none.

    Args:
        index: Hashes with their rows, sorted.
        keys: Texts.
    """
    parts = [key.encode(errors="surrogatepass") for key in keys]
    offsets = np.cumsum([0, *map(len, parts)])
    hashes = _hash_segments(np.frombuffer(b"".join(parts), np.uint8), offsets)
    at = np.searchsorted(index, hashes & np.uint64(_UPPER))
    rows: list[int] = (index.take(at, mode="clip") & np.uint64(_LOWER)).tolist()
    return rows


def find_entries(index: Sequence[int], key: int) -> list[int]:
    """Return the rows in an index whose hash may be ``key``, in order.

    Hashes are spread evenly, so the search starts around the expected position: fewer steps, and
    all within few pages of a memory-mapped file.

    Args:
        index: Hashes, ascending.
        key: Hash to look for.
    """
    upper, n = key >> 32, len(index)
    low, expected, reach = upper << 32, (upper * n) >> 32, 2 << ((n.bit_length() + 1) >> 1)
    first, last = max(expected - reach, 0), min(expected + reach, n)
    at = bisect.bisect_left(index, low, first, last)
    if at in (first, last):
        at = bisect.bisect_left(index, low)
    rows = []
    while at < n and (entry := index[at]) >> 32 == upper:
        rows.append(entry & _LOWER)
        at += 1
    return rows
