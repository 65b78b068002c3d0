"""Sentence order and next sentence prediction."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import torch

from biograft.errors import ConfigError
from biograft.training.objectives import (
    HEAD_OFFSET,
    IGNORED,
    SPECIAL,
    NextSentence,
    NextSentenceConfig,
    SentenceOrder,
    SentenceOrderConfig,
    Setting,
    TensorBatch,
    TextExample,
    TextStates,
    collate,
)

SETTING = Setting(mask=4, n_tokens=30, special=(0, 1, 2, 3, 4), width=5)
CLS, SEP = 2, 3


def example(**labels):
    """``[CLS] 10 11 12 [SEP] 20 21 [SEP]`` with a mention in each part."""
    return TextExample(
        tokens=np.array([CLS, 10, 11, 12, SEP, 20, 21, SEP]),
        segments=np.array([0, 0, 0, 0, 0, 1, 1, 1]),
        words=np.array([SPECIAL, 0, 1, 1, SPECIAL, 2, 2, SPECIAL]),
        mentions=np.array([[1, 2, 7], [6, 6, 8]]),
        token_labels={"position": np.arange(8)},
        labels=labels,
    )


def order(**options):
    return SentenceOrder(SentenceOrderConfig(**options), SETTING)


def swap_segments(given):
    return order(swap_probability=1.0).prepare(given, np.random.default_rng(0))


def test_swapping_moves_tokens_with_their_labels():
    offsets = np.array([1, IGNORED])
    given = replace(example(), mention_labels={HEAD_OFFSET: offsets}, fixed=np.arange(8) == 2)
    swapped = swap_segments(given)
    assert swapped.tokens.tolist() == [CLS, 20, 21, SEP, 10, 11, 12, SEP]
    assert swapped.segments.tolist() == [0, 0, 0, 0, 1, 1, 1, 1]
    assert swapped.words.tolist() == [SPECIAL, 0, 0, SPECIAL, 1, 2, 2, SPECIAL]
    assert swapped.mentions.tolist() == [[2, 2, 8], [4, 5, 7]]
    assert swapped.token_labels["position"].tolist() == [0, 5, 6, 7, 1, 2, 3, 4]
    assert swapped.mention_labels[HEAD_OFFSET].tolist() == [IGNORED, 1]
    assert np.flatnonzero(swapped.fixed).tolist() == [5]
    back = swap_segments(swapped)
    for name in ("tokens", "segments", "words", "mentions", "fixed"):
        assert (getattr(back, name) == getattr(given, name)).all()
    assert back.mention_labels[HEAD_OFFSET].tolist() == offsets.tolist()


def test_half_of_the_sequences_are_swapped():
    made = order()
    n_swapped = 0
    for seed in range(400):
        prepared = made.prepare(example(), np.random.default_rng(seed))
        swapped = prepared.tokens[1] == 20
        assert prepared.labels["sentence_order"] == (not swapped)
        n_swapped += swapped
    assert n_swapped == pytest.approx(200, abs=40)
    never = order(swap_probability=0.0).prepare(example(), np.random.default_rng(0))
    assert never.tokens.tolist() == example().tokens.tolist()


def test_random_next_segments_have_no_order():
    for seed in range(20):
        made = order().prepare(example(follows=0), np.random.default_rng(seed))
        assert made.labels == {"follows": 0, "sentence_order": IGNORED}
        assert made.tokens[1] == 10


def test_sequences_without_a_second_segment_are_refused():
    single = TextExample(*[np.zeros(3, np.int64)] * 3, np.zeros((0, 3), np.int64))
    with pytest.raises(ConfigError, match="sentence_order: a sequence has no second segment; set"):
        order().prepare(single, np.random.default_rng(0))
    pairs = NextSentence(NextSentenceConfig(), SETTING)
    with pytest.raises(ConfigError, match=r"next_sentence: .*random_next_probability"):
        pairs.prepare(example(), np.random.default_rng(0))


@pytest.mark.parametrize(
    ("made", "name"),
    [
        (SentenceOrder(SentenceOrderConfig(weight=0.5), SETTING), "sentence_order"),
        (NextSentence(NextSentenceConfig(weight=0.5), SETTING), "follows"),
    ],
)
def test_the_loss_is_that_of_plain_loops(made, name):
    labels = [1, 0, IGNORED, 1]
    text = collate([example(**{name: label}) for label in labels], 0)
    torch.manual_seed(0)
    states = torch.randn(4, 8, 5)
    loss, stats = made.loss(TextStates(states, lambda some: some), TensorBatch.of(text))
    weights = {key: value.tolist() for key, value in made.head.state_dict().items()}
    losses, right = [], 0
    for row, label in enumerate(labels):
        if label == IGNORED:
            continue
        first = states[row, 0].tolist()
        inner = [
            math.tanh(sum(w * x for w, x in zip(of, first, strict=True)) + bias)
            for of, bias in zip(weights["dense.weight"], weights["dense.bias"], strict=True)
        ]
        scores = [
            sum(w * x for w, x in zip(of, inner, strict=True)) + bias
            for of, bias in zip(weights["classes.weight"], weights["classes.bias"], strict=True)
        ]
        losses.append(math.log(sum(map(math.exp, scores))) - scores[label])
        right += scores.index(max(scores)) == label
    assert made.count(text) == 3
    assert float(loss.detach()) == pytest.approx(0.5 * sum(losses) / 3, rel=1e-5)
    assert stats["accuracy"] == pytest.approx(right / 3)
