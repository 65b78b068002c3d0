"""A language model and the objectives it is trained for, as one module with one forward pass."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from biograft.nn.knowledge import KnowledgeBertForMaskedLM
from biograft.nn.precision import computing_in
from biograft.objectives.records import SHOWN, TextBatch
from biograft.objectives.states import TensorBatch, TextStates

_EVALUATED = 17
"""The seed of what is drawn for held-out batches."""


class TextModel(nn.Module):
    """Losses of batches of text; everything that learns is a part of it.

    ``lm`` is a masked language model, with a knowledge layer or plain. An objective with a head of
    its own offers it as ``head``. One that is a sum of means over different things offers them as
    ``terms``, by name; each of these counts and gives its loss, as other objectives do themselves.
    One whose loss need not be a mean over items counts these, too, with ``count_items``, for its
    accuracy.
    """

    def __init__(self, lm: Any, objectives: Mapping[str, Any]) -> None:
        super().__init__()
        self.lm, self.objectives = lm, dict(objectives)
        self.terms = _terms(self.objectives)
        heads = {name: getattr(each, "head", None) for name, each in self.objectives.items()}
        self.heads = nn.ModuleDict({name: head for name, head in heads.items() if head is not None})

    def forward(
        self, batch: TensorBatch, multipliers: Mapping[str, float]
    ) -> tuple[Tensor, dict[str, float]]:
        """Give the sum of the objectives' losses, and their statistics.

        Both are multiplied, so that means over several batches are means over all they have:
        by the multiplier of their own name, or else of their term.
        """
        states = self.states(batch)
        total, statistics = states.final.new_zeros((), dtype=torch.float32), {}
        for name, term in self.terms.items():
            loss, stats = term.loss(states, batch)
            multiplier = multipliers.get(name, 1.0)
            total = total + multiplier * loss
            for key, each in stats.items():
                statistic = f"{name}.{key}"
                statistics[statistic] = multipliers.get(statistic, multiplier) * each
        return total, statistics

    def states(self, batch: TensorBatch) -> TextStates:
        """Run the model once, for all objectives."""
        embeddings: Tensor = self.lm.get_input_embeddings().weight
        if not isinstance(self.lm, KnowledgeBertForMaskedLM):
            found = self.lm.base_model(batch.tokens, batch.mask, batch.segments)
            return TextStates(
                final=found.last_hidden_state,
                token_scores=self.lm.cls,
                embeddings=embeddings,
            )
        shown = batch.mention_labels.get(SHOWN, batch.entities).clamp_min(-1)
        found = self.lm.model(
            batch.tokens, batch.mask, batch.segments, batch.mentions, shown, gold=True
        )
        return TextStates(
            final=found.last_hidden_state,
            token_scores=self.lm.cls,
            embeddings=embeddings,
            detection=found.detection_scores,
            queries=found.queries,
            table=self.lm.model.entity_table.weight,
            read_mentions=self.lm.model.mention_reader,
        )


def _terms(objectives: Mapping[str, Any]) -> dict[str, Any]:
    """Name all that has a count and a loss of its own: objectives, or the terms that they have."""
    terms: dict[str, Any] = {}
    for name, objective in objectives.items():
        own = getattr(objective, "terms", None)
        terms |= {name: objective} if own is None else {f"{name}.{n}": t for n, t in own.items()}
    return terms


class Reading:
    """What training a ``TextModel`` asks of the loop."""

    def __init__(self, model: TextModel) -> None:
        self.model = model

    @property
    def device(self) -> torch.device:
        """Where the model lives."""
        return next(self.model.parameters()).device

    def loss(
        self, model: nn.Module, batch: TextBatch, multipliers: Mapping[str, float]
    ) -> tuple[Tensor, dict[str, float]]:
        """Give the loss of a batch, and its statistics."""
        found: tuple[Tensor, dict[str, float]] = model(
            TensorBatch.of(batch, self.device), multipliers
        )
        return found

    def counts(self, batch: TextBatch) -> dict[str, int]:
        """Say over how much each term of the loss takes its mean, and accuracies where apart."""
        terms = self.model.terms.items()
        items = {
            f"{name}.accuracy": each.count_items(batch)
            for name, each in terms
            if hasattr(each, "count_items")
        }
        return {name: each.count(batch) for name, each in terms} | items

    def evaluate(self, batches: list[TextBatch], precision: str) -> dict[str, float]:
        """Give the statistics of held-out batches, each weighed by what it has to say.

        What objectives draw, such as negatives, is the same each time.
        """
        with torch.random.fork_rng([self.device] if self.device.type == "cuda" else []):
            torch.manual_seed(_EVALUATED)
            return self._evaluate(batches, precision)

    def _evaluate(self, batches: list[TextBatch], precision: str) -> dict[str, float]:
        sums: dict[str, float] = {}
        totals: dict[str, int] = {}
        for batch in batches:
            with computing_in(precision, self.device):
                _, stats = self.model(TensorBatch.of(batch, self.device), {})
            counts = self.counts(batch)
            for name, count in counts.items():
                totals[name] = totals.get(name, 0) + count
            for key, value in stats.items():
                sums[key] = sums.get(key, 0.0) + value * _of(key, counts)
        return {key: value / max(1, _of(key, totals)) for key, value in sums.items()}


def _of(statistic: str, counts: Mapping[str, int]) -> int:
    """Give the count of a statistic, or else that of its term."""
    return counts.get(statistic, counts[statistic.rpartition(".")[0]])
