"""The forest of phrase quality: splits against brute force, trees and their mean."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, strategies as st

from biograft.text.segmentation.phrases import split_column


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
