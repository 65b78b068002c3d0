"""The neighbour attention of SMedBERT (Zhang et al. 2021): mentions attend to graph neighbours.

A mention that is linked to an entity attends to the best neighbours of the entity in the graph.
With h' the mention in the space of entities (equation 2) and h_e the vector of a neighbour,

* types: ``a = softmax(tanh(h' W_t + h_t W_t') W_a)`` over the types that occur among its
  neighbours, h_t the sum of the neighbours of type t (3);
* nodes: ``b = softmax(((h' W_q)(h_e W_k)^T / sqrt(dim)) a_type(e))`` over its neighbours (4, 5);
* the neighbourhood: ``h_n = LN(h^ + FFN(h^))``, ``h^ = sum b_e (h_e W_v + b_v)`` (6, 7);
* the infused vector: ``h~ = LN(GELU([h' | h_n] W_mf + b_mf) W_bp + b_bp)`` (8, 9);
* each of the mention's own tokens: ``g = tanh([h_i | h~] W_ug + b_ug)`` and
  ``h_i + GELU([h_i | g h~] W_ex + b_ex)`` (10, 11).

Other tokens, and mentions without an entity or whose entity has no neighbour, are unchanged. Behind
all layers of BERT it computes nothing, and all states are unchanged.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import gelu

from biograft.errors import ConfigError
from biograft.models.knowledge.config import KnowledgeBertConfig
from biograft.models.knowledge.inputs import (
    EntityInputs,
    Infusion,
    Knowledge,
    MentionReader,
    tokens_of,
)
from biograft.models.knowledge_layers import NEIGHBOURS, NeighbourAttentionConfig


class NeighbourAttention(nn.Module):
    """Attend from mentions to the neighbours of their entities, and infuse the result."""

    constant_buffers = ("neighbours", "types")
    """Set once, before training; checkpoints save them once."""
    neighbours: Tensor
    """(entities, neighbours): rows of the table, best first, padded with -1."""
    types: Tensor
    """(entities,): type indices, -1 without a type."""

    def __init__(self, config: NeighbourAttentionConfig, model_config: KnowledgeBertConfig) -> None:
        super().__init__()
        width, dim = model_config.hidden_size, model_config.entity_dim
        epsilon = model_config.layer_norm_eps
        self.use_types, self.use_nodes = config.type_attention, config.node_attention
        self.changes_states = config.after < model_config.num_hidden_layers
        """False behind the last layer: the ablation without hybrid attention."""
        shape = (model_config.n_entities, config.n_neighbours)
        self.register_buffer("neighbours", torch.full(shape, -1, dtype=torch.int32))
        self.register_buffer("types", torch.full(shape[:1], -1, dtype=torch.int32))
        self.read = MentionReader(model_config)
        self.mention_type = nn.Linear(dim, dim, bias=False)
        self.neighbour_type = nn.Linear(dim, dim, bias=False)
        self.type_score = nn.Linear(dim, 1, bias=False)
        self.query = nn.Linear(dim, dim, bias=False)
        self.key = nn.Linear(dim, dim, bias=False)
        self.value = nn.Linear(dim, dim)
        self.inner = nn.Linear(dim, 4 * dim)
        self.outer = nn.Linear(4 * dim, dim, bias=False)
        self.node_norm = nn.LayerNorm(dim, epsilon)
        self.mix = nn.Linear(2 * dim, 2 * dim)
        self.back = nn.Linear(2 * dim, width)
        self.back_norm = nn.LayerNorm(width, epsilon)
        self.gate = nn.Linear(2 * width, width)
        self.infuse = Infusion(2 * width, width, neutral=config.neutral_start)

    def keep_neighbours(self, n: int) -> None:
        """Keep only the n best neighbours of each entity."""
        n_known = self.neighbours.shape[1]
        if not 1 <= n <= n_known:
            raise ConfigError(f"n_neighbours: expected 1 to {n_known}, those known, found {n}")
        self.neighbours = self.neighbours[:, :n].clone()

    def forward(self, inputs: EntityInputs) -> Knowledge:
        """Infuse the linked mentions, independently of the others of the batch."""
        mentions, entities = inputs.mentions, inputs.entities
        if mentions is None or entities is None or not self.changes_states:
            return Knowledge(inputs.states)
        all_rows = self._neighbours_of(entities)  # (mentions, k)
        if inputs.withheld is not None:
            all_rows = all_rows.masked_fill(inputs.withheld == 1, -1)
        has_some = (all_rows >= 0).any(dim=1)
        mentions, rows = mentions[has_some], all_rows[has_some].long()
        read = self.read(inputs.states, mentions)
        weights, vectors = self.attend(read, rows, inputs.table)
        infused = self.back_norm(self.back(gelu(self.mix(torch.cat([read, vectors], dim=1)))))
        states = self.add(inputs.states, mentions, infused)
        all_weights = weights.new_zeros(all_rows.shape)
        all_weights[has_some] = weights
        return Knowledge(states, neighbours=all_rows, neighbour_weights=all_weights)

    def attend(self, read: Tensor, rows: Tensor, table: Tensor) -> tuple[Tensor, Tensor]:
        """Attend to the neighbours (mentions, k); return their weights and h_n (mentions, dim)."""
        exists = rows >= 0
        vectors = nn.functional.embedding(rows.clamp_min(0), table)  # (mentions, k, dim)
        scores = vectors.new_zeros(rows.shape)
        if self.use_nodes:
            query = self.query(read) @ self.key.weight  # (h' W_q) W_k^T, once for all neighbours
            scores = torch.einsum("md,mkd->mk", query, vectors) / math.sqrt(read.shape[1])
            if self.use_types:
                scores = scores * self.weigh_types(read, rows, vectors)
        weights = scores.masked_fill(~exists, -torch.inf).softmax(dim=1)
        mixed = self.value(torch.einsum("mk,mkd->md", weights, vectors))
        neighbourhood: Tensor = self.node_norm(mixed + self.outer(gelu(self.inner(mixed))))
        return weights, neighbourhood

    def weigh_types(self, read: Tensor, rows: Tensor, vectors: Tensor) -> Tensor:
        """Compute the weight of the type of each neighbour: (mentions, k), 0 at padding."""
        exists = rows >= 0
        types = self.types[rows.clamp_min(0)]
        same = (types[:, :, None] == types[:, None, :]) & exists[:, :, None] & exists[:, None, :]
        of_type = same.to(vectors.dtype) @ vectors  # (mentions, k, dim): the sum over its type
        both = self.mention_type(read)[:, None] + self.neighbour_type(of_type)
        scores = self.type_score(both.tanh()).squeeze(2)
        # a type counts once in the softmax, however many neighbours it has
        shared = same.sum(dim=2).clamp_min(1).to(scores.dtype).log()
        scores = scores.masked_fill(~exists, -torch.inf)
        weights: Tensor = (scores - (scores - shared).logsumexp(dim=1, keepdim=True)).exp()
        return weights

    def add(self, states: Tensor, mentions: Tensor, infused: Tensor) -> Tensor:
        """Infuse each mention's vector (mentions, width) into its own tokens."""
        owner, position = tokens_of(mentions, states.shape[1])
        flat = states.flatten(0, 1)
        tokens, infused = flat[position], infused[owner].to(states.dtype)
        gate = self.gate(torch.cat([tokens, infused], dim=1)).tanh()
        added = gelu(self.infuse(torch.cat([tokens, gate * infused], dim=1)))
        return flat.index_add(0, position, added.to(states.dtype)).view_as(states)

    def _neighbours_of(self, entities: Tensor) -> Tensor:
        rows = self.neighbours[entities.clamp_min(0)] if len(self.neighbours) else (
            self.neighbours.new_zeros((len(entities), 0))
        )  # fmt: skip
        return rows.masked_fill(entities[:, None] < 0, -1)


def keep_neighbours(model: Any, n: int) -> None:
    """Keep only the n best neighbours of each entity of a model, in its configuration too."""
    if NEIGHBOURS not in getattr(model, "knowledge", {}):
        raise ConfigError("n_neighbours: the encoder has no neighbour_attention; leave it out")
    model.knowledge[NEIGHBOURS].keep_neighbours(n)
    model.config.knowledge_layers[NEIGHBOURS]["n_neighbours"] = n
