"""Learn which entity a mention means, against the whole table or a sample of it."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from biograft.errors import ConfigError
from biograft.objectives.entity_linking.config import EntityLinkingConfig
from biograft.objectives.entity_linking.softmax import draw_entities, full_losses, sampled_losses
from biograft.objectives.records import Ints, TextBatch, TextExample
from biograft.objectives.states import TensorBatch, TextStates

NAME = "entity_linking"


class EntityLinking:
    """KeBioLM's equation 10; mentions without an entity in the table do not count.

    A sample is drawn by ``entity_counts``, each at least 1; without these all are as likely.
    """

    def __init__(
        self, config: EntityLinkingConfig | None = None, entity_counts: Ints | None = None
    ) -> None:
        self.config = config or EntityLinkingConfig()
        self._counts = entity_counts
        self._rates: Tensor | None = None

    def prepare(self, example: TextExample, draw: np.random.Generator) -> TextExample:
        """Leave the example as it is: its mentions have their entities."""
        return example

    def count(self, batch: TextBatch) -> int:
        """Say how many mentions are of known entities; the loss is the mean over these."""
        return int((batch.entities >= 0).sum())

    def loss(self, states: TextStates, batch: TensorBatch) -> tuple[Tensor, dict[str, float]]:
        """Give the mean over mentions of known entities; 0 where there is none."""
        if states.queries is None or states.table is None:
            raise ConfigError(
                f"objective.{NAME}: the model has no table of entities; give it a knowledge "
                "layer, or take the objective out"
            )
        if not len(states.table):
            raise ConfigError(
                f"objective.{NAME}: the table holds no entity; lower stream.min_count, or annotate "
                "more text"
            )
        known = batch.entities >= 0
        queries, gold = states.queries[known], batch.entities[known]
        losses, right = self._losses(queries, states.table, gold)
        n_counted = max(1, len(gold))
        loss = losses.sum() / n_counted
        return self.config.weight * loss, {
            "loss": float(loss.detach()),
            "accuracy": float(right.sum()) / n_counted,
        }

    def _losses(self, queries: Tensor, table: Tensor, gold: Tensor) -> tuple[Tensor, ...]:
        n_sampled = self.config.n_sampled
        if not n_sampled:
            return full_losses(queries, table, gold, self.config.max_scores)
        rates = self._running_rates(table)
        sample = draw_entities(rates, n_sampled)
        likely = torch.diff(rates, prepend=rates.new_zeros(1))[sample] / rates[-1]
        log_rates = (n_sampled * likely).log().to(table.dtype)
        return sampled_losses(queries, table, gold, sample, log_rates)

    def _running_rates(self, table: Tensor) -> Tensor:
        """Sum up how likely the entities are to be drawn; kept, for the table keeps its length."""
        if self._rates is None or self._rates.device != table.device:
            counts = np.ones(len(table)) if self._counts is None else self._counts
            if len(counts) != len(table):
                raise ConfigError(
                    f"objective.{NAME}: the table has {len(table)} entities, and counts are known "
                    f"of {len(counts)}; pack the text with the entities of the model"
                )
            sums = np.cumsum(np.maximum(counts, 1), dtype=np.float64)
            self._rates = torch.from_numpy(sums).to(table.device)
        return self._rates
