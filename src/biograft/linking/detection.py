"""Mention detection: finding the spans of a text that are to be linked (named entity recognition).

Mentions are found by the names of a store (:class:`DictionaryDetector`), also misspelt ones
(:class:`MisspeltDetector`), by a trained model (:class:`ModelDetector`), or by both
(:class:`UnionDetector`).
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Protocol

from biograft.arrays import Ints
from biograft.errors import ConfigError, MissingExtraError, nearest
from biograft.kb.names import HAN_CHARACTER
from biograft.linking.composites import HAN_CONJUNCTION, composite_readings
from biograft.linking.config import LinkerConfig
from biograft.text.documents import Document, Mention
from biograft.text.names_index import NameMatch, NamesIndex
from biograft.text.spelling import MisspeltMatch, MisspeltNames

if TYPE_CHECKING:
    from biograft.models.tasks.model import TaskModel


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
    """Return the mentions that overlap none of the others, which are in text order.

    Args:
        mentions: Mentions.
        others: Other mentions, in text order.
    """
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


# ---- names of the store


class DictionaryDetector:
    """Finds the names of a store in texts, and coordinations of them.

    Args:
        names: Index of the names.
        coordinations: Extend mentions to the coordinations that they stand in.
    """

    def __init__(self, names: NamesIndex, *, coordinations: bool = True) -> None:
        self._names, self._coordinations = names, coordinations

    def detect(self, documents: Sequence[Document]) -> list[list[Mention]]:
        """Find the names in the texts of documents, without linking them."""
        found = [
            [Mention(match.start, match.end, match.text) for match in matches]
            for matches in self._names.find_many([document.text for document in documents])
        ]
        if not self._coordinations:
            return found
        texts = [document.text for document in documents]
        return join_coordinated(texts, found, self._names.among)


NameOf = Callable[[int], str]
_MAX_ACRONYM = 6
"""Longer words of capitals are names of a store that has all its names in capitals."""


MISSPELT, REWORDED, COORDINATED = "misspelt name", "re-worded name", "coordinated name"
"""Kinds of difference between a mention and the name that it is looked up by."""


@dataclass(frozen=True, slots=True)
class VariantMention(Mention):
    """A mention that is a name of the store, misspelt or re-worded."""

    name: str = ""
    """The name as the store writes it."""
    similarity: float = 1.0
    """Below 1: 1 less the edits for each letter of a misspelt name."""
    variant: str = MISSPELT


class MisspeltDetector:
    """Finds the names of a store in texts, also with spelling errors.

    Names as written are preferred; a misspelt name that contains one and more replaces it.
    """

    def __init__(
        self,
        names: NamesIndex,
        name_of: NameOf,
        *,
        concepts: Ints | None = None,
        coordinations: bool = True,
    ) -> None:
        """Prepare the search for misspelt names.

        Args:
            names: Index of the names.
            name_of: Returns the name in a row of the store's table.
            concepts: Number of the concept of each row. None: every row is a concept of its own.
            coordinations: Extend mentions to the coordinations that they stand in.
        """
        self._names, self._coordinations = names, coordinations
        self._misspelt, self._name_of = MisspeltNames(names, concepts=concepts), name_of

    def detect(self, documents: Sequence[Document]) -> list[list[Mention]]:
        """Find the names in the texts of documents, without linking them."""
        texts = [document.text for document in documents]
        found = self._misspelt.find_many(texts)
        exact: Sequence[Sequence[Mention]] = [_as_written(each.exact) for each in found]
        if self._coordinations:
            exact = join_coordinated(texts, exact, self._names.among)
        return [
            self._merged(names, each.misspelt) if each.misspelt else list(names)
            for names, each in zip(exact, found, strict=True)
        ]

    def _merged(self, exact: Iterable[Mention], found: Iterable[MisspeltMatch]) -> list[Mention]:
        near = (self._mention(match) for match in found)
        corrected = [mention for mention in near if not is_acronym(mention.name)]
        return in_text_order([*corrected, *outside(exact, corrected)])

    def _mention(self, match: MisspeltMatch) -> VariantMention:
        name = self._name_of(match.name_rows[0])
        similarity = 1 - match.edits / max(len(name), match.edits + 1)
        return VariantMention(match.start, match.end, match.text, name=name, similarity=similarity)


def is_acronym(name: str) -> bool:
    """Whether a name is a short word of capitals, of which other words are no misspellings.

    >>> is_acronym("PSACH"), is_acronym("Pseudoachondroplasia")
    (True, False)
    """
    return name.isupper() and " " not in name and len(name) <= _MAX_ACRONYM


def _as_written(matches: Iterable[NameMatch]) -> list[Mention]:
    return [Mention(match.start, match.end, match.text) for match in matches]


def looked_up(mention: Mention) -> str:
    """Return the text by which a mention is looked up: that of its name, if written otherwise."""
    return mention.name if isinstance(mention, VariantMention) else mention.text


# ---- a trained model, and the choice


NER = "ner"
"""The task whose models find mentions."""


class ModelDetector:
    """Finds the entities that a trained model predicts, all or those of some types.

    Args:
        model: Model of named entity recognition.
        types: Entity types that count; empty: all.

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
        """Open the model in the folder of a run of the task ``ner``.

        Args:
            folder: Folder of the run, or of its model.
            types: Entity types that count; empty: all.
        """
        try:
            from biograft.models.tasks.folder import open_task
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
    """Finds what two detectors find; of mentions that overlap, those of the first stay.

    Args:
        first: Detector whose mentions stay.
        second: Detector whose mentions are added.
    """

    def __init__(self, first: MentionDetector, second: MentionDetector) -> None:
        self._first, self._second = first, second

    def detect(self, documents: Sequence[Document]) -> list[list[Mention]]:
        """Find the mentions of documents by both detectors."""
        found = zip(self._first.detect(documents), self._second.detect(documents), strict=True)
        return [
            in_text_order([*first, *outside(second, in_text_order(first))])
            for first, second in found
        ]


def open_detector(folder: str | Path | None, config: LinkerConfig) -> MentionDetector | None:
    """Open what finds mentions besides names: a trained detector, the given mentions, or both.

    Args:
        folder: Folder of a trained detector; None: there is none.
        config: Settings of the linker.
    """
    trained = None
    if folder is not None:
        trained = ModelDetector.open(folder, config.mention_types)
    elif config.mention_types:
        raise ConfigError("mention_types: only a trained detector finds mentions of some types")
    if config.mentions not in ("given", "both"):
        return trained
    if config.mentions == "both":
        return GivenMentions() if trained is None else UnionDetector(GivenMentions(), trained)
    if trained is not None:
        raise ConfigError("mentions: 'given' are those of the documents; leave the detector out")
    return GivenMentions()


# ---- coordinations: *left and right atrial enlargement*, 乳腺和卵巢癌
# A mention that stands in a coordination is extended to all of it, if the coordination stands for
# several names of which one at least is not there word for word.

AreNames = Callable[[Sequence[str]], Collection[str]]
"""Returns those of some texts that are names."""

_MAX_BEFORE, _MAX_BEHIND, _MAX_HAN = 5, 3, 6
"""Maximum words, or Chinese characters, that a mention is extended by."""
_WINDOW = 80
_JOINS = re.compile(rf"\b(?:and|or)\b|&|{HAN_CONJUNCTION.pattern}", re.IGNORECASE)
_WORDS = re.compile(r"[^\s,]+")
_ENDS = re.compile(r"[.;:!?。；：！？()（）]\s?|\n(?=\s*[^\sa-z])\s?")


class _Reading(NamedTuple):
    """A span that may be a coordination, and the names that it would stand for."""

    start: int
    end: int
    text: str
    parts: tuple[str, ...]


def join_coordinated(
    texts: Sequence[str], mentions: Sequence[Sequence[Mention]], are_names: AreNames
) -> list[list[Mention]]:
    """Extend the mentions of texts, in text order, to the coordinations that they stand in.

    The new mentions have the names that they stand for as their ``parts``; mentions inside of them
    are left out.

    Args:
        texts: Texts.
        mentions: Mentions of each text, in text order.
        are_names: Says which of some texts are names of the store.
    """
    readings = [
        [list(_readings(text, mention)) for mention in own]
        for text, own in zip(texts, mentions, strict=True)
    ]
    needed = (
        part
        for of_text in readings
        for of_mention in of_text
        for reading in of_mention
        for part in (reading.text, *reading.parts)
    )
    names = are_names(list(dict.fromkeys(needed)))
    return [_join(own, of, names) for own, of in zip(mentions, readings, strict=True)]


def _join(
    mentions: Sequence[Mention], readings: Sequence[Sequence[_Reading]], names: Collection[str]
) -> list[Mention]:
    found: list[Mention] = []
    for mention, own in zip(mentions, readings, strict=True):
        if found and mention.start < found[-1].end:
            continue
        low = found[-1].end if found and found[-1].parts else 0
        right = next(
            (
                reading
                for reading in own
                if reading.start >= low
                and reading.text not in names
                and all(part in names for part in reading.parts)
            ),
            None,
        )
        if right is None:
            found.append(mention)
            continue
        while found and found[-1].end > right.start:  # names do not overlap
            found.pop()
        found.append(
            replace(mention, start=right.start, end=right.end, text=right.text, parts=right.parts)
        )
    return found


def _readings(text: str, mention: Mention) -> Iterator[_Reading]:
    """Yield the readings of the spans around a mention that are not there word for word."""
    for start, end in _spans(text, mention):
        whole = text[start:end]
        plain = " ".join(whole.split())
        for parts in composite_readings(plain):
            if any(part not in plain for part in parts):
                yield _Reading(start, end, whole, parts)


def _spans(text: str, mention: Mention) -> Iterator[tuple[int, int]]:
    """Yield the spans around a mention that may be a coordination, the longest first."""
    low = max(0, mention.start - _WINDOW)
    low = max([low, *(low + end.end() for end in _ENDS.finditer(text[low : mention.start]))])
    if _JOINS.search(text, low, min(mention.end, mention.start + 1)):
        starts = list(_starts(text, low, mention.start))
        for start in starts:
            if _JOINS.search(text, start, mention.start + 1):
                yield start, mention.end
    high = min(len(text), mention.end + _WINDOW)
    stop = _ENDS.search(text, mention.end, high)
    high = stop.start() if stop else high
    behind = re.compile(r"\s*,?\s*(?:and|or|&)\s", re.IGNORECASE).match(text, mention.end, high)
    if behind:
        words = list(_WORDS.finditer(text, behind.end(), high))[:_MAX_BEHIND]
        for word in reversed(words):
            yield mention.start, word.end()


def _starts(text: str, low: int, end: int) -> Iterator[int]:
    """Yield where words before a mention begin; in Chinese, characters."""
    if end and HAN_CHARACTER.match(text[end - 1]):
        yield from range(max(low, end - _MAX_HAN), end)
        return
    words = list(_WORDS.finditer(text, low, end))
    yield from (word.start() for word in words[-_MAX_BEFORE - 1 :])
