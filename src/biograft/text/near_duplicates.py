"""Near-duplicates of reference texts, by the character n-grams that they share.

Text to train on must not hold the texts of a test. A text is a near-duplicate of a reference if
both are equal, or if at least ``min_overlap`` of the n-grams of the shorter one are in the other
(the overlap coefficient). Case, width, punctuation and whitespace do not count.

>>> found = NearDuplicates(["What are the early symptoms of type 2 diabetes?"])
>>> found.matches("Tell me: what are the early symptoms of type-2 diabetes")
True
>>> found.matches("Type 2 diabetes is a disease of adults.")
False
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated

import numpy as np

from biograft.arrays import Uint64s
from biograft.config import AtLeast, Config, Range

Hashes = Uint64s

_FACTOR = np.uint64(0x9E3779B97F4A7C15)
"""Factor of the polynomial hash of n-grams; modulo 2^64."""
_SHIFT = np.uint64(29)


@dataclass(frozen=True, slots=True, kw_only=True)
class NearDuplicateConfig(Config):
    """When two texts are near-duplicates.

    ``n`` is the length of the n-grams in characters. A text shorter than ``n`` is only compared
    as a whole.
    """

    n: Annotated[int, AtLeast(1)] = 8
    min_overlap: Annotated[float, Range(above=0, max=1)] = 0.6
    """Share of n-grams that two near-duplicates have in common, from 0 to 1."""


class NearDuplicates:
    """An index of the n-grams of reference texts.

    Args:
        references: Texts that others are compared with.
        config: Length of the n-grams, and how many must be equal.
    """

    def __init__(
        self, references: Iterable[str], config: NearDuplicateConfig | None = None
    ) -> None:
        self.config = config or NearDuplicateConfig()
        normal = sorted({text for each in references if (text := normalise_characters(each))})
        self._whole = frozenset(normal)
        grams = [n_gram_hashes(text, self.config.n) for text in normal]
        self._sizes = np.array([len(each) for each in grams], np.int64)
        owners = np.repeat(np.arange(len(grams)), self._sizes)
        hashes = np.concatenate([*grams, np.zeros(0, np.uint64)])
        order = np.argsort(hashes, kind="stable")
        self._owners = owners[order]
        self._hashes, starts = np.unique(hashes[order], return_index=True)
        self._ends = np.append(starts, len(hashes))

    def __len__(self) -> int:
        """The number of different references."""
        return len(self._sizes)

    def matches(self, text: str) -> bool:
        """Return whether a text is a near-duplicate of a reference."""
        normal = normalise_characters(text)
        return normal in self._whole or self.overlap(normal) >= self.config.min_overlap

    def overlap(self, normal: str) -> float:
        """Return the largest overlap coefficient of a normalised text with a reference."""
        own = n_gram_hashes(normal, self.config.n)
        if not len(own) or not len(self._hashes):
            return 0.0
        at = np.minimum(np.searchsorted(self._hashes, own), len(self._hashes) - 1)
        at = at[self._hashes[at] == own]
        if not len(at):
            return 0.0
        owners = np.concatenate(
            [self._owners[self._ends[row] : self._ends[row + 1]] for row in at.tolist()]
        )
        found, n_shared = np.unique(owners, return_counts=True)
        return float((n_shared / np.minimum(self._sizes[found], len(own))).max())


def normalise_characters(text: str) -> str:
    """Return the letters and digits of a text, in lower case and normal width."""
    return "".join(c for c in unicodedata.normalize("NFKC", text).lower() if c.isalnum())


def n_gram_hashes(normal: str, n: int) -> Hashes:
    """Return the hashes of the different n-grams of a normalised text, ascending.

    Args:
        normal: A normalised text.
        n: Length of the n-grams.
    """
    codes = np.frombuffer(normal.encode("utf-32-le"), np.uint32).astype(np.uint64)
    if len(codes) < n:
        return np.zeros(0, np.uint64)
    hashes = np.zeros(len(codes) - n + 1, np.uint64)
    for start in range(n):
        hashes = (hashes + codes[start : len(codes) - n + 1 + start]) * _FACTOR
        hashes ^= hashes >> _SHIFT
    return np.unique(hashes)
