"""Uniting what generators find, against plain loops."""

from __future__ import annotations

import random

import numpy as np
import pytest

from biograft.errors import ConfigError
from biograft.linking.candidates import NameHits
from biograft.linking.fusion import collect_candidates


class TableGenerator:
    """Scores names by a table: ``scores[text][row]``; a row without an entry is not held."""

    def __init__(self, name, scores):
        self.name, self.scores = name, scores

    def search(self, texts, k):
        rows = np.full((len(texts), k), -1, np.int64)
        out = np.full((len(texts), k), -np.inf, np.float32)
        for line, text in enumerate(texts):
            ranked = sorted(self.scores[text].items(), key=lambda item: (-item[1], item[0]))[:k]
            for place, (row, score) in enumerate(ranked):
                rows[line, place], out[line, place] = row, score
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


def test_one_generator_is_not_asked_twice():
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


def test_nothing_found_and_nothing_asked():
    silent = TableGenerator("a", {"x": {}})
    pool = collect_candidates([silent, TableGenerator("b", {"x": {}})], ["x"], 3)
    assert pool.rows.shape == (1, 0)
    assert len(collect_candidates([silent], [], 3)) == 0
    with pytest.raises(ConfigError, match="k: expected at least 1"):
        collect_candidates([silent], ["x"], 0)
