"""Which long entities have a part hidden, and which part."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from biograft.errors import ConfigError
from biograft.objectives.base import TensorBatch, TextStates
from biograft.objectives.configs import BidirectionalEntityMaskingConfig
from biograft.objectives.examples import (
    HEAD_START,
    IGNORED,
    SPECIAL,
    Setting,
    TextBatch,
    TextExample,
)
from biograft.objectives.heads import GeluNorm, draw_weights
from biograft.objectives.losses import count_reduced, reduced_cross_entropy

HEAD, ADJECTIVE = "head", "adjective"
PARTS = (HEAD, ADJECTIVE)


class HiddenPart(NamedTuple):
    """A part of a mention, its tokens with both ends inclusive."""

    row: int
    part: str
    first: int
    last: int


def choose_parts(
    example: TextExample, share: float, most_share: float, draw: np.random.Generator
) -> list[HiddenPart]:
    """Choose a share of the long mentions at random, and of each one of its parts.

    The number is the share in expectation. A part with which more than ``most_share`` of the
    sequence's ordinary tokens would be hidden is left out, and so are mentions with fixed tokens.
    """
    starts, fixed = example.mention_labels[HEAD_START], example.fixed_with(())
    free = [
        row
        for row in np.flatnonzero(starts != IGNORED).tolist()
        if not fixed[example.mentions[row, 0] : example.mentions[row, 1] + 1].any()
    ]
    n_wanted = int(share * len(free) + draw.random())
    # a hair more than the share, for 0.29 of 100 is a hair less than 29
    left = int(most_share * int((example.words != SPECIAL).sum()) + 1e-9)
    chosen = []
    for row in draw.permutation(np.array(free, np.int64))[:n_wanted].tolist():
        first, last = example.mentions[row, :2].tolist()
        start = int(starts[row])
        hidden = (
            HiddenPart(row, HEAD, start, last)
            if draw.random() < 0.5
            else HiddenPart(row, ADJECTIVE, first, start - 1)
        )
        size = hidden.last - hidden.first + 1
        if size <= left:
            chosen.append(hidden)
            left -= size
    return chosen


class BoundaryHead(nn.Module):
    """Two layers LN(GELU(W .)) of [x_first ; x_last ; p] (EMBERT's equations 6 and 7)."""

    def __init__(self, width: int, position_dim: int, longest: int) -> None:
        super().__init__()
        self.position = nn.Embedding(longest, position_dim)
        self.inner = GeluNorm(2 * width + position_dim, width)
        self.outer = GeluNorm(width, width)

    def forward(self, first: Tensor, last: Tensor, place: Tensor) -> Tensor:
        """Give (tokens, width), to be compared with the vectors that tokens go in with.

        ``first`` and ``last`` (tokens, width) are the states at the ends of the part that is
        there, ``place`` (tokens,) says which token of the hidden part is asked for.
        """
        made: Tensor = self.outer(self.inner(torch.cat([first, last, self.position(place)], -1)))
        return made


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


class BidirectionalEntityMasking:
    """EMBERT's third task (equations 6 to 9): heads from adjective parts and the other way round.

    It is two losses that are added up, each a mean of its own: those of its ``terms``.
    """

    turn: ClassVar[int] = -1

    def __init__(self, config: BidirectionalEntityMaskingConfig, setting: Setting) -> None:
        self.config, self.mask = config, setting.mask
        self.head = nn.ModuleList(
            BoundaryHead(setting.width, config.position_dim, config.longest)
            for _ in range(1 if config.shared else len(PARTS))
        )
        draw_weights(self.head)
        heads = (self.head[0], self.head[-1])
        self.terms = {
            part: Direction(part, head, config) for part, head in zip(PARTS, heads, strict=True)
        }

    def prepare(self, example: TextExample, draw: np.random.Generator) -> TextExample:
        """Hide parts of some long entities; what they were becomes their label.

        All tokens of such an entity are fixed: what is hidden is so, and what tells it is seen.
        """
        if HEAD_START not in example.mention_labels:
            raise ConfigError(
                f"objective.{NAME}: of no entity of the text the head is known; set "
                "stream.segmentation to a folder of biograft corpus segment"
            )
        chosen = choose_parts(example, self.config.share, self.config.most_share, draw)
        tokens = example.tokens.copy()
        labels = {
            term.label: np.full(len(tokens), IGNORED, np.int64) for term in self.terms.values()
        }
        for _, part, first, last in chosen:
            tokens[first : last + 1] = self.mask
            asked = slice(first, min(last + 1, first + self.config.longest))
            labels[self.terms[part].label][asked] = example.tokens[asked]
        return replace(
            example,
            tokens=tokens,
            token_labels={**example.token_labels, **labels},
            fixed=example.fixed_with(hidden.row for hidden in chosen),
        )
