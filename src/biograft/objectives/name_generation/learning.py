"""What learning to write names asks of the loop, whatever the examples are made of."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import torch
from torch import Tensor, nn

from biograft.nn.precision import computing_in
from biograft.nn.seq2seq import Namer
from biograft.objectives.name_generation.objective import NameGeneration, SequenceBatch
from biograft.streams.naming import NamingBatches, NamingExample

_BY_ROW = ("exact",)
"""Statistics that are means over rows; all others are over tokens, as the loss is."""


class EncodedBatches:
    """Batches of examples as tensors, to be taken up at any epoch and position."""

    def __init__(self, batches: NamingBatches, namer: Namer, objective: NameGeneration) -> None:
        self._batches, self._namer, self._objective = batches, namer, objective

    def __len__(self) -> int:
        """How many batches an epoch has."""
        return len(self._batches)

    def batches(self, epoch: int, position: int = 0) -> Iterator[SequenceBatch]:
        """Give the batches of an epoch from a position on."""
        for examples in self._batches.batches(epoch, position):
            yield self._objective.encode(self._namer, examples)


class _Scores(nn.Module):
    """A model as one module that gives scores, so that processes can share its gradients."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, batch: SequenceBatch, n_passes: int = 1) -> Tensor:
        """Give (passes * rows, tokens, vocabulary); passes differ by what they drop out."""
        scores: Tensor = self.model(
            input_ids=batch.sources.repeat(n_passes, 1),
            attention_mask=batch.source_mask.repeat(n_passes, 1),
            decoder_input_ids=batch.decoder_inputs.repeat(n_passes, 1),
            use_cache=False,
        ).logits
        return scores


class NameLearning:
    """Loss, counts and evaluation of an objective with a model, for ``training.Task``."""

    def __init__(self, namer: Namer, objective: NameGeneration) -> None:
        self.namer, self.objective = namer, objective
        self.model = _Scores(namer.model)
        """What is trained."""

    def source(self, batches: NamingBatches) -> EncodedBatches:
        """Give batches as they are learned from."""
        return EncodedBatches(batches, self.namer, self.objective)

    def encode(self, examples: Sequence[NamingExample]) -> SequenceBatch:
        """Make the tensors of some examples."""
        return self.objective.encode(self.namer, examples)

    def lengths(self, examples: Sequence[NamingExample]) -> list[int]:
        """Say how much work examples are; a token to write is about twice one to read."""
        read = self.namer.source_tokens([each.source for each in examples])
        given = self.namer.prompts_tokens([each.prompt for each in examples])
        written = self.namer.names_tokens([each.target for each in examples])
        return [
            len(s) + 2 * (len(p) + len(n)) for s, p, n in zip(read, given, written, strict=True)
        ]

    def loss(
        self, model: nn.Module, batch: SequenceBatch, multipliers: Mapping[str, float]
    ) -> tuple[Tensor, dict[str, float]]:
        """Give the loss of a batch and its statistics, each by its multiplier."""
        batch = batch.to(self.namer.device)
        if model.training and self.objective.config.r_drop:
            first, second = model(batch, 2).chunk(2)
            loss, stats = self.objective.loss(first, batch.labels, second)
        else:
            loss, stats = self.objective.loss(model(batch), batch.labels)
        scaled = {key: value * multipliers.get(_unit(key), 1.0) for key, value in stats.items()}
        return multipliers.get("tokens", 1.0) * loss, scaled

    def counts(self, batch: SequenceBatch) -> dict[str, int]:
        """Say over how much means are taken."""
        return {"tokens": self.objective.count(batch), "rows": len(batch)}

    @torch.no_grad()
    def evaluate(self, batches: Sequence[SequenceBatch], precision: str) -> dict[str, float]:
        """Give the statistics of all batches together; the model is to be in inference mode."""
        sums: dict[str, float] = {}
        totals = {"tokens": 0, "rows": 0}
        for batch in batches:
            with computing_in(precision, self.namer.device):
                _, stats = self.loss(self.model, batch, {})
            counts = self.counts(batch)
            totals = {unit: totals[unit] + counts[unit] for unit in totals}
            for key, value in stats.items():
                sums[key] = sums.get(key, 0.0) + value * counts[_unit(key)]
        return {key: value / max(1, totals[_unit(key)]) for key, value in sums.items()}


def _unit(key: str) -> str:
    """Say over what a statistic is a mean."""
    return "rows" if key in _BY_ROW else "tokens"
