"""The entity memory of KeBioLM (Yuan et al. 2021): mentions take up what entities know.

On the states h of the layers that read the text alone,

* a linear layer says O, B or I of every token (equation 2);
* a mention from s to t has the query ``q = W_m [h_s; h_t] + b_m``;
* ``a = softmax(q . e_j)`` over its k nearest entities (3), and its vector is ``sum a_j e_j``
  (the k nearest of the whole table, or with ``n_probed`` of the clusters looked into);
* every token of a mention becomes ``h_i + W_e (sum a_j e_j) + b_e`` (4), others stay.

With ``fusion_norm`` a layer norm of every token follows, as published weights expect. With
``compat`` the addition is that of the published code: it goes one token beyond a mention's end,
later mentions write over earlier ones, and a sequence with fewer mentions than another of its
batch has its tokens 0 and 1 written over by a mention of token 0.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from biograft.nn.knowledge.config import KnowledgeBertConfig
from biograft.nn.knowledge.inputs import Knowledge, Told, covering, spans_of_tags
from biograft.nn.knowledge.nearest import Clusters, nearest_rows
from biograft.nn.knowledge_layers import MEMORY

_N_TAGS = 3


class EntityMemory(nn.Module):
    """Find mentions, mix the entities nearest to each, add the mixture to its tokens."""

    def __init__(self, config: KnowledgeBertConfig) -> None:
        super().__init__()
        width, dim = config.hidden_size, config.entity_dim
        self.n_nearest, self.max_mentions = config.n_nearest, config.max_mentions
        self.compat = config.compat
        after: Any = config.knowledge_after
        self.changes_states = after[MEMORY] < config.num_hidden_layers
        """With no layer behind it, what would be added is read by nothing."""
        self.detector = nn.Linear(width, _N_TAGS)
        self.mention_to_entity = nn.Linear(2 * width, dim)
        n_probed = config.n_probed
        self.clusters = Clusters(config.n_entities, dim, n_probed) if n_probed else None
        self.entity_to_token = nn.Linear(dim, width)
        self.norm = nn.LayerNorm(width, config.layer_norm_eps) if config.fusion_norm else None

    def forward(self, told: Told) -> Knowledge:
        """Work on the states of a batch; without gold mentions, on those that it finds itself."""
        states, mentions = told.states, told.mentions
        scores = self.detector(states)  # (sequences, length, 3)
        if mentions is None or not told.gold:
            mentions = spans_of_tags(scores.argmax(dim=-1), told.mask, self.max_mentions)
        asked = _with_fillers(mentions, len(states)) if self.compat else mentions
        queries, n = self.ask(states, asked), len(mentions)
        if not self.changes_states:
            return Knowledge(states, scores, mentions, queries[:n])
        rows, weights, vectors = self.recall(queries, told.table)
        states = self.add(states, asked, vectors)
        return Knowledge(states, scores, mentions, queries[:n], rows[:n], weights[:n])

    def ask(self, states: Tensor, mentions: Tensor) -> Tensor:
        """Bring mentions into the space of entities: (mentions, dim)."""
        sequence, first, last = mentions.unbind(dim=1)
        ends = torch.cat([states[sequence, first], states[sequence, last]], dim=1)
        queries: Tensor = self.mention_to_entity(ends)
        return queries

    def recall(self, queries: Tensor, table: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Give the nearest entities of each query, how much each counts, and their mixture."""
        search = nearest_rows if self.clusters is None else self.clusters.search
        rows = search(queries, table, self.n_nearest)
        vectors = nn.functional.embedding(rows, table)  # (mentions, k, dim)
        weights = torch.einsum("md,mkd->mk", queries, vectors).softmax(dim=1)
        return rows, weights, torch.einsum("mk,mkd->md", weights, vectors)

    def add(self, states: Tensor, mentions: Tensor, vectors: Tensor) -> Tensor:
        """Add the vector of each mention to its tokens, and to no others."""
        if self.compat:
            mentions = _one_further(mentions, states.shape[1])
        owner = covering(mentions, states.shape[:2]).flatten()
        tokens = (owner >= 0).nonzero().squeeze(1)
        added = self.entity_to_token(vectors)[owner[tokens]].to(states.dtype)
        fused = states.flatten(0, 1).index_add(0, tokens, added).view_as(states)
        return fused if self.norm is None else self.norm(fused)


def _with_fillers(mentions: Tensor, n_sequences: int) -> Tensor:
    """Give every sequence as many mentions as any has, the missing ones at token 0."""
    counts = mentions[:, 0].bincount(minlength=n_sequences)
    lacking = counts.max() - counts if len(mentions) else counts
    sequence = torch.arange(n_sequences, device=mentions.device).repeat_interleave(lacking)
    fillers = torch.stack([sequence, *torch.zeros_like(sequence).expand(2, -1)], dim=1)
    return torch.cat([mentions, fillers])


def _one_further(mentions: Tensor, length: int) -> Tensor:
    sequence, first, last = mentions.unbind(dim=1)
    return torch.stack([sequence, first, (last + 1).clamp(max=length - 1)], dim=1)
