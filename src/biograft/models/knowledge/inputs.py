"""Inputs and outputs of knowledge layers, and the reading of mentions from states."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from transformers import initialization

from biograft.models.knowledge.config import KnowledgeBertConfig


@dataclass(frozen=True, slots=True)
class EntityInputs:
    """The inputs of a knowledge layer: the states of a batch, its mentions and their entities."""

    states: Tensor
    """(sequences, length, width)."""
    mask: Tensor
    """(sequences, length): 0 at padding."""
    table: Tensor
    """(entities, dim): the vectors of all entities."""
    mentions: Tensor | None = None
    """(mentions, 3): sequence, first token, last token; None: the layer detects them, if it can."""
    entities: Tensor | None = None
    """(mentions,): the row of the entity that each is linked to, -1: none or not visible."""
    withheld: Tensor | None = None
    """(mentions, neighbours): 1 for the neighbours that the layer must not use, None: it uses all,
    which is so everywhere but in pre-training."""
    gold: bool = True
    """Whether the mentions are all that the text has, as in pre-training. Otherwise they are names
    found in the text, and a layer that detects mentions uses its own."""


@dataclass(frozen=True, slots=True)
class Knowledge:
    """The outputs of a knowledge layer; None for what it does not compute."""

    states: Tensor
    """(sequences, length, width): the states that the next layer reads."""
    detection_scores: Tensor | None = None
    """(sequences, length, 3): of O, B, I."""
    mentions: Tensor | None = None
    """(mentions, 3): the mentions that were enriched."""
    queries: Tensor | None = None
    """(mentions, dim): mentions in the space of entities."""
    candidates: Tensor | None = None
    """(mentions, k): rows of the nearest entities, best first."""
    entity_weights: Tensor | None = None
    """(mentions, k): the weight of each."""
    neighbours: Tensor | None = None
    """(mentions, k): rows of the neighbours, -1 where there is none."""
    neighbour_weights: Tensor | None = None
    """(mentions, k): the weight of each, 0 where there is none."""


OUTSIDE, BEGIN, INSIDE = 0, 1, 2
"""Numbers of the tags O, B, I, in the order of KeBioLM's published weights."""


def spans_of_tags(tags: Tensor, mask: Tensor, max_mentions: int = 0) -> Tensor:
    """Convert O, B, I tags to mentions: (mentions, 3) of sequence, first token, last token.

    B opens a mention, and so does an I where none is open; I continues an open one. The first
    token ([CLS]) and padding are in none; the last ([SEP]) can be. The first ``max_mentions`` of a
    sequence count, all if 0. Tags and mask are (sequences, length).
    """
    tags = tags.masked_fill(mask == 0, OUTSIDE)
    tags[:, :1] = OUTSIDE
    within = tags != OUTSIDE
    nothing = torch.zeros_like(within[:, :1])
    begins = (tags == BEGIN) | (within & ~torch.cat([nothing, within[:, :-1]], dim=1))
    continues = torch.cat([(within & ~begins)[:, 1:], nothing], dim=1)
    ends = within & ~continues
    if max_mentions:
        counted = begins.cumsum(dim=1) <= max_mentions
        begins, ends = begins & counted, ends & counted
    sequence, first = begins.nonzero(as_tuple=True)
    last = ends.nonzero(as_tuple=True)[1]
    return torch.stack([sequence, first, last], dim=1)


def covering(mentions: Tensor, shape: torch.Size) -> Tensor:
    """Map each token to the last mention that covers it: (sequences, length), -1 for none."""
    n_sequences, length = shape
    owner = torch.full((n_sequences * length,), -1, device=mentions.device)
    row, position = tokens_of(mentions, length)
    return owner.scatter_reduce(0, position, row, "amax").view(n_sequences, length)


def tokens_of(mentions: Tensor, length: int) -> tuple[Tensor, Tensor]:
    """Return the mention and the position of each token of all mentions, one after the other.

    Positions count through all sequences of the batch, each of ``length`` tokens.
    """
    n_tokens = mentions[:, 2] - mentions[:, 1] + 1  # (mentions,)
    row = torch.arange(len(mentions), device=mentions.device).repeat_interleave(n_tokens)
    before = n_tokens.cumsum(0) - n_tokens
    within = torch.arange(len(row), device=mentions.device) - before[row]
    return row, mentions[row, 0] * length + mentions[row, 1] + within


class SpanPooling(nn.Module):
    """Self-attentive pooling: a score of each token, softmax within the span, weighted sum."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.score = nn.Linear(width, 1)

    def forward(self, states: Tensor, mentions: Tensor) -> Tensor:
        """Pool the states (sequences, length, width) of mentions: (mentions, width)."""
        owner, position = tokens_of(mentions, states.shape[1])
        tokens = states.flatten(0, 1)[position]  # (tokens of mentions, width)
        scores = self.score(tokens).squeeze(1)
        highest = scores.new_full((len(mentions),), -torch.inf)
        highest = highest.scatter_reduce(0, owner, scores.detach(), "amax")
        weights = (scores - highest[owner]).exp()
        sums = weights.new_zeros(len(mentions)).index_add(0, owner, weights)
        weighted = (weights / sums[owner]).unsqueeze(1) * tokens
        zeros = weighted.new_zeros(len(mentions), tokens.shape[1])
        pooled: Tensor = zeros.index_add(0, owner, weighted)
        return pooled.to(states.dtype)


class MentionReader(nn.Module):
    """A mention in the space of entities: LN(GELU(pooled W)), SMedBERT's equations 2 and 12."""

    def __init__(self, config: KnowledgeBertConfig) -> None:
        super().__init__()
        width, dim = config.hidden_size, config.entity_dim
        self.pool = SpanPooling(width)
        self.project = nn.Linear(width, dim, bias=False)
        self.norm = nn.LayerNorm(dim, config.layer_norm_eps)

    def forward(self, states: Tensor, mentions: Tensor) -> Tensor:
        """Project mentions (mentions, 3) from states: (mentions, dim)."""
        pooled = self.pool(states, mentions)
        read: Tensor = self.norm(nn.functional.gelu(self.project(pooled)))
        return read


class Infusion(nn.Linear):
    """A linear layer that can start with zero weights, so that untrained it adds nothing."""

    def __init__(self, n_in: int, n_out: int, *, neutral: bool) -> None:
        super().__init__(n_in, n_out)
        self.neutral = neutral

    def init_weights(self) -> None:
        """Set the weights to zero if the layer is neutral; loaded ones stay."""
        if self.neutral:
            initialization.zeros_(self.weight)
            initialization.zeros_(self.bias)
