"""Student's t-tests against scipy's, and where there is nothing to test."""

from __future__ import annotations

import numpy as np
import pytest

from biograft.errors import ConfigError
from biograft.metrics import one_sample_t, paired_t, welch_t


@pytest.mark.parametrize("n", [2, 3, 5, 40])
@pytest.mark.parametrize("shift", [0.0, 0.4, 30.0])
def test_all_tests_equal_scipy(n, shift):
    stats = pytest.importorskip("scipy.stats")
    draw = np.random.default_rng(n)
    a, b = draw.normal(shift, 1, n).tolist(), draw.normal(0, 2, n + 1).tolist()
    pairs = [
        (one_sample_t(a, 0.3), stats.ttest_1samp(a, 0.3)),
        (paired_t(a, b[:n]), stats.ttest_rel(a, b[:n])),
        (welch_t(a, b), stats.ttest_ind(a, b, equal_var=False)),
    ]
    for ours, theirs in pairs:
        assert ours.t == pytest.approx(theirs.statistic)
        assert ours.p == pytest.approx(theirs.pvalue, rel=1e-9, abs=1e-14)


def test_the_difference_is_that_of_the_means():
    assert one_sample_t([0.4, 0.6], 0.3).difference == pytest.approx(0.2)
    assert welch_t([0.4, 0.6], [0.9, 0.9]).difference == pytest.approx(-0.4)


def test_equal_runs_need_no_chance():
    assert welch_t([0.5, 0.5], [0.5, 0.5]).p == 1
    assert welch_t([0.5, 0.5], [0.6, 0.6]).p == 0
    assert one_sample_t([0.5, 0.5], 0.4).t == float("inf")


def test_one_run_tells_nothing():
    with pytest.raises(ConfigError, match="at least 2 runs, found 1"):
        one_sample_t([0.5], 0.4)
    with pytest.raises(ConfigError, match="2 values against 3"):
        paired_t([1, 2], [1, 2, 3])
