"""Which name of the right concept a mention is to be called by, when a model learns from it.

``similar`` is the one whose character 3-grams, weighed by how rare they are among the names of
the store (TF-IDF), have the highest cosine with the mention's. Of equally good names the shortest
is taken, then the one that stands first in the store.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from biograft.kb import KnowledgeBase
from biograft.linking.generative.config import GenerativeConfig
from biograft.linking.generative.names import Ints, Selection
from biograft.linking.generative.ranker import ask
from biograft.linking.lexical import LexicalConfig, LexicalIndex
from biograft.linking.mentions import Forms
from biograft.linking.rerank.examples import GoldQuery
from biograft.objectives.name_examples import NamingExample

PLAIN = LexicalConfig(steps="unicode,case,hyphens", reword=False)
"""Names are compared as they are written, but for case and signs."""
_AT_ONCE = 256
Floats = npt.NDArray[np.float32]


class TargetChooser:
    """Chooses among the names of right concepts by a rule."""

    def __init__(self, kb: KnowledgeBase, selected: Selection, rule: str, seed: int) -> None:
        self._selected, self._rule, self._seed = selected, rule, seed
        self._lengths = selected.lengths
        self._index = LexicalIndex.build(kb, PLAIN) if rule == "similar" else None
        kept = np.flatnonzero(selected.numbers >= 0)  # ascending by concept, as the store has them
        self._rows = kept
        n_concepts = int(selected.concepts.max(initial=-1)) + 1
        self._ends = np.searchsorted(selected.concepts[kept], np.arange(n_concepts), "right")

    def names_of(self, concepts: Sequence[int]) -> Ints:
        """Give the rows of the names of some concepts that may be generated, ascending."""
        n = len(self._ends)
        parts = [
            self._rows[self._ends[concept - 1] if concept else 0 : self._ends[concept]]
            for concept in sorted(concepts)
            if concept < n
        ]
        return np.concatenate([np.zeros(0, np.int64), *parts])

    def text_of(self, row: int) -> str:
        """Give a name as it is generated."""
        return self._selected.texts[int(self._selected.numbers[row])]

    def choose(self, mentions: Sequence[str], names: Sequence[Ints]) -> list[int]:
        """Choose a row for each mention; each has at least one to choose from."""
        chosen: list[int] = []
        for start in range(0, len(mentions), _AT_ONCE):
            some = names[start : start + _AT_ONCE]
            scores = self._score(mentions[start : start + _AT_ONCE], some, start)
            for own, score in zip(some, scores, strict=True):
                lengths = self._lengths[self._selected.numbers[own]]
                chosen.append(int(own[np.lexsort((own, lengths, -score[: len(own)]))[0]]))
        return chosen

    def _score(self, mentions: Sequence[str], names: Sequence[Ints], start: int) -> Floats:
        """Score names of mentions, (mentions, most names); equal scores leave it to the length."""
        rows = np.full((len(names), max(map(len, names))), -1, np.int64)
        for place, own in enumerate(names):
            rows[place, : len(own)] = own
        if self._index is not None:
            return self._index.score(mentions, rows)
        scores = np.zeros(rows.shape, np.float32)
        if self._rule == "random":
            for place, own in enumerate(names):
                drawn = np.random.default_rng([self._seed, start + place]).integers(len(own))
                scores[place, drawn] = 1
        return scores


T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Counts:
    """What became of the mentions given; those that are left out teach nothing."""

    given: int = 0
    composite: int = 0
    """Left out: which part means which concept is not known."""
    nil: int = 0
    unknown: int = 0
    """Left out: no concept of the store has the id, or none of its names may be generated."""
    overlapping: int = 0
    """Left out where that is asked for."""
    learnt: int = 0


@dataclass(frozen=True, slots=True)
class MentionNaming:
    """Examples that are the same in every epoch."""

    examples: tuple[NamingExample, ...]
    counts: Counts

    def __len__(self) -> int:
        return len(self.examples)

    def example(self, epoch: int, number: int) -> NamingExample:
        """Give an example by its number."""
        return self.examples[number]

    def provenance(self) -> dict[str, Any]:
        """Say what is learnt from, by counts and by a hash."""
        digest = hashlib.sha256()
        for example in self.examples:
            digest.update(repr((example.source, example.prompt, example.target)).encode())
        return {"examples": digest.hexdigest(), "mentions": asdict(self.counts)}


def gather_mentions(
    kb: KnowledgeBase,
    chooser: TargetChooser,
    queries: Sequence[GoldQuery],
    config: GenerativeConfig,
) -> MentionNaming:
    """Make an example of each mention that means one concept of the store (or one of several)."""
    kept = list(queries)
    reasons = {"composite": _is_composite, "nil": _is_nil}
    counts = {"given": len(kept)}
    if config.drop_overlapping:
        found = overlapping(kept)
        kept = [query for query, over in zip(kept, found, strict=True) if not over]
        counts["overlapping"] = sum(found)
    for name, is_so in reasons.items():
        counts[name] = sum(map(is_so, kept))
        kept = [query for query in kept if not is_so(query)]
    names = [chooser.names_of(kb.rows_of(query.gold)) for query in kept]
    known = [len(rows) > 0 for rows in names]
    kept, names = _only(kept, known), _only(names, known)
    counts |= {"unknown": len(known) - len(kept), "learnt": len(kept)}
    asked = Forms(kb, abbreviations=True, composites=False).of_queries(kept)
    rows = chooser.choose([form for form, _ in asked], names)
    examples = tuple(
        NamingExample(*ask(*each, config), chooser.text_of(row))
        for each, row in zip(asked, rows, strict=True)
    )
    return MentionNaming(examples, Counts(**counts))


def overlapping(queries: Sequence[GoldQuery]) -> list[bool]:
    """Say which mentions share characters with another one of their document."""
    places: defaultdict[str, list[int]] = defaultdict(list)
    for number, query in enumerate(queries):
        if query.document and query.start is not None and query.end is not None:
            places[query.document].append(number)
    flags = [False] * len(queries)
    for numbers in places.values():
        spans = np.array([(queries[n].start, queries[n].end) for n in numbers], np.int64)
        meets = (spans[:, None, 0] < spans[None, :, 1]) & (spans[None, :, 0] < spans[:, None, 1])
        for number, n_met in zip(numbers, meets.sum(axis=1).tolist(), strict=True):
            flags[number] = n_met > 1  # itself is one
    return flags


def _is_composite(query: GoldQuery) -> bool:
    return len(query.needed) > 1 or len(query.parts) > 1


def _is_nil(query: GoldQuery) -> bool:
    return not query.gold


def _only(values: Sequence[T], flags: Sequence[bool]) -> list[T]:
    return [value for value, flag in zip(values, flags, strict=True) if flag]
