"""Protocol of mention detectors, and the order of the mentions of a text."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from itertools import accumulate
from typing import Protocol

from biograft.documents import Document, Mention


class MentionDetector(Protocol):
    """Finds the mentions of documents (named entity recognition), not their concepts."""

    def detect(self, documents: Sequence[Document]) -> list[list[Mention]]:
        """Find the mentions of each document, in text order."""


class GivenMentions:
    """Takes the mentions that are annotated in a document, such as those of a benchmark."""

    def detect(self, documents: Sequence[Document]) -> list[list[Mention]]:
        """Return the documents' own mentions unchanged."""
        return [list(document.mentions) for document in documents]


def outside(mentions: Iterable[Mention], others: Sequence[Mention]) -> list[Mention]:
    """Return the mentions that overlap none of the others, which are in text order."""
    starts = [other.start for other in others]
    reached = list(accumulate((other.end for other in others), max, initial=0))
    return [
        mention
        for mention in mentions
        if reached[bisect_left(starts, mention.end)] <= mention.start
    ]


def in_text_order(mentions: Sequence[Mention]) -> list[Mention]:
    """Sort mentions from left to right, the longer first."""
    return sorted(mentions, key=lambda mention: (mention.start, -mention.end))
