# mypy: allow-untyped-calls
# (classes of transformers are built by functions without types)
"""Knowledge layers, which stand between the layers of a BERT: their inputs, outputs and parts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import gelu
from transformers import BertConfig, initialization
from transformers.modeling_layers import GradientCheckpointingLayer
from transformers.models.bert.modeling_bert import BertAttention

from biograft.errors import ConfigError
from biograft.models.knowledge.config import KnowledgeBertConfig
from biograft.models.knowledge.nearest import Clusters, nearest_rows
from biograft.models.knowledge_layers import (
    NEIGHBOURS,
    EntityFusionConfig,
    EntityMemoryConfig,
    NeighbourAttentionConfig,
)


@dataclass(frozen=True, slots=True)
class EntityInputs:
    """The inputs of a knowledge layer: the states of a batch, its mentions and their entities."""

    states: Tensor
    """(sequences, length, width)."""
    mask: Tensor
    """(sequences, length): 0 at padding."""
    table: Tensor
    """(entities, dim): the vectors of all entities."""
    mentions: Tensor | None = None
    """(mentions, 3): sequence, first token, last token; None: the layer detects them, if it can."""
    entities: Tensor | None = None
    """(mentions,): the row of the entity that each is linked to, -1: none or not visible."""
    withheld: Tensor | None = None
    """(mentions, neighbours): 1 for the neighbours that the layer must not use, None: it uses all,
    which is so everywhere but in pre-training."""
    gold: bool = True
    """Whether the mentions are all that the text has, as in pre-training. Otherwise they are names
    found in the text, and a layer that detects mentions uses its own."""
    layers: Sequence[nn.Module] = ()
    """The layers of BERT that follow, for a knowledge layer that runs them itself."""
    bias: Tensor | None = None
    """The attention mask that these take."""


@dataclass(frozen=True, slots=True)
class Knowledge:
    """The outputs of a knowledge layer; None for what it does not compute."""

    states: Tensor
    """(sequences, length, width): the states that the next layer reads."""
    detection_scores: Tensor | None = None
    """(sequences, length, 3): of O, B, I."""
    mentions: Tensor | None = None
    """(mentions, 3): the mentions that were enriched."""
    queries: Tensor | None = None
    """(mentions, dim): mentions in the space of entities."""
    candidates: Tensor | None = None
    """(mentions, k): rows of the nearest entities, best first."""
    entity_weights: Tensor | None = None
    """(mentions, k): the weight of each."""
    neighbours: Tensor | None = None
    """(mentions, k): rows of the neighbours, -1 where there is none."""
    neighbour_weights: Tensor | None = None
    """(mentions, k): the weight of each, 0 where there is none."""
    n_layers_run: int = 0
    """Layers of BERT that the knowledge layer has run itself."""


OUTSIDE, BEGIN, INSIDE = 0, 1, 2
"""Numbers of the tags O, B, I, in the order of KeBioLM's published weights."""


def spans_of_tags(tags: Tensor, mask: Tensor, max_mentions: int = 0) -> Tensor:
    """Convert O, B, I tags to mentions: (mentions, 3) of sequence, first token, last token.

    B opens a mention, and so does an I where none is open; I continues an open one. The first token
    ([CLS]) and padding are in none; the last ([SEP]) can be.

    Args:
        tags: Tag of each token: (sequences, length).
        mask: 1 where there is a token: (sequences, length).
        max_mentions: Mentions of a sequence that count, the first ones; 0: all.
    """
    tags = tags.masked_fill(mask == 0, OUTSIDE)
    tags[:, :1] = OUTSIDE
    within = tags != OUTSIDE
    nothing = torch.zeros_like(within[:, :1])
    begins = (tags == BEGIN) | (within & ~torch.cat([nothing, within[:, :-1]], dim=1))
    continues = torch.cat([(within & ~begins)[:, 1:], nothing], dim=1)
    ends = within & ~continues
    if max_mentions:
        counted = begins.cumsum(dim=1) <= max_mentions
        begins, ends = begins & counted, ends & counted
    sequence, first = begins.nonzero(as_tuple=True)
    last = ends.nonzero(as_tuple=True)[1]
    return torch.stack([sequence, first, last], dim=1)


def covering(mentions: Tensor, shape: torch.Size) -> Tensor:
    """Map each token to the last mention that covers it: (sequences, length), -1 for none.

    Args:
        mentions: Sequence, first token and last token of each: (mentions, 3).
        shape: Number of sequences, and their length.
    """
    n_sequences, length = shape
    owner = torch.full((n_sequences * length,), -1, device=mentions.device)
    row, position = tokens_of(mentions, length)
    return owner.scatter_reduce(0, position, row, "amax").view(n_sequences, length)


def tokens_of(mentions: Tensor, length: int) -> tuple[Tensor, Tensor]:
    """Return the mention and the position of each token of all mentions, one after the other.

    Positions count through all sequences of the batch.

    Args:
        mentions: Sequence, first token and last token of each: (mentions, 3).
        length: Length of a sequence.
    """
    n_tokens = mentions[:, 2] - mentions[:, 1] + 1  # (mentions,)
    row = torch.arange(len(mentions), device=mentions.device).repeat_interleave(n_tokens)
    before = n_tokens.cumsum(0) - n_tokens
    within = torch.arange(len(row), device=mentions.device) - before[row]
    return row, mentions[row, 0] * length + mentions[row, 1] + within


class SpanPooling(nn.Module):
    """Self-attentive pooling: a score of each token, softmax within the span, weighted sum."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.score = nn.Linear(width, 1)

    def forward(self, states: Tensor, mentions: Tensor) -> Tensor:
        """Pool the states of mentions: (mentions, width).

        Args:
            states: States of the tokens: (sequences, length, width).
            mentions: Sequence, first token and last token of each: (mentions, 3).
        """
        owner, position = tokens_of(mentions, states.shape[1])
        tokens = states.flatten(0, 1)[position]  # (tokens of mentions, width)
        scores = self.score(tokens).squeeze(1)
        highest = scores.new_full((len(mentions),), -torch.inf)
        highest = highest.scatter_reduce(0, owner, scores.detach(), "amax")
        weights = (scores - highest[owner]).exp()
        sums = weights.new_zeros(len(mentions)).index_add(0, owner, weights)
        weighted = (weights / sums[owner]).unsqueeze(1) * tokens
        zeros = weighted.new_zeros(len(mentions), tokens.shape[1])
        pooled: Tensor = zeros.index_add(0, owner, weighted)
        return pooled.to(states.dtype)


class MentionReader(nn.Module):
    """A mention in the space of entities: LN(GELU(pooled W)), SMedBERT's equations 2 and 12."""

    def __init__(self, config: KnowledgeBertConfig) -> None:
        super().__init__()
        width, dim = config.hidden_size, config.entity_dim
        self.pool = SpanPooling(width)
        self.project = nn.Linear(width, dim, bias=False)
        self.norm = nn.LayerNorm(dim, config.layer_norm_eps)

    def forward(self, states: Tensor, mentions: Tensor) -> Tensor:
        """Project mentions: (mentions, dim).

        Args:
            states: States of the tokens: (sequences, length, width).
            mentions: Sequence, first token and last token of each: (mentions, 3).
        """
        pooled = self.pool(states, mentions)
        read: Tensor = self.norm(nn.functional.gelu(self.project(pooled)))
        return read


class Infusion(nn.Linear):
    """A linear layer that can start with zero weights, so that untrained it adds nothing.

    Args:
        n_in: Width of the inputs.
        n_out: Width of the outputs.
        neutral: Start with zero weights.
        bias: Add a bias.
    """

    def __init__(self, n_in: int, n_out: int, *, neutral: bool, bias: bool = True) -> None:
        super().__init__(n_in, n_out, bias=bias)
        self.neutral = neutral

    def init_weights(self) -> None:
        """Set the weights to zero if the layer is neutral; loaded ones stay."""
        if self.neutral:
            for weight in self.parameters():
                initialization.zeros_(weight)


_N_TAGS = 3


class EntityMemory(nn.Module):
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

    Args:
        config: Settings of the layer.
        model_config: Configuration of the model.
    """

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
        """Project mentions into the space of entities: (mentions, dim).

        Args:
            states: States of the tokens: (sequences, length, width).
            mentions: Sequence, first token and last token of each: (mentions, 3).
        """
        sequence, first, last = mentions.unbind(dim=1)
        ends = torch.cat([states[sequence, first], states[sequence, last]], dim=1)
        queries: Tensor = self.mention_to_entity(ends)
        return queries

    def recall(self, queries: Tensor, table: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return the nearest entities of each query, their weights and their mixture.

        Args:
            queries: Mentions in the space of entities: (mentions, dim).
            table: Vectors of the entities.
        """
        search = nearest_rows if self.clusters is None else self.clusters.search
        rows = search(queries, table, self.n_nearest)
        vectors = nn.functional.embedding(rows, table)  # (mentions, k, dim)
        weights = torch.einsum("md,mkd->mk", queries, vectors).softmax(dim=1)
        return rows, weights, torch.einsum("mk,mkd->md", weights, vectors)

    def add(self, states: Tensor, mentions: Tensor, vectors: Tensor) -> Tensor:
        """Add the vector of each mention to its tokens.

        Args:
            states: States of the tokens: (sequences, length, width).
            mentions: Sequence, first token and last token of each: (mentions, 3).
            vectors: Vector of each mention: (mentions, dim).
        """
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


class EntityFusion(nn.Module):
    """The knowledgeable encoder of ERNIE (Zhang et al. 2019): BERT's upper layers with entities.

    The entities of linked mentions go through these layers beside the tokens, each aligned to the
    first token of its mention. Without entities, the layers are those of BERT.
    """

    def __init__(self, config: EntityFusionConfig, model_config: KnowledgeBertConfig) -> None:
        super().__init__()
        n_fused = model_config.num_hidden_layers - config.after
        self.layers = nn.ModuleList(
            FusedLayer(config, model_config, last=n == n_fused - 1) for n in range(n_fused)
        )

    def forward(self, inputs: EntityInputs) -> Knowledge:
        """Run the layers of BERT that follow, with the entities of linked mentions beside them."""
        states, mentions, entities = inputs.states, inputs.mentions, inputs.entities
        if mentions is None or entities is None or not len(self.layers):
            return Knowledge(states)
        known = entities >= 0
        sequence, first, _ = mentions[known].unbind(dim=1)
        position = sequence * states.shape[1] + first
        _, row, counts = sequence.unique_consecutive(return_inverse=True, return_counts=True)
        before = counts.cumsum(0) - counts
        column = torch.arange(len(row), device=row.device) - before[row]
        vectors = nn.functional.embedding(entities[known], inputs.table)
        if not len(counts):  # a row without an entity, so that all weights have a gradient
            counts = counts.new_zeros(1)
        n_most = max(1, int(counts.max()))
        beside = vectors.new_zeros(len(counts), n_most, vectors.shape[1])
        beside = beside.index_put((row, column), vectors)  # (sequences, entities, dim)
        exists = torch.arange(n_most, device=row.device) < counts[:, None]
        for fused, layer in zip(self.layers, inputs.layers, strict=True):
            states, beside = fused(states, beside, exists, position, layer, inputs.bias)
        return Knowledge(states, n_layers_run=len(self.layers))


class FusedLayer(GradientCheckpointingLayer):
    """A layer of ERNIE's knowledgeable encoder: a layer of BERT that also reads entities.

    With w the tokens after the self-attention of BERT's layer, and e the entities after theirs, the
    feed-forward part of BERT's layer is computed for a token and the entity aligned to it at once:

    * ``h = GELU(w W_t + e W_e + b)``, W_t and b of BERT's layer;
    * ``w' = LN(w + h W'_t + b_t)``, of BERT's layer, too, and ``e' = LN(e + h W'_e + b_e)``.

    Args:
        config: Settings of the layer.
        model_config: Configuration of the model.
        last: Whether no layer follows, so that e' is not needed.
    """

    def __init__(
        self, config: EntityFusionConfig, model_config: KnowledgeBertConfig, *, last: bool
    ) -> None:
        super().__init__()
        dim, n_inner = model_config.entity_dim, model_config.intermediate_size
        if dim % config.n_heads:
            raise ConfigError(
                f"n_heads: expected a divisor of {dim}, the dimensions of the entity table, found "
                f"{config.n_heads}"
            )
        self.config = BertConfig(
            hidden_size=dim,
            num_attention_heads=config.n_heads,
            attention_probs_dropout_prob=model_config.attention_probs_dropout_prob,
            hidden_dropout_prob=model_config.hidden_dropout_prob,
            layer_norm_eps=model_config.layer_norm_eps,
        )
        self.config._attn_implementation = "eager"
        self.attention = BertAttention(self.config)
        self.infuse = Infusion(dim, n_inner, neutral=config.neutral_start, bias=False)
        self.back = None if last else nn.Linear(n_inner, dim)
        self.norm = None if last else nn.LayerNorm(dim, model_config.layer_norm_eps)

    def forward(
        self,
        states: Tensor,
        entities: Tensor,
        exists: Tensor,
        position: Tensor,
        layer: Any,
        bias: Tensor | None,
    ) -> tuple[Tensor, Tensor]:
        """Compute the next states of tokens and entities.

        Args:
            states: (sequences, length, width).
            entities: Entities of the sequences that have some: (sequences, entities, dim).
            exists: Which of them exist: (sequences, entities).
            position: Token that each existing one is aligned to, counted through all sequences.
            layer: Layer of BERT.
            bias: Attention mask of the tokens, as BERT's layer takes it.
        """
        tokens = layer.attention(states, bias)[0]
        hidden = torch.finfo(entities.dtype).min * (~exists)[:, None, None].to(entities.dtype)
        entities = self.attention(entities, hidden)[0]
        inner = layer.intermediate.dense(tokens)
        added = self.infuse(entities[exists]).to(inner.dtype)
        inner = inner.flatten(0, 1).index_add(0, position, added).view_as(inner)
        inner = layer.intermediate.intermediate_act_fn(inner)
        if self.back is not None and self.norm is not None:
            aligned = self.back(inner.flatten(0, 1)[position]).to(entities.dtype)
            entities = self.norm(
                entities.masked_scatter(exists[:, :, None], entities[exists] + aligned)
            )
        return layer.output(inner, tokens), entities


class NeighbourAttention(nn.Module):
    """The neighbour attention of SMedBERT (Zhang et al. 2021): mentions attend to graph neighbours.

    A mention that is linked to an entity attends to the best neighbours of the entity in the graph.
    With h' the mention in the space of entities (equation 2) and h_e the vector of a neighbour,

    * types: ``a = softmax(tanh(h' W_t + h_t W_t') W_a)`` over the types that occur among its
      neighbours, h_t the sum of the neighbours of type t (3);
    * nodes: ``b = softmax(((h' W_q)(h_e W_k)^T / sqrt(dim)) a_type(e))`` over its neighbours
      (4, 5);
    * the neighbourhood: ``h_n = LN(h^ + FFN(h^))``, ``h^ = sum b_e (h_e W_v + b_v)`` (6, 7);
    * the infused vector: ``h~ = LN(GELU([h' | h_n] W_mf + b_mf) W_bp + b_bp)`` (8, 9);
    * each of the mention's own tokens: ``g = tanh([h_i | h~] W_ug + b_ug)`` and
      ``h_i + GELU([h_i | g h~] W_ex + b_ex)`` (10, 11).

    Other tokens, and mentions without an entity or whose entity has no neighbour, are unchanged.
    Behind all layers of BERT it computes nothing, and all states are unchanged.
    """

    constant_buffers = ("neighbours", "types")
    """Set once, before training; checkpoints save them once."""
    neighbours: Tensor
    """(entities, edges): rows of the table, best first, padded with -1."""
    types: Tensor
    """(entities,): type indices, -1 without a type."""

    def __init__(self, config: NeighbourAttentionConfig, model_config: KnowledgeBertConfig) -> None:
        super().__init__()
        width, dim = model_config.hidden_size, model_config.entity_dim
        epsilon = model_config.layer_norm_eps
        self.use_types, self.use_nodes = config.type_attention, config.node_attention
        self.changes_states = config.after < model_config.num_hidden_layers
        """False behind the last layer: the ablation without hybrid attention."""
        self.n_neighbours = config.n_neighbours
        shape = (model_config.n_entities, model_config.n_edges or config.n_neighbours)
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
        if not 1 <= n <= self.n_neighbours:
            raise ConfigError(
                f"n_neighbours: expected 1 to {self.n_neighbours}, those known, found {n}"
            )
        others = self.neighbours.diff(dim=1, prepend=self.neighbours[:, :1]) != 0
        kept = self.neighbours.masked_fill(others.cumsum(dim=1) >= n, -1)
        self.neighbours = kept[:, : max(1, int((kept >= 0).any(dim=0).sum()))].clone()
        self.n_neighbours = n

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
        """Attend to the neighbours (mentions, k); return their weights and h_n (mentions, dim).

        Args:
            read: Mentions in the space of entities: (mentions, dim).
            rows: Rows of their neighbours, -1: none: (mentions, k).
            table: Vectors of the entities.
        """
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
        """Compute the weight of the type of each neighbour: (mentions, k), 0 at padding.

        Args:
            read: Mentions in the space of entities: (mentions, dim).
            rows: Rows of their neighbours, -1: none: (mentions, k).
            vectors: Vectors of the neighbours: (mentions, k, dim).
        """
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
        """Infuse each mention's vector (mentions, width) into its own tokens.

        Args:
            states: States of the tokens: (sequences, length, width).
            mentions: Sequence, first token and last token of each: (mentions, 3).
            infused: Vector of each mention: (mentions, width).
        """
        owner, position = tokens_of(mentions, states.shape[1])
        flat = states.flatten(0, 1)
        tokens, infused = flat[position], infused[owner].to(states.dtype)
        gate = self.gate(torch.cat([tokens, infused], dim=1)).tanh()
        added = gelu(self.infuse(torch.cat([tokens, gate * infused], dim=1)))
        return flat.index_add(0, position, added.to(states.dtype)).view_as(states)

    def _neighbours_of(self, entities: Tensor) -> Tensor:
        rows = (
            self.neighbours[entities.clamp_min(0)]
            if len(self.neighbours)
            else (self.neighbours.new_zeros((len(entities), 0)))
        )
        return rows.masked_fill(entities[:, None] < 0, -1)


def keep_neighbours(model: Any, n: int) -> None:
    """Keep only the n best neighbours of each entity of a model, in its configuration too.

    Args:
        model: Model with neighbour attention, changed in place.
        n: Number of neighbours that stay.
    """
    if NEIGHBOURS not in getattr(model, "knowledge", {}):
        raise ConfigError("n_neighbours: the encoder has no neighbour_attention; leave it out")
    model.knowledge[NEIGHBOURS].keep_neighbours(n)
    model.config.knowledge_layers[NEIGHBOURS]["n_neighbours"] = n
    model.config.n_edges = model.knowledge[NEIGHBOURS].neighbours.shape[1]
