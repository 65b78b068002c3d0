"""One direction: what a hidden part is, told from the part that is there."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn

from biograft.errors import ConfigError
from biograft.objectives.bidirectional_entity_masking.choosing import HEAD
from biograft.objectives.bidirectional_entity_masking.config import (
    BidirectionalEntityMaskingConfig,
)
from biograft.objectives.records import HEAD_START, IGNORED, TextBatch
from biograft.objectives.reductions import count_reduced, reduced_cross_entropy
from biograft.objectives.states import TensorBatch, TextStates

NAME = "bidirectional_entity_masking"


class Asked(NamedTuple):
    """Tokens of hidden parts, each with what it is told from; all are (tokens,)."""

    sequence: Tensor
    first: Tensor
    """Where the part that is there begins."""
    last: Tensor
    """Where it ends, inclusive."""
    place: Tensor
    """Which token of the hidden part it is, from 0."""
    label: Tensor
    """What stood there."""


class Direction:
    """The hidden heads told from adjective parts, or the hidden adjective parts from heads.

    Its tokens have labels of their own, ``IGNORED`` where nothing is asked.
    """

    def __init__(self, part: str, head: nn.Module, config: BidirectionalEntityMaskingConfig):
        self.part, self.head, self.config = part, head, config
        self.label = f"{NAME}.{part}"

    def count(self, batch: TextBatch) -> int:
        """Say over how much the loss is a mean: the tokens asked for, or sequences."""
        return count_reduced(self.config.reduction, self.count_items(batch), len(batch))

    def count_items(self, batch: TextBatch) -> int:
        """Say over how many tokens the accuracy is a share."""
        return int((batch.token_labels[self.label] != IGNORED).sum())

    def loss(self, states: TextStates, batch: TensorBatch) -> tuple[Tensor, dict[str, float]]:
        """Give the loss over hidden tokens, told among the whole vocabulary."""
        vectors = states.embeddings
        if vectors is None or vectors.shape[1] != states.final.shape[2]:
            raise ConfigError(
                f"objective.{NAME}: the vectors of the encoder's tokens are not as wide as its "
                "states; choose an encoder of BERT's kind"
            )
        asked = self.asked(batch)
        first = states.final[asked.sequence, asked.first]
        last = states.final[asked.sequence, asked.last]
        scores = self.head(first, last, asked.place) @ vectors.T  # (tokens, vocabulary)
        loss, stats = reduced_cross_entropy(self.config.reduction, scores, asked.label, len(batch))
        return self.config.weight * loss, stats

    def asked(self, batch: TensorBatch) -> Asked:
        """Find the tokens that are asked for, in the order of mentions."""
        is_long = batch.mention_labels[HEAD_START] != IGNORED
        sequence, first, last = batch.mentions[is_long].unbind(1)
        start = batch.mention_labels[HEAD_START][is_long]
        parts = (start, last), (first, start - 1)
        (begin, end), there = parts if self.part == HEAD else parts[::-1]
        place = torch.arange(self.config.longest, device=begin.device)
        tokens = begin[:, None] + place  # (mentions, longest)
        inside = tokens <= end[:, None]
        labels = batch.token_labels[self.label][
            sequence[:, None], torch.where(inside, tokens, begin[:, None])
        ]
        row, place = (inside & (labels != IGNORED)).nonzero(as_tuple=True)
        return Asked(sequence[row], there[0][row], there[1][row], place, labels[row, place])
