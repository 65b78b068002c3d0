"""What training mentions tell of a text: which concepts it was linked to, and how often."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from biograft.kb import KnowledgeBase

Counts = npt.NDArray[np.float32]
ALL = -1
"""No fold: every document counts."""
KNOWN = -2
"""The fold of mentions that are seen and not learned from; it is never left out."""


def deal_folds(documents: Iterable[str], n: int, seed: int) -> dict[str, int]:
    """Give each document a fold, the same for the same seed."""
    names = sorted(set(documents))
    order = np.random.default_rng(seed).permutation(len(names))
    return {name: int(place) % n for name, place in zip(names, order, strict=True)}


def _key(text: str) -> str:
    """Bring a text to what is counted: a store does not keep blanks around its names either."""
    return " ".join(text.split()).casefold()


class MentionMemory:
    """Counts of texts and concepts in training mentions, with any one fold left out."""

    def __init__(self, n_concepts: int) -> None:
        self._texts: defaultdict[str, Counter[tuple[int, int]]] = defaultdict(Counter)
        self._totals: defaultdict[str, Counter[int]] = defaultdict(Counter)
        self._n_concepts = n_concepts
        self._of_concept: dict[int, Counts] = {}

    def add(self, text: str, concepts: Iterable[int], fold: int = 0) -> None:
        """Note that a text was linked to concepts in a document of a fold."""
        key = _key(text)
        self._totals[key][fold] += 1
        of_fold = self._of_concept.setdefault(fold, np.zeros(self._n_concepts, np.float32))
        for concept in concepts:
            self._texts[key][concept, fold] += 1
            of_fold[concept] += 1

    def folds_of(self, text: str, concept: int) -> frozenset[int]:
        """Say in which folds a text was linked to a concept."""
        counts: Mapping[tuple[int, int], int] = self._texts.get(_key(text), {})
        return frozenset(fold for (row, fold), n in counts.items() if row == concept and n)

    def linked(self, text: str, leave_out: int = ALL) -> tuple[dict[int, int], int]:
        """Count the concepts a text was linked to, and how often it was seen."""
        key = _key(text)
        counts: Counter[int] = Counter()
        linked: Mapping[tuple[int, int], int] = self._texts.get(key, {})
        for (concept, fold), n in linked.items():
            if fold != leave_out:
                counts[concept] += n
        totals: Mapping[int, int] = self._totals.get(key, {})
        return counts, sum(n for fold, n in totals.items() if fold != leave_out)

    def frequency(self, leave_out: int = ALL) -> Counts:
        """Count how often each concept was meant."""
        total = np.zeros(self._n_concepts, np.float32)
        for fold, counts in self._of_concept.items():
            if fold != leave_out:
                total += counts
        return total

    def to_json(self, kb: KnowledgeBase) -> dict[str, Any]:
        """Give all counts as plain values, concepts by id; folds are forgotten."""
        texts = {}
        for key in sorted(self._totals):
            counts, seen = self.linked(key)
            texts[key] = [seen, {kb.id_at(row): n for row, n in sorted(counts.items())}]
        frequency = self.frequency()
        rows = np.flatnonzero(frequency).tolist()
        return {"texts": texts, "concepts": {kb.id_at(r): int(frequency[r]) for r in rows}}

    @classmethod
    def from_json(cls, values: Mapping[str, Any], kb: KnowledgeBase) -> MentionMemory:
        """Read counts back; concepts that the store no longer has are left out."""
        memory = cls(len(kb))
        of_concept = memory._of_concept.setdefault(0, np.zeros(len(kb), np.float32))
        for key, (seen, concepts) in values["texts"].items():
            memory._totals[key][0] = seen
            for identifier, n in concepts.items():
                row = kb.find_row(identifier)
                if row is not None:
                    memory._texts[key][row, 0] = n
        for identifier, n in values["concepts"].items():
            row = kb.find_row(identifier)
            if row is not None:
                of_concept[row] = n
        return memory
