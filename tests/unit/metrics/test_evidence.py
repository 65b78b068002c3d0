"""EffectSize for claims, against plain loops, the exact distribution and simple cases."""

from __future__ import annotations

import itertools
from math import erfc, isclose, sqrt

import numpy as np
import pytest
from hypothesis import given, strategies as st

from biograft.metrics import (
    EffectSize,
    Verdict,
    crossed_bootstrap,
    crossed_ratio_bootstrap,
    holm,
    judge_evidence,
)

RNG = np.random.default_rng(0)


def plain_bootstrap(value, n_pre, n_fine, n_documents, n_resamples, seed):
    """The effect, and its means over the same draws, of ``value(cell, documents)`` by loops."""
    grid = list(itertools.product(range(n_pre), range(n_fine)))
    cells = {cell: value(cell, range(n_documents)) for cell in grid}
    of_pre = {i: sum(cells[i, j] for j in range(n_fine)) / n_fine for i in range(n_pre)}
    whole = sum(of_pre.values()) / n_pre
    rng, means = np.random.default_rng(seed), []
    for _ in range(n_resamples):
        pre = rng.integers(0, n_pre, n_pre)
        fine = rng.integers(0, n_fine, (n_pre, n_fine))
        documents = rng.integers(0, n_documents, n_documents)
        values = []
        for row, i in enumerate(pre):
            for j in fine[row]:
                values.append(value((i, j), documents))
                if n_pre > 1:
                    values[-1] += (sqrt(n_pre / (n_pre - 1)) - 1) * (of_pre[i] - whole)
                if n_fine > 1:
                    values[-1] += (sqrt(n_fine / (n_fine - 1)) - 1) * (cells[i, j] - of_pre[i])
        means.append(sum(values) / len(values))
    return whole, means


def is_that_of_plain_loops(found, whole, means):
    assert isclose(found.effect, whole, abs_tol=1e-12)
    assert (found.low, found.high) == pytest.approx(np.quantile(means, [0.025, 0.975]), abs=1e-9)
    assert 0 < found.p <= 1


@given(st.integers(1, 3), st.integers(1, 3), st.integers(1, 6), st.integers(0, 99))
def test_the_bootstrap_equals_plain_loops(n_pre, n_fine, n_items, seed):
    rng = np.random.default_rng(seed)
    a, b = rng.integers(0, 2, (2, n_pre, n_fine, n_items)).astype(float)
    groups = rng.integers(0, 3, n_items).tolist()
    names = list(dict.fromkeys(groups))

    def mean(cell, documents):
        items = [k for d in documents for k in range(n_items) if groups[k] == names[d]]
        return sum(a[cell][k] - b[cell][k] for k in items) / len(items)

    found = crossed_bootstrap(a, b, groups, n_resamples=20, seed=seed)
    is_that_of_plain_loops(found, *plain_bootstrap(mean, n_pre, n_fine, len(names), 20, seed))


@given(st.integers(1, 3), st.integers(1, 3), st.integers(1, 6), st.integers(0, 99))
def test_the_bootstrap_of_f1_equals_plain_loops(n_pre, n_fine, n_documents, seed):
    rng = np.random.default_rng(seed)
    runs = [
        np.stack([2 * (right := rng.integers(0, 3, size)), 2 * right + rng.integers(0, 3, size)], 3)
        for size in [(n_pre, n_fine, n_documents)] * 2
    ]

    def difference(cell, documents):
        sums = [[sum(counts[cell][d, k] for d in documents) for k in (0, 1)] for counts in runs]
        f1 = [top / bottom if bottom else 0.0 for top, bottom in sums]
        return f1[0] - f1[1]

    a, b = (counts.astype(float) for counts in runs)
    found = crossed_ratio_bootstrap(a, b, n_resamples=10, seed=seed)
    is_that_of_plain_loops(
        found, *plain_bootstrap(difference, n_pre, n_fine, n_documents, 10, seed)
    )


def test_the_interval_counts_the_variance_of_seeds():
    """Three seeds with equal items: the variance is that of the mean of three seeds."""
    levels = np.array([0.0, 0.3, 0.9])
    a = np.broadcast_to(levels[:, None, None], (3, 1, 50)).copy()
    found = crossed_bootstrap(a, np.zeros_like(a), n_resamples=4000)
    draws = [np.mean(each) for each in itertools.product(levels, repeat=3)]
    assert np.std(draws) * sqrt(3 / 2) == pytest.approx(levels.std(ddof=1) / sqrt(3))
    assert found.standard_error == pytest.approx(levels.std(ddof=1) / sqrt(3), rel=0.2)
    alone = crossed_bootstrap(a[:1], np.zeros_like(a[:1]))
    assert (alone.low, alone.high) == (0, 0)  # one seed has no variance to count


def test_seeds_of_fine_tuning_belong_to_a_seed_of_pretraining():
    """Many seeds of fine-tuning do not make up for few of pre-training."""
    pre = np.array([0.0, 1.0])[:, None, None]
    few, many = (np.broadcast_to(pre, (2, n, 20)).copy() for n in (1, 9))
    errors = [crossed_bootstrap(x, np.zeros_like(x)).standard_error for x in (few, many)]
    assert errors[0] == pytest.approx(errors[1], rel=0.1)


def test_documents_are_resampled_whole():
    items = RNG.integers(0, 2, 30).repeat(4).astype(float)[None, None]
    zeros, groups = np.zeros_like(items), np.arange(30).repeat(4)
    alone = crossed_bootstrap(items, zeros).standard_error
    grouped = crossed_bootstrap(items, zeros, groups.tolist()).standard_error
    assert grouped == pytest.approx(2 * alone, rel=0.2)


@given(st.dictionaries(st.text(max_size=3), st.floats(0, 1), max_size=6))
def test_holm_equals_its_definition(p_values):
    """A hypothesis is rejected if all with smaller p are, and p <= level / (those left)."""
    corrected = holm(p_values)
    assert list(corrected) == list(p_values)
    for level in (0.01, 0.05, 0.3):
        rejected, left = set(), sorted(p_values.items(), key=lambda item: item[1])
        while left and left[0][1] * len(left) <= level:
            rejected.add(left.pop(0)[0])
        assert {name for name, p in corrected.items() if p <= level} == rejected


@pytest.mark.parametrize(
    ("effect", "p", "corrected", "verdict"),
    [
        (2.0, 0.001, 0.01, Verdict.REPRODUCED),
        (-2.0, 0.001, 0.01, Verdict.OPPOSITE),
        (2.0, 0.01, 0.06, Verdict.SAME_SIGN),
        (2.0, 0.4, 1.0, Verdict.NO_EFFECT),
    ],
)
def test_verdicts_follow_the_rule(effect, p, corrected, verdict):
    assert judge_evidence(EffectSize(effect, effect - 1, effect + 1, p), corrected) is verdict


def test_the_detectable_effect_is_found_in_four_of_five_repetitions():
    evidence = EffectSize(0.0, -1.959964, 1.959964, 1.0)  # a standard error of 1
    found = RNG.normal(evidence.detectable, 1, 20_000) > 1.959964
    assert found.mean() == pytest.approx(0.8, abs=0.01)


def test_a_clear_difference_has_the_p_of_a_normal_distribution_not_of_the_number_of_resamples():
    """Guards: with 30 claims corrected together, 2 / 1,001 was never significant."""
    items = np.ones((1, 1, 400))
    items[0, 0, :100] = -1
    found = crossed_bootstrap(items, np.zeros_like(items), n_resamples=1000)
    z = 0.5 / (items.std() / sqrt(400))
    assert 0 < found.p < 1e-6
    assert found.p == pytest.approx(erfc(z / sqrt(2)), rel=100)
    assert crossed_bootstrap(items, items).p == 1
