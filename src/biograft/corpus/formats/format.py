"""What a format of documents is: how it is recognised, read, written, and what it can hold."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import TypeAlias

from biograft.documents import Document, Mention, Passage
from biograft.sources.format import Probe
from biograft.sources.log import ReadLog


class Feature(StrEnum):
    """Something of a document that not every format can hold; the value names its loss."""

    DOCUMENT_IDS = "document ids"
    LANGUAGE = "language"
    PASSAGES = "passages"
    GAPS = "gaps"
    NESTING = "nesting"
    TYPES = "types"
    CONCEPTS = "concepts"
    PARTS = "parts of composites"
    MENTION_IDS = "mention ids"
    MENTION_RELATIONS = "relations between mentions"
    CONCEPT_RELATIONS = "relations between concepts"
    RELATION_IDS = "relation ids"


EVERYTHING = frozenset(Feature)

Step: TypeAlias = Callable[[Document], tuple[Document, int]]
"""Turns a document into what a format can hold of it, and says how much was lost."""
Writer: TypeAlias = Callable[[Iterable[Document], Path, bool], None]
"""Writes fitted documents to a file or folder; the last argument allows to replace it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentFormat:
    """The one object each module of a format offers.

    What a reader gives of a written document is the document after :class:`Fitter` has taken
    from it what ``holds`` lacks and has applied the format's own ``steps``, by kind of loss.
    """

    recognise: Callable[[Probe], bool]
    read: Callable[[Path, ReadLog], Iterator[Document]]
    write: Writer | None = None
    holds: frozenset[Feature] = frozenset()
    steps: tuple[tuple[str, Step], ...] = ()
    unique_ids: bool = False
    """Whether each document needs an id of its own, such as the name of its file."""


class Fitter:
    """Fits one document after the other to a format; ``losses`` counts what was lost by kind."""

    def __init__(self, form: DocumentFormat) -> None:
        self.losses: Counter[str] = Counter()
        self._form = form
        self._number = 0
        self._times: Counter[str] = Counter()
        missing = [(str(f), step) for f, step in _STEPS.items() if f not in form.holds]
        self._steps: list[tuple[str, Step]] = [*missing, *form.steps]

    def fit(self, document: Document) -> Document:
        """Give the document as it will be read back."""
        self._number += 1
        for kind, step in self._steps:
            document, n = step(document)
            if n:
                self.losses[kind] += n
        identifier = self._identifier(document.id)
        if identifier != document.id:
            self.losses[str(Feature.DOCUMENT_IDS)] += 1
            document = replace(document, id=identifier)
        return document

    def _identifier(self, identifier: str) -> str:
        if Feature.DOCUMENT_IDS not in self._form.holds:
            return str(self._number)
        if not self._form.unique_ids:
            return identifier
        given = identifier
        while self._times[given]:
            given = f"{identifier}-{self._times[identifier] + 1}"
            self._times[identifier] += 1
        self._times[given] += 1
        return given


def fill_gaps(document: Document) -> tuple[Document, int]:
    """Let every mention with gaps cover the text between its outer bounds."""
    n = sum(bool(mention.pieces) for mention in document.mentions)
    if not n:
        return document, 0
    filled = tuple(
        replace(m, pieces=(), text=document.text[m.start : m.end]) if m.pieces else m
        for m in document.mentions
    )
    return replace(document, mentions=filled), n


def keep_disjoint(document: Document) -> tuple[Document, int]:
    """Keep the longest of mentions that overlap, the first of equals; order them by place."""
    kept: list[Mention] = []
    taken: set[int] = set()
    for mention in sorted(document.mentions, key=lambda m: (m.start - m.end, m.start)):
        places = range(mention.start, mention.end)
        if taken.isdisjoint(places):
            taken.update(places)
            kept.append(mention)
    kept.sort(key=lambda mention: mention.start)
    n = len(document.mentions) - len(kept)
    return replace(document, mentions=tuple(kept)), n


def keep_flat_passages(document: Document) -> tuple[Document, int]:
    """Keep passages that do not overlap an earlier one; order them by place."""
    kept: list[Passage] = []
    for passage in sorted(document.passages, key=lambda p: (p.start, p.end)):
        if passage.start >= (kept[-1].end if kept else 0):
            kept.append(passage)
    return replace(document, passages=tuple(kept)), len(document.passages) - len(kept)


def blank_out(pattern: str) -> Step:
    """Give a step that makes each character of a text that fits the pattern a blank."""
    unwritable = re.compile(pattern)

    def step(document: Document) -> tuple[Document, int]:
        text, n = unwritable.subn(" ", document.text)
        if not n:
            return document, 0
        mentions = tuple(
            replace(m, text=" ".join(text[slice(*span)] for span in m.spans))
            for m in document.mentions
        )
        return replace(document, text=text, mentions=mentions), n

    return step


def _without_mention(**empty: object) -> Callable[[Document], tuple[Document, int]]:
    """Give a step that empties a field of every mention."""
    ((name, value),) = empty.items()

    def step(document: Document) -> tuple[Document, int]:
        n = sum(bool(getattr(mention, name)) for mention in document.mentions)
        if not n:
            return document, 0
        emptied = tuple(replace(m, **{name: value}) for m in document.mentions)  # type: ignore[arg-type]
        return replace(document, mentions=emptied), n

    return step


def _without_relations(of: str) -> Step:
    def step(document: Document) -> tuple[Document, int]:
        kept = tuple(relation for relation in document.relations if relation.of != of)
        return replace(document, relations=kept), len(document.relations) - len(kept)

    return step


def _without_relation_ids(document: Document) -> tuple[Document, int]:
    n = sum(bool(relation.id) for relation in document.relations)
    return replace(document, relations=tuple(replace(r, id="") for r in document.relations)), n


def _without_language(document: Document) -> tuple[Document, int]:
    return replace(document, language=""), int(bool(document.language))


def _without_passages(document: Document) -> tuple[Document, int]:
    return replace(document, passages=()), len(document.passages)


_STEPS: dict[Feature, Step] = {
    Feature.LANGUAGE: _without_language,
    Feature.PASSAGES: _without_passages,
    Feature.MENTION_RELATIONS: _without_relations("mentions"),
    Feature.CONCEPT_RELATIONS: _without_relations("concepts"),
    Feature.GAPS: fill_gaps,
    Feature.NESTING: keep_disjoint,
    Feature.TYPES: _without_mention(type=""),
    Feature.CONCEPTS: _without_mention(concepts=()),
    Feature.PARTS: _without_mention(parts=()),
    Feature.MENTION_IDS: _without_mention(id=""),
    Feature.RELATION_IDS: _without_relation_ids,
}
"""The step for each feature that a format lacks, in the order in which they are taken."""
