"""Packed text on disk: flat arrays of all sequences, read where they lie.

====================  ====================================================================
``tokens.npy``        tokens of all sequences, one after the other, special ones included
``words.npy``         number of each token's word in its sequence
``mentions.npy``      first token, last token (of the sequence), row of the entity
``sequences.npy``     of each sequence: end of its tokens, end of its mentions, where its
                      second segment begins (0: none), number of its first document
``entities.parquet``  row order of the table: ``id`` and how often it was found, ``count``
``manifest.json``     format, what it was made from, counts; written last
====================  ====================================================================
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from biograft.manifests import Kind
from biograft.objectives.records import Ints, TextExample
from biograft.streams.annotated.growing import GrowingArray
from biograft.streams.annotated.packing import PackedSequence

PACKED = Kind(
    format="biograft-packed-text",
    version=1,
    called="folder of packed text",
    remedy="remove the folder; it is made again",
    keys=("made_from", "special", "counts"),
)
ENTITIES = "entities.parquet"
_ARRAYS: dict[str, tuple[type[np.integer], int]] = {
    "tokens": (np.int32, 0),
    "words": (np.int16, 0),
    "mentions": (np.int32, 3),
    "sequences": (np.int64, 4),
}
"""The type of each array, and how many numbers a row has (0: it is one number)."""


def write_sequences(folder: Path, sequences: Iterable[PackedSequence]) -> None:
    """Write the arrays."""
    with contextlib.ExitStack() as stack:
        arrays = {
            name: stack.enter_context(GrowingArray(folder / f"{name}.npy", *kind))
            for name, kind in _ARRAYS.items()
        }
        for sequence in sequences:
            arrays["tokens"].add(sequence.tokens)
            arrays["words"].add(sequence.words)
            arrays["mentions"].add(sequence.mentions)
            ends = (arrays["tokens"].n_rows, arrays["mentions"].n_rows)
            arrays["sequences"].add(np.array([[*ends, sequence.second, sequence.document]]))


def write_entities(folder: Path, entities: pa.Table) -> None:
    """Write the rows of the table of entities."""
    pq.write_table(entities, folder / ENTITIES, compression="zstd")


@dataclass(frozen=True, slots=True)
class PackedText:
    """Packed text, open for reading; any sequence can be had by its number."""

    folder: Path
    manifest: dict[str, Any]
    entities: tuple[str, ...]
    """Ids of the entities, in the order of the table's rows."""
    entity_counts: Ints
    """How often each was found in the annotated text."""
    _tokens: npt.NDArray[np.int32]
    _words: npt.NDArray[np.int16]
    _mentions: npt.NDArray[np.int32]
    _sequences: Ints

    @classmethod
    def open(cls, folder: str | Path) -> PackedText:
        """Open a finished folder; a file that is missing or cut short is refused by name."""
        folder = Path(folder)
        manifest = PACKED.read(folder)
        PACKED.check_files(folder, manifest)
        try:
            arrays = [np.load(folder / f"{name}.npy", mmap_mode="r") for name in _ARRAYS]
            entities = pq.read_table(folder / ENTITIES)
        except (OSError, ValueError, pa.ArrowException) as error:
            raise PACKED.damaged(folder, error) from error
        ids = tuple(entities["id"].to_pylist())
        counts = entities["count"].to_numpy().astype(np.int64)
        return cls(folder, manifest, ids, counts, *arrays)

    def __len__(self) -> int:
        """How many sequences there are."""
        return len(self._sequences)

    @property
    def n_tokens(self) -> int:
        """How many tokens all sequences have, special ones included."""
        return len(self._tokens)

    @property
    def counts(self) -> dict[str, int]:
        """What became of documents and spans; see ``PackingCounts``."""
        return dict(self.manifest["counts"])

    @property
    def padding(self) -> int:
        """The token that fills up short sequences."""
        return int(self.manifest["special"]["padding"])

    @property
    def max_length(self) -> int:
        """How many tokens a sequence has at most."""
        return int(self.manifest["made_from"]["max_length"])

    def document(self, number: int) -> int:
        """Give the number of the (first) document of a sequence."""
        return int(self._sequences[number, 3])

    def example(self, number: int) -> TextExample:
        """Give a sequence as it was packed, without labels."""
        end, end_of_mentions, second, _ = self._sequences[number].tolist()
        start, start_of_mentions = self._sequences[number - 1, :2].tolist() if number else (0, 0)
        tokens = self._tokens[start:end].astype(np.int64)
        segments = np.zeros_like(tokens)
        if second:
            segments[second:] = 1
        return TextExample(
            tokens=tokens,
            segments=segments,
            words=self._words[start:end].astype(np.int64),
            mentions=self._mentions[start_of_mentions:end_of_mentions].astype(np.int64),
        )
