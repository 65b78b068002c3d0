"""Mentions chosen by evidence: which of those that overlap, and how probable each is."""

from __future__ import annotations

import random
from itertools import combinations, pairwise

import numpy as np
import pytest

from biograft.linking.mention_choice import MentionOption, choose, fit_weights, probabilities

LEAST = 0.3


def options_of(spans):
    return [MentionOption(span, frozenset([f"D{n}"]), (), ()) for n, span in enumerate(spans)]


def best_sum(spans, likely):
    best = 0.0
    for size in range(len(spans) + 1):
        for rows in combinations(range(len(spans)), size):
            own = sorted(spans[row] for row in rows)
            if all(a[1] <= b[0] for a, b in pairwise(own)):
                best = max(best, sum(likely[row] - LEAST for row in rows))
    return best


def test_of_overlapping_options_those_with_the_highest_sum_are_taken():
    rng = random.Random(0)
    for _ in range(200):
        spans = [(s := rng.randrange(8), s + rng.randint(1, 5)) for _ in range(7)]
        likely = [rng.random() for _ in spans]
        chosen = choose(options_of(spans), likely)
        taken = [int(min(option.concepts)[1:]) for option in chosen]
        own = [spans[row] for row in taken]
        assert own == sorted(own)
        assert all(a[1] <= b[0] for a, b in pairwise(own))
        total = sum(likely[row] - LEAST for row in taken)
        assert total == pytest.approx(best_sum(spans, likely))


def test_improbable_options_are_never_taken():
    assert choose(options_of([(0, 3)]), [0.25]) == []
    assert choose([], []) == []


def test_weights_are_those_of_the_regression():
    rng = np.random.default_rng(0)
    values = rng.normal(size=(4000, 3)) * [1, 5, 0.1] + [0, 2, 1]
    truth = np.array([1.5, -0.2, 8.0])
    right = rng.random(4000) < 1 / (1 + np.exp(-(values @ truth - 6)))
    weights = fit_weights(values, right)
    assert weights[:3] == pytest.approx(truth, rel=0.2)
    assert weights[3] == pytest.approx(-6, rel=0.2)
    options = [MentionOption((0, 1), frozenset("D"), (), tuple(row)) for row in values.tolist()]
    likely = probabilities(options, weights)
    assert likely.mean() == pytest.approx(right.mean(), abs=1e-3)
    assert probabilities([], weights).shape == (0,)


def test_a_value_that_never_changes_is_harmless():
    values = np.c_[np.ones(50), np.arange(50.0)]
    weights = fit_weights(values, np.arange(50) > 25)
    assert np.isfinite(weights).all()
