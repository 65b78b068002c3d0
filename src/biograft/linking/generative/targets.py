"""Which name of the right concept a mention is to be called by, when a model learns from it.

``similar`` is the one whose character 3-grams, weighed by how rare they are among the names of
the store (TF-IDF), have the highest cosine with the mention's. Of equally good names the shortest
is taken, then the one that stands first in the store.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from biograft.kb import KnowledgeBase
from biograft.linking.generative.selection import Ints, Selection
from biograft.linking.lexical import LexicalConfig, LexicalIndex

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
