"""Objectives of SMedBERT (Zhang et al. 2021): masked neighbours and masked mentions.

For masked neighbours (equations 12 and 15 to 19) a mention predicts the graph neighbours of its
entity: each true neighbour is scored against sampled entities of its type, through the TransR
projection of the relation (sampled softmax). For masked mentions (equations 12, 20 and 21) the
vector of a masked mention is pulled towards that of its original tokens in the model that training
started from: a mean squared error, over mentions and the dimensions of their vectors.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, embedding

from biograft.errors import ConfigError
from biograft.training.objectives.base import (
    Loss,
    Objective,
    ReducedTerm,
    TensorBatch,
    TextStates,
    to_device,
    to_float32,
)
from biograft.training.objectives.configs import MaskedMentionConfig, MaskedNeighbourConfig
from biograft.training.objectives.examples import (
    ALL,
    IGNORED,
    MASKED,
    MASKING_OBJECTIVE,
    MIXED,
    VISIBLE_ENTITIES,
    WITHHELD_NEIGHBOURS,
    EntityGraph,
    Setting,
    TextBatch,
    TextExample,
    masked_mentions,
)


@dataclass(frozen=True, slots=True)
class NeighbourEdges:
    """Edges from mentions to true neighbours, by ascending relation, then by mention."""

    mention: Tensor
    """(edges,): index of the mention."""
    column: Tensor
    """Index among the neighbours of the entity."""
    neighbour: Tensor
    """Row of the table."""
    sign: Tensor
    """1 where the mention's entity is the head of the triple, -1 where it is the tail."""
    relations: list[int]
    """The relations that occur, ascending."""
    sizes: list[int]
    """The number of edges of each relation."""

    def __len__(self) -> int:
        return len(self.mention)

    def parts(self, values: Tensor) -> Iterator[tuple[int, Tensor]]:
        """Iterate over relations and the values of their edges, of (edges, ...)."""
        return zip(self.relations, torch.split(values, self.sizes), strict=True)


@dataclass(frozen=True, slots=True)
class EdgeTable:
    """The edges of all entities, (entities, max neighbours), padded with -1."""

    neighbours: Tensor
    """Rows of the neighbouring entities."""
    relations: Tensor
    """Indices of the relations."""
    signs: Tensor
    """Direction of each relation, as a sign."""

    @classmethod
    def of(cls, graph: EntityGraph) -> EdgeTable:
        """Copy the edges of a graph."""
        tables = (graph.neighbours, graph.relations, graph.signs)
        return cls(*(torch.from_numpy(table) for table in tables))

    def edges(self, entities: Tensor, columns: Tensor | None = None) -> NeighbourEdges:
        """List the edges of mentions of these entities (mentions,).

        Args:
            entities: Entity of each mention.
            columns: True for the edges to list: (mentions, max neighbours); default: all.
        """
        neighbours = self.neighbours[entities]
        exists = neighbours >= 0
        if columns is not None:
            exists &= columns
        mention, column = exists.nonzero(as_tuple=True)
        relation = self.relations[entities[mention], column]
        order = relation.argsort(stable=True)
        mention, column = mention[order], column[order]
        relations, sizes = torch.unique_consecutive(relation[order], return_counts=True)
        return NeighbourEdges(
            mention=mention,
            column=column,
            neighbour=neighbours[mention, column],
            sign=self.signs[entities[mention], column],
            relations=relations.tolist(),
            sizes=sizes.tolist(),
        )


class RelationProducts(nn.Module):
    """F_r = [M_r ; h_r] [M_r ; h_r]^T of every relation r of TransR, computed once and frozen.

    Its first columns are M_Pr: [h, s] M_Pr . e = (h M_r + s h_r) . (e M_r), with the sign s of an
    edge. It also gives the squared lengths of both sides.
    """

    forms: Tensor
    """(relations, dim + 1, dim + 1)"""

    def __init__(self, graph: EntityGraph) -> None:
        super().__init__()
        projections = torch.from_numpy(graph.projections)
        vectors = torch.from_numpy(graph.relation_vectors)
        both = torch.cat([projections, vectors[:, None]], 1).double()  # (relations, dim + 1, d_r)
        forms = (both @ both.mT).to(projections.dtype)
        self.forms = nn.Parameter(forms, requires_grad=False)

    def read(self, vectors: Tensor, edges: NeighbourEdges) -> tuple[Tensor, Tensor]:
        """Project mentions (mentions, dim) by the relation of each edge.

        Returns the factors of entities (edges, dim), and |h M_r + s h_r|^2 (edges,).

        Args:
            vectors: Vectors of the mentions: (mentions, dim).
            edges: Mention and relation of each edge.
        """
        signed = torch.cat([vectors[edges.mention], edges.sign[:, None].to(vectors.dtype)], 1)
        products = torch.cat([part @ self.forms[row] for row, part in edges.parts(signed)])
        return products[:, :-1], (products * signed).sum(1)

    def squared_lengths(self, entities: Tensor, relation: int) -> Tensor:
        """Compute |e M_r|^2 of entities (..., dim).

        Args:
            entities: Vectors of entities: (..., dim).
            relation: Row of the relation.
        """
        return (entities @ self.forms[relation, :-1, :-1] * entities).sum(-1)


class CachedLengths:
    """The squared lengths of all entities of a frozen table.

    They are computed on first use of a relation, and again if the table is written.
    """

    def __init__(self, products: RelationProducts) -> None:
        self._products = products
        self._table: tuple[object, ...] = ()
        self._lengths: dict[int, Tensor] = {}

    @torch.no_grad()
    def of(self, table: Tensor, relation: int) -> Tensor:
        """Return |e M_r|^2 of all entities: (entities,).

        Args:
            table: Vectors of the entities.
            relation: Row of the relation.
        """
        version = (table.data_ptr(), table._version, table.device)
        if self._table != version:
            self._table, self._lengths = version, {}
        if relation not in self._lengths:
            self._lengths[relation] = self._products.squared_lengths(table, relation)
        return self._lengths[relation]


@dataclass(frozen=True, slots=True)
class TypeSampler:
    """Samples entities of one type by Q(e) = t_e / C_e, their counts over that of the type.

    Counts are at least 1. Entities without a type form one of their own.
    """

    order: Tensor
    """(entities,): rows sorted by type."""
    sums: Tensor
    """(entities + 1,): cumulative counts in this order."""
    first: Tensor
    """(entities,): where in ``order`` the type of each entity begins."""
    end: Tensor
    """End of the span, exclusive."""
    log_rates: Tensor
    """(entities,): ln Q."""

    @classmethod
    def of(cls, graph: EntityGraph) -> TypeSampler:
        """Add up the counts of a graph's entities."""
        counts = np.maximum(graph.counts, 1).astype(np.float64)
        order = np.argsort(graph.types, kind="stable")
        ascending = graph.types[order]
        sums = np.concatenate([[0.0], np.cumsum(counts[order])])
        first = np.searchsorted(ascending, graph.types, side="left")
        end = np.searchsorted(ascending, graph.types, side="right")
        log_rates = np.log(counts) - np.log(sums[end] - sums[first])
        return cls(*(torch.from_numpy(each) for each in (order, sums, first, end, log_rates)))

    def sample(self, like: Tensor, points: Tensor) -> Tensor:
        """Sample entities of the type of each of these (m,), with replacement: (m, n).

        Args:
            like: Entities whose types are sampled from: (m,).
            points: Random numbers from 0 to 1: (m, n).
        """
        first, end = self.first[like, None], self.end[like, None]
        low, high = self.sums[first], self.sums[end]
        points = low + points.to(low) * (high - low)
        positions = torch.searchsorted(self.sums[1:], points, right=True)
        return self.order[torch.minimum(torch.maximum(positions, first), end - 1)]


_POINTS = 1 << 53
"""Random numbers of an example are integers below it, divided by it."""
_FLOOR = 1e-12
"""The least squared length: keeps the gradient of the root finite, and clips rounding below 0."""


class Scorer:
    """Cosines of projected mentions and entities (equation 16), or as printed in equation 19.

    Args:
        products: Products of the relations.
        form: Formula, as ``config.form``.
    """

    def __init__(self, products: RelationProducts, form: str) -> None:
        self.products, self.form = products, form
        self._lengths = CachedLengths(products)

    def __call__(
        self, vectors: Tensor, table: Tensor, edges: NeighbourEdges, columns: Tensor
    ) -> Tensor:
        """Score the entities of columns (edges, n), rows of the table, for mention vectors.

        Args:
            vectors: Vectors of the mentions.
            table: Vectors of the entities.
            edges: Mention and relation of each edge.
            columns: Rows of the table to score: (edges, n).
        """
        left, left_lengths = self.products.read(vectors, edges)
        entities = embedding(columns, table)  # (edges, n, dim)
        products = (entities * left[:, None]).sum(2)  # faster than many small matrix products
        if self.form == "eq19":
            left_lengths, lengths = left.square().sum(1), entities.square().sum(2)
        elif table.requires_grad:
            parts = [self.products.squared_lengths(e, r) for r, e in edges.parts(entities)]
            lengths = torch.cat(parts)
        else:
            parts = [self._lengths.of(table, r)[rows] for r, rows in edges.parts(columns)]
            lengths = torch.cat(parts)
        return products / (_root(left_lengths)[:, None] * _root(lengths))


def first_column_losses(scores: Tensor, correction: Tensor) -> Tensor:
    """Compute -ln softmax of column 0, the true entity, after subtracting the correction.

    Args:
        scores: Scores: (edges, n).
        correction: Logarithms of the expected counts of the samples.
    """
    true = torch.zeros(len(scores), dtype=torch.long, device=scores.device)
    return cross_entropy(scores - correction, true, reduction="none")


def first_column_wins(scores: Tensor, columns: Tensor) -> Tensor:
    """Return for each edge whether column 0 scores best.

    Copies of it among the samples do not compete; without any competitor it is False.

    Args:
        scores: Scores: (edges, n).
        columns: Entity of each column: (edges, n).
    """
    copies = columns[:, 1:] == columns[:, :1]
    rivals = scores[:, 1:].detach().masked_fill(copies, -torch.inf).amax(1)
    return (scores[:, 0].detach() > rivals) & rivals.isfinite()


def _root(squares: Tensor) -> Tensor:
    return squares.clamp_min(_FLOOR).sqrt()


class MaskedNeighbour(ReducedTerm, Objective):
    """Predict the neighbours of the entities of mentions.

    A mention whose entity is not visible to the knowledge layers predicts all of them, one whose
    entity is visible those that are withheld. Where all entities are visible and nothing is
    withheld, every mention predicts all. Negatives are sampled for every example, whatever its
    batch is.
    """

    name = "masked_neighbour"
    order: ClassVar[int] = 3

    def __init__(self, config: MaskedNeighbourConfig, setting: Setting) -> None:
        if setting.graph is None:
            raise ConfigError(
                f"objective.{self.name}: no neighbours of entities are known; add the knowledge "
                "layer neighbour_attention, or remove the objective"
            )
        self.config, self.graph = config, setting.graph
        self.entity_visibility = setting.entity_visibility
        self.head = RelationProducts(self.graph)
        self._scorer = Scorer(self.head, config.form)
        self._edges, self._types = EdgeTable.of(self.graph), TypeSampler.of(self.graph)
        self._correction = {"log_q": 1.0, "mu_log_q": config.mu, "none": 0.0}[config.correction]

    def prepare(self, example: TextExample, rng: np.random.Generator) -> TextExample:
        """Add the random numbers by which negatives of each neighbour are sampled."""
        n = self.graph.neighbours.shape[1] * self.config.n_negatives
        points = rng.integers(_POINTS, size=(len(example.mentions), n))
        return replace(example, mention_labels={**example.mention_labels, self.name: points})

    def count_items(self, batch: TextBatch) -> int:
        """Count the true neighbours of mentions."""
        selected = self._selected(batch)
        exists = self.graph.neighbours[batch.entities[selected]] >= 0
        columns = self._columns(batch)
        return int((exists if columns is None else exists & columns[selected]).sum())

    def loss(self, states: TextStates, batch: TensorBatch) -> Loss:
        """Compute the loss over the true neighbours of mentions; 0 where there is none."""
        table, read = states.require("table", self.name), states.require("read_mentions", self.name)
        self._check(table)
        selected = self._selected(batch)
        vectors = to_float32(read(states.final, batch.mentions[selected]))
        self._edges = to_device(self._edges, table.device)
        columns = self._columns(batch)
        edges = self._edges.edges(
            batch.entities[selected], None if columns is None else columns[selected]
        )
        if len(edges):
            # lengths are small differences of large products: too inexact in half precision
            with torch.autocast(table.device.type, enabled=False):
                points = batch.mention_labels[self.name][selected]
                losses, correct = self._losses(vectors, table, edges, points)
        else:  # no edges, but still connected to the parameters
            losses = vectors[:0].sum(1) + table[:0].sum()
            correct = losses.detach()
        loss = self.reduce(losses, batch)
        return self.config.weight * loss, {
            "loss": float(loss.detach()),
            "accuracy": float(correct.sum()) / max(1, len(edges)),
        }

    def _losses(
        self, vectors: Tensor, table: Tensor, edges: NeighbourEdges, points: Tensor
    ) -> tuple[Tensor, Tensor]:
        self._types = to_device(self._types, table.device)
        points = points.view(len(points), -1, self.config.n_negatives)
        points = points[edges.mention, edges.column]
        sampled = self._types.sample(edges.neighbour, points.double() / _POINTS)
        columns = torch.cat([edges.neighbour[:, None], sampled], 1)  # (edges, 1 + negatives)
        scores = self.config.mu * self._scorer(vectors, table, edges, columns)
        correction = self._correction * self._types.log_rates[columns]
        losses = first_column_losses(scores, correction.to(scores.dtype))
        return losses, first_column_wins(scores, columns)

    def _selected(self, batch: TextBatch | TensorBatch) -> Any:
        """Select the mentions of known entities that may predict some neighbour."""
        known: Any = batch.entities >= 0
        if self.entity_visibility == MASKED:
            known &= batch.mention_labels[VISIBLE_ENTITIES] == IGNORED
        return known

    def _columns(self, batch: TextBatch | TensorBatch) -> Any:
        """Return which neighbours mentions predict, (mentions, neighbours); None: all."""
        if self.entity_visibility != MIXED:
            return None
        visible = batch.mention_labels[VISIBLE_ENTITIES] != IGNORED
        return (batch.mention_labels[WITHHELD_NEIGHBOURS] == 1) | ~visible[:, None]

    def _check(self, table: Tensor) -> None:
        expected = (len(self.graph.neighbours), self.graph.projections.shape[1])
        if tuple(table.shape) != expected:
            raise ConfigError(
                f"objective.{self.name}: the table has {table.shape[0]} entities of "
                f"{table.shape[1]} dimensions, and the graph {expected[0]} of {expected[1]}; "
                "make both of the same store and vectors"
            )


class FirstEmbeddings(nn.Module):
    """A frozen copy of the input embeddings of all tokens, as they were before training."""

    vectors: Tensor
    """(tokens, width)"""

    def __init__(self, vectors: Tensor) -> None:
        super().__init__()
        self.vectors = nn.Parameter(vectors.detach().clone(), requires_grad=False)

    def forward(self, tokens: Tensor) -> Tensor:
        """Map tokens (sequences, length) to (sequences, length, width)."""
        with torch.no_grad():
            return embedding(tokens, self.vectors)


class MaskedMention(ReducedTerm, Objective):
    """Pull masked mentions with visible entities towards the vectors of their original tokens.

    Where all entities are visible, it pulls all mentions.
    """

    name = "masked_mention"
    head: FirstEmbeddings

    def __init__(self, config: MaskedMentionConfig, setting: Setting) -> None:
        if setting.embeddings is None:
            raise ConfigError(
                f"objective.{self.name}: the input embeddings of the starting model are unknown; "
                "choose an encoder that has them, or remove the objective"
            )
        self.config, self.entity_visibility = config, setting.entity_visibility
        self.head = FirstEmbeddings(setting.embeddings)

    def count_items(self, batch: TextBatch) -> int:
        """Count the mentions."""
        return int(self._selected(batch).sum())

    def loss(self, states: TextStates, batch: TensorBatch) -> Loss:
        """Compute the mean squared error over mentions; 0 where there is none."""
        read = states.require("read_mentions", self.name)
        mentions = batch.mentions[self._selected(batch)]
        predicted = to_float32(read(states.final, mentions))
        # Detached, lest both sides shrink together. Not under no_grad: within autocast the copies
        # of the reader's weights made there would be cached, and later uses would get no gradient.
        wanted = to_float32(read(self.head(batch.original_tokens), mentions)).detach()
        squares = (predicted - wanted).square()  # (mentions, dim)
        losses = squares.mean(1) if self.config.reduction == "mse" else squares.sum(1)
        loss = self.reduce(losses, batch)
        return self.config.weight * loss, {"loss": float(loss.detach())}

    def _selected(self, batch: TextBatch | TensorBatch) -> Any:
        """Select the mentions that count: those of known entities that are visible and masked."""
        known: Any = batch.entities >= 0
        if self.entity_visibility == ALL:
            return known
        visible = batch.mention_labels[VISIBLE_ENTITIES] != IGNORED
        if self.entity_visibility == MIXED:
            visible &= masked_mentions(batch.token_labels[MASKING_OBJECTIVE], batch.mentions)
        return known & visible
