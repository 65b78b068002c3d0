"""Withhold or exchange what the knowledge layer is told of a mention, and foretell its entity."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor

from biograft.errors import ConfigError
from biograft.objectives.base import TensorBatch, TextStates, entity_table, mention_reader
from biograft.objectives.configs import EntityPredictionConfig
from biograft.objectives.examples import IGNORED, SHOWN, Setting, TextBatch, TextExample
from biograft.objectives.losses import labelled_cross_entropy

NAME = "entity_prediction"


class EntityPrediction:
    """The denoising entity auto-encoder of ERNIE (THU).

    The entity is told from all that occur in the batch, as published: what else is in a batch
    makes it harder or easier. Where it was said which mentions are told their entities
    (``Showing``), it works on these alone, and so takes its turn after that.
    """

    turn: ClassVar[int] = 2

    def __init__(self, config: EntityPredictionConfig, setting: Setting) -> None:
        self.config, self._n_entities = config, _count_entities(setting)
        if config.replaced_share and not self._n_entities:
            raise ConfigError(
                f"objective.{NAME}: there are no entities to exchange others for; give the "
                "recipe a knowledge layer and annotated text, or set replaced_share to 0"
            )

    def prepare(self, example: TextExample, draw: np.random.Generator) -> TextExample:
        """Draw what becomes of each mention; an example that is prepared stays as it is."""
        if NAME in example.mention_labels:
            return example
        own = np.where(example.mentions[:, 2] >= 0, example.mentions[:, 2], IGNORED)
        shown = example.mention_labels.get(SHOWN, own).copy()
        told = (shown != IGNORED) & (own != IGNORED)
        fate = draw.random(len(own))
        withheld = told & (fate < self.config.withheld_share)
        exchanged = told & ~withheld
        exchanged &= fate < self.config.withheld_share + self.config.replaced_share
        shown[withheld] = IGNORED
        if exchanged.any():
            shown[exchanged] = draw.integers(self._n_entities, size=int(exchanged.sum()))
        asked = np.where(withheld | exchanged, own, IGNORED)
        labels = {**example.mention_labels, SHOWN: shown, NAME: asked}
        return replace(example, mention_labels=labels)

    def count(self, batch: TextBatch) -> int:
        """Say how many mentions foretell their entity; the loss is the mean over these."""
        return int((batch.mention_labels[NAME] != IGNORED).sum())

    def loss(self, states: TextStates, batch: TensorBatch) -> tuple[Tensor, dict[str, float]]:
        """Give the mean over mentions that were not told their entity; 0 where there is none."""
        table, read = entity_table(states, NAME), mention_reader(states, NAME)
        labels = batch.mention_labels[NAME]
        asked = labels != IGNORED
        vectors = read(states.final, batch.mentions[asked])
        if not len(vectors):  # no mention, but still made of what may learn
            nothing = vectors.sum() + table[:0].sum()
            return nothing, {"loss": 0.0, "accuracy": 0.0}
        occurring = torch.unique(batch.entities[batch.entities >= 0])  # ascending
        scores = vectors @ table[occurring].T  # (mentions, entities of the batch)
        gold = torch.searchsorted(occurring, labels[asked])
        loss, accuracy = labelled_cross_entropy(scores, gold)
        return self.config.weight * loss, {"loss": float(loss.detach()), "accuracy": accuracy}


def _count_entities(setting: Setting) -> int:
    """Say how many rows the table has; 0 where that is not known."""
    if setting.graph is not None:  # it has all rows, counts perhaps those of the text alone
        return len(setting.graph.neighbours)
    return 0 if setting.entity_counts is None else len(setting.entity_counts)
