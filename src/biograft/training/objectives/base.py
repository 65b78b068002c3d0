"""The base class of all objectives, and the states, heads and losses that they share."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, gelu

from biograft.errors import ConfigError
from biograft.training.objectives.examples import (
    IGNORED,
    MASKING_OBJECTIVE,
    Setting,
    TextBatch,
    TextExample,
)

_STD = 0.02
"""Standard deviation of new weights, as in BERT."""
_EPSILON = 1e-12
"""Epsilon of layer norms, that of BERT."""


def init_weights(module: nn.Module) -> None:
    """Initialise a head with a generator of its own, so other weights change nothing."""
    generator = torch.Generator().manual_seed(0)
    for part in module.modules():
        if isinstance(part, nn.Linear | nn.Embedding):
            nn.init.normal_(part.weight, std=_STD, generator=generator)
        if isinstance(part, nn.Linear) and part.bias is not None:
            nn.init.zeros_(part.bias)


class GeluNorm(nn.Module):
    """LN(GELU(W x)), without a bias on W.

    Args:
        n_in: Width of the inputs.
        n_out: Width of the outputs.
    """

    def __init__(self, n_in: int, n_out: int) -> None:
        super().__init__()
        self.dense, self.norm = nn.Linear(n_in, n_out, bias=False), nn.LayerNorm(n_out, _EPSILON)

    def forward(self, inputs: Tensor) -> Tensor:
        """Map (..., n_in) to (..., n_out)."""
        outputs: Tensor = self.norm(gelu(self.dense(inputs)))
        return outputs


class PairHead(nn.Module):
    """tanh(dense) of the first token's state, then the scores of two classes."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.dense, self.classes = nn.Linear(width, width), nn.Linear(width, 2)
        init_weights(self)

    def forward(self, states: Tensor) -> Tensor:
        """Compute scores (sequences, 2) from the states (sequences, length, width)."""
        scores: Tensor = self.classes(torch.tanh(self.dense(states[:, 0])))
        return scores


def to_float32(values: Tensor) -> Tensor:
    """Cast half precision to float32, where sums and differences are accurate enough."""
    return values.float() if values.dtype in (torch.float16, torch.bfloat16) else values


def to_device(values: Any, device: torch.device | str) -> Any:
    """Move arrays and tensors to a device, also those of mappings and of dataclasses, as tensors.

    Args:
        values: An array, a tensor, or what holds some; other values stay.
        device: Device of torch.
    """
    if isinstance(values, np.ndarray):
        values = torch.from_numpy(values)
    if isinstance(values, Tensor):
        return values.to(device, non_blocking=True)
    if isinstance(values, Mapping):
        return {name: to_device(each, device) for name, each in values.items()}
    if not is_dataclass(values) or isinstance(values, type):
        return values
    named = {each.name: to_device(getattr(values, each.name), device) for each in fields(values)}
    return replace(values, **named)


def labelled_cross_entropy(scores: Tensor, labels: Tensor) -> tuple[Tensor, float]:
    """Compute the mean of -ln softmax(scores)[label] over (n, classes), and the accuracy.

    Without any counted label both are 0, and so is the gradient. Half precision is computed in
    float32.

    Args:
        scores: Scores: (n, classes).
        labels: Label of each row; ``IGNORED`` does not count.
    """
    scores = to_float32(scores)
    counted = labels != IGNORED
    n_counted = counted.sum().clamp_min(1)
    losses = cross_entropy(scores, labels, ignore_index=IGNORED, reduction="sum")
    correct = ((scores.detach().argmax(-1) == labels) & counted).sum()
    return losses / n_counted, float(correct / n_counted)


@dataclass(frozen=True, slots=True)
class TextStates:
    """The output of a forward pass over a batch of text.

    Mentions are in the order of ``TextBatch.mentions``. The fields that are None by default need a
    model with knowledge layers.
    """

    final: Tensor
    """(sequences, length, width): the states of the last layer."""
    token_scores: Callable[[Tensor], Tensor]
    """The token head: states (n, width) to scores of the vocabulary (n, tokens)."""
    embeddings: Tensor | None = None
    """(tokens, width): the input embeddings of the vocabulary."""
    detection: Tensor | None = None
    """(sequences, length, 3): scores of O, B, I from the text-only states."""
    queries: Tensor | None = None
    """(mentions, dim): mentions in the space of entities."""
    table: Tensor | None = None
    """(entities, dim): the entity embeddings."""
    read_mentions: Callable[[Tensor, Tensor], Tensor] | None = None
    """Projects mentions into the space of entities: states (sequences, length, width) and mentions
    (mentions, 3) to (mentions, dim)."""
    encode: Callable[[Tensor, Tensor], Tensor] | None = None
    """Encodes other texts: tokens and mask (texts, length) to states (texts, length, width)."""

    def require(self, field: str, objective: str) -> Any:
        """Return a field that an objective needs; raise if the model does not compute it.

        Args:
            field: Name of the field.
            objective: Name of the objective, for the error.
        """
        value = getattr(self, field)
        if value is None:
            raise ConfigError(f"objective.{objective}: {_MISSING[field]}, or remove the objective")
        return value


_TABLE = "the model has no entity table; give it a knowledge layer"
_MISSING = {
    "embeddings": "the model has no input embeddings; choose an encoder of BERT's kind",
    "detection": "the model does not detect mentions; give it the knowledge layer entity_memory",
    "queries": _TABLE,
    "table": _TABLE,
    "read_mentions": "the model does not read mentions from its last layer; give it the knowledge "
    "layer neighbour_attention or entity_fusion",
    "encode": "is for an encoder without knowledge layers; remove [knowledge]",
}


@dataclass(frozen=True, slots=True)
class TensorBatch:
    """A ``TextBatch`` as tensors of one device, with the same fields."""

    tokens: Tensor
    """Ids of the tokens, (texts, tokens)."""
    mask: Tensor
    """1 for tokens, 0 for padding."""
    segments: Tensor
    """Segment of each token, 0 or 1."""
    mentions: Tensor
    """Text, first and last token of each mention."""
    entities: Tensor
    """Row of the entity of each mention; -1 if unknown."""
    token_labels: Mapping[str, Tensor]
    """Labels of tokens, by objective."""
    mention_labels: Mapping[str, Tensor]
    """Labels of mentions, by objective."""
    labels: Mapping[str, Tensor]
    """Labels of texts, by objective."""

    @classmethod
    def of(cls, batch: TextBatch, device: torch.device | str = "cpu") -> TensorBatch:
        """Move a batch to a device.

        Args:
            batch: Batch of arrays.
            device: Device of torch.
        """
        return cls(
            **{each.name: to_device(getattr(batch, each.name), device) for each in fields(cls)}
        )

    def __len__(self) -> int:
        return len(self.tokens)

    @property
    def original_tokens(self) -> Tensor:
        """The tokens as they were before masking, where ``masked_tokens`` masked them."""
        labels = self.token_labels.get(MASKING_OBJECTIVE)
        return self.tokens if labels is None else labels.where(labels != IGNORED, self.tokens)


Loss = tuple[Tensor, dict[str, float]]
"""A weighted loss, and its statistics by name."""


class LossTerm:
    """A loss that is one mean over the items of a batch."""

    gathered: ClassVar[bool] = False
    """Whether it is the loss of the items of all processes, the same in each of them."""

    def count(self, batch: Any) -> int:
        """Count the items over which the loss is a mean."""
        raise NotImplementedError

    def count_items(self, batch: Any) -> int:
        """Count the items over which the accuracy is a mean; by default as the loss."""
        return self.count(batch)

    def counts(self, batch: Any) -> Mapping[str, int]:
        """Count the items over which the loss (an empty name) and each statistic is a mean.

        Statistics that are not named are means over the same items as the loss.
        """
        return {"": self.count(batch), "accuracy": self.count_items(batch)}

    def labels(self, batch: Any) -> Any:
        """Return the labels of a batch, of which negative ones do not count; None without any."""
        return None

    def loss(self, states: Any, batch: Any) -> Loss:
        """Compute the loss of a batch and its statistics; both are 0 where nothing counts.

        Args:
            states: Outputs of the forward pass.
            batch: The batch, with labels.
        """
        raise NotImplementedError


class Objective(LossTerm):
    """Base of training objectives, the same for every stream.

    ``states`` and ``batch`` of ``loss`` are ``TextStates`` and ``TensorBatch`` for objectives of
    running text; those of name pairs and of generation state their own.

    Args:
        config: Settings of the objective.
        setting: Properties of model, tokenizer and stream.
    """

    name: ClassVar[str]
    """The name in ``OBJECTIVES`` and in recipes."""
    order: ClassVar[int] = 0
    """Objectives with a lower number prepare an example first."""
    head: nn.Module | None = None
    """The parameters of the objective, trained with the model."""
    compares: ClassVar[bool] = False
    """Whether the loss compares the examples of a batch, which then cannot be divided."""

    def __init__(self, config: Any, setting: Setting | None = None) -> None:
        self.config = config

    def prepare(self, example: TextExample, rng: np.random.Generator) -> TextExample:
        """Add labels to an example, or change its tokens; by default it stays as it is.

        Args:
            example: An example of the stream.
            rng: Random numbers, which depend on the example alone.
        """
        return example

    def texts(self, batch: Any) -> Mapping[str, Sequence[str]]:
        """Return further texts for an encoder, one for each pair, by a name; by default none.

        Args:
            batch: The pairs (``PairBatch``): names, and the row of the concept of each.
        """
        return {}

    @property
    def terms(self) -> Mapping[str, LossTerm]:
        """The terms of the loss by name; by default the objective itself, without a name."""
        return {"": self}

    def report(self, states: Any, batch: Any) -> Mapping[str, Any]:
        """Return what an evaluation shows beside the statistics of the loss; by default nothing.

        Args:
            states: Outputs of the forward pass.
            batch: The batch, with labels.
        """
        return {}


class ReducedTerm(LossTerm):
    """A term that is a mean over items, or over sequences where ``reduction`` is "sequence_sum"."""

    config: Any

    @property
    def sums_sequences(self) -> bool:
        """Whether the losses of a sequence are added."""
        return getattr(self.config, "reduction", "") == "sequence_sum"

    def count(self, batch: TextBatch) -> int:
        """Count items, or sequences, as ``reduction`` says.

        Args:
            batch: A batch, as arrays.

        Returns:
            The number that the sum of the losses is divided by.
        """
        return len(batch) if self.sums_sequences else self.count_items(batch)

    def reduce(self, losses: Tensor, batch: TensorBatch) -> Tensor:
        """Reduce the losses of items to a number; 0 without items.

        Args:
            losses: (items,)
            batch: The batch of the items.

        Returns:
            Their mean, or their sum per sequence.
        """
        return losses.sum() / max(1, len(batch) if self.sums_sequences else len(losses))


class LabelledTerm(ReducedTerm):
    """A term that is the cross-entropy of all that has a label."""

    labelled: tuple[str, str]
    """Place of its labels: a field of batches, such as ``token_labels``, and their name there."""

    def labels(self, batch: TextBatch | TensorBatch) -> Any:
        """Return the labels of a batch; ``IGNORED`` ones do not count.

        Args:
            batch: A batch, as arrays or as tensors.

        Returns:
            The labels of its tokens, mentions or sequences.
        """
        field, name = self.labelled
        return getattr(batch, field)[name]

    def count_items(self, batch: TextBatch) -> int:
        """Count the labels.

        Args:
            batch: A batch, as arrays.

        Returns:
            The number of labels other than ``IGNORED``.
        """
        return int((self.labels(batch) != IGNORED).sum())

    def mean_loss(self, scores: Tensor, labels: Tensor, batch: TensorBatch) -> Loss:
        """Compute the weighted loss over labels, with loss and accuracy.

        Args:
            scores: (n, classes)
            labels: (n,), of which ``IGNORED`` ones do not count.
            batch: The batch of the labels.

        Returns:
            The loss times the weight of the objective, and its statistics.
        """
        loss, accuracy = labelled_cross_entropy(scores, labels)
        if self.sums_sequences:
            loss = loss * (len(labels) / len(batch))
        return self.config.weight * loss, {"loss": float(loss.detach()), "accuracy": accuracy}


class LabelledObjective(LabelledTerm, Objective):
    """An objective whose loss is the cross-entropy of all that has a label."""
