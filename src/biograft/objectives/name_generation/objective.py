"""Examples to tensors, and the loss of the names that a model writes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from biograft.nn.batching import pad
from biograft.nn.seq2seq import Namer
from biograft.objectives.half_precision import in_single
from biograft.objectives.name_generation.config import NameGenerationConfig
from biograft.objectives.name_generation.smoothing import smoothed_loss, symmetric_kl
from biograft.objectives.records import IGNORED
from biograft.streams.naming import NamingExample


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
