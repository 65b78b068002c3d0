"""What linking gives: names that a generator found, candidates with their evidence, answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from biograft.documents import Document

Rows = npt.NDArray[np.int64]
Scores = npt.NDArray[np.float32]


class NameHits(NamedTuple):
    """The nearest names of each query, best first; equal scores by lower row first."""

    rows: Rows  # (queries, k): rows of the store's table of names, -1 where there are fewer
    scores: Scores  # (queries, k): -inf where there are fewer


class Generator(Protocol):
    """Whatever finds the nearest names of a store for a text."""

    name: str

    def search(self, texts: Sequence[str], k: int) -> NameHits:
        """Find the k nearest names of each text."""

    def score(self, texts: Sequence[str], rows: Rows) -> Scores:
        """Score names of one's own choice for each text, as a search would: (texts, names).

        ``rows`` has a line of names for each text; a name that the generator does not hold, and
        the row -1, score -inf.
        """


@dataclass(frozen=True, slots=True)
class Evidence:
    """Why a candidate is one: which generator found which name at which rank (from 1)."""

    generator: str
    name: str
    rank: int
    score: float


@dataclass(frozen=True, slots=True)
class Candidate:
    """A concept that a mention may speak of."""

    concept: str
    concept_name: str
    name: str
    score: float
    probability: float | None = None
    evidence: tuple[Evidence, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Give the candidate as plain values."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class LinkedMention:
    """A mention with its candidates, best first, and the concept it is linked to, if any.

    ``form`` is what was looked up: the mention itself, its long form where it is an
    abbreviation, or one part of a composite mention.
    """

    start: int
    end: int
    text: str
    form: str
    candidates: tuple[Candidate, ...] = ()
    concept: str | None = None
    """Id of the concept, or None: NIL."""

    def to_json(self) -> dict[str, Any]:
        """Give the linked mention as plain values."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class LinkedDocument:
    """A document with all its mentions linked, in the order of the text."""

    document: Document
    mentions: tuple[LinkedMention, ...]

    def to_json(self) -> dict[str, Any]:
        """Give the linked document as plain values; offsets count in its text."""
        return {
            "id": self.document.id,
            "text": self.document.text,
            "mentions": [mention.to_json() for mention in self.mentions],
        }
