"""Packed text on disk: token sequences with mentions and labels, memory-mapped."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from biograft.artifacts import ArtifactKind, check_ends, check_length, check_range, open_array
from biograft.training.objectives.examples import (
    CONSISTENT,
    HEAD_OFFSET,
    SEGMENT_ENDS,
    Ints,
    TextExample,
)
from biograft.training.pretraining.packing import PackedSequence


class GrowingArray:
    """Appends rows to a .npy file, which is complete when the ``with`` block ends."""

    def __init__(self, path: Path, dtype: type[np.integer], width: int = 0) -> None:
        self.n_rows, self._width = 0, width
        self._dtype: np.dtype[np.integer] = np.dtype(dtype)
        self._file = path.open("wb")
        self._write_header()

    def __enter__(self) -> GrowingArray:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            if kind is None:
                self._file.seek(0)
                self._write_header()
        finally:
            self._file.close()

    def add(self, rows: npt.NDArray[np.integer]) -> None:
        """Append rows."""
        self._file.write(np.ascontiguousarray(rows, self._dtype).tobytes())
        self.n_rows += len(rows)

    def _write_header(self) -> None:
        """Write the header, whose length does not depend on the number of rows."""
        shape = (self.n_rows, self._width) if self._width else (self.n_rows,)
        described = {
            "descr": np.lib.format.dtype_to_descr(self._dtype),
            "fortran_order": False,
            "shape": shape,
        }
        np.lib.format.write_array_header_1_0(self._file, described)


PACKED = ArtifactKind(
    format="biograft-packed-text",
    version=1,
    called="folder of packed text",
    remedy="remove the folder; it is built again",
    keys=("made_from", "special", "counts"),
)
ENTITIES = "entities.parquet"
_ARRAYS: dict[str, tuple[type[np.integer], int]] = {
    "tokens": (np.int32, 0),
    "words": (np.int16, 0),
    "mentions": (np.int32, 3),
    "sequences": (np.int64, 4),
}
"""The type of each array, and the columns of a row (0: a single value)."""
_LABEL: tuple[type[np.integer], int] = (np.int16, 0)
TOKEN_LABELS, MENTION_LABELS = (SEGMENT_ENDS,), (CONSISTENT, HEAD_OFFSET)
"""The labels that packed text may have."""


def array_kinds(labels: Iterable[str]) -> dict[str, tuple[type[np.integer], int]]:
    """Return the arrays of packed text with these labels, each with its type and columns."""
    return {**_ARRAYS, **dict.fromkeys(labels, _LABEL)}


def write_sequences(
    folder: Path, sequences: Iterable[PackedSequence], labels: Iterable[str] = ()
) -> None:
    """Write sequences with these labels as arrays."""
    labels = tuple(labels)
    with contextlib.ExitStack() as stack:
        arrays = {
            name: stack.enter_context(GrowingArray(folder / f"{name}.npy", *kind))
            for name, kind in array_kinds(labels).items()
        }
        for sequence in sequences:
            for name in labels:
                values = {**sequence.token_labels, **sequence.mention_labels}
                arrays[name].add(values[name])
            arrays["tokens"].add(sequence.tokens)
            arrays["words"].add(sequence.words)
            arrays["mentions"].add(sequence.mentions)
            ends = (arrays["tokens"].n_rows, arrays["mentions"].n_rows)
            arrays["sequences"].add(np.array([[*ends, sequence.second, sequence.document]]))


def write_entities(folder: Path, entities: pa.Table) -> None:
    """Write the rows of the entity table."""
    pq.write_table(entities, folder / ENTITIES, compression="zstd")


@dataclass(frozen=True, slots=True)
class PackedText:
    """Packed text, open for reading; sequences are accessed by index."""

    folder: Path
    manifest: dict[str, Any]
    entities: tuple[str, ...]
    """Entity ids, in the order of the rows of the entity table."""
    entity_counts: Ints
    """The frequency of each in the annotated text."""
    _tokens: npt.NDArray[np.int32]
    _words: npt.NDArray[np.int16]
    _mentions: npt.NDArray[np.int32]
    _sequences: Ints
    _labels: Mapping[str, npt.NDArray[np.int16]]

    @classmethod
    def open(cls, folder: str | Path) -> PackedText:
        """Open a complete folder; raise if a file is missing or truncated."""
        folder = Path(folder)
        manifest = PACKED.read(folder)
        PACKED.check_files(folder, manifest)
        try:
            kinds = array_kinds(manifest.get("labels", ()))
            arrays = {name: _load(folder, name, *kind) for name, kind in kinds.items()}
            _check_arrays(arrays)
            entities = pq.read_table(folder / ENTITIES)
        except (OSError, ValueError, pa.ArrowException) as error:
            raise PACKED.damaged(folder, error) from error
        ids = tuple(entities["id"].to_pylist())
        counts = entities["count"].to_numpy().astype(np.int64)
        tokens, words, mentions, sequences = (arrays.pop(name) for name in _ARRAYS)
        return cls(folder, manifest, ids, counts, tokens, words, mentions, sequences, arrays)

    def __len__(self) -> int:
        """The number of sequences."""
        return len(self._sequences)

    @property
    def n_tokens(self) -> int:
        """The number of tokens of all sequences, special ones included."""
        return len(self._tokens)

    @property
    def counts(self) -> dict[str, int]:
        """The counts of packing; see ``PackingCounts``."""
        return dict(self.manifest["counts"])

    @property
    def padding(self) -> int:
        """The padding token."""
        return int(self.manifest["special"]["padding"])

    @property
    def max_length(self) -> int:
        """The maximum number of tokens of a sequence."""
        return int(self.manifest["made_from"]["max_length"])

    @property
    def documents(self) -> Ints:
        """The number of the (first) document of each sequence; copies have that of the original."""
        return np.asarray(self._sequences[:, 3])

    @property
    def lengths(self) -> Ints:
        """The number of tokens of each sequence."""
        return np.diff(self._sequences[:, 0], prepend=0)

    def example(self, index: int) -> TextExample:
        """Return a sequence with its labels, as it was packed."""
        end, mentions_end, second, _ = self._sequences[index].tolist()
        start, mentions_start = self._sequences[index - 1, :2].tolist() if index else (0, 0)
        tokens = self._tokens[start:end].astype(np.int64)
        segments = np.zeros_like(tokens)
        if second:
            segments[second:] = 1
        mentions = self._mentions[mentions_start:mentions_end].astype(np.int64)
        return TextExample(
            tokens=tokens,
            segments=segments,
            words=self._words[start:end].astype(np.int64),
            mentions=mentions,
            token_labels={
                name: self._labels[name][start:end].astype(np.int64)
                for name in TOKEN_LABELS
                if name in self._labels
            },
            mention_labels={
                name: self._labels[name][mentions_start:mentions_end].astype(np.int64)
                for name in MENTION_LABELS
                if name in self._labels
            },
        )


def _load(folder: Path, name: str, kind: type[np.integer], width: int) -> npt.NDArray[Any]:
    loaded = open_array(folder / f"{name}.npy", kind, n_axes=2 if width else 1)
    check_length(name, loaded, len(loaded), *((width,) if width else ()))
    return loaded


def _check_arrays(arrays: Mapping[str, npt.NDArray[Any]]) -> None:
    """Refuse arrays that do not fit together: sequences divide the tokens and the mentions."""
    totals = len(arrays["tokens"]), len(arrays["mentions"])
    for name, array in arrays.items():
        if name not in ("tokens", "mentions", "sequences"):
            check_length(name, array, totals[name in MENTION_LABELS])
    sequences = arrays["sequences"]
    for column, total in enumerate(totals):
        ends = np.append(0, sequences[:, column])
        check_ends("sequences", ends, total)
    if not bool((np.diff(sequences[:, 0], prepend=0) > 0).all()):
        raise ValueError("sequences: one has no tokens")
    check_range("sequences", sequences, 0, np.iinfo(np.int64).max)
