"""A mention as one vector: its tokens, weighed by a learned score of each."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from biograft.nn.knowledge.config import KnowledgeBertConfig
from biograft.nn.knowledge.mentions import tokens_of


class SpanPooling(nn.Module):
    """Self-attentive pooling: a score of each token, softmax within the span, weighted sum."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.score = nn.Linear(width, 1)

    def forward(self, states: Tensor, mentions: Tensor) -> Tensor:
        """Pool the states (sequences, length, width) of mentions: (mentions, width)."""
        owner, place = tokens_of(mentions, states.shape[1])
        tokens = states.flatten(0, 1)[place]  # (tokens of mentions, width)
        scores = self.score(tokens).squeeze(1)
        highest = scores.new_full((len(mentions),), -torch.inf)
        highest = highest.scatter_reduce(0, owner, scores.detach(), "amax")
        weights = (scores - highest[owner]).exp()
        sums = weights.new_zeros(len(mentions)).index_add(0, owner, weights)
        weighed = (weights / sums[owner]).unsqueeze(1) * tokens
        pooled = weighed.new_zeros(len(mentions), tokens.shape[1])
        summed: Tensor = pooled.index_add(0, owner, weighed)
        return summed.to(states.dtype)


class MentionReader(nn.Module):
    """A mention in the space of entities: LN(GELU(pooled W)), SMedBERT's equations 2 and 12."""

    def __init__(self, config: KnowledgeBertConfig) -> None:
        super().__init__()
        width, dim = config.hidden_size, config.entity_dim
        self.pool = SpanPooling(width)
        self.project = nn.Linear(width, dim, bias=False)
        self.norm = nn.LayerNorm(dim, config.layer_norm_eps)

    def forward(self, states: Tensor, mentions: Tensor) -> Tensor:
        """Read mentions (mentions, 3) off states: (mentions, dim)."""
        pooled = self.pool(states, mentions)
        read: Tensor = self.norm(nn.functional.gelu(self.project(pooled)))
        return read
