"""What goes into a knowledge layer, and what comes out."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from transformers import initialization

from biograft.nn.knowledge.config import KnowledgeBertConfig


@dataclass(frozen=True, slots=True)
class Told:
    """The states of a batch, and what is known of its mentions."""

    states: Tensor
    """(sequences, length, width)."""
    mask: Tensor
    """(sequences, length): 0 at padding."""
    table: Tensor
    """(entities, dim): the vectors of all entities."""
    mentions: Tensor | None = None
    """(mentions, 3): sequence, first token, last token; none: the layer finds them, if it can."""
    entities: Tensor | None = None
    """(mentions,): the row of the entity that each is linked to, -1: not told."""
    gold: bool = True
    """Whether the mentions are all that the text has, as in pre-training. Else they are names found
    in it, for layers that must be told entities, and a layer that finds mentions finds its own."""


@dataclass(frozen=True, slots=True)
class Knowledge:
    """What a knowledge layer makes of it; what it does not compute is none."""

    states: Tensor
    """(sequences, length, width): the states that the next layer reads."""
    detection_scores: Tensor | None = None
    """(sequences, length, 3): of O, B, I."""
    mentions: Tensor | None = None
    """(mentions, 3): those that were worked on."""
    queries: Tensor | None = None
    """(mentions, dim): in the space of entities."""
    candidates: Tensor | None = None
    """(mentions, k): rows of the nearest entities, best first."""
    entity_weights: Tensor | None = None
    """(mentions, k): how much of each was taken."""
    neighbours: Tensor | None = None
    """(mentions, k): rows of the neighbours seen, -1 where there is none."""
    neighbour_weights: Tensor | None = None
    """(mentions, k): how much of each was taken, 0 where there is none."""


OUTSIDE, BEGIN, INSIDE = 0, 1, 2
"""Numbers of the tags O, B, I, in the order of KeBioLM's published weights."""


def spans_of_tags(tags: Tensor, mask: Tensor, most: int = 0) -> Tensor:
    """Read the mentions that tags say: (mentions, 3) of sequence, first token, last token.

    B opens a mention, and so does an I where none is open; I goes on with an open one. The first
    token ([CLS]) and padding are in none; the last ([SEP]) can be. Of a sequence the first
    ``most`` count, all if 0. Tags and mask are (sequences, length).
    """
    tags = tags.masked_fill(mask == 0, OUTSIDE)
    tags[:, :1] = OUTSIDE
    within = tags != OUTSIDE
    nothing = torch.zeros_like(within[:, :1])
    begins = (tags == BEGIN) | (within & ~torch.cat([nothing, within[:, :-1]], dim=1))
    goes_on = torch.cat([(within & ~begins)[:, 1:], nothing], dim=1)
    ends = within & ~goes_on
    if most:
        few = begins.cumsum(dim=1) <= most
        begins, ends = begins & few, ends & few
    sequence, first = begins.nonzero(as_tuple=True)
    last = ends.nonzero(as_tuple=True)[1]
    return torch.stack([sequence, first, last], dim=1)


def covering(mentions: Tensor, shape: torch.Size) -> Tensor:
    """Say which mention covers each token: (sequences, length), -1 for none, else the last one."""
    n_sequences, length = shape
    owner = torch.full((n_sequences * length,), -1, device=mentions.device)
    number, place = tokens_of(mentions, length)
    return owner.scatter_reduce(0, place, number, "amax").view(n_sequences, length)


def tokens_of(mentions: Tensor, length: int) -> tuple[Tensor, Tensor]:
    """Give the tokens of all mentions, one after the other: of which mention, and its place.

    A place counts through all sequences of the batch, each of ``length`` tokens.
    """
    n_tokens = mentions[:, 2] - mentions[:, 1] + 1  # (mentions,)
    number = torch.arange(len(mentions), device=mentions.device).repeat_interleave(n_tokens)
    before = n_tokens.cumsum(0) - n_tokens
    within = torch.arange(len(number), device=mentions.device) - before[number]
    return number, mentions[number, 0] * length + mentions[number, 1] + within


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


class Infusion(nn.Linear):
    """A linear layer that can begin with zeros: then, untrained, it infuses nothing."""

    def __init__(self, n_in: int, n_out: int, *, neutral: bool) -> None:
        super().__init__(n_in, n_out)
        self.neutral = neutral

    def begin(self) -> None:
        """Set the weights to zero, if that is wanted; those that were loaded stay."""
        if self.neutral:
            initialization.zeros_(self.weight)
            initialization.zeros_(self.bias)
