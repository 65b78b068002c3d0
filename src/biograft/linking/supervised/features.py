"""What training mentions tell of a text: which concepts it was linked to, and how often."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from biograft.kb import KnowledgeBase
from biograft.linking.fusion import Gathered
from biograft.linking.lexical.index import NORMALISED
from biograft.linking.normalisation import DEFAULT_STEPS

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


F32 = npt.NDArray[np.float32]
I64 = npt.NDArray[np.int64]
_VOTE = np.float32(0.05)
"""How much worse a name must be to say clearly less: the usual temperature of cosines."""


class Featured(NamedTuple):
    """The candidate concepts of one text."""

    concepts: I64  # (candidates,): rows of concepts, ascending
    features: F32  # (candidates, features)
    best: I64  # (candidates,): column of the best name among what was gathered


def feature_names(generators: Sequence[str]) -> list[str]:
    """Name the columns of features, in order."""
    own = ("best", "second", "below", "first", "together")
    names = [f"{generator} {what}" for generator in generators for what in own]
    names += [f"{a} of best {b}" for a in generators for b in generators if a != b]
    names += ["exact", "normalised", "words shared", "share of training", "seen in training"]
    return [*names, "linked in training", "meant in training", "number of names"]


class FeatureMaker:
    """Computes features of gathered candidates for one store and one memory."""

    def __init__(self, kb: KnowledgeBase, memory: MentionMemory) -> None:
        table = kb.table("names")
        self._concepts = table.column("concept").to_numpy().astype(np.int64)
        self._names = table.column("text")
        self._n_names = np.bincount(self._concepts, minlength=len(kb)).astype(np.float32)
        self._memory = memory
        self._frequency: dict[int, F32] = {}
        self._words: dict[int, frozenset[str]] = {}

    def concepts_of(self, rows: I64) -> I64:
        """Give the concepts of names."""
        concepts: I64 = self._concepts[rows]
        return concepts

    def compute(
        self,
        text: str,
        gathered: Gathered,
        place: int,
        *,
        leave_out: int = ALL,
        hidden: npt.NDArray[np.bool_] | None = None,
    ) -> Featured:
        """Make the features of one text's candidates; ``hidden`` names are as if not there."""
        rows = gathered.rows[place]
        shown = rows >= 0 if hidden is None else (rows >= 0) & ~hidden
        columns = np.flatnonzero(shown)
        of_name = self._concepts[rows[columns]]
        order = np.argsort(of_name, kind="stable")
        columns, of_name = columns[order], of_name[order]
        concepts, starts = np.unique(of_name, return_index=True)
        scores = gathered.scores[:, place, columns]  # (generators, names)
        scores = np.where(np.isfinite(scores), scores, 0).astype(np.float32)
        if not len(concepts):
            width = len(feature_names(gathered.generators))
            return Featured(concepts, np.zeros((0, width), np.float32), concepts)
        parts = self._of_scores(scores, starts)
        parts += self._of_text(text, rows[columns], scores, starts)
        parts += self._of_memory(text, concepts, leave_out)
        best = columns[_first_best(scores.sum(axis=0), starts)]
        return Featured(concepts, np.stack(parts, axis=1).astype(np.float32), best)

    def _of_scores(self, scores: F32, starts: I64) -> list[F32]:
        parts: list[F32] = []
        for own in scores:
            best = np.maximum.reduceat(own, starts)
            first = _first_best(own, starts)
            others = own.copy()
            others[first] = 0
            second = np.maximum.reduceat(others, starts)
            below = best - best.max()
            parts += [best, second, below, (below > -1e-6).astype(np.float32)]
            votes = np.add.reduceat(np.exp((own - 1) / _VOTE), starts)
            parts.append((_VOTE * np.log(votes) + 1).astype(np.float32))
        for a, own in enumerate(scores):
            for b, other in enumerate(scores):
                if a != b:
                    parts.append(own[_first_best(other, starts)])
        return parts

    def _of_text(self, text: str, rows: I64, scores: F32, starts: I64) -> list[F32]:
        """Compare the names with the text itself; the first generator is the lexical one."""
        form, folded = DEFAULT_STEPS(text), text.casefold()
        words = frozenset(form.split())
        equal = np.zeros(len(rows), np.float32)
        for column in np.flatnonzero(scores[0] >= NORMALISED - 1e-4):
            equal[column] = self._names[int(rows[column])].as_py().casefold() == folded
        normalised = (scores[0] >= NORMALISED - 1e-4).astype(np.float32)
        shared = np.array([_overlap(words, self._words_of(int(row))) for row in rows], np.float32)
        return [np.maximum.reduceat(each, starts) for each in (equal, normalised, shared)]

    def _words_of(self, row: int) -> frozenset[str]:
        words = self._words.get(row)
        if words is None:
            words = frozenset(DEFAULT_STEPS(self._names[row].as_py()).split())
            self._words[row] = words
        return words

    def _of_memory(self, text: str, concepts: I64, leave_out: int) -> list[F32]:
        counts, seen = self._memory.linked(text, leave_out)
        if leave_out not in self._frequency:
            self._frequency[leave_out] = self._memory.frequency(leave_out)
        linked = np.array([counts.get(int(c), 0) for c in concepts], np.float32)
        known = np.full(len(concepts), float(seen > 0), np.float32)
        return [
            linked / np.float32(max(seen, 1)),
            known,
            np.log1p(linked),
            np.log1p(self._frequency[leave_out][concepts]),
            np.log1p(self._n_names[concepts]),
        ]


def _first_best(values: F32, starts: I64) -> I64:
    """Find, in each group, where the greatest value first stands."""
    ends = np.append(starts[1:], len(values))
    group = np.repeat(np.arange(len(starts)), ends - starts)
    order = np.lexsort((np.arange(len(values)), -values, group))
    return order[starts]


def _overlap(a: frozenset[str], b: frozenset[str]) -> float:
    return len(a & b) / len(a | b) if a or b else 0.0
