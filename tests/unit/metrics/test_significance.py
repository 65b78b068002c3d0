"""Intervals and tests: known distributions, plain loops, the same seed twice."""

from __future__ import annotations

from math import comb

import numpy as np
import pytest

from biograft.errors import ConfigError
from biograft.metrics import (
    Counts,
    approximate_randomisation,
    bootstrap_counts,
    bootstrap_interval,
    mcnemar_exact,
    one_sample_t,
    paired_bootstrap,
    paired_counts,
    paired_t,
    welch_t,
)


def test_the_interval_of_a_proportion_is_near_the_normal_one():
    values = np.repeat([1.0, 0.0], [300, 100])
    interval = bootstrap_interval(values, n_resamples=4000)
    width = 1.96 * np.sqrt(0.75 * 0.25 / 400)
    assert interval.low == pytest.approx(0.75 - width, abs=0.006)
    assert interval.high == pytest.approx(0.75 + width, abs=0.006)


def test_resampling_documents_widens_the_interval_of_correlated_queries():
    values = np.repeat([1.0, 0.0] * 10, 20)
    documents = [f"d{k // 20}" for k in range(400)]
    single = bootstrap_interval(values)
    together = bootstrap_interval(values, documents)
    assert together.high - together.low > 3 * (single.high - single.low)


def test_groups_are_resampled_as_a_whole():
    """A resample of one group is that group."""
    interval = bootstrap_interval(np.array([1.0, 0, 0, 0]), ["d"] * 4)
    assert (interval.low, interval.high) == (0.25, 0.25)


def test_nothing_has_no_interval():
    assert bootstrap_interval(np.array([])).high == 0
    assert {i.high for n in (0, 3) for i in bootstrap_counts([Counts()] * n).values()} == {0}


def test_the_interval_of_added_counts_agrees_with_plain_loops():
    sampled = np.random.default_rng(5).integers(0, 5, size=(12, 3))
    counts = [Counts(*map(int, row)) for row in sampled]
    result = bootstrap_counts(counts, n_resamples=300, level=0.9, seed=7)
    rng = np.random.default_rng(7)
    resamples = rng.integers(0, 12, size=(300, 12))
    values = {"precision": [], "recall": [], "f1": []}
    for resample in resamples:
        right = sum(counts[k].right for k in resample)
        wrong = sum(counts[k].wrong for k in resample)
        missed = sum(counts[k].missed for k in resample)
        precision, recall = right / (right + wrong), right / (right + missed)
        values["precision"].append(precision)
        values["recall"].append(recall)
        values["f1"].append(2 * precision * recall / (precision + recall))
    for name, each in values.items():
        expected = np.quantile(each, [0.05, 0.95])
        assert (result[name].low, result[name].high) == pytest.approx(tuple(expected))


def test_no_p_of_resampling_is_0():
    """What no resample shows may still be by chance, once in as many."""
    a, b = np.ones(50), np.zeros(50)
    assert paired_bootstrap(a, b, n_resamples=99).p == pytest.approx(0.02)
    assert approximate_randomisation(a, b, n_resamples=99) == pytest.approx(0.01)
    assert paired_bootstrap(a, b).p == pytest.approx(2 / 1001)
    right, wrong = [Counts(1, 0, 0)] * 50, [Counts(0, 1, 1)] * 50
    found, p = paired_counts(right, wrong, n_resamples=99)
    assert (found.p, p) == pytest.approx((0.02, 0.01))


def test_counts_of_two_runs_are_compared_by_document():
    a = [Counts(k % 4, 1, 2) for k in range(40)]
    b = [Counts(k % 3, 2, 2) for k in range(40)]
    (found, p), metrics = paired_counts(a, b), [sum(run, Counts()).f1 for run in (a, b)]
    assert found.difference == pytest.approx(metrics[0] - metrics[1])
    assert found.interval.low < found.difference < found.interval.high
    rng = np.random.default_rng(5)
    differences = []
    for _ in range(300):
        picked = rng.integers(0, 40, size=40)
        sums = [sum((run[k] for k in picked), Counts()) for run in (a, b)]
        differences.append(sums[0].f1 - sums[1].f1)
    low, high = np.quantile(differences, [0.025, 0.975])
    assert (found.interval.low, found.interval.high) == pytest.approx((low, high), abs=0.02)
    exchanged = []
    for _ in range(300):
        swap = rng.integers(0, 2, size=40)
        pairs = [(y, x) if s else (x, y) for s, x, y in zip(swap, a, b, strict=True)]
        sums = [sum((pair[k] for pair in pairs), Counts()) for k in (0, 1)]
        exchanged.append(abs(sums[0].f1 - sums[1].f1) >= abs(found.difference) - 1e-12)
    assert p == pytest.approx(np.mean(exchanged), abs=0.06)
    same, p = paired_counts(a, a)
    assert (same.difference, same.interval.low, same.p, p) == (0, 0, 1, 1)
    with pytest.raises(ConfigError, match="40 documents against 39"):
        paired_counts(a, b[1:])


def test_randomisation_agrees_with_all_exchanges():
    a, b = np.array([1.0, 1, 0, 1, 1, 1]), np.array([0.0, 0, 1, 0, 1, 0])
    differences = a - b
    observed = abs(differences.sum())
    hits = 0
    for code in range(2**6):
        signs = [1 if code >> k & 1 else -1 for k in range(6)]
        hits += abs(sum(s * d for s, d in zip(signs, differences, strict=True))) >= observed
    p = approximate_randomisation(a, b, n_resamples=20_000)
    assert p == pytest.approx(hits / 2**6, abs=0.01)


@pytest.mark.parametrize(("only_a", "only_b"), [(0, 0), (5, 0), (3, 3), (1, 9), (40, 60)])
def test_mcnemar_agrees_with_exact_binomials(only_a, only_b):
    a = np.array([True] * only_a + [False] * only_b + [True] * 7, dtype=bool)
    b = np.array([False] * only_a + [True] * only_b + [True] * 7, dtype=bool)
    n, smaller = only_a + only_b, min(only_a, only_b)
    exact = min(1.0, 2 * sum(comb(n, k) for k in range(smaller + 1)) / 2**n)
    assert mcnemar_exact(a, b) == pytest.approx(exact)


def test_mcnemar_of_very_many_does_not_overflow():
    a = np.arange(20_000) % 2 == 0
    assert 0 < mcnemar_exact(a, ~a) <= 1


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: paired_bootstrap(np.ones(2), np.ones(3)), "2 values against 3"),
        (lambda: mcnemar_exact(np.ones(2, bool), np.ones(3, bool)), "2 values against 3"),
        (lambda: bootstrap_counts([Counts()], n_resamples=0), "at least 1, found 0"),
        (lambda: bootstrap_interval(np.ones(2), ["a"]), "1 groups for 2 values"),
        (lambda: bootstrap_interval(np.ones(2), level=95), "between 0 and 1, found 95"),
    ],
)
def test_invalid_input_is_refused(call, message):
    with pytest.raises(ConfigError, match=message):
        call()


@pytest.mark.parametrize("n", [2, 3, 5, 40])
@pytest.mark.parametrize("shift", [0.0, 0.4, 30.0])
def test_all_tests_equal_scipy(n, shift):
    stats = pytest.importorskip("scipy.stats")
    rng = np.random.default_rng(n)
    a, b = rng.normal(shift, 1, n).tolist(), rng.normal(0, 2, n + 1).tolist()
    pairs = [
        (one_sample_t(a, 0.3), stats.ttest_1samp(a, 0.3)),
        (paired_t(a, b[:n]), stats.ttest_rel(a, b[:n])),
        (welch_t(a, b), stats.ttest_ind(a, b, equal_var=False)),
    ]
    for ours, theirs in pairs:
        assert ours.t == pytest.approx(theirs.statistic)
        assert ours.p == pytest.approx(theirs.pvalue, rel=1e-9, abs=1e-14)


def test_runs_without_variance():
    assert welch_t([0.5, 0.5], [0.5, 0.5]).p == 1
    assert welch_t([0.5, 0.5], [0.6, 0.6]).p == 0
    assert one_sample_t([0.5, 0.5], 0.4).t == float("inf")


def test_a_single_run_is_refused():
    with pytest.raises(ConfigError, match="at least 2 runs, found 1"):
        one_sample_t([0.5], 0.4)
    with pytest.raises(ConfigError, match="2 values against 3"):
        paired_t([1, 2], [1, 2, 3])
