"""The forest of phrase quality: splits against brute force, trees and their mean."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, strategies as st

from biograft.corpus.segmentation.quality import PhraseForest, grow_tree, split_column


def gini(values, labels, threshold):
    total = 0.0
    for side in (values <= threshold, values > threshold):
        p = labels[side].mean()
        total += side.sum() * 2 * p * (1 - p)
    return total / len(values)


@given(st.lists(st.tuples(st.integers(0, 4), st.booleans()), min_size=2, max_size=12))
def test_the_best_split_is_that_of_all_thresholds(rows):
    values = np.array([value for value, _ in rows], float)
    labels = np.array([label for _, label in rows])
    found = split_column(values, labels)
    thresholds = np.unique(values)[:-1]
    if not len(thresholds):
        assert found is None
        return
    impurity, threshold = found
    assert impurity == pytest.approx(gini(values, labels, threshold))
    assert impurity == pytest.approx(min(gini(values, labels, t) for t in thresholds))


def test_a_threshold_between_neighbouring_numbers_still_splits():
    """The middle of two floats without one between them is the larger."""
    low = 1.0
    high = np.nextafter(low, 2)
    _, threshold = split_column(np.array([low, high]), np.array([True, False]))
    assert threshold == low


def test_a_tree_learns_its_examples():
    rng = np.random.default_rng(0)
    features, labels = rng.normal(size=(80, 5)), rng.random(80) < 0.5
    tree = grow_tree(features, labels, rng)
    assert (tree.predict(features) == labels).all()
    equal = grow_tree(np.zeros((4, 2)), np.array([True, True, True, False]), rng)
    assert equal.predict(np.ones((2, 2))).tolist() == [0.75, 0.75]
    pure = grow_tree(features, np.ones(80, bool), rng)
    assert pure.predict(features[:2]).tolist() == [1, 1]


def test_positives_among_the_unlabelled_do_not_mislead_the_forest():
    rng = np.random.default_rng(1)
    good, bad = rng.normal(1.5, 1, (300, 6)), rng.normal(-1.5, 1, (900, 6))
    unlabelled = np.concatenate([bad, good[100:]])
    forest = PhraseForest.fit(good[:100], unlabelled)
    hidden, others = forest.predict(good[100:]), forest.predict(bad)
    assert hidden.min() >= 0
    assert hidden.max() <= 1
    assert np.mean(hidden[:, None] > others[None, :]) > 0.99
    assert hidden.mean() > 0.6
    assert others.mean() < 0.2
    assert (PhraseForest.fit(good[:100], unlabelled).predict(bad) == others).all()
    assert forest.predict(np.zeros((0, 6))).tolist() == []
