"""The denoising entity auto-encoder of ERNIE (Zhang et al. 2019): predict corrupted entities.

The knowledge layers receive no entity, or a wrong one, for some mentions; the model predicts the
right one.
"""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

import numpy as np
import torch

from biograft.errors import ConfigError
from biograft.training.objectives.base import (
    LabelledObjective,
    Loss,
    TensorBatch,
    TextStates,
)
from biograft.training.objectives.configs import EntityPredictionConfig
from biograft.training.objectives.examples import (
    IGNORED,
    VISIBLE_ENTITIES,
    Setting,
    TextExample,
)


class EntityPrediction(LabelledObjective):
    """Predict the entities of corrupted mentions among all entities of the batch, as published.

    So the rest of a batch makes the task harder or easier. Only visible entities are corrupted;
    the objective therefore prepares examples after ``EntityVisibility``.
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
        if not len(vectors):  # no mention, but still connected to the parameters
            return vectors.sum() + table[:0].sum(), {"loss": 0.0, "accuracy": 0.0}
        occurring = torch.unique(batch.entities[batch.entities >= 0])  # ascending
        scores = vectors @ table[occurring].T  # (mentions, entities of the batch)
        gold = torch.searchsorted(occurring, labels[counted])
        return self.mean_loss(scores, gold, batch)


def _count_entities(setting: Setting) -> int:
    """Count the rows of the entity table; 0 where that is unknown."""
    if setting.graph is not None:  # it has all rows; counts may be those of the text alone
        return len(setting.graph.neighbours)
    return 0 if setting.entity_counts is None else len(setting.entity_counts)
