"""Mentions as token spans: read off tag numbers, and laid out over the tokens they cover."""

from __future__ import annotations

import torch
from torch import Tensor

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
