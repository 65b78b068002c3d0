"""Calibrations against scikit-learn, thresholds against trying every one."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LogisticRegression

from biograft.errors import ConfigError, OutputError, StoreError
from biograft.linking import Calibration, Candidate, choose_threshold, fit_calibration


def sample(n, seed, levels=None):
    rng = np.random.default_rng(seed)
    scores = rng.random(n)
    if levels:
        scores = np.round(scores * levels) / levels
    return scores, (rng.random(n) < scores**2).astype(float)


@pytest.mark.parametrize(("n", "levels"), [(1, None), (40, None), (500, None), (500, 12)])
def test_isotonic_is_that_of_scikit_learn(n, levels):
    scores, right = sample(n, n, levels)
    oracle = IsotonicRegression(out_of_bounds="clip").fit(scores, right)
    points = np.linspace(-0.5, 1.5, 401)
    assert fit_calibration(scores, right)(points) == pytest.approx(oracle.predict(points), abs=1e-9)


@pytest.mark.parametrize("seed", range(4))
def test_platt_is_a_logistic_regression_on_softened_outcomes(seed):
    scores, right = sample(300, seed)
    n_right, n_wrong = right.sum(), (1 - right).sum()
    targets = np.where(right == 1, (n_right + 1) / (n_right + 2), 1 / (n_wrong + 2))
    doubled = np.concatenate([scores, scores])[:, None]
    outcomes = np.repeat([1, 0], len(scores))
    weights = np.concatenate([targets, 1 - targets])
    oracle = LogisticRegression(C=np.inf, tol=1e-10, max_iter=10_000).fit(
        doubled, outcomes, weights
    )
    points = np.linspace(-1, 2, 50)
    expected = oracle.predict_proba(points[:, None])[:, 1]
    assert fit_calibration(scores, right, "platt")(points) == pytest.approx(expected, abs=1e-4)


@pytest.mark.parametrize("method", ["isotonic", "platt"])
@pytest.mark.parametrize(
    ("scores", "right"),
    [([0.5] * 6, [1, 0, 1, 1, 0, 1]), ([0.1, 0.2, 0.8, 0.9], [0, 0, 1, 1]), ([0.3], [1])],
)
def test_few_equal_or_parted_scores_give_finite_rising_probabilities(method, scores, right):
    found = fit_calibration(scores, right, method)(np.linspace(-2, 2, 99))
    assert ((found >= 0) & (found <= 1)).all()
    assert (np.diff(found) >= -1e-12).all()


def test_equal_scores_get_the_fraction_of_correct_answers():
    assert fit_calibration([0.5] * 4, [1, 0, 1, 1])(0.5) == pytest.approx(0.75)


@pytest.mark.parametrize("method", ["isotonic", "platt"])
def test_what_is_saved_is_loaded(method, tmp_path):
    calibration = fit_calibration(*sample(100, 3), method, search="lexical*1")
    calibration.save(tmp_path / "c.json")
    assert Calibration.load(tmp_path / "c.json") == calibration
    replace(calibration, threshold=0.25).save(tmp_path / "threshold.json")
    assert Calibration.load(tmp_path / "threshold.json").threshold == 0.25
    with pytest.raises(OutputError, match="exists already"):
        calibration.save(tmp_path / "c.json")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"format": "other"}, "no calibration but 'other'"),
        ({"version": 2}, "calibration of version 2, this biograft reads version 1"),
        ({"method": "none"}, "damaged"),
        ({"points": []}, "damaged"),
        ({"points": [[0.1, None]]}, "damaged"),
        ({"points": [[0.1, float("nan")]]}, "damaged"),
    ],
)
def test_a_file_that_is_none(change, message, tmp_path):
    path = tmp_path / "c.json"
    fit_calibration([0.1, 0.9], [0, 1]).save(path)
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    with pytest.raises(StoreError, match=message):
        Calibration.load(path)


def test_no_file_and_no_json(tmp_path):
    with pytest.raises(StoreError, match="no such calibration"):
        Calibration.load(tmp_path / "none.json")
    (tmp_path / "c.json").write_text("{")
    with pytest.raises(StoreError, match="damaged"):
        Calibration.load(tmp_path / "c.json")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([], []), "a score for each outcome"),
        (([1.0], [1, 0]), "a score for each outcome"),
        (([np.nan], [1]), "finite scores"),
        (([0.5], [2]), "outcomes from 0 to 1"),
        (([0.5], [1], "magic"), "one of isotonic, platt, found 'magic'"),
    ],
)
def test_what_cannot_be_fitted(arguments, message):
    with pytest.raises(ConfigError, match=message):
        fit_calibration(*arguments)


def test_the_rest_is_shared_and_never_above_the_first():
    calibration = Calibration("isotonic", ((0.0, 0.0), (1.0, 1.0)))
    candidates = [Candidate(c, c, c, score) for c, score in (("a", 0.6), ("b", 0.5), ("c", 0.1))]
    first, second, third = (c.probability for c in calibration.apply(candidates))
    assert first == pytest.approx(0.6)
    assert second + third == pytest.approx(0.4)
    assert second / third == pytest.approx(np.exp(10 * 0.4))
    uncertain = [Candidate("a", "a", "a", 0.1), Candidate("b", "b", "b", 0.1)]
    assert [c.probability for c in calibration.apply(uncertain)] == pytest.approx([0.1, 0.1])
    assert calibration.apply([]) == []
    assert len(calibration.apply(uncertain[:1])) == 1


def f1(threshold, probabilities, right, nil):
    given = probabilities >= threshold
    n_right = (given & right & ~nil).sum()
    precision, recall = n_right / max(given.sum(), 1), n_right / max((~nil).sum(), 1)
    return 2 * precision * recall / (precision + recall) if n_right else 0.0


@pytest.mark.parametrize("seed", range(5))
def test_the_threshold_is_the_best_of_all(seed):
    rng = np.random.default_rng(seed)
    probabilities = np.round(rng.random(60), 1)
    nil = rng.random(60) < 0.3
    right = (rng.random(60) < probabilities) & ~nil
    chosen = choose_threshold(probabilities, right, nil)
    every = {t: f1(t, probabilities, right, nil) for t in np.unique(probabilities)}
    best = max(every.values())
    assert every[chosen] == pytest.approx(best)
    assert chosen == min(t for t, value in every.items() if value > best - 1e-12)
    strict = choose_threshold(probabilities, right, nil, "precision>=0.6")
    good = [t for t in every if right[probabilities >= t].mean() >= 0.6]
    assert strict == min(good)


def test_thresholds_that_cannot_be():
    with pytest.raises(ConfigError, match=r"cannot be reached; the best is 0\.500"):
        choose_threshold([0.9, 0.9], [True, False], [False, False], "precision>=0.95")
    with pytest.raises(ConfigError, match="f1 or precision>=NUMBER, found 'best'"):
        choose_threshold([0.9], [True], [False], "best")
    with pytest.raises(ConfigError, match="per mention"):
        choose_threshold([], [], [])
