"""Copies of annotated documents with synonyms of entities, or other entities, in their place.

EMBERT's data for context-entity consistency. A mention is replaced by a synonym (it is consistent
with what stands around it) or by a name of another entity (it is not). Names are exchanged in the
text, so tokens and spans are found afterwards as everywhere.

What is put in must not tell by itself whether it belongs there. So only entities of the text with
two names or more take part; others are drawn as often as they occur, and where none may stand, no
synonym does either; a name is any of its entity's, for a synonym the one that stood there, too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from biograft.corpus.shards import AnnotatedDocument, Span
from biograft.errors import ConfigError
from biograft.kb import KnowledgeBase, fingerprint
from biograft.objectives.examples import IGNORED, Ints

SYNONYM, OTHER = 1, 0
"""Labels of replaced mentions; those that are as they were have ``IGNORED``."""
_VERSION = 2
"""Of the way in which names are drawn; text packed in another way is packed anew."""
_READ = ("concepts", "names", "types")


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplacementConfig:
    """Which mentions are replaced by what, in how many copies of each document.

    In a copy, ``share`` of the mentions that can be replaced are. Of these ``synonyms`` get a name
    of their own concept, perhaps the one they had, the others one of another concept, which was
    drawn for either; ``same_type`` of those drawn are of the same type as what they stand for. A
    mention for which its own concept is drawn stays. Without ``originals`` only copies are read.
    """

    share: float = 0.5
    synonyms: float = 0.5
    same_type: float = 0.5
    copies: int = 1
    originals: bool = True
    seed: int = 33

    def __post_init__(self) -> None:
        for name in ("share", "synonyms", "same_type"):
            if not 0 <= getattr(self, name) <= 1:
                raise ConfigError(
                    f"{name}: expected a share from 0 to 1, found {getattr(self, name)}"
                )
        if self.copies < 1:
            raise ConfigError(f"copies: expected at least 1, found {self.copies}")


@dataclass(frozen=True, slots=True)
class NumberedDocument:
    """A document as it is read, and which one it is or is a copy of."""

    number: int
    document: AnnotatedDocument
    consistent: tuple[int, ...] | None = None
    """Of each span ``SYNONYM``, ``OTHER`` or ``IGNORED``; none where nothing is ever replaced."""


@dataclass
class Replacer:
    """Makes copies of documents with other names in them.

    ``entities`` has a row for each entity of the text: ``id``, and ``count``, how often it occurs.
    """

    kb: KnowledgeBase
    config: ReplacementConfig
    entities: pa.Table
    _names: dict[tuple[str, str], tuple[str, ...]] = field(default_factory=dict)
    _types: dict[str, str] = field(default_factory=dict)
    _drawable: dict[tuple[str, str | None], tuple[Ints, Ints]] = field(default_factory=dict)

    def read(self, documents: Iterable[AnnotatedDocument]) -> Iterator[NumberedDocument]:
        """Give all documents, then a copy of each, and so on; ``documents`` is read repeatedly.

        Copies stand apart from what they are copies of, so that packing does not put them together.
        """
        if self.config.originals:
            for number, document in enumerate(documents):
                yield NumberedDocument(number, document, (IGNORED,) * len(document.spans))
        for copy in range(self.config.copies):
            for number, document in enumerate(documents):
                if (made := self.replaced(document, number, copy)) is not None:
                    yield made

    def replaced(
        self, document: AnnotatedDocument, number: int, copy: int = 0
    ) -> NumberedDocument | None:
        """Copy a document with some mentions replaced; nothing if none of them is."""
        draw = np.random.default_rng([self.config.seed, copy, number])
        chosen = [self._choose(document, span, draw) for span in document.spans]
        if all(label == IGNORED for label, _, _ in chosen):
            return None
        pieces, spans, place = [], [], 0
        written = 0
        for span, (_, concept, name) in zip(document.spans, chosen, strict=True):
            before = document.text[place : span.start]
            written += len(before)
            spans.append(replace(span, start=written, end=written + len(name), concept=concept))
            pieces += [before, name]
            written, place = written + len(name), span.end
        text = "".join([*pieces, document.text[place:]])
        copied = replace(document, text=text, spans=tuple(spans))
        return NumberedDocument(number, copied, tuple(label for label, _, _ in chosen))

    def _choose(
        self, document: AnnotatedDocument, span: Span, draw: np.random.Generator
    ) -> tuple[int, str, str]:
        """Choose what stands for a mention: a label, the concept, its name."""
        as_it_was = (IGNORED, span.concept, document.text[span.start : span.end])
        may, is_synonym = draw.random() < self.config.share, draw.random() < self.config.synonyms
        own = self.names_of(span.concept, document.language)
        if not may or len(own) < 2:
            return as_it_was
        other = self._other(span.concept, document.language, draw)
        if other is None:
            return as_it_was
        if is_synonym:
            return SYNONYM, span.concept, str(draw.choice(own))
        return OTHER, other, str(draw.choice(self.names_of(other, document.language)))

    def _other(self, concept: str, language: str, draw: np.random.Generator) -> str | None:
        """Draw an entity of the text, as often as it occurs; none if it may be taken for this one.

        It is drawn once: of two entities either then stands for the other as often, and as often
        keeps its own place as a synonym.
        """
        same_type = draw.random() < self.config.same_type
        places, reached = self._among(language, self._type_of(concept) if same_type else None)
        if not len(places):
            return None
        ticket = draw.random() * reached[-1]
        other: str = self._ids[places[int(np.searchsorted(reached, ticket, side="right"))]]
        known = {name.casefold() for name in self.names_of(concept, language)}
        apart = known.isdisjoint(map(str.casefold, self.names_of(other, language)))
        return other if apart else None

    def names_of(self, concept: str, language: str) -> tuple[str, ...]:
        """Give the names of a concept in a language, all of them where the text tells none."""
        key = (concept, language)
        if key not in self._names:
            row = self.kb.find_row(concept)
            names = () if row is None else self.kb.concept_at(row).names
            fitting = (n.text for n in names if not language or n.language in ("", language))
            self._names[key] = tuple(dict.fromkeys(fitting))
        return self._names[key]

    @cached_property
    def _ids(self) -> list[str]:
        ids: list[str] = self.entities["id"].to_pylist()
        return ids

    def _among(self, language: str, kind: str | None) -> tuple[Ints, Ints]:
        """Give the entities to draw from, and how many tickets they and those before them have."""
        key = (language, kind)
        if key not in self._drawable:
            places = [
                place
                for place, entity in enumerate(self._ids)
                if (kind is None or self._type_of(entity) == kind)
                and len(self.names_of(entity, language)) > 1
            ]
            counts = self.entities["count"].to_numpy()[np.array(places, np.int64)]
            self._drawable[key] = np.array(places, np.int64), np.cumsum(np.maximum(counts, 1))
        return self._drawable[key]

    def _type_of(self, concept: str) -> str:
        if concept not in self._types:
            row = self.kb.find_row(concept)
            types = () if row is None else self.kb.concept_at(row).types
            self._types[concept] = types[0].code if types else ""
        return self._types[concept]


def describe_replacement(kb: KnowledgeBase) -> dict[str, Any]:
    """Tell the store that names were taken from, and the way in which they were drawn."""
    return {"names": fingerprint(kb, _READ), "replacing": _VERSION}
