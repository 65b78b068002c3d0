"""Heads of tags: the CRF against all sequences one by one, and words in windows."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch

from biograft.tasks.ner_heads import CrfHead, TagHead, log_partition, sequence_scores, viterbi
from biograft.tasks.ner_text import TagSet, Window
from biograft.tasks.network import score

LENGTHS, N_TAGS = (4, 1, 3), 3


@pytest.fixture
def drawn():
    """Scores of three texts, padded, and what scores the order of tags."""
    draw = torch.Generator().manual_seed(0)
    scores = torch.randn(3, 4, N_TAGS, generator=draw, dtype=torch.float64)
    order = tuple(
        torch.randn(*shape, generator=draw, dtype=torch.float64)
        for shape in ((N_TAGS, N_TAGS), (N_TAGS,), (N_TAGS,))
    )
    held = torch.arange(4)[None] < torch.tensor(LENGTHS)[:, None]
    return scores, held, order


def plain(scores, order, tags):
    follow, begin, end = order
    total = begin[tags[0]] + end[tags[-1]]
    for word, tag in enumerate(tags):
        total = total + scores[word, tag]
    for before, after in itertools.pairwise(tags):
        total = total + follow[before, after]
    return float(total.detach())


def test_the_partition_sums_over_all_sequences(drawn):
    scores, held, order = drawn
    found = log_partition(scores, held, order)
    for row, length in enumerate(LENGTHS):
        ways = itertools.product(range(N_TAGS), repeat=length)
        every = np.logaddexp.reduce([plain(scores[row], order, way) for way in ways])
        assert float(found[row]) == pytest.approx(every)


def test_a_sequence_scores_as_in_a_loop(drawn):
    scores, held, order = drawn
    labels = torch.tensor([[0, 2, 1, 1], [2, 0, 0, 0], [1, 0, 2, 0]])
    found = sequence_scores(scores, labels, held, order)
    for row, length in enumerate(LENGTHS):
        assert float(found[row]) == pytest.approx(plain(scores[row], order, labels[row, :length]))


def test_viterbi_finds_the_best_of_all_sequences(drawn):
    scores, _, order = drawn
    for row, length in enumerate(LENGTHS):
        ways = itertools.product(range(N_TAGS), repeat=length)
        best = max(ways, key=lambda way: plain(scores[row], order, way))
        found = viterbi(scores[row, :length].numpy(), *(part.numpy() for part in order))
        assert tuple(found.tolist()) == best


def window(tags, first=0, own=None):
    n = len(tags)
    return Window(0, first, own or (first, first + n), (0,) * n, tuple(range(n)), tuple(tags))


def test_the_softmax_loss_equals_a_plain_loop():
    torch.manual_seed(0)
    head = TagHead(4, TagSet(("X",), "bio"))
    states = torch.randn(2, 3, 4)
    windows = [window([0, 1, 2]), window([1])]
    held = torch.tensor([[True] * 3, [True, False, False]])
    loss = head.loss(head(states), windows, held)
    expected = [
        -head(states)[0][row, word].log_softmax(0)[tag]
        for row, one in enumerate(windows)
        for word, tag in enumerate(one.tags)
    ]
    assert float(loss.detach()) == pytest.approx(float(sum(expected).detach()) / 4, rel=1e-5)


def test_the_crf_loss_equals_all_sequences_one_by_one():
    torch.manual_seed(0)
    head = CrfHead(4, TagSet(("X",), "bio"))
    for part in (head.follow, head.begin, head.end):
        torch.nn.init.normal_(part)
    states = torch.randn(2, 3, 4)
    windows = [window([0, 1, 2]), window([1])]
    held = torch.tensor([[True] * 3, [True, False, False]])
    loss = head.loss(head(states), windows, held)
    scores, order = head(states)[0].detach(), (head.follow, head.begin, head.end)
    total = 0.0
    for row, one in enumerate(windows):
        ways = itertools.product(range(3), repeat=one.n_words)
        every = np.logaddexp.reduce([plain(scores[row], order, way) for way in ways])
        total += every - plain(scores[row], order, one.tags)
    assert float(loss.detach()) == pytest.approx(total / 4, rel=1e-5)
    loss.backward()
    assert all(part.grad is not None for part in head.parameters())


def test_the_crf_gives_no_sequence_that_the_scheme_forbids():
    head = CrfHead(2, TagSet(("X",), "bioes"))
    scores = np.zeros((3, 5), np.float32)
    scores[:, 2] = 9  # inside, thrice: nothing began
    names = [head.tags.tags[tag] for tag in head.best(scores)]
    assert names == ["B-X", "I-X", "E-X"]


def test_a_word_counts_in_the_window_that_owns_it():
    head = TagHead(2, TagSet(("X",), "bio"))
    sure = {name: torch.eye(3)[number] for number, name in enumerate("OBI")}
    left = (window([0] * 3, own=(0, 2)), (torch.stack([sure["B"], sure["I"], sure["B"]]),))
    right = (window([0] * 3, 1, (2, 4)), (torch.stack([sure["O"], sure["I"], sure["O"]]),))
    assert head.join([left, right]) == [(0, 3, "X")]


@pytest.mark.parametrize("kind", [TagHead, CrfHead])
def test_scores_are_in_full_precision_though_the_encoder_is_not(kind):
    torch.manual_seed(0)
    head = kind(4, TagSet(("X",), "bio"))
    torch.nn.init.normal_(head.linear.weight)
    states = torch.randn(2, 3, 4)
    with torch.no_grad():
        expected = score(head, states)[0]
        with torch.autocast("cpu", dtype=torch.bfloat16):
            found = score(head, states)[0]
    assert torch.equal(found, expected)
