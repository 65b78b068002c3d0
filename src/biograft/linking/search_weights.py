"""Fit the weight of lexical search beside dense search on held-out mentions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from biograft.errors import ConfigError
from biograft.kb import KnowledgeBase
from biograft.linking.forms import MentionForms
from biograft.linking.fusion import FusedSearch, fuse_scores, normalise_weights
from biograft.linking.queries import GoldQuery, check_not_names

GRID = tuple(round(0.05 * step, 2) for step in range(20))
"""Weights of lexical search that are compared; that of dense search is the rest to 1."""
_DEPTH = 64
_CHUNK = 512


@dataclass(frozen=True, slots=True)
class FittedWeight:
    """The weight of lexical search that was the most accurate, of weights that sum to 1."""

    lexical: float
    accuracy: Mapping[float, float]
    """Weight -> fraction of the held-out mentions whose first name is right."""

    @property
    def beside_dense(self) -> float:
        """The weight of lexical search relative to 1 for dense search."""
        return self.lexical / (1 - self.lexical)

    def to_json(self) -> dict[str, Any]:
        """Return the weight and all accuracies as plain values."""
        accuracy = {f"{weight:g}": round(value, 6) for weight, value in self.accuracy.items()}
        return {"lexical_weight": self.lexical, "accuracy": accuracy}


def fit_lexical_weight(
    kb: KnowledgeBase, search: FusedSearch, queries: Sequence[GoldQuery]
) -> FittedWeight:
    """Choose the weight with which the most held-out mentions are right.

    Accuracy jumps from weight to weight where mentions are few, so that each weight counts with its
    two neighbours; of equal ones the middle is taken.

    Args:
        kb: Knowledge base of the search; one that holds the mentions as names is refused.
        search: Lexical and dense search.
        queries: Held-out mentions with their concepts.
    """
    names = {generator.name for generator in search.generators}
    if names != {"lexical", "dense"}:
        raise ConfigError(
            f"fitting the lexical weight: needs lexical and dense search, found {sorted(names)}"
        )
    queries = [query for query in queries if query.gold and query.parts]
    if not queries:
        raise ConfigError("fitting the lexical weight: no held-out mention has a concept")
    check_not_names(kb, queries)
    right = _right_at(kb, search, queries)
    values = right.mean(axis=1)
    padded = np.concatenate((values[:1], values, values[-1:]))
    smooth = np.round((padded[:-2] + padded[1:-1] + padded[2:]) / 3, 9)
    best = np.flatnonzero(smooth == smooth.max())
    chosen = GRID[int(best[len(best) // 2])]
    return FittedWeight(chosen, dict(zip(GRID, values.tolist(), strict=True)))


def _right_at(
    kb: KnowledgeBase, search: FusedSearch, queries: Sequence[GoldQuery]
) -> np.ndarray[tuple[int, ...], np.dtype[np.bool_]]:
    """Return for each weight and query whether the first name of each of its parts is right."""
    forms = MentionForms(kb, abbreviations=True, composites=False).of_queries(queries)
    texts = [form for form, _ in forms]
    owners = np.repeat(np.arange(len(queries)), [len(query.parts) for query in queries])
    gold = [kb.rows_of(query.gold) for query in queries]
    concepts = kb.numbers("names", "concept")
    distinct = list(dict.fromkeys(texts))
    row_of = {text: row for row, text in enumerate(distinct)}
    first = np.zeros((len(GRID), len(distinct)), np.int64)
    names = [generator.name for generator in search.generators]
    for start in range(0, len(distinct), _CHUNK):
        pool = search.collect(distinct[start : start + _CHUNK], _DEPTH)
        for i, weight in enumerate(GRID):
            weights = normalise_weights(names, {"lexical": weight, "dense": 1 - weight})
            best = fuse_scores(pool, weights).argmax(axis=1)  # rows ascend: ties to the lower
            first[i, start : start + len(best)] = pool.rows[np.arange(len(best)), best]
    right = np.ones((len(GRID), len(queries)), np.bool_)
    for text, owner in zip(texts, owners.tolist(), strict=True):
        rows = first[:, row_of[text]]
        right[:, owner] &= (rows >= 0) & np.isin(concepts[rows], gold[owner])
    return right
