"""Losses and their slopes: against plain formulas and differences."""

import math

import numpy as np
import pytest

from biograft.graph.embedding.config import LossConfig, ModelConfig
from biograft.graph.embedding.gradients import cost_slopes, log_sigmoid, make_rules, sigmoid


def rules_of(kind, **options):
    return make_rules(ModelConfig(), LossConfig(kind=kind, **options))


def test_margin_ranking_is_the_mean_over_pairs():
    scores, slopes = np.array([-1.0, -1.5, -3.0, -0.5]), np.empty(4)
    loss = cost_slopes(scores, slopes, 2, rules_of("margin", margin=1.0))
    assert loss == pytest.approx((0.5 + 0 + 1.5) / 3 / 2)
    np.testing.assert_allclose(slopes, [-2 / 6, 1 / 6, 0, 1 / 6])


def test_the_self_adversarial_loss_is_its_formula():
    scores, slopes = np.array([-1.0, -1.5, -3.0]), np.empty(3)
    loss = cost_slopes(scores, slopes, 1, rules_of("self-adversarial", margin=2.0, temperature=0.5))
    weights = [math.exp(0.5 * score) for score in scores[1:]]
    of = [weight / sum(weights) for weight in weights]
    logs = [math.log(1 / (1 + math.exp(score + 2))) for score in scores[1:]]
    true = math.log(1 / (1 + math.exp(-(2 - 1))))
    assert loss == pytest.approx(-(true + sum(w * g for w, g in zip(of, logs, strict=True))) / 2)


def test_self_adversarial_slopes_are_differences_with_fixed_weights():
    scores, slopes, step = np.array([-1.0, -1.5, -3.0, -0.2]), np.empty(4), 1e-6
    # with temperature 0 all weights are alike whatever the scores
    rules, room = rules_of("self-adversarial", margin=1.0, temperature=0.0), np.empty(4)
    cost_slopes(scores, slopes, 3, rules)
    for k in range(4):
        up, down = scores.copy(), scores.copy()
        up[k] += step
        down[k] -= step
        gap = cost_slopes(up, room, 3, rules) - cost_slopes(down, room, 3, rules)
        assert slopes[k] == pytest.approx(gap / (2 * step), rel=1e-5)


def test_far_scores_do_not_overflow():
    assert log_sigmoid(-1000.0) == -1000
    assert (sigmoid(1000.0), sigmoid(-1000.0)) == (1, 0)


def test_what_is_no_number_stays_seen():
    loss = cost_slopes(np.array([-1.0, np.nan]), np.empty(2), 1, rules_of("margin"))
    assert math.isnan(loss)
