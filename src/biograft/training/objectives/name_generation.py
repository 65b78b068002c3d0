"""Name generation of GenBioEL (Yuan et al. 2022): a marked mention in, the name of its concept out.

The loss is cross-entropy with smoothed labels, in two forms, and optionally the divergence of two
passes (R-Drop, Wu et al. 2021) and the unlikelihood of the other names in a trie (Welleck et al.
2020).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from biograft.errors import ConfigError
from biograft.models.batches import pad
from biograft.models.seq2seq import Seq2SeqModel
from biograft.text.trie import FlatTrie
from biograft.training.objectives.base import Loss, LossTerm, Objective, to_device, to_float32
from biograft.training.objectives.configs import NameGenerationConfig
from biograft.training.objectives.examples import IGNORED, Setting
from biograft.training.objectives.model import View
from biograft.training.objectives.name_examples import NameBatches, NameExample, NameExamples


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


@dataclass(frozen=True, slots=True)
class Siblings:
    """The tokens that a trie allows beside the right one, for each labelled token of a batch."""

    rows: Tensor
    """(siblings,): the index of the labelled token, ascending."""
    tokens: Tensor

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


class NameGeneration(Objective):
    """Generate a name and its end token by token; the prompt before it is not learned.

    ``states`` of the loss are the logits (rows, tokens, vocabulary) of one pass or of two.
    """

    name = "name_generation"

    def __init__(self, config: NameGenerationConfig, setting: Setting | None = None) -> None:
        super().__init__(config, setting)
        self.trie = setting.trie if setting and config.unlikelihood else None
        """The names whose other tokens become unlikely."""
        if config.unlikelihood and self.trie is None:
            raise ConfigError(
                "unlikelihood: expected 0, since only fine-tuning on mentions has a trie of names"
            )

    @property
    def terms(self) -> Mapping[str, LossTerm]:
        """The likelihood of names and, with a trie, the unlikelihood of others."""
        return {"": self} | ({"unlikelihood": Unlikelihood(self.config)} if self.trie else {})

    def encode(self, seq2seq: Seq2SeqModel, examples: Sequence[NameExample]) -> SequenceBatch:
        """Encode examples as tensors; with a trie, with the siblings of the tokens of names.

        Args:
            seq2seq: Model and tokenizer.
            examples: Sources, prompts and targets.
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
            None if self.trie is None else collect_siblings(self.trie, ended),
        )

    def count(self, batch: SequenceBatch) -> int:
        """Count the target tokens."""
        return int((batch.labels != IGNORED).sum())

    def counts(self, batch: SequenceBatch) -> Mapping[str, int]:
        """Count the target tokens, and for ``exact`` the rows."""
        return {"": self.count(batch), "exact": len(batch)}

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


class Unlikelihood(LossTerm):
    """Make the siblings of the tokens of names unlikely.

    Args:
        config: Settings of the objective.
    """

    def __init__(self, config: NameGenerationConfig) -> None:
        self.config = config

    def count(self, batch: SequenceBatch) -> int:
        """Count the labelled tokens that have siblings."""
        return batch.siblings.n_branches if batch.siblings else 0

    def loss(self, states: Sequence[Tensor], batch: SequenceBatch) -> Loss:
        """Compute the unlikelihood of the siblings, the mean of both passes."""
        if batch.siblings is None:
            return states[0].new_zeros(()), {"loss": 0.0}
        terms = [unlikelihood(each, batch.siblings) for each in _labelled_scores(states, batch)]
        penalty = torch.stack(terms).mean()
        weight = self.config.weight * self.config.unlikelihood
        return weight * penalty, {"loss": float(penalty.detach())}


def _labelled_scores(states: Sequence[Tensor], batch: SequenceBatch) -> list[Tensor]:
    """Return the log-probabilities of each pass, (labelled, vocabulary)."""
    counted = batch.labels != IGNORED
    return [to_float32(logits[counted]).log_softmax(-1) for logits in states]


class NameReader(nn.Module):
    """Reads sequences with a model that generates names: the logits of one pass, or of two.

    Args:
        seq2seq: Model and tokenizer.
        objectives: Objectives by name; with ``r_drop`` there are two passes in training, which
            differ by their dropout.
    """

    def __init__(self, seq2seq: Seq2SeqModel, objectives: Mapping[str, Objective]) -> None:
        super().__init__()
        self.model: Any = seq2seq.model
        drops = (getattr(each.config, "r_drop", 0.0) for each in objectives.values())
        self._n_passes = 2 if any(drops) else 1

    def forward(self, batch: SequenceBatch) -> tuple[Sequence[Tensor], View]:
        """Compute the logits (rows, columns, vocabulary) of each pass, and return the batch."""
        batch = to_device(batch, next(self.model.parameters()).device)
        n_passes = self._n_passes if self.training else 1
        inputs = batch.decoder_inputs.repeat(n_passes, 1)
        if not self.model.config.is_encoder_decoder:  # padding on the right is behind all labels
            scores: Tensor = self.model(
                input_ids=inputs, use_cache=False, logits_to_keep=batch.columns
            ).logits
            return scores.chunk(n_passes), lambda _: batch
        scores = self.model(
            input_ids=batch.sources.repeat(n_passes, 1),
            attention_mask=batch.source_mask.repeat(n_passes, 1),
            decoder_input_ids=inputs,
            use_cache=False,
        ).logits
        return scores[:, batch.columns].chunk(n_passes), lambda _: batch


def name_batches(
    seq2seq: Seq2SeqModel, objective: NameGeneration, examples: NameExamples
) -> NameBatches[SequenceBatch]:
    """Make batches of examples as tensors.

    Args:
        seq2seq: Model and tokenizer.
        objective: Encodes the examples.
        examples: Examples by epoch and index.
    """

    def measure(some: Sequence[NameExample]) -> list[int]:
        """Estimate the work of examples; a target token costs about twice a source token."""
        read = seq2seq.source_tokens([each.source for each in some])
        written = seq2seq.tokens([f"{each.prompt} {each.target}".strip() for each in some])
        return [len(s) + 2 * len(w) for s, w in zip(read, written, strict=True)]

    return NameBatches(examples, partial(objective.encode, seq2seq), measure)
