"""What a ranker sees of a candidate concept: numbers about its names, and what was learned.

Names that generators gathered are put together by concept. Of every generator: the best and the
second best score, how far below the best candidate, whether it is the best, how high its names
come together, and the score of the name that another generator likes best. Then the words shared
with the mention, how the mention was linked in training, how often the concept was meant, and how
many names it has.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from biograft.kb import KnowledgeBase
from biograft.linking.gathering import Gathered
from biograft.linking.lexical.index import NORMALISED
from biograft.linking.steps import DEFAULT_STEPS
from biograft.linking.supervised.memory import ALL, MentionMemory

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
