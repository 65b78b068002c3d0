"""Entities at aligned tokens, as ERNIE has them (Zhang et al. 2019): what SMedBERT is set beside.

The first token of a mention that is linked to an entity e becomes
``h + GELU(h W_t + e W_e + b) W_o + b_o``; all other tokens stay as they are. The published model
has several such layers, which also let entities attend to each other; this is one of them, without
that, put into a BERT that is trained already.
"""

from __future__ import annotations

from torch import Tensor, nn
from torch.nn.functional import gelu

from biograft.nn.knowledge.config import KnowledgeBertConfig
from biograft.nn.knowledge.inputs import Infusion, Knowledge, Told


class EntityFusion(nn.Module):
    """Put the vector of its entity into the first token of each mention that is told."""

    def __init__(self, config: KnowledgeBertConfig) -> None:
        super().__init__()
        width = config.hidden_size
        self.token = nn.Linear(width, width)
        self.entity = nn.Linear(config.entity_dim, width, bias=False)
        self.infuse = Infusion(width, width, neutral=config.neutral_start)

    def forward(self, told: Told) -> Knowledge:
        """Infuse the mentions that are told."""
        states, mentions, entities = told.states, told.mentions, told.entities
        if mentions is None or entities is None:
            return Knowledge(states)
        known = entities >= 0
        mentions, rows = mentions[known], entities[known]
        place = mentions[:, 0] * states.shape[1] + mentions[:, 1]
        flat = states.flatten(0, 1)
        vectors = nn.functional.embedding(rows, told.table)
        inner: Tensor = gelu(self.token(flat[place]) + self.entity(vectors))
        added = self.infuse(inner).to(states.dtype)
        return Knowledge(flat.index_add(0, place, added).view_as(states))
