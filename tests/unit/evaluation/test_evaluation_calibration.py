"""Calibration of a linker's answers, and its gain."""

from __future__ import annotations

import numpy as np
import pytest

from biograft.errors import ConfigError
from biograft.evaluation import (
    EvaluationConfig,
    LinkQuery,
    Resolved,
    calibrate_result,
    calibration_gain,
    run_queries,
)
from biograft.linking import Candidate, fit_calibration


class OverconfidentRanker:
    """Scores 0.9 for every answer; it is right for every second document, NIL being wrong."""

    def __init__(self, probability=None):
        self.probability = probability

    def rank(self, queries, k):
        candidate = Candidate("A", "", "a", 0.9, self.probability)
        return [[[candidate] for _ in query.parts] for query in queries]


def evaluate(ranker, queries, nil_below=None):
    config = EvaluationConfig(ks=(1,), n_resamples=1, nil_below=nil_below)
    resolved = Resolved(tuple(queries), frozenset(), (False,) * len(queries))
    return run_queries(ranker, resolved, lambda concept: frozenset({concept}), config=config)


def make_queries(n=200):
    return [LinkQuery("x", frozenset({"A" if k % 2 else "B"}), document=f"d{k}") for k in range(n)]


def test_the_error_before_and_after():
    before, after = calibration_gain(evaluate(OverconfidentRanker(), make_queries()))
    assert before == pytest.approx(0.4)
    assert after < 0.2
    with_probability, _ = calibration_gain(
        evaluate(OverconfidentRanker(probability=0.5), make_queries())
    )
    assert with_probability == pytest.approx(0)


def test_no_answer_is_calibrated_by_its_own_document():
    """With a single document there is nothing else to fit to."""
    queries = [LinkQuery("x", frozenset({"B"}), document="d")] * 10
    assert calibration_gain(evaluate(OverconfidentRanker(), queries)) == (
        pytest.approx(0.9),
        pytest.approx(0.9),
    )


def test_a_calibration_is_fitted_to_scores_and_judgements():
    result = evaluate(OverconfidentRanker(), make_queries())
    calibration = calibrate_result(result, "a search", store="a store")
    scores, right = np.full(200, 0.9), [float(k % 2) for k in range(200)]
    assert calibration == fit_calibration(scores, right, search="a search", store="a store")
    assert calibrate_result(result, "a search", aim="f1", store="").threshold == pytest.approx(0.5)


def test_answers_below_a_threshold_cannot_be_fitted():
    with pytest.raises(ConfigError, match="below a threshold were taken for NIL"):
        calibrate_result(
            evaluate(OverconfidentRanker(), make_queries(4), nil_below=0.95), "a search", store=""
        )
    assert (
        calibrate_result(
            evaluate(OverconfidentRanker(), make_queries(4), nil_below=0.5), "a search", store=""
        ).n
        == 4
    )


def test_composite_mentions_are_left_out():
    composite = LinkQuery("x", frozenset({"A", "B"}), parts=("x", "y"))
    result = evaluate(OverconfidentRanker(), [*make_queries(4), composite])
    assert calibrate_result(result, "", store="").n == 4
    with pytest.raises(ConfigError, match="no answer"):
        calibrate_result(evaluate(OverconfidentRanker(), [composite]), "", store="")
