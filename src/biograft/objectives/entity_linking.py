"""Softmax of mentions over entities: over the whole table in parts, or over a sample."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy
from torch.utils.checkpoint import checkpoint

from biograft.errors import ConfigError
from biograft.objectives.base import TensorBatch, TextStates
from biograft.objectives.configs import EntityLinkingConfig
from biograft.objectives.examples import Setting, TextBatch, TextExample
from biograft.objectives.losses import in_single


def full_losses(
    queries: Tensor, table: Tensor, gold: Tensor, max_scores: int
) -> tuple[Tensor, ...]:
    """Give -ln softmax(q . E)[gold] of each mention, and whether gold scored best (KeBioLM 10).

    At most ``max_scores`` scores are held at once: in the backward pass a part is computed anew.
    """
    n_rows = max(1, max_scores // len(table))
    if len(queries) <= n_rows:
        return _losses(queries, table, gold)
    parts = [
        checkpoint(_losses, some, table, golds, use_reentrant=False)
        for some, golds in zip(torch.split(queries, n_rows), torch.split(gold, n_rows), strict=True)
    ]
    return torch.cat([losses for losses, _ in parts]), torch.cat([right for _, right in parts])


def sampled_losses(
    queries: Tensor, table: Tensor, gold: Tensor, sample: Tensor, log_rates: Tensor
) -> tuple[Tensor, Tensor]:
    """Give the losses over gold and a sample, and whether gold scored best among them.

    ``sample`` (n,) are entities drawn with replacement and ``log_rates`` (n,) the logarithms of
    how often each was to be expected, n Q(e). Taken off the scores, they make the sum of
    exponentials over gold and sample right in expectation: a sampled entity stands for 1 / n Q(e)
    of its kind. Gold stands for itself and is left out where it was sampled too.
    """
    own = (queries * table[gold]).sum(1, keepdim=True)  # (mentions, 1)
    others = queries @ table[sample].T  # (mentions, n)
    hit = sample[None, :] == gold[:, None]
    corrected = (in_single(others) - log_rates).masked_fill(hit, -torch.inf)
    scores = torch.cat([in_single(own), corrected], 1)
    losses = cross_entropy(scores, torch.zeros_like(gold), reduction="none")
    best = in_single(others).detach().masked_fill(hit, -torch.inf).amax(1)
    return losses, in_single(own).detach()[:, 0] > best


def draw_entities(rates: Tensor, n: int) -> Tensor:
    """Draw entities with replacement by their running sums of rates (entities,)."""
    places = torch.rand(n, dtype=rates.dtype, device=rates.device) * rates[-1]
    return torch.searchsorted(rates, places, right=True).clamp_max(len(rates) - 1)


def _losses(queries: Tensor, table: Tensor, gold: Tensor) -> tuple[Tensor, Tensor]:
    scores = in_single(queries @ table.T)  # (mentions, entities)
    right = scores.detach().argmax(1) == gold
    return cross_entropy(scores, gold, reduction="none"), right


NAME = "entity_linking"


class EntityLinking:
    """KeBioLM's equation 10; mentions without an entity in the table do not count.

    A sample is drawn by ``entity_counts``, each at least 1; without these all are as likely.
    """

    def __init__(
        self, config: EntityLinkingConfig | None = None, setting: Setting | None = None
    ) -> None:
        self.config = config or EntityLinkingConfig()
        self._counts = setting.entity_counts if setting else None
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
