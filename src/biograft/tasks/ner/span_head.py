"""A head that scores every span of words, so that entities may lie inside others.

For each type, a span (i, j) has the score q_i . k_j + w_(j-i): two small vectors of each word by
linear layers, and a bias by length. All spans of a text are then one product of matrices; putting
the two states of each span side by side for a classifier would cost memory for each of them.
A span may be of several types (as in CMeEE), so each type answers by itself: yes above 0.

The loss of a type in a text is log(1 + sum over wrong spans of e^s) + log(1 + sum over right spans
of e^-s): it pushes all right spans above 0 and all wrong ones below, and needs no weights though
nearly all spans are wrong.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from biograft.tasks.ner.texts import WordSpan
from biograft.tasks.ner.windows import Window, owner_of
from biograft.tasks.network import Outputs

_DIM = 64
_SPREAD = 0.02


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
