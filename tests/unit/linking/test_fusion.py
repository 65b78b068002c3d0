"""Several generators as one: what comes first, how scores add up."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest

from biograft.errors import ConfigError
from biograft.linking import FusedSearch, NameHits, collect_candidates


class Fixed:
    """Holds the names 0, 1, ... with these scores for any text; nan: not held."""

    def __init__(self, name, *scores):
        self.name = name
        self.all = np.array([-np.inf if math.isnan(s) else s for s in scores], np.float32)

    def search(self, texts, k):
        order = np.lexsort((np.arange(len(self.all)), -self.all))[:k]
        order = np.pad(order, (0, max(0, k - len(order))), constant_values=-1)
        scores = np.where(order >= 0, self.all[order], -np.inf).astype(np.float32)
        rows = np.where(np.isfinite(scores), order, -1)
        return NameHits(np.tile(rows, (len(texts), 1)), np.tile(scores, (len(texts), 1)))

    def score(self, texts, rows):
        return np.where(rows >= 0, self.all[rows], -np.inf).astype(np.float32)


NAN = float("nan")


def search(fused, k=4):
    hits = fused.search(["x"], k)
    return hits.rows[0].tolist(), hits.scores[0].tolist()


def test_the_text_itself_comes_first_whatever_the_vectors_say():
    fused = FusedSearch([Fixed("lexical", 0.99, 0.98, 1.0, 0.1), Fixed("dense", 0, 1, -1, 1)])
    rows, scores = search(fused)
    assert rows == [2, 0, 1, 3]
    assert scores == pytest.approx([1.0, 0.99, 0.98, 0.55])


def test_scores_are_weighted_by_normalised_weights():
    generators = [Fixed("lexical", 0.2, 0.6), Fixed("dense", 0.8, 0.1)]
    assert search(FusedSearch(generators), 2) == ([0, 1], pytest.approx([0.5, 0.35]))
    lexical = FusedSearch(generators, {"lexical": 3, "dense": 1})
    assert search(lexical, 2) == ([1, 0], pytest.approx([0.475, 0.35]))
    assert str(lexical) == "dense*0.25+lexical*0.75"
    assert search(FusedSearch(generators, {"dense": 0}), 2)[1] == pytest.approx([0.6, 0.2])


def test_a_generator_that_does_not_hold_a_name_adds_nothing():
    fused = FusedSearch([Fixed("lexical", NAN, 0.4), Fixed("dense", 0.9, NAN)])
    assert search(fused) == ([0, 1, -1, -1], pytest.approx([0.45, 0.2, -np.inf, -np.inf]))
    assert fused.score(["x"], np.array([[1, -1, 0]]))[0] == pytest.approx([0.2, -np.inf, 0.45])


def test_ties_go_to_the_lower_row_and_k_cuts():
    fused = FusedSearch([Fixed("lexical", 0.5, 0.7, 0.5, 0.7)])
    assert search(fused, 3)[0] == [1, 3, 0]


def test_one_generator_keeps_its_scores():
    assert search(FusedSearch([Fixed("dense", 0.3, 0.999)]), 2) == (
        [1, 0],
        pytest.approx([0.999, 0.3]),
    )


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ({"lexical": NAN}, "lexical to be 0 or more, found nan"),
        ({"lexical": -1}, "found -1"),
        ({"dense": math.inf}, "found inf"),
        ({"lexical": 0, "dense": 0}, "at least one above 0"),
        ({"lexicl": 1}, "did you mean 'lexical'"),
    ],
)
def test_weights_that_mean_nothing_are_refused(weights, message):
    with pytest.raises(ConfigError, match=message):
        FusedSearch([Fixed("lexical", 1), Fixed("dense", 1)], weights)


def test_generators_need_names_of_their_own():
    with pytest.raises(ConfigError, match="distinct names"):
        FusedSearch([Fixed("a", 1), Fixed("a", 1)])
    with pytest.raises(ConfigError, match="found \\[\\]"):
        FusedSearch([])


class TableGenerator:
    """Scores names by a table: ``scores[text][row]``; a row without an entry is not held."""

    def __init__(self, name, scores):
        self.name, self.scores = name, scores

    def search(self, texts, k):
        rows = np.full((len(texts), k), -1, np.int64)
        out = np.full((len(texts), k), -np.inf, np.float32)
        for line, text in enumerate(texts):
            ranked = sorted(self.scores[text].items(), key=lambda item: (-item[1], item[0]))[:k]
            for position, (row, score) in enumerate(ranked):
                rows[line, position], out[line, position] = row, score
        return NameHits(rows, out)

    def score(self, texts, rows):
        return np.array(
            [
                [self.scores[text].get(int(row), -np.inf) for row in line]
                for text, line in zip(texts, rows, strict=True)
            ],
            np.float32,
        )


def random_generator(name, texts, seed):
    rng = random.Random(seed)

    def scores():
        return {
            row: rng.choice([0.1, 0.5, 0.9]) for row in rng.sample(range(30), rng.randrange(20))
        }

    return TableGenerator(name, {text: scores() for text in texts})


@pytest.mark.parametrize("k", [1, 4, 25])
def test_every_name_with_every_score_and_rank(k):
    texts = [f"t{n}" for n in range(20)]
    generators = [random_generator(name, texts, n) for n, name in enumerate("abc")]
    pool = collect_candidates(generators, texts, k)
    assert pool.generators == ("a", "b", "c")
    for line, text in enumerate(texts):
        hits = [generator.search([text], k).rows[0].tolist() for generator in generators]
        union = sorted({row for rows in hits for row in rows} - {-1})
        assert pool.rows[line].tolist() == union + [-1] * (pool.rows.shape[1] - len(union))
        for number, generator in enumerate(generators):
            for column, row in enumerate(union):
                rank = hits[number].index(row) + 1 if row in hits[number] else 0
                assert pool.ranks[number, line, column] == rank
                expected = generator.scores[text].get(row, -np.inf)
                assert pool.scores[number, line, column] == np.float32(expected)


def test_one_generator_is_searched_once():
    alone = random_generator("a", ["x", "y"], 5)
    expected = collect_candidates([alone, random_generator("b", ["x", "y"], 6)], ["x", "y"], 7)
    alone.score = None
    pool = collect_candidates([alone], ["x", "y"], 7)
    hits = alone.search(["x", "y"], 7)
    for line in range(2):
        found = {int(r): float(s) for r, s in zip(hits.rows[line], hits.scores[line], strict=True)}
        for column, row in enumerate(pool.rows[line]):
            if row >= 0:
                assert pool.scores[0, line, column] == found[int(row)]
    assert set(pool.rows[0]) - {-1} <= set(expected.rows[0])


def test_no_results_and_no_queries():
    silent = TableGenerator("a", {"x": {}})
    pool = collect_candidates([silent, TableGenerator("b", {"x": {}})], ["x"], 3)
    assert pool.rows.shape == (1, 0)
    assert len(collect_candidates([silent], [], 3)) == 0
    with pytest.raises(ConfigError, match="k: expected at least 1"):
        collect_candidates([silent], ["x"], 0)
