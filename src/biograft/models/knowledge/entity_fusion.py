"""Entity fusion at aligned tokens, as in ERNIE (Zhang et al. 2019); a baseline for SMedBERT.

The first token of a mention that is linked to an entity e becomes
``h + GELU(h W_t + e W_e + b) W_o + b_o``; all other tokens are unchanged. The published model has
several such layers, in which entities also attend to each other; this is one of them, without that
attention, for a BERT that is already trained.
"""

from __future__ import annotations

from torch import Tensor, nn
from torch.nn.functional import gelu

from biograft.models.knowledge.config import KnowledgeBertConfig
from biograft.models.knowledge.inputs import EntityInputs, Infusion, Knowledge
from biograft.models.knowledge_layers import EntityFusionConfig


class EntityFusion(nn.Module):
    """Fuse the vector of its linked entity into the first token of each mention."""

    def __init__(self, config: EntityFusionConfig, model_config: KnowledgeBertConfig) -> None:
        super().__init__()
        width = model_config.hidden_size
        self.changes_states = config.after < model_config.num_hidden_layers
        """False behind the last layer."""
        self.token = nn.Linear(width, width)
        self.entity = nn.Linear(model_config.entity_dim, width, bias=False)
        self.infuse = Infusion(width, width, neutral=config.neutral_start)

    def forward(self, inputs: EntityInputs) -> Knowledge:
        """Fuse the entities of linked mentions."""
        states, mentions, entities = inputs.states, inputs.mentions, inputs.entities
        if mentions is None or entities is None or not self.changes_states:
            return Knowledge(states)
        known = entities >= 0
        mentions, rows = mentions[known], entities[known]
        position = mentions[:, 0] * states.shape[1] + mentions[:, 1]
        flat = states.flatten(0, 1)
        vectors = nn.functional.embedding(rows, inputs.table)
        inner: Tensor = gelu(self.token(flat[position]) + self.entity(vectors))
        added = self.infuse(inner).to(states.dtype)
        return Knowledge(flat.index_add(0, position, added).view_as(states))
