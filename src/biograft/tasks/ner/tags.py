"""The tags of words: which there are, which may follow each other, and what they mean."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from biograft.corpus.formats.tagging import OUTSIDE, Scheme, decode, encode
from biograft.tasks.ner.texts import WordSpan

Flags = npt.NDArray[np.bool_]
_SCHEMES = {"bio": (Scheme.IOB2, "BI"), "bioes": (Scheme.IOBES, "BIES")}
_ENTERS, _GOES_ON, _LEAVES = "BS", "IE", "ES"


@dataclass(frozen=True, slots=True)
class TagSet:
    """The tags of some types in a scheme, by number; 0 is outside."""

    types: tuple[str, ...]
    scheme: str

    @property
    def tags(self) -> tuple[str, ...]:
        """All tags, such as ``B-Disease``; letters alone where a type has no name."""
        letters = _SCHEMES[self.scheme][1]
        inside = [
            f"{letter}-{kind}" if kind else letter for kind in self.types for letter in letters
        ]
        return (OUTSIDE, *inside)

    def encode(self, n_words: int, spans: Sequence[WordSpan]) -> list[int]:
        """Give the tag of each word for spans that are in order and share no word."""
        numbers = {tag: number for number, tag in enumerate(self.tags)}
        return [numbers[tag] for tag in encode(n_words, spans, _SCHEMES[self.scheme][0])]

    def decode(self, tags: Sequence[int]) -> list[WordSpan]:
        """Give the spans that tags mark; one that only goes on begins an entity all the same."""
        names = self.tags
        return decode(names[tag] for tag in tags)

    def may_follow(self) -> tuple[Flags, Flags, Flags]:
        """Say which tag may follow which (from, to), which may begin and which may end a text."""
        names = self.tags
        begins = np.array([tag[0] not in _GOES_ON for tag in names])
        # in BIO any tag may be the last of an entity
        open_ends = self.scheme == "bio"
        ends = np.array([open_ends or tag == OUTSIDE or tag[0] in _LEAVES for tag in names])
        follows = ends[:, None] & begins[None, :]
        for before, tag in enumerate(names):
            if tag != OUTSIDE and tag[0] not in _LEAVES:
                for after, other in enumerate(names):
                    if other[0] in _GOES_ON and other[1:] == tag[1:]:
                        follows[before, after] = True
        return follows, begins, ends
