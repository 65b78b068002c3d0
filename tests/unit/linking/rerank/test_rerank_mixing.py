from __future__ import annotations

import itertools

import numpy as np
import pytest

from biograft.errors import ConfigError
from biograft.linking.rerank import Mix
from biograft.training.linkers.rerank import ScoredMention, fit_mix


def made_up(n, seed, *, ranker, context):
    """Mentions whose right candidate both scores point to, so strongly."""
    rng, mentions = np.random.default_rng(seed), []
    for _ in range(n):
        size = int(rng.integers(1, 6))
        right = np.zeros(size + 1, bool)
        right[rng.integers(size + 1)] = True
        first = 5 + 0.1 * (rng.normal(size=size) + ranker * right[:-1])
        mentions.append(ScoredMention(first, rng.normal(size=size + 1) + context * right, right))
    return mentions


def penalised(mentions, numbers, mean, deviation):
    """The objective in plain loops."""
    ranker, context, nil = numbers
    total = -((ranker**2) + (context - 1) ** 2 + nil**2) / 2
    for mention in mentions:
        logits = [
            ranker * (r - mean) / deviation + context * x
            for r, x in zip(mention.ranker, mention.context[:-1], strict=True)
        ]
        logits.append(context * mention.context[-1] + nil)
        good = sum(np.exp(z) for z, right in zip(logits, mention.right, strict=True) if right)
        total += np.log(good) - np.log(sum(np.exp(z) for z in logits))
    return total


def test_no_other_numbers_near_by_are_better():
    mentions = made_up(60, 1, ranker=1.0, context=1.5)
    mix = fit_mix(mentions)
    scores = np.concatenate([m.ranker for m in mentions])
    assert (mix.mean, mix.deviation) == (scores.mean(), scores.std())
    found = np.array([mix.ranker, mix.context, mix.nil])
    best = penalised(mentions, found, mix.mean, mix.deviation)
    for step in itertools.product([-0.02, 0, 0.02], repeat=3):
        assert penalised(mentions, found + step, mix.mean, mix.deviation) <= best + 1e-9


def test_the_more_informative_ranking_has_more_weight():
    weights = [
        fit_mix(made_up(300, 2, ranker=ranker, context=context)).ranker_weight
        for ranker, context in ((0, 2), (2, 2), (2, 0))
    ]
    assert weights == sorted(weights)
    assert weights[0] < 0.2
    assert weights[2] > 0.8


@pytest.mark.parametrize(("ranker", "context"), [(-2, 2), (2, -2)])
def test_a_score_that_speaks_against_what_is_right_is_left_out(ranker, context):
    mix = fit_mix(made_up(300, 3, ranker=ranker, context=context))
    assert [mix.ranker > 0, mix.context > 0] == [ranker > 0, context > 0]


def test_without_mentions_the_context_alone_counts():
    assert fit_mix([]) == Mix() == Mix(0.0, 1.0, 0.0, 0.0, 1.0)
    alone = ScoredMention(np.zeros(0), np.zeros(1), np.array([True]))
    assert fit_mix([alone]) == Mix()


def test_equal_scores_of_the_first_ranking_do_no_harm():
    mentions = [
        ScoredMention(np.full(2, 0.3), np.array([1.0, 0.0, -1.0]), np.array([True, False, False]))
    ]
    assert fit_mix(mentions).ranker == pytest.approx(0)


def test_scores_that_are_no_numbers_are_refused():
    bad = ScoredMention(np.array([np.nan]), np.zeros(2), np.array([True, False]))
    with pytest.raises(ConfigError, match="scores are not finite"):
        fit_mix([bad])


@pytest.mark.parametrize("values", [{"ranker": -1.0}, {"nil": float("nan")}, {"deviation": 0.0}])
def test_numbers_that_cannot_be_are_refused(values):
    with pytest.raises(ValueError, match="expected finite numbers"):
        Mix(**values)
