"""Heads that tag words: each by itself (softmax), or as a sequence (linear-chain CRF).

The CRF adds to the score of each tag one for each pair of neighbours, and one for the first and
for the last tag; its loss is -log p of the whole sequence of tags. When it answers, sequences
that the scheme does not allow are out of the question.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from biograft.objectives.examples import IGNORED
from biograft.tasks.ner_text import TagSet, Window, WordSpan, owner_of
from biograft.tasks.network import Outputs

Scores = npt.NDArray[np.float32]
_SPREAD = 0.02


class TagHead(nn.Module):
    """A linear layer over the state of each word's first token."""

    def __init__(self, width: int, tags: TagSet) -> None:
        super().__init__()
        self.tags = tags
        self.linear = nn.Linear(width, len(tags.tags))
        nn.init.normal_(self.linear.weight, std=_SPREAD)
        nn.init.zeros_(self.linear.bias)

    def forward(self, states: Tensor) -> Outputs:
        """Score the tags of each word: (texts, words, tags)."""
        return (self.linear(states),)

    def loss(self, outputs: Outputs, windows: Sequence[Window], held: Tensor) -> Tensor:
        """Compute the mean over words of -log p of the right tag."""
        scores = outputs[0]
        labels = _labels(windows, held, IGNORED)
        return nn.functional.cross_entropy(scores.flatten(0, 1), labels.flatten())

    def join(self, pieces: Sequence[tuple[Window, Outputs]]) -> list[WordSpan]:
        """Give the spans of a text from what was said of its windows, in order."""
        own = [
            outputs[0][window.own[0] - window.first : window.own[1] - window.first]
            for window, outputs in pieces
        ]
        return self.tags.decode(self.best(torch.cat(own).numpy()).tolist())

    def best(self, scores: Scores) -> npt.NDArray[np.int64]:
        """Choose the tags of a text: (words, tags) to (words,)."""
        best: npt.NDArray[np.int64] = scores.argmax(axis=1)
        return best


class CrfHead(TagHead):
    """The same with scores for tags that follow each other."""

    def __init__(self, width: int, tags: TagSet) -> None:
        super().__init__(width, tags)
        n_tags = len(tags.tags)
        self.follow = nn.Parameter(torch.zeros(n_tags, n_tags))  # (from, to)
        self.begin = nn.Parameter(torch.zeros(n_tags))
        self.end = nn.Parameter(torch.zeros(n_tags))

    def forward(self, states: Tensor) -> Outputs:
        """Score tags, and give what scores their order, which is the same for all texts."""
        n_texts = len(states)
        order = (self.follow, self.begin, self.end)
        repeated = (part.float().expand(n_texts, *part.shape) for part in order)
        return (self.linear(states), *repeated)

    def loss(self, outputs: Outputs, windows: Sequence[Window], held: Tensor) -> Tensor:
        """Compute the mean over words of -log p of the texts' right sequences."""
        scores, follow, begin, end = outputs
        order = (follow[0], begin[0], end[0])
        labels = _labels(windows, held, 0)
        right = sequence_scores(scores, labels, held, order)
        all_of_them = log_partition(scores, held, order)
        return (all_of_them - right).sum() / held.sum()

    def best(self, scores: Scores) -> npt.NDArray[np.int64]:
        """Choose the best sequence that the scheme allows."""
        may_follow, may_begin, may_end = self.tags.may_follow()
        order = [
            part.detach().float().cpu().numpy() for part in (self.follow, self.begin, self.end)
        ]
        allowed = [
            np.where(may, part, -np.inf)
            for may, part in zip((may_follow, may_begin, may_end), order, strict=True)
        ]
        return viterbi(scores, *allowed)


def sequence_scores(
    scores: Tensor, labels: Tensor, held: Tensor, order: tuple[Tensor, Tensor, Tensor]
) -> Tensor:
    """Score given sequences of tags: (texts,); every text has at least one word."""
    follow, begin, end = order
    by_word = scores.gather(2, labels[:, :, None])[:, :, 0] * held
    steps = follow[labels[:, :-1], labels[:, 1:]] * held[:, 1:]
    last = labels.gather(1, held.sum(1, keepdim=True) - 1)[:, 0]
    return by_word.sum(1) + steps.sum(1) + begin[labels[:, 0]] + end[last]


def log_partition(scores: Tensor, held: Tensor, order: tuple[Tensor, Tensor, Tensor]) -> Tensor:
    """Sum the exponentials of the scores of all sequences of tags, as a logarithm: (texts,)."""
    follow, begin, end = order
    reached = begin + scores[:, 0]  # (texts, tags): all ways to the tag of this word
    for word in range(1, scores.shape[1]):
        ways = reached[:, :, None] + follow[None]  # (texts, from, to)
        step = torch.logsumexp(ways, dim=1) + scores[:, word]
        reached = torch.where(held[:, word, None], step, reached)
    return torch.logsumexp(reached + end, dim=1)


def viterbi(scores: Any, follow: Any, begin: Any, end: Any) -> npt.NDArray[np.int64]:
    """Find the best sequence of tags of one text; of equal ones the lower tags."""
    n_words = len(scores)
    back = np.zeros(scores.shape, np.int64)
    reached = begin + scores[0]
    for word in range(1, n_words):
        ways = reached[:, None] + follow  # (from, to)
        back[word] = ways.argmax(axis=0)
        reached = ways.max(axis=0) + scores[word]
    tags = np.zeros(n_words, np.int64)
    tags[-1] = (reached + end).argmax()
    for word in range(n_words - 1, 0, -1):
        tags[word - 1] = back[word, tags[word]]
    return tags


def _labels(windows: Sequence[Window], held: Tensor, filler: int) -> Tensor:
    """Give the tags of windows as numbers, padded: (texts, words)."""
    labels = torch.full(held.shape, filler, dtype=torch.int64)
    for row, window in enumerate(windows):
        labels[row, : window.n_words] = torch.tensor(window.tags)
    return labels.to(held.device)


_DIM = 64


class SpanHead(nn.Module):
    """Scores for all spans of up to some words."""

    def __init__(self, width: int, types: tuple[str, ...], max_span: int) -> None:
        super().__init__()
        self.types, self.max_span = types, max_span
        self.first = nn.Linear(width, len(types) * _DIM)
        self.last = nn.Linear(width, len(types) * _DIM)
        self.length = nn.Parameter(torch.zeros(len(types), max_span))
        for layer in (self.first, self.last):
            nn.init.normal_(layer.weight, std=_SPREAD)
            nn.init.zeros_(layer.bias)

    def forward(self, states: Tensor) -> Outputs:
        """Score spans: (texts, types, first word, last word); -inf where none can be."""
        shape = (*states.shape[:2], len(self.types), _DIM)
        first, last = self.first(states).view(shape), self.last(states).view(shape)
        scores = torch.einsum("bitd,bjtd->btij", first, last) / _DIM**0.5
        words = torch.arange(states.shape[1], device=states.device)
        length = words[None, :] - words[:, None]  # (first, last)
        fits = (length >= 0) & (length < self.max_span)
        bias = self.length.float()[:, length.clamp(0, self.max_span - 1)]
        return ((scores + bias).masked_fill(~fits, -torch.inf),)

    def loss(self, outputs: Outputs, windows: Sequence[Window], held: Tensor) -> Tensor:
        """Compute the mean over texts and types."""
        scores = outputs[0]
        scores = scores.masked_fill(~(held[:, None, :, None] & held[:, None, None, :]), -torch.inf)
        right = torch.zeros(scores.shape, dtype=torch.bool)
        for row, window in enumerate(windows):
            for first, last, kind in window.spans:
                right[row, kind, first, last] = True
        right = right.to(scores.device)
        wrong_part = _log_one_plus(scores.masked_fill(right, -torch.inf))
        right_part = _log_one_plus((-scores).masked_fill(~right, -torch.inf))
        return (wrong_part + right_part).mean()

    def join(self, pieces: Sequence[tuple[Window, Outputs]]) -> list[WordSpan]:
        """Give the spans of a text; each counts in the window where it has most context."""
        windows = [window for window, _ in pieces]
        found = []
        for number, (window, outputs) in enumerate(pieces):
            n_words = window.n_words
            scores = outputs[0][:, :n_words, :n_words]
            for kind, first, last in (scores > 0).nonzero().tolist():
                start, end = window.first + first, window.first + last
                if owner_of(windows, start, end) == number:
                    found.append((start, end + 1, self.types[kind]))
        return sorted(found)


def _log_one_plus(scores: Tensor) -> Tensor:
    """Compute log(1 + sum of e^s) over the spans: (texts, types)."""
    flat = scores.flatten(2)
    return torch.logsumexp(torch.cat([flat, torch.zeros_like(flat[:, :, :1])], dim=2), dim=2)
