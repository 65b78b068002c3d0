"""64-bit hashes of ids and of normalised names, the same for one text and for millions.

The hash of a text is a sum over its UTF-8 bytes, each times a fixed random weight of its
position, stirred once more (multilinear hashing). That definition is part of the store's
format; it needs no library whose hash may change, and numpy computes it for a whole column.
Names are hashed by their normalised key. Pure ASCII text, nearly all of UMLS, is normalised on
its bytes without a Python string ever being made; the rest goes through ``text.normalise``. A
hash only narrows: every hit is compared with the text itself.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from biograft.text import APOSTROPHES, normalise

U64 = npt.NDArray[np.uint64]
_CHUNK_BYTES = 4 << 20
_MAX_WEIGHTS = 1 << 16
_BLANK = 32
_MASK = (1 << 64) - 1


@cache
def _weights() -> U64:
    """One odd 64-bit weight a position (splitmix64); longer texts use them again."""
    return _stir(np.arange(1, _MAX_WEIGHTS + 1, dtype=np.uint64)) | np.uint64(1)


def _stir(x: U64) -> U64:
    """The finalizer of splitmix64: every bit of the input reaches every bit of the output."""
    x = (x + np.uint64(0x9E3779B97F4A7C15)).astype(np.uint64)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


def hash_text(text: str) -> int:
    """Hash one text; plain Python, since numpy's calls cost more than so few bytes."""
    weights = _weight_list()
    total = 0
    for position, byte in enumerate(text.encode()):
        total += weights[position % _MAX_WEIGHTS] * (byte + 1)
    return _stir_one(total & _MASK)


def hash_name(name: str) -> int:
    """Hash one name by its normalised key."""
    return hash_text(normalise(name))


def _stir_one(x: int) -> int:
    x = (x + 0x9E3779B97F4A7C15) & _MASK
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & _MASK
    return x ^ (x >> 31)


@cache
def _weight_list() -> list[int]:
    weights: list[int] = _weights().tolist()
    return weights


def hash_texts(texts: pa.Array) -> U64:
    """Hash a column of texts."""
    return _by_chunks(texts, _hash_segments)


def hash_names(names: pa.Array) -> U64:
    """Hash a column of names by their normalised keys."""
    return _by_chunks(names, _hash_names_chunk)


def text_buffers(column: pa.Array) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.uint8]]:
    """See a large_string array as its offsets and its bytes, without a copy."""
    _, offsets, data = column.buffers()
    places = np.frombuffer(offsets, np.int64)[column.offset : column.offset + len(column) + 1]
    return places, np.frombuffer(data or b"", np.uint8)


def _by_chunks(column: pa.Array, hash_chunk: Any) -> U64:
    """Hash a column in chunks of a few megabytes, on two threads (numpy releases the lock)."""
    if not len(column):
        return np.zeros(0, np.uint64)
    offsets, data = text_buffers(column)
    cuts = np.searchsorted(offsets, np.arange(offsets[0], offsets[-1], _CHUNK_BYTES)[1:])
    edges = np.unique(np.concatenate([[0], cuts, [len(column)]]))
    pieces = [
        (data[offsets[a] : offsets[b]], offsets[a : b + 1] - offsets[a])
        for a, b in zip(edges[:-1], edges[1:], strict=True)
    ]
    with ThreadPoolExecutor(2) as pool:
        return np.concatenate(list(pool.map(lambda piece: hash_chunk(*piece), pieces)))


def _hash_segments(data: npt.NDArray[np.uint8], offsets: npt.NDArray[np.int64]) -> U64:
    """Hash the texts between offsets: sums of weighted bytes as differences of one running sum."""
    starts = offsets[:-1]
    lengths = np.diff(offsets)
    positions = np.arange(len(data)) - np.repeat(starts, lengths)
    if len(lengths) and lengths.max() > _MAX_WEIGHTS:
        positions %= _MAX_WEIGHTS
    terms = _weights()[positions] * (data.astype(np.uint64) + np.uint64(1))
    running = np.zeros(len(data) + 1, np.uint64)
    np.cumsum(terms, out=running[1:])
    return _stir(running[offsets[1:]] - running[starts])


@cache
def _ascii_table() -> npt.NDArray[np.uint8]:
    """Each ASCII byte to its key byte: lower case, a blank for signs, 0 where it vanishes."""
    table = np.zeros(256, np.uint8)
    for code in range(128):
        char = chr(code)
        if char in APOSTROPHES:
            table[code] = 0
        else:
            table[code] = ord(char.lower()) if char.isalnum() else _BLANK
    return table


def _hash_names_chunk(data: npt.NDArray[np.uint8], offsets: npt.NDArray[np.int64]) -> U64:
    """Hash ASCII names by bytes, and the few others one by one."""
    key_data, key_offsets = _ascii_keys(data, offsets)
    hashes = _hash_segments(key_data, key_offsets)
    foreign = np.zeros(len(data) + 1, np.int64)
    np.cumsum(data >= 128, out=foreign[1:])
    special = (foreign[offsets[1:]] > foreign[offsets[:-1]]) | (np.diff(key_offsets) == 0)
    raw = data.tobytes()
    for k in np.flatnonzero(special):
        text = raw[offsets[k] : offsets[k + 1]].decode()
        hashes[k] = hash_text(normalise(text))
    return hashes


def _ascii_keys(
    data: npt.NDArray[np.uint8], offsets: npt.NDArray[np.int64]
) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64]]:
    """Normalise ASCII texts on their bytes: map, drop apostrophes, squeeze and trim blanks."""
    mapped = _ascii_table()[data]
    mapped, offsets = _compress(mapped, mapped != 0, offsets)
    solid = mapped != _BLANK
    n_solid = np.zeros(len(mapped) + 1, np.int32)
    np.cumsum(solid, out=n_solid[1:])
    before = n_solid[:-1] - np.repeat(n_solid[offsets[:-1]], np.diff(offsets))
    next_solid = np.zeros(len(mapped), bool)
    next_solid[:-1] = solid[1:]
    ends = offsets[1:][np.diff(offsets) > 0]
    next_solid[ends - 1] = False
    # of a run of blanks the last stays, if something stands before it and after it in its text
    return _compress(mapped, solid | (next_solid & (before > 0)), offsets)


def _compress(
    data: npt.NDArray[np.uint8], keep: npt.NDArray[np.bool_], offsets: npt.NDArray[np.int64]
) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64]]:
    kept = np.zeros(len(data) + 1, np.int64)
    np.cumsum(keep, out=kept[1:])
    return data[keep], kept[offsets]
