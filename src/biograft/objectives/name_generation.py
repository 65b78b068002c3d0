"""Cross-entropy with smoothed labels, in two forms; and how far two passes differ (R-Drop)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from biograft.nn.batches import pad
from biograft.nn.precision import computing_in
from biograft.nn.seq2seq import Namer
from biograft.objectives.configs import NameGenerationConfig
from biograft.objectives.examples import IGNORED
from biograft.objectives.losses import in_single
from biograft.objectives.name_examples import NamingBatches, NamingExample


def smoothed_loss(
    scores: Tensor, labels: Tensor, config: NameGenerationConfig
) -> tuple[Tensor, Tensor]:
    """Give the smoothed loss and the plain one, -log p(label), each a mean over the rows.

    ``scores`` (rows, vocabulary) are log-probabilities. With e for ``label_smoothing`` and V for
    the size of the vocabulary, the form ``mean`` is (1 - e) nll + e mean(-log p); ``fairseq`` is
    (1 - e - e / (V - 1)) nll + e / (V - 1) sum(-log p). No rows: 0, with a gradient of 0.
    """
    share, n_tokens = config.label_smoothing, scores.shape[-1]
    n_rows = max(1, len(labels))
    nll = -scores.gather(-1, labels[:, None]).sum() / n_rows
    if not share:
        return nll, nll.detach()
    of_all = -scores.sum() / n_rows
    if config.form == "fairseq":
        each = share / (n_tokens - 1)
        return (1 - share - each) * nll + each * of_all, nll.detach()
    return (1 - share) * nll + share / n_tokens * of_all, nll.detach()


def symmetric_kl(first: Tensor, second: Tensor) -> Tensor:
    """Give half of KL(p || q) + KL(q || p), the mean over rows of log-probabilities."""
    apart: Tensor = ((first.exp() - second.exp()) * (first - second)).sum()
    return apart / 2 / max(1, len(first))


@dataclass(frozen=True, slots=True)
class SequenceBatch:
    """Texts to read and what is to be written, padded on the right."""

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
        """Give the batch on a device."""
        return SequenceBatch(
            self.sources.to(device),
            self.source_mask.to(device),
            self.decoder_inputs.to(device),
            self.labels.to(device),
        )


class NameGeneration:
    """A name and its end, token by token; the prompt before it is given, never learned."""

    def __init__(self, config: NameGenerationConfig | None = None) -> None:
        self.config = config or NameGenerationConfig()

    def encode(self, namer: Namer, examples: Sequence[NamingExample]) -> SequenceBatch:
        """Make the tensors of some examples."""
        sources = pad(namer.source_tokens([each.source for each in examples]), namer.padding)
        prompts = namer.prompts_tokens([each.prompt for each in examples])
        names = namer.names_tokens([each.target for each in examples])
        inputs, labels = [], []
        for prompt, name in zip(prompts, names, strict=True):
            given, written = _fit(prompt, name, namer.max_target - 1)
            inputs.append([namer.start, *given, *written])
            labels.append([IGNORED] * len(given) + [*written, namer.end])
        return SequenceBatch(
            sources["input_ids"],
            sources["attention_mask"],
            pad(inputs, namer.padding)["input_ids"],
            pad(labels, IGNORED)["input_ids"],
        )

    def count(self, batch: SequenceBatch) -> int:
        """Say how many tokens are to be written; the loss is the mean over these."""
        return int((batch.labels != IGNORED).sum())

    def loss(
        self, logits: Tensor, labels: Tensor, second: Tensor | None = None
    ) -> tuple[Tensor, dict[str, float]]:
        """Give the mean over labelled tokens, and statistics.

        ``logits`` is (rows, tokens, vocabulary). ``second`` are those of a second pass, for
        ``r_drop``: the loss is then the mean of both, and how far they differ is added. ``exact``
        is the share of rows all of whose tokens are right.
        """
        passes = [logits] if second is None else [logits, second]
        counted = labels != IGNORED
        wanted = labels[counted]
        scores = [
            in_single(each[counted]).log_softmax(-1) for each in passes
        ]  # (labelled, vocabulary)
        losses = [smoothed_loss(each, wanted, self.config) for each in scores]
        loss = sum((loss for loss, _ in losses), scores[0].new_zeros(())) / len(losses)
        if second is not None:
            loss = loss + self.config.r_drop * symmetric_kl(*scores)
        right = torch.ones_like(counted)
        right[counted] = scores[0].detach().argmax(-1) == wanted
        n_right = (right & counted).sum() / counted.sum().clamp_min(1)
        exact = right.all(1)[counted.any(1)].float()
        return self.config.weight * loss, {
            "loss": float(loss.detach()),
            "nll": float(losses[0][1]),
            "accuracy": float(n_right),
            "exact": float(exact.mean()) if len(exact) else 0.0,
        }


def _fit(prompt: list[int], name: list[int], room: int) -> tuple[list[int], list[int]]:
    """Cut what is too long: of the prompt its beginning, of a name that is too long its end."""
    written = name[:room]
    n_given = min(len(prompt), room - len(written))
    return prompt[len(prompt) - n_given :], written


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
