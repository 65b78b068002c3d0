"""Substitutes for an entity, sampled from a store: a synonym, and the name of another concept."""

from __future__ import annotations

import zlib
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from biograft.errors import shorten
from biograft.kb.names import normalise
from biograft_lab.probing.attention.curves import ReplacedSentence
from biograft_lab.probing.attention.maps import UnfitError
from biograft_lab.probing.config import SubstituteConfig

if TYPE_CHECKING:
    from biograft.kb import KnowledgeBase

_TRIES = 64
"""Maximum number of concepts to try for the random name."""
_Rows = npt.NDArray[np.int64]


@dataclass
class Substitutes:
    """Samples the missing names of a sentence; the sample depends on the sentence and the seed."""

    kb: KnowledgeBase
    config: SubstituteConfig
    _named: dict[tuple[str, ...], _Rows] = field(default_factory=dict)

    def fill(self, sentence: ReplacedSentence) -> ReplacedSentence:
        """Return the sentence with a synonym and a random name; existing ones are kept."""
        if sentence.synonym and sentence.random:
            return sentence
        concept = self._concept(sentence)
        languages = self._languages(sentence, concept)
        sentence_key = f"{sentence.id}\n{sentence.start}\n{sentence.text}"
        seed = [self.config.seed, zlib.crc32(sentence_key.encode("utf-8", "surrogatepass"))]
        # two generators, so that a given synonym does not change the random name
        synonym = sentence.synonym or self._synonym(
            sentence, concept, languages, np.random.default_rng([*seed, 0])
        )
        random = sentence.random or self._random(
            sentence, concept, languages, np.random.default_rng([*seed, 1])
        )
        own = (self.kb.id_at(concept),)
        return replace(sentence, synonym=synonym, random=random, concepts=own)

    def _concept(self, sentence: ReplacedSentence) -> int:
        """Return the entity's concept: one of the sentence's, else the first with its name."""
        for identifier in sentence.concepts:
            row = self.kb.find_row(identifier)
            if row is not None:
                return row
        if sentence.concepts:
            raise UnfitError(
                "the knowledge base does not have the entity's concept",
                f"found {', '.join(sentence.concepts)}",
            )
        matches = self.kb.find(sentence.entity)
        if not matches:
            raise UnfitError(
                "the knowledge base does not know the entity",
                f"{shorten(sentence.entity)!r}; give the synonym and the other name yourself",
            )
        return self.kb.row(matches[0].concept)

    def _languages(self, sentence: ReplacedSentence, concept: int) -> tuple[str, ...]:
        """Return the languages of names; empty for all."""
        if self.config.languages:
            return self.config.languages
        if sentence.language:
            return (sentence.language,)
        key = normalise(sentence.entity)
        same_name = (n for n in self.kb.concept_at(concept).names if normalise(n.text) == key)
        name = next(same_name, None)
        return (name.language,) if name and name.language else ()

    def _names(self, concept: int, languages: tuple[str, ...]) -> list[str]:
        names = self.kb.concept_at(concept).names
        return list(
            dict.fromkeys(n.text for n in names if not languages or n.language in languages)
        )

    def _synonym(
        self,
        sentence: ReplacedSentence,
        concept: int,
        languages: tuple[str, ...],
        rng: np.random.Generator,
    ) -> str:
        own = normalise(sentence.entity)
        others = [name for name in self._names(concept, languages) if normalise(name) != own]
        if not others:
            raise UnfitError(
                "the entity has no synonym in the knowledge base",
                f"{self.kb.id_at(concept)} {shorten(sentence.entity)!r}{_in(languages)}",
            )
        return others[int(rng.integers(len(others)))]

    def _random(
        self,
        sentence: ReplacedSentence,
        concept: int,
        languages: tuple[str, ...],
        rng: np.random.Generator,
    ) -> str:
        """Sample a concept uniformly, then one of its names that the entity does not have."""
        own = {normalise(each.text) for each in self.kb.concept_at(concept).names}
        own |= {normalise(sentence.entity), normalise(sentence.synonym)}
        rows = self._others(languages)
        order = (
            rng.permutation(len(rows))
            if len(rows) <= _TRIES
            else rng.integers(len(rows), size=_TRIES)
        )
        for row in rows[order].tolist():
            names = self._names(row, languages)
            if row != concept and own.isdisjoint(map(normalise, names)):
                return names[int(rng.integers(len(names)))]
        raise UnfitError(
            "the knowledge base has no other concept for the random name",
            f"{self.kb.id_at(concept)} {shorten(sentence.entity)!r}{_in(languages)}",
        )

    def _others(self, languages: tuple[str, ...]) -> _Rows:
        """Return the concepts with a name in the languages."""
        if languages not in self._named:
            table = self.kb.table("names")
            rows = table.column("concept").to_numpy()
            if languages:
                codes = [n for n, tag in enumerate(self.kb.languages) if tag in languages]
                rows = rows[np.isin(table.column("language").to_numpy(), codes)]
            self._named[languages] = np.unique(rows).astype(np.int64)
        return self._named[languages]


def _in(languages: tuple[str, ...]) -> str:
    return f", in {', '.join(languages)}" if languages else ""
