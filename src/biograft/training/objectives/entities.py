"""Objectives of entities: detection and linking of KeBioLM, prediction of ERNIE.

Entity detection tags every token O, B or I (Yuan et al. 2021, equation 9). Entity linking is a
softmax of mentions over entities (equation 10), over the whole table, in blocks, or over a sample.
Entity prediction restores entities that were withheld or replaced (Zhang et al. 2019).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy
from torch.utils.checkpoint import checkpoint

from biograft.errors import ConfigError
from biograft.models.knowledge.layers import BEGIN, INSIDE, OUTSIDE
from biograft.training.objectives.base import (
    LabelledObjective,
    Loss,
    Objective,
    TensorBatch,
    TextStates,
    to_float32,
)
from biograft.training.objectives.configs import EntityLinkingConfig, EntityPredictionConfig
from biograft.training.objectives.examples import (
    IGNORED,
    VISIBLE_ENTITIES,
    Setting,
    TextBatch,
    TextExample,
)
from biograft.training.processes import gather


class EntityDetection(LabelledObjective):
    """Cross-entropy of tags over all tokens, special ones (O) included.

    The tags are predicted from the text-only states.
    """

    name = "entity_detection"
    labelled = ("token_labels", name)

    def prepare(self, example: TextExample, rng: np.random.Generator) -> TextExample:
        """Add the labels."""
        labels = np.full(len(example.tokens), OUTSIDE, np.int64)
        for first, last in example.mentions[:, :2]:
            labels[first + 1 : last + 1] = INSIDE
        labels[example.mentions[:, 0]] = BEGIN
        return replace(example, token_labels={**example.token_labels, self.name: labels})

    def loss(self, states: TextStates, batch: TensorBatch) -> Loss:
        """Compute the mean over all tokens except padding."""
        scores = states.require("detection", self.name).flatten(0, 1)
        return self.mean_loss(scores, self.labels(batch).flatten(), batch)


def full_losses(
    queries: Tensor, table: Tensor, gold: Tensor, max_scores: int
) -> tuple[Tensor, ...]:
    """Compute -ln softmax(q . E)[gold] of each mention, and whether gold scores best.

    The backward pass computes a block again.

    Args:
        queries: Vectors of the mentions: (mentions, dim).
        table: Vectors of the entities: (entities, dim).
        gold: Row of the gold entity of each mention.
        max_scores: Scores that are held at once.
    """
    n_rows = max(1, max_scores // len(table))
    if len(queries) <= n_rows:
        return _losses(queries, table, gold)
    blocks = [
        checkpoint(_losses, some, table, golds, use_reentrant=False)
        for some, golds in zip(torch.split(queries, n_rows), torch.split(gold, n_rows), strict=True)
    ]
    return torch.cat([losses for losses, _ in blocks]), torch.cat([best for _, best in blocks])


def sampled_losses(
    queries: Tensor, table: Tensor, gold: Tensor, sample: Tensor, log_rates: Tensor
) -> tuple[Tensor, Tensor]:
    """Compute the losses over gold and a sample, and whether gold scores best among them.

    The logarithms, subtracted from the scores, make the sum of exponentials over gold and sample
    unbiased: a sampled entity stands for 1 / n Q(e) of its kind. Gold stands for itself and is left
    out where it was sampled too.

    Args:
        queries: Vectors of the mentions: (mentions, dim).
        table: Vectors of the entities: (entities, dim).
        gold: Row of the gold entity of each mention.
        sample: Entities sampled with replacement: (n,).
        log_rates: Logarithms of their expected counts, n Q(e): (n,).
    """
    own = (queries * table[gold]).sum(1, keepdim=True)  # (mentions, 1)
    others = queries @ table[sample].T  # (mentions, n)
    is_gold = sample[None, :] == gold[:, None]
    corrected = (to_float32(others) - log_rates).masked_fill(is_gold, -torch.inf)
    scores = torch.cat([to_float32(own), corrected], 1)
    losses = cross_entropy(scores, torch.zeros_like(gold), reduction="none")
    best = to_float32(others).detach().masked_fill(is_gold, -torch.inf).amax(1)
    return losses, to_float32(own).detach()[:, 0] > best


def sample_entities(rates: Tensor, n: int) -> Tensor:
    """Sample entities with replacement, the same in each process.

    Args:
        rates: Cumulative sums of their rates: (entities,).
        n: Number of entities.
    """
    points = torch.rand(n, dtype=rates.dtype, device=rates.device)
    points = gather(points)[:n] * rates[-1]  # those of the first process
    return torch.searchsorted(rates, points, right=True).clamp_max(len(rates) - 1)


def _losses(queries: Tensor, table: Tensor, gold: Tensor) -> tuple[Tensor, Tensor]:
    scores = to_float32(queries @ table.T)  # (mentions, entities)
    best = scores.detach().argmax(1) == gold
    return cross_entropy(scores, gold, reduction="none"), best


class EntityLinking(Objective):
    """Predict the entity of each mention; mentions of entities outside the table do not count.

    A sample is taken by ``entity_counts``, each at least 1; without these it is uniform.
    """

    name = "entity_linking"

    def __init__(self, config: EntityLinkingConfig, setting: Setting | None = None) -> None:
        self.config = config
        self._counts = setting.entity_counts if setting else None
        self._rates: Tensor | None = None

    def labels(self, batch: TextBatch | TensorBatch) -> Any:
        """Return the rows of the entities of a batch."""
        return batch.entities

    def count(self, batch: TextBatch) -> int:
        """Count the mentions of known entities."""
        return int((batch.entities >= 0).sum())

    def loss(self, states: TextStates, batch: TensorBatch) -> Loss:
        """Compute the mean over mentions of known entities; 0 where there is none."""
        queries, table = states.require("queries", self.name), states.require("table", self.name)
        if not len(table):
            raise ConfigError(
                f"objective.{self.name}: the entity table is empty; lower stream.min_count, or "
                "annotate more text"
            )
        known = batch.entities >= 0
        queries, gold = queries[known], batch.entities[known]
        losses, best = self._losses(queries, table, gold)
        n_counted = max(1, len(gold))
        loss = losses.sum() / n_counted
        return self.config.weight * loss, {
            "loss": float(loss.detach()),
            "accuracy": float(best.sum()) / n_counted,
        }

    def _losses(self, queries: Tensor, table: Tensor, gold: Tensor) -> tuple[Tensor, ...]:
        n_sampled = self.config.n_sampled
        if not n_sampled:
            return full_losses(queries, table, gold, self.config.max_scores)
        rates = self._cumulative_rates(table)
        sample = sample_entities(rates, n_sampled)
        probabilities = torch.diff(rates, prepend=rates.new_zeros(1))[sample] / rates[-1]
        log_rates = (n_sampled * probabilities).log().to(table.dtype)
        return sampled_losses(queries, table, gold, sample, log_rates)

    def _cumulative_rates(self, table: Tensor) -> Tensor:
        """Sum up the sampling rates of the entities; cached, for the table keeps its length."""
        if self._rates is None or self._rates.device != table.device:
            counts = np.ones(len(table)) if self._counts is None else self._counts
            if len(counts) != len(table):
                raise ConfigError(
                    f"objective.{self.name}: the table has {len(table)} entities, and counts are "
                    f"known of {len(counts)}; pack the text with the entities of the model"
                )
            sums = np.cumsum(np.maximum(counts, 1), dtype=np.float64)
            self._rates = torch.from_numpy(sums).to(table.device)
        return self._rates


class EntityPrediction(LabelledObjective):
    """Predict the entities of corrupted mentions among all entities of the batch, as published.

    So the rest of a batch, that of all processes, makes the task harder or easier. Only visible
    entities are corrupted; the objective therefore prepares examples after ``EntityVisibility``.
    """

    name = "entity_prediction"
    labelled = ("mention_labels", name)
    order: ClassVar[int] = 2

    def __init__(self, config: EntityPredictionConfig, setting: Setting) -> None:
        self.config, self._n_entities = config, _count_entities(setting)
        if config.replaced_ratio and not self._n_entities:
            raise ConfigError(
                f"objective.{self.name}: there are no entities to replace others by; give the "
                "recipe a knowledge layer and annotated text, or set replaced_ratio to 0"
            )

    def prepare(self, example: TextExample, rng: np.random.Generator) -> TextExample:
        """Withhold or replace some entities; an example that is prepared already is unchanged."""
        if self.name in example.mention_labels:
            return example
        own = np.where(example.mentions[:, 2] >= 0, example.mentions[:, 2], IGNORED)
        visible = example.mention_labels.get(VISIBLE_ENTITIES, own).copy()
        available = (visible != IGNORED) & (own != IGNORED)
        chance = rng.random(len(own))
        withheld = available & (chance < self.config.withheld_ratio)
        replaced = available & ~withheld
        replaced &= chance < self.config.withheld_ratio + self.config.replaced_ratio
        visible[withheld] = IGNORED
        if replaced.any():
            visible[replaced] = rng.integers(self._n_entities, size=int(replaced.sum()))
        predicted = np.where(withheld | replaced, own, IGNORED)
        labels = {**example.mention_labels, VISIBLE_ENTITIES: visible, self.name: predicted}
        return replace(example, mention_labels=labels)

    def loss(self, states: TextStates, batch: TensorBatch) -> Loss:
        """Compute the mean over corrupted mentions; 0 where there is none."""
        table, read = states.require("table", self.name), states.require("read_mentions", self.name)
        labels = self.labels(batch)
        counted = labels != IGNORED
        vectors = read(states.final, batch.mentions[counted])
        occurring = torch.unique(gather(batch.entities[batch.entities >= 0]))  # ascending
        if not len(vectors):  # no mention, but still connected to the parameters
            return vectors.sum() + table[:0].sum(), {"loss": 0.0, "accuracy": 0.0}
        scores = vectors @ table[occurring].T  # (mentions, entities of the batch)
        gold = torch.searchsorted(occurring, labels[counted])
        return self.mean_loss(scores, gold, batch)


def _count_entities(setting: Setting) -> int:
    """Count the rows of the entity table; 0 where that is unknown."""
    if setting.graph is not None:  # it has all rows; counts may be those of the text alone
        return len(setting.graph.neighbours)
    return 0 if setting.entity_counts is None else len(setting.entity_counts)
