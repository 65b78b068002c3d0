"""NER heads: the CRF against all sequences one by one, the span head against plain loops."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
import torch

from biograft.models.tasks import CrfHead, SpanHead, TagHead, TagSet, TextUnit, Window, cut_windows

LENGTHS, N_TAGS = (4, 1, 3), 3


def plain(scores, transitions, tags):
    follow, begin, end = transitions
    total = begin[tags[0]] + end[tags[-1]]
    for word, tag in enumerate(tags):
        total = total + scores[word, tag]
    for before, after in itertools.pairwise(tags):
        total = total + follow[before, after]
    return float(total.detach())


def window(tags, first=0, own=None):
    """A window of as many words as tags; each word is a token."""
    n = len(tags)
    return Window(0, first, own or (first, first + n), (0,) * n, tuple(range(n)), tuple(tags))


def window_of_spans(n, spans=(), first=0):
    return Window(0, first, (first, first + n), (0,) * n, tuple(range(n)), spans=spans)


def test_the_softmax_loss_equals_a_plain_loop():
    torch.manual_seed(0)
    head = TagHead(TagSet(("X",), "bio"))
    states = torch.randn(2, 3, 3)
    windows = [window([0, 1, 2]), window([1])]
    mask = torch.tensor([[True] * 3, [True, False, False]])
    loss = head.loss(head(states), windows, mask)
    expected = [
        -head(states)[0][row, word].log_softmax(0)[tag]
        for row, one in enumerate(windows)
        for word, tag in enumerate(one.tags)
    ]
    assert float(loss.detach()) == pytest.approx(float(sum(expected).detach()) / 4, rel=1e-5)


def test_the_crf_loss_equals_all_sequences_one_by_one():
    torch.manual_seed(0)
    head = CrfHead(TagSet(("X",), "bio"))
    for part in (head.transitions, head.begin, head.end):
        torch.nn.init.normal_(part)
    states = torch.randn(2, 3, 3)
    windows = [window([0, 1, 2]), window([1])]
    mask = torch.tensor([[True] * 3, [True, False, False]])
    loss = head.loss(head(states), windows, mask)
    scores, transitions = head(states)[0].detach(), (head.transitions, head.begin, head.end)
    total = 0.0
    for row, one in enumerate(windows):
        ways = itertools.product(range(3), repeat=one.n_words)
        every = np.logaddexp.reduce([plain(scores[row], transitions, way) for way in ways])
        total += every - plain(scores[row], transitions, one.tags)
    assert float(loss.detach()) == pytest.approx(total / 4, rel=1e-5)
    loss.backward()
    assert all(part.grad is not None for part in head.parameters())


def test_the_crf_gives_no_sequence_that_the_scheme_forbids():
    head = CrfHead(TagSet(("X",), "bioes"))
    scores = np.zeros((3, 5), np.float32)
    scores[:, 2] = 9  # inside, thrice: nothing began
    names = [head.tags.tags[tag] for tag in head.best(scores)]
    assert names == ["B-X", "I-X", "E-X"]


@pytest.mark.parametrize("scheme", ["bio", "bioes"])
def test_the_best_sequence_is_the_best_of_all_that_are_allowed(scheme):
    torch.manual_seed(0)
    head = CrfHead(TagSet(("X",), scheme))
    transitions = (head.transitions, head.begin, head.end)
    for part in transitions:
        torch.nn.init.normal_(part)
    follows, begins, ends = head.tags.may_follow()
    for length in (1, 4):
        scores = torch.randn(length, len(head.tags.tags))
        allowed = [
            tags
            for tags in itertools.product(range(len(head.tags.tags)), repeat=length)
            if begins[tags[0]]
            and ends[tags[-1]]
            and all(follows[pair] for pair in itertools.pairwise(tags))
        ]
        best = max(allowed, key=lambda tags: plain(scores, transitions, tags))
        assert tuple(head.best(scores.numpy()).tolist()) == best


def test_a_word_counts_in_the_window_that_owns_it():
    head = TagHead(TagSet(("X",), "bio"))
    certain = {name: torch.eye(3)[number] for number, name in enumerate("OBI")}
    left = (window([0] * 3, own=(0, 2)), (torch.stack([certain["B"], certain["I"], certain["B"]]),))
    right = (window([0] * 3, 1, (2, 4)), (torch.stack([certain["O"], certain["I"], certain["O"]]),))
    assert head.join([left, right]) == [(0, 3, "X")]


@pytest.fixture
def head():
    torch.manual_seed(0)
    made = SpanHead(6, ("X", "Y"), max_span=2)
    torch.nn.init.normal_(made.length)
    torch.nn.init.normal_(made.first.weight)
    return made


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
    windows = [
        window_of_spans(4, ((0, 1, 0), (1, 1, 0), (1, 1, 1))),
        window_of_spans(2, ((0, 0, 1),)),
    ]
    mask = torch.tensor([[True] * 4, [True, True, False, False]])
    loss = head.loss(head(states), windows, mask)
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
    found = head.join([(window_of_spans(3), (scores,))])
    assert found == [(0, 2, "X"), (1, 2, "X"), (1, 2, "Y")]


def test_a_span_counts_in_one_window_and_padding_never(head):
    scores = torch.full((2, 3, 3), -1.0)
    scores[0, 1, 2] = 1.0  # words 1..2 of the text, at the first window's end
    shifted = torch.full((2, 3, 3), -1.0)
    shifted[0, 0, 1] = 1.0  # the same, at the second window's begin: as little context
    nothing = torch.full((2, 3, 3), -1.0)
    first, second = window_of_spans(3), window_of_spans(3, first=1)
    assert head.join([(first, (scores,)), (second, (shifted,))]) == [(1, 3, "X")]
    assert head.join([(first, (scores,)), (second, (nothing,))]) == [(1, 3, "X")]
    assert head.join([(first, (nothing,)), (second, (shifted,))]) == []
    assert head.join([(window_of_spans(2), (scores,))]) == []


@pytest.mark.parametrize("overlap", [4, 10, 15])
def test_each_span_that_lies_in_a_window_is_answered_once(head, overlap):
    """The owner of a span's middle word need not hold the whole span."""

    class Framing:
        room, n_before = 30, 1

        def frame(self, ids):
            return [0, *ids, 0]

    n_words = 90
    text = TextUnit(0, np.zeros((n_words, 2), np.int64), ((7,),) * n_words)
    windows = list(cut_windows(0, text, Framing(), overlap))
    for length in (1, 2, 5, 8, 12):
        outputs, expected = [], set()
        for one in windows:
            scores = torch.full((2, one.n_words, one.n_words), -1.0)
            for first in range(one.n_words - length + 1):
                scores[0, first, first + length - 1] = 1.0
                expected.add((one.first + first, one.first + first + length, "X"))
            outputs.append((one, (scores,)))
        assert head.join(outputs) == sorted(expected)
