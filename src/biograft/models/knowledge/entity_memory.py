"""The entity memory of KeBioLM (Yuan et al. 2021): mentions are enriched with nearby entities.

On the states h of the text-only layers,

* a linear layer tags every token O, B or I (equation 2);
* a mention from s to t has the query ``q = W_m [h_s; h_t] + b_m``;
* ``a = softmax(q . e_j)`` over its k nearest entities (3), and its vector is ``sum a_j e_j``
  (the k nearest of the whole table, or with ``n_probed`` of some clusters);
* every token of a mention becomes ``h_i + W_e (sum a_j e_j) + b_e`` (4), others are unchanged.

With ``fusion_norm`` a layer norm of every token follows, as published weights expect. With
``compat`` the addition is that of the published code: it goes one token beyond a mention's end,
later mentions overwrite earlier ones, and a sequence with fewer mentions than another of its
batch has its tokens 0 and 1 overwritten by a mention of token 0.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from biograft.models.knowledge.config import KnowledgeBertConfig
from biograft.models.knowledge.inputs import EntityInputs, Knowledge, covering, spans_of_tags
from biograft.models.knowledge.nearest import Clusters, nearest_rows
from biograft.models.knowledge_layers import EntityMemoryConfig

_N_TAGS = 3


class EntityMemory(nn.Module):
    """Detect mentions, mix the nearest entities of each, add the mixture to its tokens."""

    def __init__(self, config: EntityMemoryConfig, model_config: KnowledgeBertConfig) -> None:
        super().__init__()
        width, dim = model_config.hidden_size, model_config.entity_dim
        self.n_nearest, self.max_mentions = config.n_nearest, config.max_mentions
        self.compat = config.compat
        self.changes_states = config.after < model_config.num_hidden_layers
        """False behind the last layer, where nothing reads the changed states."""
        self.detector = nn.Linear(width, _N_TAGS)
        self.mention_to_entity = nn.Linear(2 * width, dim)
        n_probed = config.n_probed
        self.clusters = Clusters(model_config.n_entities, dim, n_probed) if n_probed else None
        self.entity_to_token = nn.Linear(dim, width)
        epsilon = model_config.layer_norm_eps
        self.norm = nn.LayerNorm(width, epsilon) if config.fusion_norm else None

    def forward(self, inputs: EntityInputs) -> Knowledge:
        """Enrich the mentions of a batch: gold ones, or else those that the layer detects."""
        states, mentions = inputs.states, inputs.mentions
        scores = self.detector(states)  # (sequences, length, 3)
        if mentions is None or not inputs.gold:
            mentions = spans_of_tags(scores.argmax(dim=-1), inputs.mask, self.max_mentions)
        spans = _with_fillers(mentions, len(states)) if self.compat else mentions
        queries, n = self.project(states, spans), len(mentions)
        if not self.changes_states:
            return Knowledge(states, scores, mentions, queries[:n])
        rows, weights, vectors = self.recall(queries, inputs.table)
        states = self.add(states, spans, vectors)
        return Knowledge(states, scores, mentions, queries[:n], rows[:n], weights[:n])

    def project(self, states: Tensor, mentions: Tensor) -> Tensor:
        """Project mentions into the space of entities: (mentions, dim)."""
        sequence, first, last = mentions.unbind(dim=1)
        ends = torch.cat([states[sequence, first], states[sequence, last]], dim=1)
        queries: Tensor = self.mention_to_entity(ends)
        return queries

    def recall(self, queries: Tensor, table: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return the nearest entities of each query, their weights and their mixture."""
        search = nearest_rows if self.clusters is None else self.clusters.search
        rows = search(queries, table, self.n_nearest)
        vectors = nn.functional.embedding(rows, table)  # (mentions, k, dim)
        weights = torch.einsum("md,mkd->mk", queries, vectors).softmax(dim=1)
        return rows, weights, torch.einsum("mk,mkd->md", weights, vectors)

    def add(self, states: Tensor, mentions: Tensor, vectors: Tensor) -> Tensor:
        """Add the vector of each mention to its tokens."""
        if self.compat:
            mentions = _one_further(mentions, states.shape[1])
        owner = covering(mentions, states.shape[:2]).flatten()
        tokens = (owner >= 0).nonzero().squeeze(1)
        added = self.entity_to_token(vectors)[owner[tokens]].to(states.dtype)
        fused = states.flatten(0, 1).index_add(0, tokens, added).view_as(states)
        return fused if self.norm is None else self.norm(fused)


def _with_fillers(mentions: Tensor, n_sequences: int) -> Tensor:
    """Pad every sequence to the largest number of mentions, with mentions of token 0."""
    counts = mentions[:, 0].bincount(minlength=n_sequences)
    missing = counts.max() - counts if len(mentions) else counts
    sequence = torch.arange(n_sequences, device=mentions.device).repeat_interleave(missing)
    fillers = torch.stack([sequence, *torch.zeros_like(sequence).expand(2, -1)], dim=1)
    return torch.cat([mentions, fillers])


def _one_further(mentions: Tensor, length: int) -> Tensor:
    sequence, first, last = mentions.unbind(dim=1)
    return torch.stack([sequence, first, (last + 1).clamp(max=length - 1)], dim=1)
