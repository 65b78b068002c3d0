"""The edges of mentions to the true neighbours of their entities, those of a relation together."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, embedding

from biograft.errors import ConfigError
from biograft.objectives.base import TensorBatch, TextStates, entity_table, mention_reader
from biograft.objectives.configs import MaskedNeighbourConfig
from biograft.objectives.examples import (
    IGNORED,
    SHOWN,
    GraphOfEntities,
    Setting,
    TextBatch,
    TextExample,
)
from biograft.objectives.losses import count_reduced, in_single, reduced


@dataclass(frozen=True, slots=True)
class Edges:
    """Edges by ascending relation; those of one relation are in the order of their mentions."""

    mention: Tensor
    """(edges,): which of the mentions that were asked for."""
    neighbour: Tensor
    """Row of the table."""
    sign: Tensor
    """1 where the mention's entity is the head of the triple, -1 where it is the tail."""
    relations: list[int]
    """Those that occur, ascending."""
    sizes: list[int]
    """How many edges each of them has."""

    def __len__(self) -> int:
        return len(self.mention)

    def parts(self, values: Tensor) -> Iterator[tuple[int, Tensor]]:
        """Give each relation and the values of its edges, of (edges, ...)."""
        return zip(self.relations, torch.split(values, self.sizes), strict=True)


@dataclass(frozen=True, slots=True)
class EdgeTable:
    """The edges of all entities, (entities, most neighbours), padded with -1."""

    neighbours: Tensor
    relations: Tensor
    signs: Tensor

    @classmethod
    def of(cls, graph: GraphOfEntities) -> EdgeTable:
        """Take them from the graph."""
        tables = (graph.neighbours, graph.relations, graph.signs)
        return cls(*(torch.from_numpy(table) for table in tables))

    def to(self, device: torch.device) -> EdgeTable:
        """Bring them to a device, unless they are there."""
        return EdgeTable(*(t.to(device) for t in (self.neighbours, self.relations, self.signs)))

    def edges(self, entities: Tensor) -> Edges:
        """List the edges of mentions of these entities (mentions,)."""
        neighbours = self.neighbours[entities]
        mention, column = (neighbours >= 0).nonzero(as_tuple=True)
        relation = self.relations[entities[mention], column]
        order = relation.argsort(stable=True)
        mention, column = mention[order], column[order]
        relations, sizes = torch.unique_consecutive(relation[order], return_counts=True)
        return Edges(
            mention=mention,
            neighbour=neighbours[mention, column],
            sign=self.signs[entities[mention], column],
            relations=relations.tolist(),
            sizes=sizes.tolist(),
        )


class RelationProducts(nn.Module):
    """F_r = [M_r ; h_r] [M_r ; h_r]^T of every relation r, made once of TransR's; none learns.

    Its first columns are M_Pr: [h, s] M_Pr . e = (h M_r + s h_r) . (e M_r), with the sign s of an
    edge. The squared lengths of both sides come of it too.
    """

    forms: Tensor
    """(relations, dim + 1, dim + 1)"""

    def __init__(self, graph: GraphOfEntities) -> None:
        super().__init__()
        projections = torch.from_numpy(graph.projections)
        vectors = torch.from_numpy(graph.relation_vectors)
        both = torch.cat([projections, vectors[:, None]], 1).double()  # (relations, dim + 1, d_r)
        forms = (both @ both.mT).to(projections.dtype)
        self.forms = nn.Parameter(forms, requires_grad=False)

    def read(self, vectors: Tensor, edges: Edges) -> tuple[Tensor, Tensor]:
        """Read mentions (mentions, dim) through the relation of each edge.

        Gives what is multiplied with entities (edges, dim), and |h M_r + s h_r|^2 (edges,).
        """
        signed = torch.cat([vectors[edges.mention], edges.sign[:, None].to(vectors.dtype)], 1)
        read = torch.cat([part @ self.forms[number] for number, part in edges.parts(signed)])
        return read[:, :-1], (read * signed).sum(1)

    def squared_lengths(self, entities: Tensor, relation: int) -> Tensor:
        """Give |e M_r|^2 of entities (..., dim)."""
        return (entities @ self.forms[relation, :-1, :-1] * entities).sum(-1)


class KeptLengths:
    """The squared lengths of all entities of a table that does not learn.

    They are computed for a relation when it is first asked for, and anew if the table is written.
    """

    def __init__(self, products: RelationProducts) -> None:
        self._products = products
        self._table: tuple[object, ...] = ()
        self._lengths: dict[int, Tensor] = {}

    @torch.no_grad()
    def of(self, table: Tensor, relation: int) -> Tensor:
        """Give |e M_r|^2 of all entities: (entities,)."""
        found = (table.data_ptr(), table._version, table.device)
        if self._table != found:
            self._table, self._lengths = found, {}
        if relation not in self._lengths:
            self._lengths[relation] = self._products.squared_lengths(table, relation)
        return self._lengths[relation]


@dataclass(frozen=True, slots=True)
class SameType:
    """Q(e) = t_e / C_e: the count of an entity, of all counts of its type; none is below 1.

    Entities of no type are of one of their own.
    """

    order: Tensor
    """(entities,): those of a type together."""
    sums: Tensor
    """(entities + 1,): the counts before each place of ``order``, added up."""
    first: Tensor
    """(entities,): where in ``order`` the type of each entity begins."""
    end: Tensor
    """Where it ends, exclusive."""
    log_rates: Tensor
    """(entities,): ln Q."""

    @classmethod
    def of(cls, graph: GraphOfEntities) -> SameType:
        """Add up the counts of a graph's entities."""
        counts = np.maximum(graph.counts, 1).astype(np.float64)
        order = np.argsort(graph.types, kind="stable")
        ascending = graph.types[order]
        sums = np.concatenate([[0.0], np.cumsum(counts[order])])
        first = np.searchsorted(ascending, graph.types, side="left")
        end = np.searchsorted(ascending, graph.types, side="right")
        log_rates = np.log(counts) - np.log(sums[end] - sums[first])
        return cls(*(torch.from_numpy(each) for each in (order, sums, first, end, log_rates)))

    def to(self, device: torch.device) -> SameType:
        """Bring it to a device, unless it is there."""
        tables = (self.order, self.sums, self.first, self.end, self.log_rates)
        return SameType(*(table.to(device) for table in tables))

    def draw(self, like: Tensor, n: int) -> Tensor:
        """Draw n entities of the type of each of these (m,), with replacement: (m, n)."""
        first, end = self.first[like, None], self.end[like, None]
        low, high = self.sums[first], self.sums[end]
        share = torch.rand(len(like), n, dtype=low.dtype, device=low.device)
        places = torch.searchsorted(self.sums[1:], low + share * (high - low), right=True)
        return self.order[torch.minimum(torch.maximum(places, first), end - 1)]


_FLOOR = 1e-12
"""Of squared lengths: the slope of the root stays finite, and rounding below 0 is mended."""


class Scorer:
    """Cosines of mentions and entities, as a relation sees both, or as equation 19 prints it."""

    def __init__(self, products: RelationProducts, form: str) -> None:
        self.products, self.form = products, form
        self._kept = KeptLengths(products)

    def __call__(self, vectors: Tensor, table: Tensor, edges: Edges, columns: Tensor) -> Tensor:
        """Score the entities of columns (edges, n), rows of the table, for mentions' vectors."""
        left, left_lengths = self.products.read(vectors, edges)
        entities = embedding(columns, table)  # (edges, n, dim)
        products = (entities * left[:, None]).sum(2)  # quicker than so many small matrices
        if self.form == "eq19":
            left_lengths, lengths = left.square().sum(1), entities.square().sum(2)
        elif table.requires_grad:
            parts = [self.products.squared_lengths(e, r) for r, e in edges.parts(entities)]
            lengths = torch.cat(parts)
        else:
            parts = [self._kept.of(table, r)[rows] for r, rows in edges.parts(columns)]
            lengths = torch.cat(parts)
        return products / (_root(left_lengths)[:, None] * _root(lengths))


def losses_of_first(scores: Tensor, taken_off: Tensor) -> Tensor:
    """Give -ln of the share of column 0, the true one, after what is taken off all columns."""
    true = torch.zeros(len(scores), dtype=torch.long, device=scores.device)
    return cross_entropy(scores - taken_off, true, reduction="none")


def first_is_best(scores: Tensor, columns: Tensor) -> Tensor:
    """Say of each edge whether column 0 scored best; where it was drawn too, it is no rival.

    Best of none is not right.
    """
    again = columns[:, 1:] == columns[:, :1]
    rivals = scores[:, 1:].detach().masked_fill(again, -torch.inf).amax(1)
    return (scores[:, 0].detach() > rivals) & rivals.isfinite()


def _root(squares: Tensor) -> Tensor:
    return squares.clamp_min(_FLOOR).sqrt()


NAME = "masked_neighbour"


class MaskedNeighbour:
    """SMedBERT's masked neighbour modelling (equations 12 and 15 to 19).

    Mentions that are not told their entities foretell the neighbours of these, each against
    entities of its type that are drawn anew every time; where all are told, all do.
    """

    def __init__(self, config: MaskedNeighbourConfig, setting: Setting) -> None:
        if setting.graph is None:
            raise ConfigError(
                f"objective.{NAME}: no neighbours of entities are known; add neighbour_attention "
                "to knowledge.after and name knowledge.neighbours, or take the objective out"
            )
        self.config, self.shown, self.graph = config, setting.shown, setting.graph
        self.head = RelationProducts(self.graph)
        self._scorer = Scorer(self.head, config.form)
        self._edges, self._types = EdgeTable.of(self.graph), SameType.of(self.graph)
        self._corrected = {"log_q": 1.0, "mu_log_q": config.mu, "none": 0.0}[config.correction]

    def prepare(self, example: TextExample, draw: np.random.Generator) -> TextExample:
        """Leave the example as it is: ``Showing`` says which mentions are told their entities."""
        return example

    def count(self, batch: TextBatch) -> int:
        """Say over how much the loss is a mean: true neighbours of mentions, or sequences."""
        return count_reduced(self.config.reduction, self.count_items(batch), len(batch))

    def count_items(self, batch: TextBatch) -> int:
        """Say over how many true neighbours the accuracy is a share."""
        neighbours = self.graph.neighbours[batch.entities[self._asked(batch)]]
        return int((neighbours >= 0).sum())

    def loss(self, states: TextStates, batch: TensorBatch) -> tuple[Tensor, dict[str, float]]:
        """Give the loss over the true neighbours of mentions; 0 where there is none."""
        table, read = entity_table(states, NAME), mention_reader(states, NAME)
        self._check(table)
        asked = self._asked(batch)
        vectors = in_single(read(states.final, batch.mentions[asked]))
        self._edges = self._edges.to(table.device)
        edges = self._edges.edges(batch.entities[asked])
        if len(edges):
            # lengths are small differences of large products: too coarse in half precision
            with torch.autocast(table.device.type, enabled=False):
                losses, right = self._losses(vectors, table, edges)
        else:  # of no edges, but still made of what may learn
            losses = vectors[:0].sum(1) + table[:0].sum()
            right = losses.detach()
        loss = reduced(self.config.reduction, losses, len(batch))
        return self.config.weight * loss, {
            "loss": float(loss.detach()),
            "accuracy": float(right.sum()) / max(1, len(edges)),
        }

    def _losses(self, vectors: Tensor, table: Tensor, edges: Edges) -> tuple[Tensor, Tensor]:
        self._types = self._types.to(table.device)
        drawn = self._types.draw(edges.neighbour, self.config.n_negatives)
        columns = torch.cat([edges.neighbour[:, None], drawn], 1)  # (edges, 1 + negatives)
        scores = self.config.mu * self._scorer(vectors, table, edges, columns)
        taken_off = self._corrected * self._types.log_rates[columns]
        losses = losses_of_first(scores, taken_off.to(scores.dtype))
        return losses, first_is_best(scores, columns)

    def _asked(self, batch: TextBatch | TensorBatch) -> Any:
        """Tell which mentions foretell neighbours: of known entities that they were not told."""
        known: Any = batch.entities >= 0
        if self.shown == "all":
            return known
        return known & (batch.mention_labels[SHOWN] == IGNORED)

    def _check(self, table: Tensor) -> None:
        expected = (len(self.graph.neighbours), self.graph.projections.shape[1])
        if tuple(table.shape) != expected:
            raise ConfigError(
                f"objective.{NAME}: the table has {table.shape[0]} entities of {table.shape[1]} "
                f"dimensions, and the graph {expected[0]} of {expected[1]}; make both of the same "
                "store and vectors"
            )
