"""What is hidden, how much of it, and the loss against plain loops and published code."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import torch

from biograft.training.objectives import (
    IGNORED,
    SPECIAL,
    MaskedTokens,
    MaskedTokensConfig,
    Setting,
    TensorBatch,
    TextExample,
    TextStates,
    collate,
)

MASK = 4
SETTING = Setting(mask=MASK, n_tokens=30, special=(0, 1, 2, 3, 4), width=3)
WORDS = [-1, 0, 1, 1, 2, 3, 3, 3, 4, 5, -1, 6, 7, 7, 8, -1]
MENTIONS = [(1, 3, 0), (5, 8, 1), (12, 12, 2)]
"""The last one is a part of a word."""


def example(words=WORDS, mentions=MENTIONS):
    words = np.array(words)
    tokens = np.where(words == SPECIAL, 2, 10 + np.arange(len(words)))
    return TextExample(
        tokens=tokens,
        segments=np.zeros_like(tokens),
        words=words,
        mentions=np.array(mentions, np.int64).reshape(-1, 3),
    )


UNITS = {
    "token": [-1, 0, 1, 2, 3, 4, 5, 6, 7, 8, -1, 9, 10, 11, 12, -1],
    "whole_word": WORDS,
    "whole_entity": [-1, 0, 0, 0, 1, 2, 2, 2, 2, 3, -1, 4, 5, 5, 6, -1],
}
"""The tokens that are hidden together have the same number."""
each_mode = pytest.mark.parametrize("mode", UNITS)


def objective(mode="whole_entity", **options):
    return MaskedTokens(MaskedTokensConfig(mode=mode, **options), SETTING)


def prepared(mode, n, **options):
    made = objective(mode, **options)
    return [made.prepare(example(), np.random.default_rng([5, k])) for k in range(n)]


@each_mode
def test_no_unit_is_split_and_no_special_token_touched(mode):
    units = np.array(UNITS[mode])
    for made in prepared(mode, 150, mask_ratio=0.3, random_ratio=0.2, kept_ratio=0.1):
        chosen = made.token_labels["masked_tokens"] != IGNORED
        assert not chosen[units == SPECIAL].any()
        masked = made.tokens == MASK
        for unit in range(units.max() + 1):
            assert chosen[units == unit].all() or not chosen[units == unit].any()
            assert masked[units == unit].all() or not masked[units == unit].any()


@each_mode
def test_the_ratios_are_exact_in_expectation(mode):
    n = 1500
    counts = np.zeros((n, 3))
    original = example().tokens
    for row, made in enumerate(prepared(mode, n)):
        chosen = made.token_labels["masked_tokens"] != IGNORED
        masked = made.tokens == MASK
        counts[row] = [chosen.sum(), masked.sum(), (made.tokens != original)[~masked].sum()]
        assert not masked[~chosen].any()
    n_tokens = sum(word != SPECIAL for word in WORDS)
    # one random token in 25 is the one that stood there
    expected = np.array([0.15, 0.12, 0.015 * 24 / 25]) * n_tokens
    deviation = counts.std(0) / math.sqrt(n)
    assert (np.abs(counts.mean(0) - expected) < 4 * deviation).all()


def test_labels_are_what_stood_there_and_random_tokens_are_ordinary():
    original = example().tokens
    for made in prepared("token", 200, mask_ratio=0.0, random_ratio=0.9, kept_ratio=0.0):
        labels = made.token_labels["masked_tokens"]
        chosen = labels != IGNORED
        assert (labels[chosen] == original[chosen]).all()
        assert (made.tokens[~chosen] == original[~chosen]).all()
        assert (made.tokens[chosen] > 4).all()
    assert (example().tokens == original).all()


FIXED = [(2, MASK), (6, 15), (7, MASK), (12, MASK)]
"""Fixed tokens, and what stands there: of one word and two mentions, three of them hidden."""


def partly_fixed():
    given = example()
    tokens, fixed = given.tokens.copy(), np.zeros(len(WORDS), bool)
    for position, token in FIXED:
        tokens[position], fixed[position] = token, True
    return replace(given, tokens=tokens, fixed=fixed)


@each_mode
def test_fixed_tokens_and_their_units_are_unchanged(mode):
    given, made = partly_fixed(), objective(mode, mask_ratio=0.5, random_ratio=0.3)
    units = np.array(UNITS[mode])
    held = np.isin(units, units[given.fixed])
    assert held.sum() > (given.fixed.sum() if mode != "token" else 0)
    for seed in range(100):
        found = made.prepare(given, np.random.default_rng([7, seed]))
        assert (found.tokens[held] == given.tokens[held]).all()
        assert (found.token_labels["masked_tokens"][held] == IGNORED).all()
        assert found.fixed is given.fixed


@each_mode
def test_tokens_masked_already_count_towards_the_ratio(mode):
    n, made = 1500, objective(mode, mask_ratio=0.4, random_ratio=0.0, kept_ratio=0.0)
    counts = [
        (made.prepare(partly_fixed(), np.random.default_rng([7, k])).tokens == MASK).sum()
        for k in range(n)
    ]
    expected = 0.4 * sum(word != SPECIAL for word in WORDS)
    deviation = np.std(counts) / math.sqrt(n)
    assert abs(np.mean(counts) - expected) < 4 * deviation + 1e-9


def test_the_loss_is_that_of_plain_loops():
    torch.manual_seed(0)
    made = objective(mask_ratio=0.3, weight=0.5)
    text = collate([made.prepare(example(), np.random.default_rng(k)) for k in range(3)], 0)
    states = torch.randn(3, len(WORDS), 3, dtype=torch.float64)
    head = torch.randn(3, 30, dtype=torch.float64)
    found = TextStates(final=states, token_scores=lambda some: some @ head)
    loss, stats = made.loss(found, TensorBatch.of(text))
    losses, right = [], 0
    for row in range(3):
        for position, label in enumerate(text.token_labels["masked_tokens"][row].tolist()):
            if label == IGNORED:
                continue
            scores = [
                sum(float(states[row, position, d] * head[d, v]) for d in range(3))
                for v in range(30)
            ]
            total = sum(math.exp(score) for score in scores)
            losses.append(-math.log(math.exp(scores[label]) / total))
            right += scores.index(max(scores)) == label
    assert made.count(text) == len(losses) > 3
    assert float(loss) == pytest.approx(0.5 * sum(losses) / len(losses), rel=1e-12)
    assert stats["loss"] == pytest.approx(sum(losses) / len(losses), rel=1e-6)
    assert stats["accuracy"] == pytest.approx(right / len(losses))
