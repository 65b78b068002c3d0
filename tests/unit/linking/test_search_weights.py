"""The fitted lexical weight, against a plain count over every weight."""

from __future__ import annotations

import numpy as np
import pytest

from biograft.errors import ConfigError
from biograft.evaluation import LinkQuery
from biograft.linking import FusedSearch, Linker, NameHits, fit_lexical_weight
from biograft.linking.search_weights import GRID

CONCEPTS = [{"id": f"C{i}", "name": f"name number {i}"} for i in range(12)]


class Fixed:
    """A generator whose scores are given: (texts, names)."""

    def __init__(self, name, texts, scores):
        self.name, self._row, self._scores = name, {t: r for r, t in enumerate(texts)}, scores

    def search(self, texts, k):
        own = self._scores[[self._row[text] for text in texts]]
        rows = np.argsort(-own, axis=1, kind="stable")[:, :k]
        return NameHits(rows.astype(np.int64), np.take_along_axis(own, rows, 1))

    def score(self, texts, rows):
        own = self._scores[[self._row[text] for text in texts]]
        return np.where(rows >= 0, np.take_along_axis(own, rows, 1), -np.inf).astype(np.float32)


@pytest.fixture
def made(store_of):
    rng = np.random.default_rng(3)
    kb = store_of(CONCEPTS)
    texts = [f"mention {i}" for i in range(60)]
    gold = rng.integers(12, size=60)
    scores = {}
    for name, help_ in (("lexical", 0.05), ("dense", 0.15)):
        scores[name] = rng.uniform(0, 0.6, (60, 12)).astype(np.float32)
        scores[name][np.arange(60), gold] += help_
    queries = [
        LinkQuery(text, frozenset({f"C{row}"}), document=f"d{i}")
        for i, (text, row) in enumerate(zip(texts, gold.tolist(), strict=True))
    ]
    generators = [Fixed(name, texts, values) for name, values in scores.items()]
    return kb, FusedSearch(generators), queries, scores, gold


def test_every_weight_is_counted_and_the_best_plateau_is_taken(made):
    kb, search, queries, scores, gold = made
    fitted = fit_lexical_weight(kb, search, queries)
    for weight, accuracy in fitted.accuracy.items():
        mean = weight * scores["lexical"] + (1 - weight) * scores["dense"]
        assert accuracy == pytest.approx((mean.argmax(1) == gold).mean(), abs=0.02)
    values = list(fitted.accuracy.values())
    smooth = [
        values[max(i - 1, 0)] + values[i] + values[min(i + 1, len(GRID) - 1)]
        for i in range(len(GRID))
    ]
    assert smooth[GRID.index(fitted.lexical)] == pytest.approx(max(smooth))
    assert fitted.beside_dense == pytest.approx(fitted.lexical / (1 - fitted.lexical))


def test_the_linker_has_the_accuracy_that_was_fitted(made):
    kb, search, queries, *_ = made
    fitted = fit_lexical_weight(kb, search, queries)
    weights = {"lexical": fitted.lexical, "dense": 1 - fitted.lexical}
    linker = Linker(kb, FusedSearch(search.generators, weights))
    first = [answers[0][0].concept for answers in linker.rank(queries, 1)]
    right = [concept in query.gold for concept, query in zip(first, queries, strict=True)]
    assert sum(right) / len(right) == pytest.approx(fitted.accuracy[fitted.lexical])


def test_what_cannot_be_fitted_is_refused(made):
    kb, search, queries, *_ = made
    with pytest.raises(ConfigError, match="needs lexical and dense search"):
        fit_lexical_weight(kb, FusedSearch(search.generators[:1]), queries)
    with pytest.raises(ConfigError, match="no held-out mention has a concept"):
        fit_lexical_weight(kb, search, [])
    names = [LinkQuery(f"name number {i % 12}", frozenset({f"C{i % 12}"})) for i in range(60)]
    with pytest.raises(ConfigError, match="names of their concepts in this store"):
        fit_lexical_weight(kb, search, names)
