"""Mention detection: finding the spans of a text that are to be linked.

Mentions are found by the names of a store (:class:`DictionaryDetector`), by a trained model of
named entity recognition (:class:`ModelDetector`), or by both (:class:`UnionDetector`).
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from biograft.corpus.names_index import NamesIndex
from biograft.documents import Document, Mention
from biograft.errors import ConfigError, MissingExtraError, nearest

if TYPE_CHECKING:
    from biograft.tasks.model import TaskModel

NER = "ner"
"""The task whose models find mentions."""


class MentionDetector(Protocol):
    """Finds the mentions of documents (named entity recognition), not their concepts."""

    def detect(self, documents: Sequence[Document]) -> list[list[Mention]]:
        """Find the mentions of each document, in text order."""


class GivenMentions:
    """Takes the mentions that are annotated in a document, such as those of a benchmark."""

    def detect(self, documents: Sequence[Document]) -> list[list[Mention]]:
        """Return the documents' own mentions unchanged."""
        return [list(document.mentions) for document in documents]


class DictionaryDetector:
    """Finds the names of a store in texts."""

    def __init__(self, names: NamesIndex) -> None:
        self._names = names

    def detect(self, documents: Sequence[Document]) -> list[list[Mention]]:
        """Find the names in the texts of documents, without linking them."""
        return [
            [Mention(match.start, match.end, match.text) for match in matches]
            for matches in self._names.find_many([document.text for document in documents])
        ]


class ModelDetector:
    """Finds the entities that a trained model predicts, all or those of some types.

    >>> detector = ModelDetector.open("RUN", types=("Disease",))  # doctest: +SKIP
    >>> detector.detect([Document("1", "No flu.")])  # doctest: +SKIP
    [[Mention(start=3, end=6, text='flu', type='Disease')]]
    """

    def __init__(self, model: TaskModel[Document, Document], types: tuple[str, ...] = ()) -> None:
        for name in types:
            if name not in model.labels:
                raise ConfigError(f"mention_types: no {name!r}; {nearest(name, model.labels)}")
        self._model, self._types = model, types or model.labels

    @classmethod
    def open(cls, folder: str | Path, types: tuple[str, ...] = ()) -> ModelDetector:
        """Open the model in the folder of a run of the task ``ner``."""
        try:
            from biograft.tasks.folder import open_task
        except ModuleNotFoundError as error:
            raise MissingExtraError("models", "a trained detector") from error
        model = open_task(folder)
        if model.kind != NER:
            raise ConfigError(
                f"{folder}: is a model of the task {model.kind!r}, which finds no mentions; "
                f"expected one of {NER!r}"
            )
        return cls(model, types)

    def detect(self, documents: Sequence[Document]) -> list[list[Mention]]:
        """Predict the entities of documents, whose own mentions are ignored."""
        predictions = self._model.predict([replace(each, mentions=()) for each in documents])
        return [
            in_text_order([mention for mention in each.mentions if mention.type in self._types])
            for each in predictions
        ]


class UnionDetector:
    """Finds what two detectors find; of mentions that overlap, those of the first stay."""

    def __init__(self, first: MentionDetector, second: MentionDetector) -> None:
        self._first, self._second = first, second

    def detect(self, documents: Sequence[Document]) -> list[list[Mention]]:
        """Find the mentions of documents by both detectors."""
        found = zip(self._first.detect(documents), self._second.detect(documents), strict=True)
        return [in_text_order([*first, *outside(second, first)]) for first, second in found]


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
