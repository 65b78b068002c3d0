"""Name generation of GenBioEL (Yuan et al. 2022): a marked mention in, the name of its concept out.

The loss is cross-entropy with smoothed labels, in two forms, and optionally the divergence of two
passes (R-Drop, Wu et al. 2021).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from biograft.nn.batches import pad
from biograft.nn.precision import autocast_in
from biograft.nn.seq2seq import Seq2SeqModel
from biograft.objectives.base import Loss, Objective, to_float32
from biograft.objectives.configs import NameGenerationConfig
from biograft.objectives.examples import IGNORED
from biograft.objectives.name_examples import NameBatches, NameExample


def smoothed_loss(
    scores: Tensor, labels: Tensor, config: NameGenerationConfig
) -> tuple[Tensor, Tensor]:
    """Compute the smoothed loss and the plain one, -log p(label), each a mean over the rows.

    ``scores`` (rows, vocabulary) are log-probabilities. With e for ``label_smoothing`` and V for
    the size of the vocabulary, the form ``mean`` is (1 - e) nll + e mean(-log p); ``fairseq`` is
    (1 - e - e / (V - 1)) nll + e / (V - 1) sum(-log p). No rows: 0, with a gradient of 0.
    """
    smoothing, n_tokens = config.label_smoothing, scores.shape[-1]
    n_rows = max(1, len(labels))
    nll = -scores.gather(-1, labels[:, None]).sum() / n_rows
    if not smoothing:
        return nll, nll.detach()
    of_all = -scores.sum() / n_rows
    if config.form == "fairseq":
        each = smoothing / (n_tokens - 1)
        return (1 - smoothing - each) * nll + each * of_all, nll.detach()
    return (1 - smoothing) * nll + smoothing / n_tokens * of_all, nll.detach()


def symmetric_kl(first: Tensor, second: Tensor) -> Tensor:
    """Compute half of KL(p || q) + KL(q || p), the mean over rows of log-probabilities."""
    divergence: Tensor = ((first.exp() - second.exp()) * (first - second)).sum()
    return divergence / 2 / max(1, len(first))


@dataclass(frozen=True, slots=True)
class SequenceBatch:
    """Source texts and target names as tensors, padded on the right."""

    sources: Tensor
    """(rows, tokens)"""
    source_mask: Tensor
    """1 where there is a token, 0 at padding."""
    decoder_inputs: Tensor
    """(rows, tokens): the start, the prompt, the name."""
    labels: Tensor
    """(rows, tokens): ``IGNORED`` over the prompt, then the name and its end."""

    def __len__(self) -> int:
        return len(self.sources)

    def to(self, device: torch.device) -> SequenceBatch:
        """Move the batch to a device."""
        return SequenceBatch(
            self.sources.to(device),
            self.source_mask.to(device),
            self.decoder_inputs.to(device),
            self.labels.to(device),
        )


class NameGeneration(Objective):
    """Generate a name and its end token by token; the prompt before it is not learned.

    ``states`` of the loss are the logits (rows, tokens, vocabulary) of one pass or of two.
    """

    name = "name_generation"

    def encode(self, seq2seq: Seq2SeqModel, examples: Sequence[NameExample]) -> SequenceBatch:
        """Encode examples as tensors."""
        sources = pad(seq2seq.source_tokens([each.source for each in examples]), seq2seq.padding)
        prompts = seq2seq.batch_prompt_tokens([each.prompt for each in examples])
        names = seq2seq.batch_name_tokens([each.target for each in examples])
        inputs, labels = [], []
        for pair in zip(prompts, names, strict=True):
            prompt, name = _truncate(*pair, seq2seq.max_target - 1)
            inputs.append([seq2seq.start, *prompt, *name])
            labels.append([IGNORED] * len(prompt) + [*name, seq2seq.end])
        return SequenceBatch(
            sources["input_ids"],
            sources["attention_mask"],
            pad(inputs, seq2seq.padding)["input_ids"],
            pad(labels, IGNORED)["input_ids"],
        )

    def count(self, batch: SequenceBatch) -> int:
        """Count the target tokens."""
        return int((batch.labels != IGNORED).sum())

    def loss(self, states: Sequence[Tensor], batch: SequenceBatch) -> Loss:
        """Compute the mean over labelled tokens, and statistics.

        With a second pass, for ``r_drop``, it is the mean of both plus their weighted divergence.
        ``exact`` is the ratio of rows all of whose tokens are correct.
        """
        counted = batch.labels != IGNORED
        wanted = batch.labels[counted]
        scores = [
            to_float32(logits[counted]).log_softmax(-1) for logits in states
        ]  # (labelled, vocabulary)
        losses = [smoothed_loss(each, wanted, self.config) for each in scores]
        loss = sum((loss for loss, _ in losses), scores[0].new_zeros(())) / len(losses)
        if len(scores) == 2:
            loss = loss + self.config.r_drop * symmetric_kl(*scores)
        correct = torch.ones_like(counted)
        correct[counted] = scores[0].detach().argmax(-1) == wanted
        accuracy = (correct & counted).sum() / counted.sum().clamp_min(1)
        exact = correct.all(1)[counted.any(1)].float()
        return self.config.weight * loss, {
            "loss": float(loss.detach()),
            "nll": float(losses[0][1]),
            "accuracy": float(accuracy),
            "exact": float(exact.mean()) if len(exact) else 0.0,
        }


def _truncate(prompt: list[int], name: list[int], room: int) -> tuple[list[int], list[int]]:
    """Cut the beginning of a prompt that is too long, and the end of a name that is too long."""
    name = name[:room]
    n_prompt = min(len(prompt), room - len(name))
    return prompt[len(prompt) - n_prompt :], name


_BY_ROW = ("exact",)
"""Statistics that are means over rows; all others are over tokens, like the loss."""


class EncodedBatches:
    """Batches of examples as tensors, readable from any epoch and position."""

    def __init__(
        self, batches: NameBatches, seq2seq: Seq2SeqModel, objective: NameGeneration
    ) -> None:
        self._batches, self._seq2seq, self._objective = batches, seq2seq, objective

    def __len__(self) -> int:
        """The number of batches of an epoch."""
        return len(self._batches)

    def batches(self, epoch: int, position: int = 0) -> Iterator[SequenceBatch]:
        """Iterate over the batches of an epoch from a position on."""
        return self.every(1, epoch, position)

    def every(self, step: int, epoch: int, position: int) -> Iterator[SequenceBatch]:
        """Iterate over every ``step``-th batch of an epoch from a position on."""
        for examples in self._batches.every(step, epoch, position):
            yield self._objective.encode(self._seq2seq, examples)


class _Scores(nn.Module):
    """A model as one module that computes logits, so that processes can share its gradients."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, batch: SequenceBatch, n_passes: int = 1) -> Tensor:
        """Compute (passes * rows, tokens, vocabulary); passes differ by their dropout."""
        scores: Tensor = self.model(
            input_ids=batch.sources.repeat(n_passes, 1),
            attention_mask=batch.source_mask.repeat(n_passes, 1),
            decoder_input_ids=batch.decoder_inputs.repeat(n_passes, 1),
            use_cache=False,
        ).logits
        return scores


class NameGenerationTraining:
    """Loss, counts and evaluation of an objective with a model, for ``training.Task``."""

    def __init__(self, seq2seq: Seq2SeqModel, objective: NameGeneration) -> None:
        self.seq2seq, self.objective = seq2seq, objective
        self.model = _Scores(seq2seq.model)
        """The module to train."""

    def source(self, batches: NameBatches) -> EncodedBatches:
        """Encode batches as they are read."""
        return EncodedBatches(batches, self.seq2seq, self.objective)

    def encode(self, examples: Sequence[NameExample]) -> SequenceBatch:
        """Encode examples as tensors."""
        return self.objective.encode(self.seq2seq, examples)

    def lengths(self, examples: Sequence[NameExample]) -> list[int]:
        """Estimate the work of examples; a target token costs about twice a source token."""
        read = self.seq2seq.source_tokens([each.source for each in examples])
        given = self.seq2seq.batch_prompt_tokens([each.prompt for each in examples])
        written = self.seq2seq.batch_name_tokens([each.target for each in examples])
        return [
            len(s) + 2 * (len(p) + len(n)) for s, p, n in zip(read, given, written, strict=True)
        ]

    def loss(
        self, model: nn.Module, batch: SequenceBatch, multipliers: Mapping[str, float]
    ) -> Loss:
        """Compute the loss of a batch and its statistics, each times its multiplier."""
        batch = batch.to(self.seq2seq.device)
        if model.training and self.objective.config.r_drop:
            loss, stats = self.objective.loss(model(batch, 2).chunk(2), batch)
        else:
            loss, stats = self.objective.loss([model(batch)], batch)
        scaled = {key: value * multipliers.get(_unit(key), 1.0) for key, value in stats.items()}
        return multipliers.get("tokens", 1.0) * loss, scaled

    def counts(self, batch: SequenceBatch) -> dict[str, int]:
        """Count the items that means are taken over."""
        return {"tokens": self.objective.count(batch), "rows": len(batch)}

    @torch.no_grad()
    def evaluate(self, batches: Sequence[SequenceBatch], precision: str) -> dict[str, float]:
        """Compute the statistics of all batches together; the model must be in inference mode."""
        sums: dict[str, float] = {}
        totals = {"tokens": 0, "rows": 0}
        for batch in batches:
            with autocast_in(precision, self.seq2seq.device):
                _, stats = self.loss(self.model, batch, {})
            counts = self.counts(batch)
            totals = {unit: totals[unit] + counts[unit] for unit in totals}
            for key, value in stats.items():
                sums[key] = sums.get(key, 0.0) + value * counts[_unit(key)]
        return {key: value / max(1, totals[_unit(key)]) for key, value in sums.items()}


def _unit(key: str) -> str:
    """Return the items that a statistic is a mean over."""
    return "rows" if key in _BY_ROW else "tokens"
