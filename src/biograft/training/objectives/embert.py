"""Objectives of EMBERT: consistency of entities, segmentation, bidirectional masking.

Context-entity consistency (equations 1 and 2) detects entities that do not fit, from the states on
both sides. Entity segmentation (equations 4 and 5) predicts where sub-entities end. Bidirectional
entity masking (equations 6 to 9) masks one part of a long mention, the head or the adjective part,
and predicts it from the other.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import ClassVar, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from biograft.errors import ConfigError
from biograft.training.objectives.base import (
    GeluNorm,
    LabelledObjective,
    LabelledTerm,
    Loss,
    LossTerm,
    Objective,
    TensorBatch,
    TextStates,
    init_weights,
)
from biograft.training.objectives.configs import (
    BidirectionalEntityMaskingConfig,
    ContextEntityConsistencyConfig,
    EntitySegmentationConfig,
)
from biograft.training.objectives.examples import (
    CONSISTENT,
    HEAD_OFFSET,
    IGNORED,
    SEGMENT_ENDS,
    SPECIAL,
    Setting,
    TextExample,
)


class ConsistencyHead(nn.Module):
    """W2 LN(GELU(W1 [x_before ; x_after])) (EMBERT's equations 1 and 2)."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.inner = GeluNorm(2 * width, width)
        self.classes = nn.Linear(width, 2, bias=False)
        init_weights(self)

    def forward(self, before: Tensor, after: Tensor) -> Tensor:
        """Compute scores (entities, 2) from the states (entities, width) just outside of each.

        Args:
            before: States just before the entities: (entities, width).
            after: States just behind them: (entities, width).
        """
        scores: Tensor = self.classes(self.inner(torch.cat([before, after], -1)))
        return scores


class ContextEntityConsistency(LabelledObjective):
    """Classify replaced entities: 1 is a synonym, 0 another entity; the stream replaces them.

    The states of the entity itself are not used: those of its neighbours, which may be the special
    tokens at the edges, must carry the answer.
    """

    name = "context_entity_consistency"
    labelled = ("mention_labels", CONSISTENT)
    order: ClassVar[int] = -2
    head: ConsistencyHead

    def __init__(self, config: ContextEntityConsistencyConfig, setting: Setting) -> None:
        self.config, self.head = config, ConsistencyHead(setting.width)

    def prepare(self, example: TextExample, rng: np.random.Generator) -> TextExample:
        """Exclude replaced entities from masking, because a masked one could not be classified."""
        if CONSISTENT not in example.mention_labels:
            raise ConfigError(
                f"objective.{self.name}: no entity of the text is replaced; give the recipe a "
                "table [stream.substitution]"
            )
        replaced = np.flatnonzero(example.mention_labels[CONSISTENT] != IGNORED)
        return replace(example, fixed=example.fixed_with(replaced))

    def loss(self, states: TextStates, batch: TensorBatch) -> Loss:
        """Compute the mean over replaced entities."""
        labels = self.labels(batch)
        counted = labels != IGNORED
        sequence, first, last = batch.mentions[counted].unbind(1)
        scores = self.head(states.final[sequence, first - 1], states.final[sequence, last + 1])
        return self.mean_loss(scores, labels[counted], batch)


class SegmentationHead(nn.Module):
    """W5 tanh(W3 LN(GELU(W4 x)) + b) (EMBERT's equation 4)."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.inner, self.outer = GeluNorm(width, width), nn.Linear(width, width)
        self.classes = nn.Linear(width, 2, bias=False)
        init_weights(self)

    def forward(self, states: Tensor) -> Tensor:
        """Compute scores (tokens, 2) from states (tokens, width)."""
        scores: Tensor = self.classes(torch.tanh(self.outer(self.inner(states))))
        return scores


class EntitySegmentation(LabelledObjective):
    """Classify the tokens of long mentions, masked ones included: 1 ends a segment, 0 does not."""

    name = "entity_segmentation"
    labelled = ("token_labels", SEGMENT_ENDS)
    head: SegmentationHead

    def __init__(self, config: EntitySegmentationConfig, setting: Setting) -> None:
        self.config, self.head = config, SegmentationHead(setting.width)

    def prepare(self, example: TextExample, rng: np.random.Generator) -> TextExample:
        """Check that the stream labels segments; the example stays as it is."""
        if SEGMENT_ENDS not in example.token_labels:
            raise ConfigError(
                f"objective.{self.name}: the text has no segmented entities; set "
                "stream.segmentation to a folder of biograft corpus segment"
            )
        return example

    def loss(self, states: TextStates, batch: TensorBatch) -> Loss:
        """Compute the loss over the tokens of long mentions."""
        labels = self.labels(batch)
        counted = labels != IGNORED
        scores = self.head(states.final[counted])  # (labelled tokens, 2)
        return self.mean_loss(scores, labels[counted], batch)


HEAD, ADJECTIVE = "head", "adjective"
PARTS = (HEAD, ADJECTIVE)


class MaskedPart(NamedTuple):
    """A masked part of a mention; both ends inclusive."""

    row: int
    part: str
    first: int
    last: int


def choose_masked_parts(
    example: TextExample, entity_ratio: float, max_token_ratio: float, rng: np.random.Generator
) -> list[MaskedPart]:
    """Choose a ratio of the long mentions at random, and one of the two parts of each.

    A part with which more tokens would be masked is left out, and so are mentions with fixed
    tokens.

    Args:
        example: Example with labels of the heads of mentions.
        entity_ratio: Ratio of the long mentions, in expectation.
        max_token_ratio: Ratio of the ordinary tokens of the sequence that may be masked in all.
        rng: Random numbers.
    """
    offsets, fixed = example.mention_labels[HEAD_OFFSET], example.fixed_with(())
    free = [
        row
        for row in np.flatnonzero(offsets != IGNORED).tolist()
        if not fixed[example.mentions[row, 0] : example.mentions[row, 1] + 1].any()
    ]
    n_wanted = int(entity_ratio * len(free) + rng.random())
    # rounded up by a hair: 0.29 * 100 is a little less than 29
    n_left = int(max_token_ratio * int((example.words != SPECIAL).sum()) + 1e-9)
    chosen = []
    for row in rng.permutation(np.array(free, np.int64))[:n_wanted].tolist():
        first, last = example.mentions[row, :2].tolist()
        start = first + int(offsets[row])
        masked = (
            MaskedPart(row, HEAD, start, last)
            if rng.random() < 0.5
            else MaskedPart(row, ADJECTIVE, first, start - 1)
        )
        size = masked.last - masked.first + 1
        if size <= n_left:
            chosen.append(masked)
            n_left -= size
    return chosen


class BoundaryHead(nn.Module):
    """Two layers LN(GELU(W .)) of [x_first ; x_last ; p] (EMBERT's equations 6 and 7).

    Args:
        width: Width of the states.
        position_dim: Width of the embedding of a position.
        max_tokens: Largest number of tokens of a masked part.
    """

    def __init__(self, width: int, position_dim: int, max_tokens: int) -> None:
        super().__init__()
        self.position = nn.Embedding(max_tokens, position_dim)
        self.inner = GeluNorm(2 * width + position_dim, width)
        self.outer = GeluNorm(width, width)

    def forward(self, first: Tensor, last: Tensor, position: Tensor) -> Tensor:
        """Compute (tokens, width), to be multiplied with the input embeddings of tokens.

        Args:
            first: States of the visible part's first token: (tokens, width).
            last: States of its last token: (tokens, width).
            position: Position of the predicted token in the masked part: (tokens,).
        """
        inputs = torch.cat([first, last, self.position(position)], -1)
        outputs: Tensor = self.outer(self.inner(inputs))
        return outputs


class MaskedPartTokens(NamedTuple):
    """The tokens of masked parts to predict; all fields are (tokens,)."""

    sequence: Tensor
    first: Tensor
    """The first token of the visible part."""
    last: Tensor
    """The last token of the visible part, inclusive."""
    position: Tensor
    """The position of the token in the masked part, from 0."""
    label: Tensor
    """The original token."""


class Direction(LabelledTerm):
    """Predict masked heads from adjective parts, or masked adjective parts from heads.

    Its tokens have labels of their own, ``IGNORED`` where nothing is predicted.

    Args:
        part: Name of the part that is predicted.
        head: Head that predicts it.
        config: Settings of the objective.
    """

    def __init__(self, part: str, head: nn.Module, config: BidirectionalEntityMaskingConfig):
        self.part, self.head, self.config = part, head, config
        self.labelled = ("token_labels", f"{BidirectionalEntityMasking.name}.{part}")

    def loss(self, states: TextStates, batch: TensorBatch) -> Loss:
        """Compute the loss over masked tokens, scored against the whole vocabulary."""
        vectors = states.require("embeddings", BidirectionalEntityMasking.name)
        if vectors.shape[1] != states.final.shape[2]:
            raise ConfigError(
                f"objective.{BidirectionalEntityMasking.name}: expected input embeddings as wide "
                f"as the states ({states.final.shape[2]}), found {vectors.shape[1]}; choose an "
                "encoder of BERT's kind"
            )
        tokens = self.masked_tokens(batch)
        first = states.final[tokens.sequence, tokens.first]
        last = states.final[tokens.sequence, tokens.last]
        scores = self.head(first, last, tokens.position) @ vectors.T  # (tokens, vocabulary)
        return self.mean_loss(scores, tokens.label, batch)

    def masked_tokens(self, batch: TensorBatch) -> MaskedPartTokens:
        """Find the tokens to predict, in the order of mentions."""
        is_long = batch.mention_labels[HEAD_OFFSET] != IGNORED
        sequence, first, last = batch.mentions[is_long].unbind(1)
        start = first + batch.mention_labels[HEAD_OFFSET][is_long]
        parts = (start, last), (first, start - 1)
        (begin, end), visible = parts if self.part == HEAD else parts[::-1]
        position = torch.arange(self.config.max_tokens, device=begin.device)
        tokens = begin[:, None] + position  # (mentions, max_tokens)
        inside = tokens <= end[:, None]
        labels = self.labels(batch)[sequence[:, None], torch.where(inside, tokens, begin[:, None])]
        row, position = (inside & (labels != IGNORED)).nonzero(as_tuple=True)
        return MaskedPartTokens(
            sequence[row], visible[0][row], visible[1][row], position, labels[row, position]
        )


class BidirectionalEntityMasking(Objective):
    """Predict heads from adjective parts and adjective parts from heads.

    The loss is the sum of two terms, one for each direction, each with a mean of its own.
    """

    name = "bidirectional_entity_masking"
    order: ClassVar[int] = -1

    def __init__(self, config: BidirectionalEntityMaskingConfig, setting: Setting) -> None:
        self.config, self.mask = config, setting.mask
        self.head = nn.ModuleList(
            BoundaryHead(setting.width, config.position_dim, config.max_tokens)
            for _ in range(1 if config.shared_head else len(PARTS))
        )
        init_weights(self.head)
        heads = (self.head[0], self.head[-1])
        self._directions = {
            part: Direction(part, head, config) for part, head in zip(PARTS, heads, strict=True)
        }

    @property
    def terms(self) -> Mapping[str, LossTerm]:
        """The two directions, by the part that is masked."""
        return self._directions

    def prepare(self, example: TextExample, rng: np.random.Generator) -> TextExample:
        """Mask parts of some long mentions; their labels are the original tokens.

        All tokens of such a mention are fixed: one part stays masked, the other visible.
        """
        if HEAD_OFFSET not in example.mention_labels:
            raise ConfigError(
                f"objective.{self.name}: the text has no segmented entities; set "
                "stream.segmentation to a folder of biograft corpus segment"
            )
        config = self.config
        chosen = choose_masked_parts(example, config.entity_ratio, config.max_token_ratio, rng)
        tokens = example.tokens.copy()
        labels = {part: np.full(len(tokens), IGNORED, np.int64) for part in PARTS}
        for _, part, first, last in chosen:
            tokens[first : last + 1] = self.mask
            predicted = slice(first, min(last + 1, first + config.max_tokens))
            labels[part][predicted] = example.tokens[predicted]
        return replace(
            example,
            tokens=tokens,
            token_labels={
                **example.token_labels,
                **{f"{self.name}.{part}": values for part, values in labels.items()},
            },
            fixed=example.fixed_with(masked.row for masked in chosen),
        )
