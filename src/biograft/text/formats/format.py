"""Document formats: how a format is recognised, read and written, and which features it holds."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import TypeAlias

from biograft.kb.sources.format import Probe
from biograft.kb.sources.log import ReadLog
from biograft.text.documents import Document, Mention, Passage


class Feature(StrEnum):
    """A feature of documents that some formats cannot hold; the value names its loss."""

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


ALL_FEATURES = frozenset(Feature)

Step: TypeAlias = Callable[[Document], tuple[Document, int]]
"""Reduces a document to what a format can hold, and counts what was lost."""
Writer: TypeAlias = Callable[[Iterable[Document], Path, bool], None]
"""Writes adapted documents to a file or folder; the last argument allows overwriting."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentFormat:
    """A document format; each module of a format defines one.

    A written document reads back as :class:`FormatAdapter` adapts it: without the features that
    ``holds`` lacks, and with the format's own ``steps`` applied, each named by its loss.
    """

    recognise: Callable[[Probe], bool]
    read: Callable[[Path, ReadLog], Iterator[Document]]
    write: Writer | None = None
    holds: frozenset[Feature] = frozenset()
    steps: tuple[tuple[str, Step], ...] = ()
    unique_ids: bool = False
    """Whether document ids must be unique, as the names of files are."""


class FormatAdapter:
    """Adapts documents to a format; ``losses`` counts what was lost, by kind."""

    def __init__(self, form: DocumentFormat) -> None:
        self.losses: Counter[str] = Counter()
        self._form = form
        self._n_documents = 0
        self._id_counts: Counter[str] = Counter()
        missing = [(str(f), step) for f, step in _STEPS.items() if f not in form.holds]
        self._steps: list[tuple[str, Step]] = [*missing, *form.steps]

    def adapt(self, document: Document) -> Document:
        """Return the document as it will be read back."""
        self._n_documents += 1
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
            return str(self._n_documents)
        if not self._form.unique_ids:
            return identifier
        unique = identifier
        while self._id_counts[unique]:
            unique = f"{identifier}-{self._id_counts[identifier] + 1}"
            self._id_counts[identifier] += 1
        self._id_counts[unique] += 1
        return unique


def fill_gaps(document: Document) -> tuple[Document, int]:
    """Extend every mention with gaps over the whole text between its outer bounds."""
    n = sum(bool(mention.fragments) for mention in document.mentions)
    if not n:
        return document, 0
    filled = tuple(
        replace(m, fragments=(), text=document.text[m.start : m.end]) if m.fragments else m
        for m in document.mentions
    )
    return replace(document, mentions=filled), n


def keep_disjoint(document: Document) -> tuple[Document, int]:
    """Keep the longest of overlapping mentions, the first of equals; sort them by position."""
    mentions: list[Mention] = []
    taken: set[int] = set()
    for mention in sorted(document.mentions, key=lambda m: (m.start - m.end, m.start)):
        covered = range(mention.start, mention.end)
        if taken.isdisjoint(covered):
            taken.update(covered)
            mentions.append(mention)
    mentions.sort(key=lambda mention: mention.start)
    n = len(document.mentions) - len(mentions)
    return replace(document, mentions=tuple(mentions)), n


def keep_flat_passages(document: Document) -> tuple[Document, int]:
    """Keep passages that do not overlap an earlier one; sort them by position."""
    passages: list[Passage] = []
    for passage in sorted(document.passages, key=lambda p: (p.start, p.end)):
        if passage.start >= (passages[-1].end if passages else 0):
            passages.append(passage)
    return replace(document, passages=tuple(passages)), len(document.passages) - len(passages)


def replace_characters(pattern: str) -> Step:
    """Return a step that replaces each character that matches the pattern by a space."""
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
    """Return a step that clears a field of every mention."""
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
        relations = tuple(relation for relation in document.relations if relation.of != of)
        return replace(document, relations=relations), len(document.relations) - len(relations)

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
"""The step for each feature that a format lacks, in the order in which they are applied."""
