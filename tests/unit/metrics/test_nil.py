"""NIL as precision, recall and F1."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, strategies as st

from biograft.metrics import Counts, nil_counts


@given(st.lists(st.tuples(st.booleans(), st.booleans())))
def test_nil_counts_agree_with_plain_loops(pairs):
    gold = np.array([a for a, _ in pairs], dtype=bool)
    answered = np.array([b for _, b in pairs], dtype=bool)
    counts = nil_counts(gold, answered)
    right = wrong = missed = 0
    for a, b in pairs:
        right += a and b
        wrong += b and not a
        missed += a and not b
    assert counts == Counts(right, wrong, missed)
    assert 0 <= counts.f1 <= 1


def test_counts_by_hand():
    counts = Counts(right=2, wrong=1, missed=2)
    assert (counts.precision, counts.recall) == (2 / 3, 0.5)
    assert counts.f1 == pytest.approx(2 * (2 / 3) * 0.5 / (2 / 3 + 0.5))
    assert Counts() + counts == counts
    assert (Counts().precision, Counts().recall, Counts().f1) == (0, 0, 0)
