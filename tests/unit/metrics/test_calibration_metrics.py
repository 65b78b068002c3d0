"""Calibration error and Brier score against plain loops."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, strategies as st

from biograft.errors import ConfigError
from biograft.metrics import (
    Judgements,
    Metric,
    brier_score,
    calibration_error,
    concept_answers,
    reliability,
)

ROWS = st.lists(
    st.tuples(st.integers(0, 20).map(lambda n: n / 20), st.sampled_from([0.0, 0.5, 1.0])),
    min_size=1,
)


def columns(rows):
    return np.array([p for p, _ in rows]), np.array([r for _, r in rows])


@given(ROWS, st.sampled_from([1, 4, 5]))
def test_equal_width_agrees_with_plain_loops(rows, n_bins):
    total = 0.0
    for k in range(n_bins):
        last = k == n_bins - 1
        inside = [
            (p, r)
            for p, r in rows
            if k / n_bins <= p and (p < (k + 1) / n_bins or (last and p == 1))
        ]
        if inside:
            gap = sum(r for _, r in inside) - sum(p for p, _ in inside)
            total += abs(gap)
    expected = total / len(rows)
    assert calibration_error(*columns(rows), n_bins) == pytest.approx(expected)


@given(ROWS, st.integers(1, 6), st.randoms())
def test_bins_of_equal_size_hold_everything_and_ignore_order(rows, n_bins, random):
    bins = reliability(*columns(rows), n_bins, by_mass=True)
    assert sum(b.n for b in bins) == len(rows)
    assert len(bins) <= n_bins
    assert all(b.low - 1e-9 <= b.probability <= b.high + 1e-9 for b in bins)
    shuffled = list(rows)
    random.shuffle(shuffled)
    again = calibration_error(*columns(shuffled), n_bins, by_mass=True)
    assert again == pytest.approx(calibration_error(*columns(rows), n_bins, by_mass=True))


@given(ROWS)
def test_brier_agrees_with_plain_loops(rows):
    expected = sum(r * (1 - p) ** 2 + (1 - r) * p**2 for p, r in rows) / len(rows)
    assert brier_score(*columns(rows)) == pytest.approx(expected)


@given(st.lists(st.tuples(ROWS.map(lambda rows: rows[0]), st.booleans()), max_size=20))
def test_of_a_run_only_answers_that_are_not_nil_count(rows):
    run = judgements([(p, r, False, nil) for (p, r), nil in rows])
    given_rows = [row for row, nil in rows if not nil]
    for name, compute in (("ece", calibration_error), ("brier", brier_score)):
        expected = compute(*columns(given_rows)) if given_rows else 0
        assert Metric.parse(name)(run) == pytest.approx(expected)


def test_a_concept_given_for_nil_is_a_wrong_answer_and_nil_is_none():
    """A certain answer to a NIL query counts with its probability; NIL answers do not count."""
    certain_of_nil = judgements([(0.9, 0.0, True, False)])
    assert Metric.parse("ece")(certain_of_nil) == pytest.approx(0.9)
    nil = judgements([(0.2, 1.0, True, True), (float("nan"), 0.0, False, True)])
    assert Metric.parse("ece")(nil) == Metric.parse("brier")(nil) == 0
    assert [len(column) for column in concept_answers(nil)] == [0, 0]


def judgements(rows):
    """Make judgements: probability, whether right, whether gold and answer are NIL."""
    right = np.array([[row[1]] for row in rows]).reshape(-1, 1)
    return Judgements(
        right,
        right,
        np.array([row[2] for row in rows], dtype=bool),
        np.array([row[3] for row in rows], dtype=bool),
        np.array([row[0] for row in rows], dtype=float),
        tuple(map(str, range(len(rows)))),
    )


@pytest.mark.parametrize(
    ("probability", "right", "n_bins", "message"),
    [
        ([np.nan], [1], 10, "carry no probability"),
        ([1.5], [1], 10, "from 0 to 1"),
        ([0.5], [1], 0, "bins: expected at least 1"),
        ([0.5], [1, 1], 10, "1 probabilities for 2 answers"),
    ],
)
def test_invalid_input_is_refused(probability, right, n_bins, message):
    with pytest.raises(ConfigError, match=message):
        calibration_error(np.array(probability), np.array(right, dtype=float), n_bins)
