"""Foretell, from a mention, the neighbours of its entity."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from biograft.errors import ConfigError
from biograft.objectives.half_precision import in_single
from biograft.objectives.knowledge_states import entity_table, mention_reader
from biograft.objectives.masked_neighbour.config import MaskedNeighbourConfig
from biograft.objectives.masked_neighbour.edges import Edges, EdgeTable
from biograft.objectives.masked_neighbour.head import RelationProducts
from biograft.objectives.masked_neighbour.sampling import SameType
from biograft.objectives.masked_neighbour.scoring import Scorer, first_is_best, losses_of_first
from biograft.objectives.records import IGNORED, SHOWN, TextBatch, TextExample
from biograft.objectives.reductions import count_reduced, reduced
from biograft.objectives.setting import Setting
from biograft.objectives.states import TensorBatch, TextStates

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
