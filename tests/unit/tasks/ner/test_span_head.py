"""The head of spans: scores and loss against plain loops, nested answers, windows."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from biograft.tasks.ner_heads import SpanHead
from biograft.tasks.ner_text import ReadText, Window, cut_windows
from biograft.tasks.network import score


@pytest.fixture
def head():
    torch.manual_seed(0)
    made = SpanHead(6, ("X", "Y"), max_span=2)
    torch.nn.init.normal_(made.length)
    torch.nn.init.normal_(made.first.weight)
    return made


def window(n, spans=(), first=0, own=None):
    return Window(0, first, own or (first, first + n), (0,) * n, tuple(range(n)), spans=spans)


def test_scores_equal_plain_loops(head):
    states = torch.randn(1, 4, 6)
    with torch.no_grad():
        (scores,) = head(states)
        first, last = head.first(states[0]), head.last(states[0])
    for kind in range(2):
        for i in range(4):
            for j in range(4):
                q = first[i, kind * 64 : kind * 64 + 64]
                k = last[j, kind * 64 : kind * 64 + 64]
                expected = -math.inf
                if 0 <= j - i < 2:
                    expected = float(q @ k / 8 + head.length.detach()[kind, j - i])
                assert float(scores[0, kind, i, j]) == pytest.approx(expected, rel=1e-4, abs=1e-5)


def test_the_loss_equals_plain_loops_and_padding_does_not_count(head):
    states = torch.randn(2, 4, 6)
    windows = [window(4, ((0, 1, 0), (1, 1, 0), (1, 1, 1))), window(2, ((0, 0, 1),))]
    held = torch.tensor([[True] * 4, [True, True, False, False]])
    loss = head.loss(head(states), windows, held)
    scores = head(states)[0].detach()
    total = 0.0
    for row, one in enumerate(windows):
        for kind in range(2):
            wrong = right = 1.0
            for i in range(one.n_words):
                for j in range(i, min(one.n_words, i + 2)):
                    score = float(scores[row, kind, i, j])
                    if (i, j, kind) in one.spans:
                        right += math.exp(-score)
                    else:
                        wrong += math.exp(score)
            total += math.log(wrong) + math.log(right)
    assert float(loss.detach()) == pytest.approx(total / 4, rel=1e-4)
    loss.backward()
    assert all(torch.isfinite(part.grad).all() for part in head.parameters())


def test_entities_may_lie_inside_others_and_be_of_two_types(head):
    scores = torch.full((2, 3, 3), -1.0)
    scores[0, 0, 1] = scores[0, 1, 1] = scores[1, 1, 1] = 1.0
    found = head.join([(window(3), (scores,))])
    assert found == [(0, 2, "X"), (1, 2, "X"), (1, 2, "Y")]


def test_a_span_counts_in_one_window_and_padding_never(head):
    scores = torch.full((2, 3, 3), -1.0)
    scores[0, 1, 2] = 1.0  # words 1..2 of the text, at the first window's end
    shifted = torch.full((2, 3, 3), -1.0)
    shifted[0, 0, 1] = 1.0  # the same, at the second window's begin: as little context
    nothing = torch.full((2, 3, 3), -1.0)
    first, second = window(3), window(3, first=1)
    assert head.join([(first, (scores,)), (second, (shifted,))]) == [(1, 3, "X")]
    assert head.join([(first, (scores,)), (second, (nothing,))]) == [(1, 3, "X")]
    assert head.join([(first, (nothing,)), (second, (shifted,))]) == []
    assert head.join([(window(2), (scores,))]) == []


@pytest.mark.parametrize("overlap", [4, 10, 15])
def test_each_span_that_lies_in_a_window_is_answered_once(head, overlap):
    """The owner of a span's middle word need not hold the whole span."""

    class Framing:
        room, n_before = 30, 1

        def frame(self, ids):
            return [0, *ids, 0]

    n_words = 90
    text = ReadText(0, np.zeros((n_words, 2), np.int64), ((7,),) * n_words)
    windows = list(cut_windows(0, text, Framing(), overlap))
    for length in (1, 2, 5, 8, 12):
        pieces, held = [], set()
        for one in windows:
            scores = torch.full((2, one.n_words, one.n_words), -1.0)
            for first in range(one.n_words - length + 1):
                scores[0, first, first + length - 1] = 1.0
                held.add((one.first + first, one.first + first + length, "X"))
            pieces.append((one, (scores,)))
        assert head.join(pieces) == sorted(held)


def test_scores_are_in_full_precision_though_the_encoder_is_not(head):
    states = torch.randn(1, 4, 6)
    with torch.no_grad():
        (expected,) = score(head, states)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            (found,) = score(head, states)
    assert torch.equal(found, expected)
