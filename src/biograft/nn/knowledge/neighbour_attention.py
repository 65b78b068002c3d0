"""The neighbour attention of SMedBERT (Zhang et al. 2021): mentions take up their neighbourhood.

A mention that is linked to an entity reads the entity's best neighbours in the graph. With h' the
mention in the space of entities (equation 2) and h_e the vector of a neighbour,

* types: ``a = softmax(tanh(h' W_t + h_t W_t') W_a)`` over the types that occur among its
  neighbours, h_t the sum of the neighbours of type t (3);
* nodes: ``b = softmax(((h' W_q)(h_e W_k)^T / sqrt(dim)) a_type(e))`` over its neighbours (4, 5);
* the neighbourhood: ``h_n = LN(h^ + FFN(h^))``, ``h^ = sum b_e (h_e W_v + b_v)`` (6, 7);
* what is infused: ``h~ = LN(GELU([h' | h_n] W_mf + b_mf) W_bp + b_bp)`` (8, 9);
* each of the mention's own tokens: ``g = tanh([h_i | h~] W_ug + b_ug)`` and
  ``h_i + GELU([h_i | g h~] W_ex + b_ex)`` (10, 11).

Other tokens, and mentions without an entity or whose entity has no neighbour, stay as they are.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn.functional import gelu

from biograft.errors import ConfigError
from biograft.nn.knowledge.config import KnowledgeBertConfig
from biograft.nn.knowledge.inputs import Infusion, Knowledge, MentionReader, Told, tokens_of


class NeighbourAttention(nn.Module):
    """Attend from mentions to the neighbours of their entities, and infuse what is found."""

    neighbours: Tensor
    """(entities, neighbours): rows of the table, the best first, -1 where there are no more."""
    types: Tensor
    """(entities,): the number of each entity's type, -1 where it has none."""

    def __init__(self, config: KnowledgeBertConfig) -> None:
        super().__init__()
        width, dim = config.hidden_size, config.entity_dim
        self.use_types, self.use_nodes = config.type_attention, config.node_attention
        shape = (config.n_entities, config.n_neighbours)
        self.register_buffer("neighbours", torch.full(shape, -1, dtype=torch.int32))
        self.register_buffer("types", torch.full(shape[:1], -1, dtype=torch.int32))
        self.read = MentionReader(config)
        self.mention_type = nn.Linear(dim, dim, bias=False)
        self.neighbour_type = nn.Linear(dim, dim, bias=False)
        self.type_score = nn.Linear(dim, 1, bias=False)
        self.query = nn.Linear(dim, dim, bias=False)
        self.key = nn.Linear(dim, dim, bias=False)
        self.value = nn.Linear(dim, dim)
        self.inner = nn.Linear(dim, 4 * dim)
        self.outer = nn.Linear(4 * dim, dim, bias=False)
        self.node_norm = nn.LayerNorm(dim, config.layer_norm_eps)
        self.mix = nn.Linear(2 * dim, 2 * dim)
        self.back = nn.Linear(2 * dim, width)
        self.back_norm = nn.LayerNorm(width, config.layer_norm_eps)
        self.gate = nn.Linear(2 * width, width)
        self.infuse = Infusion(2 * width, width, neutral=config.neutral_start)

    def keep_neighbours(self, n: int) -> None:
        """See fewer neighbours of each entity from now on, the best ones."""
        most = self.neighbours.shape[1]
        if not 1 <= n <= most:
            raise ConfigError(f"n_neighbours: expected 1 to {most}, those known, found {n}")
        self.neighbours = self.neighbours[:, :n].clone()

    def forward(self, told: Told) -> Knowledge:
        """Infuse the mentions that are told; the others of a batch change nothing for them."""
        mentions, entities = told.mentions, told.entities
        if mentions is None or entities is None:
            return Knowledge(told.states)
        all_rows = self._neighbours_of(entities)  # (mentions, k)
        has_some = all_rows[:, 0] >= 0 if all_rows.shape[1] else entities < -1
        mentions, rows = mentions[has_some], all_rows[has_some].long()
        read = self.read(told.states, mentions)
        weights, found = self.attend(read, rows, told.table)
        infused = self.back_norm(self.back(gelu(self.mix(torch.cat([read, found], dim=1)))))
        states = self.add(told.states, mentions, infused)
        all_weights = weights.new_zeros(all_rows.shape)
        all_weights[has_some] = weights
        return Knowledge(states, neighbours=all_rows, neighbour_weights=all_weights)

    def attend(self, read: Tensor, rows: Tensor, table: Tensor) -> tuple[Tensor, Tensor]:
        """Weigh the neighbours (mentions, k) of mentions as read; give weights and h_n."""
        there = rows >= 0
        vectors = nn.functional.embedding(rows.clamp_min(0), table)  # (mentions, k, dim)
        scores = vectors.new_zeros(rows.shape)
        if self.use_nodes:
            asked = self.query(read) @ self.key.weight  # (h' W_q) W_k^T, once for all neighbours
            scores = torch.einsum("md,mkd->mk", asked, vectors) / math.sqrt(read.shape[1])
            if self.use_types:
                scores = scores * self.weigh_types(read, rows, vectors)
        weights = scores.masked_fill(~there, -torch.inf).softmax(dim=1)
        mixed = self.value(torch.einsum("mk,mkd->md", weights, vectors))
        found: Tensor = self.node_norm(mixed + self.outer(gelu(self.inner(mixed))))
        return weights, found

    def weigh_types(self, read: Tensor, rows: Tensor, vectors: Tensor) -> Tensor:
        """Give the weight of the type of each neighbour: (mentions, k), 0 at padding."""
        there = rows >= 0
        types = self.types[rows.clamp_min(0)]
        same = (types[:, :, None] == types[:, None, :]) & there[:, :, None] & there[:, None, :]
        of_type = same.to(vectors.dtype) @ vectors  # (mentions, k, dim): the sum over its type
        told = self.mention_type(read)[:, None] + self.neighbour_type(of_type)
        scores = self.type_score(told.tanh()).squeeze(2)
        # a type stands once in the softmax, however many neighbours it has
        shared = same.sum(dim=2).clamp_min(1).to(scores.dtype).log()
        scores = scores.masked_fill(~there, -torch.inf)
        weights: Tensor = (scores - (scores - shared).logsumexp(dim=1, keepdim=True)).exp()
        return weights

    def add(self, states: Tensor, mentions: Tensor, infused: Tensor) -> Tensor:
        """Infuse each mention's vector (mentions, width) into its own tokens."""
        owner, place = tokens_of(mentions, states.shape[1])
        flat = states.flatten(0, 1)
        tokens, told = flat[place], infused[owner].to(states.dtype)
        gate = self.gate(torch.cat([tokens, told], dim=1)).tanh()
        added = gelu(self.infuse(torch.cat([tokens, gate * told], dim=1)))
        return flat.index_add(0, place, added.to(states.dtype)).view_as(states)

    def _neighbours_of(self, entities: Tensor) -> Tensor:
        rows = self.neighbours[entities.clamp_min(0)] if len(self.neighbours) else (
            self.neighbours.new_zeros((len(entities), 0))
        )  # fmt: skip
        return rows.masked_fill(entities[:, None] < 0, -1)
