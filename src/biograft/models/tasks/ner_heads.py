"""NER heads: token classification (softmax), linear-chain CRF, and span scoring.

The CRF adds scores for transitions between tags, and for the first and the last tag; its loss is
-log p of the whole tag sequence, and its predictions obey the tag scheme. The span head scores
every span and type by itself (global pointer), so that it finds nested entities.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from biograft.models.tasks.ner_text import TagSet, Window, WordSpan, owner_of
from biograft.models.tasks.network import Outputs

Scores = npt.NDArray[np.float32]
_INIT_STD = 0.02

IGNORED = -100
"""The label of tokens that a loss leaves out, as in torch."""


class TagHead(nn.Module):
    """A linear layer over the state of each word's first token."""

    def __init__(self, width: int, tags: TagSet) -> None:
        super().__init__()
        self.tags = tags
        self.linear = nn.Linear(width, len(tags.tags))
        nn.init.normal_(self.linear.weight, std=_INIT_STD)
        nn.init.zeros_(self.linear.bias)

    def forward(self, states: Tensor) -> Outputs:
        """Compute tag scores of each word: (texts, words, tags)."""
        return (self.linear(states),)

    def loss(self, outputs: Outputs, windows: Sequence[Window], mask: Tensor) -> Tensor:
        """Compute the mean over words of -log p of the gold tag."""
        scores = outputs[0]
        labels = _labels(windows, mask, IGNORED)
        return nn.functional.cross_entropy(scores.flatten(0, 1), labels.flatten())

    def count(self, windows: Sequence[Window]) -> int:
        """Count the words."""
        return sum(window.n_words for window in windows)

    def join(self, windows: Sequence[tuple[Window, Outputs]]) -> list[WordSpan]:
        """Return the spans of a text from the outputs of its windows, in order."""
        own = [
            outputs[0][window.own[0] - window.first : window.own[1] - window.first]
            for window, outputs in windows
        ]
        return self.tags.decode(self.best(torch.cat(own).numpy()).tolist())

    def best(self, scores: Scores) -> npt.NDArray[np.int64]:
        """Choose the tags of a text: (words, tags) to (words,)."""
        best: npt.NDArray[np.int64] = scores.argmax(axis=1)
        return best


class CrfHead(TagHead):
    """A linear layer with a linear-chain CRF: learned scores for transitions between tags."""

    def __init__(self, width: int, tags: TagSet) -> None:
        super().__init__(width, tags)
        n_tags = len(tags.tags)
        self.transitions = nn.Parameter(torch.zeros(n_tags, n_tags))  # (from, to)
        self.begin = nn.Parameter(torch.zeros(n_tags))
        self.end = nn.Parameter(torch.zeros(n_tags))

    def forward(self, states: Tensor) -> Outputs:
        """Compute tag scores, and repeat the transition scores for each text."""
        n_texts = len(states)
        transitions = (self.transitions, self.begin, self.end)
        repeated = (each.float().expand(n_texts, *each.shape) for each in transitions)
        return (self.linear(states), *repeated)

    def loss(self, outputs: Outputs, windows: Sequence[Window], mask: Tensor) -> Tensor:
        """Compute -log p of the gold tag sequences, divided by the number of words."""
        scores, follow, begin, end = outputs
        transitions = (follow[0], begin[0], end[0])
        labels = _labels(windows, mask, 0)
        gold = sequence_scores(scores, labels, mask, transitions)
        return (log_partition(scores, mask, transitions) - gold).sum() / mask.sum()

    def best(self, scores: Scores) -> npt.NDArray[np.int64]:
        """Choose the best tag sequence that the scheme allows."""
        transitions = [
            np.where(allowed, score.detach().float().cpu().numpy(), -np.inf)
            for allowed, score in zip(
                self.tags.may_follow(), (self.transitions, self.begin, self.end), strict=True
            )
        ]
        return viterbi(scores, *transitions)


def sequence_scores(
    scores: Tensor, labels: Tensor, mask: Tensor, transitions: tuple[Tensor, Tensor, Tensor]
) -> Tensor:
    """Compute the scores of given tag sequences: (texts,); every text has at least one word."""
    follow, begin, end = transitions
    by_word = scores.gather(2, labels[:, :, None])[:, :, 0] * mask
    steps = follow[labels[:, :-1], labels[:, 1:]] * mask[:, 1:]
    last = labels.gather(1, mask.sum(1, keepdim=True) - 1)[:, 0]
    return by_word.sum(1) + steps.sum(1) + begin[labels[:, 0]] + end[last]


def log_partition(
    scores: Tensor, mask: Tensor, transitions: tuple[Tensor, Tensor, Tensor]
) -> Tensor:
    """Compute the log of the sum over all tag sequences of e^score: (texts,)."""
    follow, begin, end = transitions
    reached = begin + scores[:, 0]  # (texts, tags): all ways to the tag of this word
    for word in range(1, scores.shape[1]):
        ways = reached[:, :, None] + follow[None]  # (texts, from, to)
        step = torch.logsumexp(ways, dim=1) + scores[:, word]
        reached = torch.where(mask[:, word, None], step, reached)
    return torch.logsumexp(reached + end, dim=1)


def viterbi(scores: Any, follow: Any, begin: Any, end: Any) -> npt.NDArray[np.int64]:
    """Find the best tag sequence of one text; ties go to the lower tags."""
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


def _labels(windows: Sequence[Window], mask: Tensor, padding: int) -> Tensor:
    """Return the gold tags of windows, padded: (texts, words)."""
    labels = torch.full(mask.shape, padding, dtype=torch.int64)
    for row, window in enumerate(windows):
        labels[row, : window.n_words] = torch.tensor(window.tags)
    return labels.to(mask.device)


_DIM = 64


class SpanHead(nn.Module):
    """Scores of all spans up to a length, for each entity type (global pointer)."""

    def __init__(self, width: int, types: tuple[str, ...], max_span: int) -> None:
        super().__init__()
        self.types, self.max_span = types, max_span
        self.first = nn.Linear(width, len(types) * _DIM)
        self.last = nn.Linear(width, len(types) * _DIM)
        self.length = nn.Parameter(torch.zeros(len(types), max_span))
        for layer in (self.first, self.last):
            nn.init.normal_(layer.weight, std=_INIT_STD)
            nn.init.zeros_(layer.bias)

    def forward(self, states: Tensor) -> Outputs:
        """Compute span scores: (texts, types, first word, last word), -inf for invalid spans."""
        shape = (*states.shape[:2], len(self.types), _DIM)
        first, last = self.first(states).view(shape), self.last(states).view(shape)
        scores = torch.einsum("bitd,bjtd->btij", first, last) / _DIM**0.5
        words = torch.arange(states.shape[1], device=states.device)
        length = words[None, :] - words[:, None]  # (first, last)
        fits = (length >= 0) & (length < self.max_span)
        bias = self.length.float()[:, length.clamp(0, self.max_span - 1)]
        return ((scores + bias).masked_fill(~fits, -torch.inf),)

    def loss(self, outputs: Outputs, windows: Sequence[Window], mask: Tensor) -> Tensor:
        """Compute the multi-label cross-entropy with threshold 0, mean over texts and types."""
        scores = outputs[0]
        scores = scores.masked_fill(~(mask[:, None, :, None] & mask[:, None, None, :]), -torch.inf)
        gold = torch.zeros(scores.shape, dtype=torch.bool)
        for row, window in enumerate(windows):
            for first, last, kind in window.spans:
                gold[row, kind, first, last] = True
        gold = gold.to(scores.device)
        of_negatives = _log_one_plus(scores.masked_fill(gold, -torch.inf))
        of_positives = _log_one_plus((-scores).masked_fill(~gold, -torch.inf))
        return (of_negatives + of_positives).mean()

    def count(self, windows: Sequence[Window]) -> int:
        """Count the windows."""
        return len(windows)

    def join(self, windows: Sequence[tuple[Window, Outputs]]) -> list[WordSpan]:
        """Return the spans of a text, each from the window where it has the most context."""
        alone = [window for window, _ in windows]
        spans = []
        for index, (window, outputs) in enumerate(windows):
            n_words = window.n_words
            scores = outputs[0][:, :n_words, :n_words]
            for kind, first, last in (scores > 0).nonzero().tolist():
                start, end = window.first + first, window.first + last
                if owner_of(alone, start, end) == index:
                    spans.append((start, end + 1, self.types[kind]))
        return sorted(spans)


def _log_one_plus(scores: Tensor) -> Tensor:
    """Compute log(1 + sum of e^s) over the spans: (texts, types)."""
    flat = scores.flatten(2)
    return torch.logsumexp(torch.cat([flat, torch.zeros_like(flat[:, :, :1])], dim=2), dim=2)
