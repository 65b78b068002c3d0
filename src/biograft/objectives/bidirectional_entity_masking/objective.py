"""Hide one part of a long entity, and foretell it from the other."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

import numpy as np
from torch import nn

from biograft.errors import ConfigError
from biograft.objectives.bidirectional_entity_masking.choosing import PARTS, choose_parts
from biograft.objectives.bidirectional_entity_masking.config import (
    BidirectionalEntityMaskingConfig,
)
from biograft.objectives.bidirectional_entity_masking.direction import NAME, Direction
from biograft.objectives.bidirectional_entity_masking.head import BoundaryHead
from biograft.objectives.fresh_weights import draw_weights
from biograft.objectives.records import HEAD_START, IGNORED, TextExample
from biograft.objectives.setting import Setting


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
