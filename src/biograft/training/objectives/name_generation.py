"""Name generation of GenBioEL (Yuan et al. 2022): a marked mention in, the name of its concept out.

The loss is cross-entropy with smoothed labels, in two forms, and optionally the divergence of two
passes (R-Drop, Wu et al. 2021) and the unlikelihood of the other names in a trie (Welleck et al.
2020).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from biograft.errors import ConfigError
from biograft.models.batches import pad
from biograft.models.precision import autocast_in
from biograft.models.seq2seq import Seq2SeqModel
from biograft.text.trie import FlatTrie
from biograft.training.batches import IndependentBatches
from biograft.training.objectives.base import Loss, Objective, to_float32
from biograft.training.objectives.configs import NameGenerationConfig
from biograft.training.objectives.examples import IGNORED
from biograft.training.objectives.name_examples import NameBatches, NameExample


def smoothed_loss(
    scores: Tensor, labels: Tensor, config: NameGenerationConfig
) -> tuple[Tensor, Tensor]:
    """Compute the smoothed loss and the plain one, -log p(label), each a mean over the rows.

    With e for ``label_smoothing`` and V for the size of the vocabulary, the form ``mean`` is (1 -
    e) nll + e mean(-log p); ``fairseq`` is (1 - e - e / (V - 1)) nll + e / (V - 1) sum(-log p). No
    rows: 0, with a gradient of 0.

    Args:
        scores: Log-probabilities: (rows, vocabulary).
        labels: Label of each row.
        config: Settings of the objective.
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
    """Compute half of KL(p || q) + KL(q || p), the mean over rows of log-probabilities.

    Args:
        first: Log-probabilities: (rows, vocabulary).
        second: Log-probabilities, likewise.
    """
    divergence: Tensor = ((first.exp() - second.exp()) * (first - second)).sum()
    return divergence / 2 / max(1, len(first))


_MAX_PROBABILITY = 0.9999
"""Bounds the penalty of a wrong token of which the model is certain."""


class Siblings(NamedTuple):
    """The tokens that a trie allows beside the right one, for each labelled token of a batch."""

    rows: Tensor
    """(siblings,): the index of the labelled token, ascending."""
    tokens: Tensor

    def to(self, device: torch.device) -> Siblings:
        """Move the siblings to a device."""
        return Siblings(self.rows.to(device), self.tokens.to(device))

    @property
    def n_branches(self) -> int:
        """The number of labelled tokens that have siblings."""
        return len(torch.unique_consecutive(self.rows))


def collect_siblings(trie: FlatTrie, names: Sequence[Sequence[int]]) -> Siblings:
    """Collect the siblings of the tokens of names; where a name leaves the trie, they end.

    Args:
        trie: Trie of the names.
        names: Token ids of names.
    """
    rows, tokens, n_before = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)], 0
    for name in names:
        node = trie.root
        for index, token in enumerate(name):
            first, end = trie.children(np.array([node]))
            allowed = trie.tokens[int(first[0]) : int(end[0])].astype(np.int64)
            node = trie.child(node, token)
            if node < 0:
                break
            others = allowed[allowed != token]
            rows.append(np.full(len(others), n_before + index))
            tokens.append(others)
        n_before += len(name)
    return Siblings(*(torch.from_numpy(np.concatenate(parts)) for parts in (rows, tokens)))


def unlikelihood(scores: Tensor, siblings: Siblings) -> Tensor:
    """Compute max -log(1 - p) over the siblings of a token, the mean over tokens that have any.

    The authors' code stops at the first token without siblings; here later ones count, too.

    Args:
        scores: Log-probabilities of the labelled tokens: (rows, vocabulary).
        siblings: Tokens beside those of the names.
    """
    highest = scores.new_full((len(scores),), -torch.inf)
    of_siblings = scores[siblings.rows, siblings.tokens]
    highest = highest.scatter_reduce(0, siblings.rows, of_siblings, "amax")
    p = highest[torch.unique_consecutive(siblings.rows)].exp().clamp(max=_MAX_PROBABILITY)
    return -torch.log1p(-p).sum() / max(1, len(p))


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
    """(rows, columns): the name and its end, ``IGNORED`` elsewhere."""
    columns: Tensor
    """The columns of ``decoder_inputs`` after which any row has a label."""
    siblings: Siblings | None = None
    """With a trie: the tokens to make unlikely."""

    def __len__(self) -> int:
        return len(self.sources)

    def to(self, device: torch.device) -> SequenceBatch:
        """Move the batch to a device."""
        return SequenceBatch(
            self.sources.to(device),
            self.source_mask.to(device),
            self.decoder_inputs.to(device),
            self.labels.to(device),
            self.columns.to(device),
            None if self.siblings is None else self.siblings.to(device),
        )


class NameGeneration(Objective):
    """Generate a name and its end token by token; the prompt before it is not learned.

    ``states`` of the loss are the logits (rows, tokens, vocabulary) of one pass or of two.
    """

    name = "name_generation"

    def encode(
        self,
        seq2seq: Seq2SeqModel,
        examples: Sequence[NameExample],
        trie: FlatTrie | None = None,
    ) -> SequenceBatch:
        """Encode examples as tensors; a trie adds the siblings of the tokens of names.

        Args:
            seq2seq: Model and tokenizer.
            examples: Sources, prompts and targets.
            trie: Trie of the names, which adds the siblings of their tokens.
        """
        read, begun = seq2seq.inputs(
            [each.source for each in examples], [each.prompt for each in examples]
        )
        names, longest = seq2seq.tokens([each.target for each in examples]), seq2seq.longest_name
        ended = [[*name[:longest], seq2seq.end] for name in names]
        sources, targets = pad(read, seq2seq.padding), list(zip(begun, ended, strict=True))
        labels = pad([[IGNORED] * (len(b) - 1) + name for b, name in targets], IGNORED)["input_ids"]
        columns = (labels != IGNORED).any(0).nonzero().flatten()
        return SequenceBatch(
            sources["input_ids"],
            sources["attention_mask"],
            pad([[*b, *name[:-1]] for b, name in targets], seq2seq.padding)["input_ids"],
            labels[:, columns],
            columns,
            None if trie is None else collect_siblings(trie, ended),
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
        scores = _labelled_scores(states, batch)
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

    def penalty(self, states: Sequence[Tensor], siblings: Siblings, batch: SequenceBatch) -> Tensor:
        """Compute the unlikelihood of the siblings, the mean of both passes.

        Args:
            states: Logits of one pass or of two.
            siblings: Tokens beside those of the names.
            batch: The batch.
        """
        terms = [unlikelihood(scores, siblings) for scores in _labelled_scores(states, batch)]
        return torch.stack(terms).mean()


def _labelled_scores(states: Sequence[Tensor], batch: SequenceBatch) -> list[Tensor]:
    """Return the log-probabilities of each pass, (labelled, vocabulary)."""
    counted = batch.labels != IGNORED
    return [to_float32(logits[counted]).log_softmax(-1) for logits in states]


_UNITS = {"exact": "rows", "unlikelihood": "branches"}
"""Units of the statistics that are not means over tokens."""


class EncodedBatches(IndependentBatches[SequenceBatch]):
    """Batches of examples as tensors, readable from any epoch and position.

    Args:
        batches: Batches of examples.
        encode: Makes tensors of a batch.
    """

    def __init__(
        self,
        batches: NameBatches,
        encode: Callable[[Sequence[NameExample]], SequenceBatch],
    ) -> None:
        self._batches, self._encode = batches, encode

    def __len__(self) -> int:
        """The number of batches of an epoch."""
        return len(self._batches)

    def every(self, step: int, epoch: int, position: int) -> Iterator[SequenceBatch]:
        """Iterate over every ``step``-th batch of an epoch from a position on.

        Args:
            step: Distance between batches.
            epoch: Number of the epoch.
            position: First batch.
        """
        return map(self._encode, self._batches.every(step, epoch, position))


class _Scores(nn.Module):
    """A model as one module that computes logits, so that processes can share its gradients."""

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.model: Any = model

    def forward(self, batch: SequenceBatch, n_passes: int = 1) -> Tensor:
        """Compute (passes * rows, columns, vocabulary); passes differ by their dropout.

        Args:
            batch: The batch.
            n_passes: Number of passes.
        """
        inputs = batch.decoder_inputs.repeat(n_passes, 1)
        if not self.model.config.is_encoder_decoder:  # padding on the right is behind all labels
            scores: Tensor = self.model(
                input_ids=inputs, use_cache=False, logits_to_keep=batch.columns
            ).logits
            return scores
        scores = self.model(
            input_ids=batch.sources.repeat(n_passes, 1),
            attention_mask=batch.source_mask.repeat(n_passes, 1),
            decoder_input_ids=inputs,
            use_cache=False,
        ).logits
        return scores[:, batch.columns]


class NameGenerationTraining:
    """Loss, counts and evaluation of an objective with a model, for ``training.Task``.

    Args:
        seq2seq: Model and tokenizer.
        objective: The objective.
        trie: Trie of the names, which ``unlikelihood`` needs.
    """

    def __init__(
        self, seq2seq: Seq2SeqModel, objective: NameGeneration, trie: FlatTrie | None = None
    ) -> None:
        if objective.config.unlikelihood and trie is None:
            raise ConfigError(
                "unlikelihood: expected 0, since only fine-tuning on mentions has a trie of names"
            )
        self.seq2seq, self.objective = seq2seq, objective
        self.trie = trie if objective.config.unlikelihood else None
        """The names whose other tokens become unlikely."""
        self.model = _Scores(seq2seq.model)
        """The module to train."""

    def source(self, batches: NameBatches) -> EncodedBatches:
        """Encode batches as they are read."""
        encode = partial(self.objective.encode, self.seq2seq, trie=self.trie)
        return EncodedBatches(batches, encode)

    def encode(self, examples: Sequence[NameExample]) -> SequenceBatch:
        """Encode examples as tensors, for an evaluation of the name alone."""
        return self.objective.encode(self.seq2seq, examples)

    def lengths(self, examples: Sequence[NameExample]) -> list[int]:
        """Estimate the work of examples; a target token costs about twice a source token."""
        tokens = self.seq2seq.tokens
        read = self.seq2seq.source_tokens([each.source for each in examples])
        written = tokens([f"{each.prompt} {each.target}".strip() for each in examples])
        return [len(s) + 2 * len(w) for s, w in zip(read, written, strict=True)]

    def loss(
        self, model: nn.Module, batch: SequenceBatch, multipliers: Mapping[str, float]
    ) -> Loss:
        """Compute the loss of a batch and its statistics, each times its multiplier.

        Args:
            model: The module to train, as the loop wraps it.
            batch: The batch.
            multipliers: Weight of each mean in the update, by the name of its count.
        """
        batch = batch.to(self.seq2seq.device)
        config = self.objective.config
        twice = model.training and config.r_drop
        states = model(batch, 2).chunk(2) if twice else [model(batch)]
        loss, stats = self.objective.loss(states, batch)
        loss = multipliers.get("tokens", 1.0) * loss
        if batch.siblings is not None:
            penalty = self.objective.penalty(states, batch.siblings, batch)
            weight = config.weight * config.unlikelihood * multipliers.get("branches", 1.0)
            loss = loss + weight * penalty
            stats["unlikelihood"] = float(penalty.detach())
        return loss, {k: value * multipliers.get(_unit(k), 1.0) for k, value in stats.items()}

    def counts(self, batch: SequenceBatch) -> dict[str, int]:
        """Count the items that means are taken over."""
        counts = {"tokens": self.objective.count(batch), "rows": len(batch)}
        if batch.siblings is not None:
            counts["branches"] = batch.siblings.n_branches
        return counts

    @torch.no_grad()
    def evaluate(self, batches: Sequence[SequenceBatch], precision: str) -> dict[str, float]:
        """Compute the statistics of all batches together; the model must be in inference mode.

        Args:
            batches: Held-out batches.
            precision: One of ``models.precision.PRECISIONS``.
        """
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
    return _UNITS.get(key, "tokens")
