"""Synonym substitution: copies of annotated documents with replaced entities (EMBERT).

This is the data of context-entity consistency. A mention is replaced by a synonym, which is
consistent with its context, or by a name of another entity, which is not. Names are replaced in
the text, before it is tokenised.

A synonym is another name than the one in the text, whatever its case.

Other entities are, as published, any of the graph (``others = "graph"``): every mention can become
one, and those with two names or more a synonym. With ``others = "text"`` the new name alone does
not reveal which of the two it is: only entities of the text with at least two names take part;
others are sampled by their frequency, and where none is allowed, no synonym is used either. The
name of another entity is sampled as if one of its own mentions were replaced: one of its names in
the text, by frequency, is the one that is not used.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Annotated, Any

import numpy as np
import pyarrow as pa

from biograft.arrays import Int32s, Ints
from biograft.config import AtLeast, Choice, Config, Ratio
from biograft.graph.neighbours import first_types
from biograft.kb import KnowledgeBase, fingerprint
from biograft.text.shards import AnnotatedDocument, LinkedSpan
from biograft.training.objectives.examples import IGNORED

SYNONYM, OTHER = 1, 0
"""Labels of replaced mentions; unchanged ones have ``IGNORED``."""
TEXT, GRAPH = "text", "graph"
_DRAWS = 50
"""Entities of the graph that are drawn until one has a name in the language of the text."""
_VERSION = 4
"""The version of the sampling of names; a change invalidates packed text."""
_READ = ("concepts", "names", "types")


@dataclass(frozen=True, slots=True, kw_only=True)
class SubstitutionConfig(Config):
    """Settings of replacing mentions, and copies of each document.

    In a copy, a mention that can be replaced is with ``probability``. With
    ``synonym_probability`` it gets another name of its own concept, otherwise one of another
    concept, which is sampled in both cases; with ``same_type_probability`` from those of the same
    type. ``others`` says from where: from those that the ``text`` mentions, by frequency, or from
    the whole ``graph``. A mention of a concept with one name gets no synonym, and with ``text``
    stays as it is; so does one for which its own concept is sampled. Without ``originals`` only
    copies are read.
    """

    probability: Ratio = 0.5
    synonym_probability: Ratio = 0.5
    same_type_probability: Ratio = 0.5
    others: Annotated[str, Choice(TEXT, GRAPH)] = TEXT
    copies: Annotated[int, AtLeast(1)] = 1
    """Number of copies of each document."""
    originals: bool = True
    seed: int = 33
    """Seed of the sampling."""


@dataclass(frozen=True, slots=True)
class IndexedDocument:
    """A document, or a copy of it, with the index of the document."""

    index: int
    document: AnnotatedDocument
    consistent: tuple[int, ...] | None = None
    """``SYNONYM``, ``OTHER`` or ``IGNORED`` of each span; None without substitution."""


def count_forms(
    documents: Iterable[AnnotatedDocument],
) -> dict[tuple[str, str], Counter[str]]:
    """Count the casefolded names of the mentions, by entity and language."""
    forms: dict[tuple[str, str], Counter[str]] = {}
    for document in documents:
        for span in document.spans:
            counts = forms.setdefault((span.concept, document.language), Counter())
            counts[document.text[span.start : span.end].casefold()] += 1
    return forms


@dataclass
class SynonymSubstitution:
    """Makes copies of documents with replaced entities.

    ``entities`` has a row for each entity of the text: ``id`` and ``count``, its frequency.
    """

    kb: KnowledgeBase
    """Knowledge base with names and types."""
    config: SubstitutionConfig
    """Probabilities and number of copies."""
    entities: pa.Table
    forms: Mapping[tuple[str, str], Counter[str]] = field(default_factory=dict)
    """Counts of names in the text by entity and language (``count_forms``)."""
    _names: dict[tuple[str, str], tuple[str, ...]] = field(default_factory=dict)
    _candidate_rows: dict[tuple[str, int | None], tuple[Ints, Ints]] = field(default_factory=dict)

    def read(
        self, documents: Iterable[AnnotatedDocument], copy: int | None = None, first: int = 0
    ) -> Iterator[IndexedDocument]:
        """Yield documents as they are, or a copy of each with replaced entities.

        Args:
            documents: Annotated documents.
            copy: Number of the copy, from 0; None: the documents as they are.
            first: Number of the first document.
        """
        for number, document in enumerate(documents, first):
            if copy is None:
                yield IndexedDocument(number, document, (IGNORED,) * len(document.spans))
            elif (copied := self.replace_entities(document, number, copy)) is not None:
                yield copied

    def replace_entities(
        self, document: AnnotatedDocument, index: int, copy: int = 0
    ) -> IndexedDocument | None:
        """Copy a document with some mentions replaced; None if none is.

        Args:
            document: Annotated document.
            index: Its number, which decides with the seed about what is replaced.
            copy: Number of the copy, from 0.
        """
        rng = np.random.default_rng([self.config.seed, copy, index])
        chosen = [self._choose(document, span, rng) for span in document.spans]
        if all(label == IGNORED for label, _, _ in chosen):
            return None
        parts, spans = [], []
        position = written = 0
        for span, (_, concept, name) in zip(document.spans, chosen, strict=True):
            before = document.text[position : span.start]
            written += len(before)
            spans.append(span._replace(start=written, end=written + len(name), concept=concept))
            parts += [before, name]
            written, position = written + len(name), span.end
        text = "".join([*parts, document.text[position:]])
        copied = replace(document, text=text, spans=tuple(spans))
        return IndexedDocument(index, copied, tuple(label for label, _, _ in chosen))

    def _choose(
        self, document: AnnotatedDocument, span: LinkedSpan, rng: np.random.Generator
    ) -> tuple[int, str, str]:
        """Choose the replacement of a mention: label, concept, name."""
        current = document.text[span.start : span.end]
        unchanged = (IGNORED, span.concept, current)
        is_replaced = rng.random() < self.config.probability
        is_synonym = rng.random() < self.config.synonym_probability
        own = self.names_of(span.concept, document.language)
        from_graph = self.config.others == GRAPH
        if not is_replaced or (len(own) < 2 and (is_synonym or not from_graph)):
            return unchanged
        sample = self._sample_of_graph if from_graph else self._sample_of_text
        other = sample(span.concept, document.language, rng)
        if other is None:
            return unchanged
        if is_synonym:
            return SYNONYM, span.concept, _other_name(own, current, rng)
        if from_graph:
            return OTHER, other, str(rng.choice(self.names_of(other, document.language)))
        form = self._sample_form(other, document.language, rng)
        return OTHER, other, _other_name(self.names_of(other, document.language), form, rng)

    def _sample_form(self, concept: str, language: str, rng: np.random.Generator) -> str:
        """Sample a name of an entity by its frequency in the text; empty if it has none there."""
        forms = self.forms.get((concept, language))
        if not forms:
            return ""
        names, sums = tuple(forms), np.cumsum(list(forms.values()))
        return names[int(np.searchsorted(sums, rng.random() * sums[-1], side="right"))]

    def _sample_of_graph(self, concept: str, language: str, rng: np.random.Generator) -> str | None:
        """Sample an entity of the graph that has a name in the language, and none of this one."""
        row = self.kb.find_row(concept)
        rows = None
        if row is not None and rng.random() < self.config.same_type_probability:
            rows = self._rows_of_type[int(self._first_types[row])]
        for _ in range(_DRAWS):
            drawn = int(rng.integers(len(self.kb) if rows is None else len(rows)))
            other = self.kb.id_at(drawn if rows is None else int(rows[drawn]))
            if self.names_of(other, language):
                return other if self._share_no_name(concept, other, language) else None
        return None

    @cached_property
    def _first_types(self) -> Int32s:
        return first_types(self.kb)

    @cached_property
    def _rows_of_type(self) -> dict[int, Ints]:
        order = np.argsort(self._first_types, kind="stable")
        types, starts = np.unique(self._first_types[order], return_index=True)
        return dict(zip(types.tolist(), np.split(order, starts[1:]), strict=True))

    def _share_no_name(self, concept: str, other: str, language: str) -> bool:
        known = {name.casefold() for name in self.names_of(concept, language)}
        return known.isdisjoint(map(str.casefold, self.names_of(other, language)))

    def _sample_of_text(self, concept: str, language: str, rng: np.random.Generator) -> str | None:
        """Sample an entity of the text by frequency; None if it shares a name with this one.

        It is sampled once: so either of two entities replaces the other equally often, and is
        equally often replaced by its own synonym.
        """
        same_type = rng.random() < self.config.same_type_probability
        rows, sums = self._candidates(language, self._type_of(concept) if same_type else None)
        if not len(rows):
            return None
        point = rng.random() * sums[-1]
        other: str = self._ids[rows[int(np.searchsorted(sums, point, side="right"))]]
        return other if self._share_no_name(concept, other, language) else None

    def names_of(self, concept: str, language: str) -> tuple[str, ...]:
        """Return the names of a concept in a language; all names for a text without language.

        Names that differ in case only are one, the first.

        Args:
            concept: Id of the concept.
            language: Language, such as ``en``; empty: all names.
        """
        key = (concept, language)
        if key not in self._names:
            row = self.kb.find_row(concept)
            names = () if row is None else self.kb.concept_at(row).names
            fitting = [n.text for n in names if not language or n.language in ("", language)]
            distinct: dict[str, str] = {}
            for text in fitting:
                distinct.setdefault(text.casefold(), text)
            self._names[key] = tuple(distinct.values())
        return self._names[key]

    @cached_property
    def _ids(self) -> list[str]:
        ids: list[str] = self.entities["id"].to_pylist()
        return ids

    def _candidates(self, language: str, kind: int | None) -> tuple[Ints, Ints]:
        """Return the rows of entities to sample from, and their cumulative counts."""
        key = (language, kind)
        if key not in self._candidate_rows:
            rows = [
                row
                for row, entity in enumerate(self._ids)
                if (kind is None or self._type_of(entity) == kind)
                and len(self.names_of(entity, language)) > 1
            ]
            counts = self.entities["count"].to_numpy()[np.array(rows, np.int64)]
            self._candidate_rows[key] = np.array(rows, np.int64), np.cumsum(np.maximum(counts, 1))
        return self._candidate_rows[key]

    def _type_of(self, concept: str) -> int:
        row = self.kb.find_row(concept)
        return -1 if row is None else int(self._first_types[row])


def _other_name(names: Sequence[str], current: str, rng: np.random.Generator) -> str:
    """Sample a name that is not the current one, whatever its case."""
    return str(rng.choice([name for name in names if name.casefold() != current.casefold()]))


def describe_substitution(kb: KnowledgeBase) -> dict[str, Any]:
    """Describe the origin of the names, for the manifest of packed text."""
    return {"names": fingerprint(kb, _READ), "substitution_version": _VERSION}
