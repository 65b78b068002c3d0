"""Interface of task models (``TaskModel``), their network, and length-sorted training batches.

The network of a task model is an encoder and a head on the states of selected tokens. To add a
task, write one module with a model of this protocol and a ``TaskKind``, and register it in
``tasks/task.py``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar, runtime_checkable

import numpy as np
import torch
from torch import Tensor, nn

from biograft.errors import ConfigError, StoreError
from biograft.models import TextEncoder
from biograft.models.batches import pad, token_batches
from biograft.models.precision import autocast_in

Outputs = tuple[Tensor, ...]
"""The output of a head: scores, and other tensors that its loss needs."""
_PREDICTION_BATCH_TOKENS = 8192
"""Size of a prediction batch in tokens, padding included."""


class Item(Protocol):
    """One input sequence of the encoder."""

    @property
    def tokens(self) -> Sequence[int]:
        """Token ids, special tokens included."""

    @property
    def positions(self) -> Sequence[int]:
        """Positions of the tokens whose states the head reads."""


@runtime_checkable
class SegmentedItem(Item, Protocol):
    """A sequence of one or two texts with segment ids."""

    @property
    def segments(self) -> Sequence[int]:
        """``token_type_ids``; empty where the encoder has none."""


@dataclass(frozen=True, slots=True)
class ItemBatch:
    """A padded batch of sequences with the positions that the head reads."""

    inputs: Mapping[str, Tensor]
    positions: Tensor
    """(sequences, positions), 0 at padding."""
    mask: Tensor
    """False at padded positions."""


def score(head: nn.Module, states: Tensor) -> Outputs:
    """Compute the scores of a head in 32 bits; bfloat16 would make different scores equal.

    Args:
        head: Task head.
        states: States of the encoder.
    """
    with torch.autocast(states.device.type, enabled=False):
        outputs: Outputs = head(states.float())
    return outputs


class TaskNetwork(nn.Module):
    """An encoder, dropout and a task head.

    Args:
        encoder: Encoder, which is trained.
        head: Task head over its states.
        dropout: Probability of dropout between them.
    """

    def __init__(self, encoder: TextEncoder, head: nn.Module, dropout: float) -> None:
        super().__init__()
        self.encoder = encoder
        self.model: nn.Module = encoder.model
        self.dropout = nn.Dropout(dropout)
        self.head = head
        self.to(encoder.device)

    def collate(self, items: Sequence[Item]) -> ItemBatch:
        """Pad sequences to a batch on the device of the network."""
        device = self.encoder.device
        inputs = pad([item.tokens for item in items], int(self.encoder.tokenizer.pad_token_id or 0))
        segments = [item.segments for item in items if isinstance(item, SegmentedItem)]
        if any(segments):
            inputs["token_type_ids"] = pad(segments, 0)["input_ids"]
        positions = pad([item.positions for item in items], 0)
        return ItemBatch(
            {
                name: value.to(device)
                for name, value in self.encoder.add_entity_inputs(inputs).items()
            },
            positions["input_ids"].to(device),
            positions["attention_mask"].bool().to(device),
        )

    def forward(self, batch: ItemBatch) -> Outputs:
        """Encode a batch; the head gets states (sequences, positions, width) in 32 bits."""
        states = self.model(**batch.inputs).last_hidden_state  # (sequences, tokens, width)
        rows = torch.arange(len(states), device=states.device)[:, None]
        return score(self.head, self.dropout(states[rows, batch.positions]))

    @contextmanager
    def inference(self, precision: str) -> Iterator[None]:
        """Switch dropout and gradients off."""
        training = self.training
        self.eval()
        try:
            with torch.inference_mode(), autocast_in(precision, self.encoder.device):
                yield
        finally:
            self.train(training)

    def predict(self, items: Sequence[Item], precision: str) -> Iterator[tuple[int, Outputs]]:
        """Yield the row and the head's outputs of each sequence, in batches of similar length.

        Outputs are those of one sequence, still padded, on the CPU.

        Args:
            items: Sequences of token ids.
            precision: One of ``models.precision.PRECISIONS``.
        """
        lengths = np.fromiter((len(item.tokens) for item in items), np.int64, len(items))
        with self.inference(precision):
            for rows in token_batches(lengths, _PREDICTION_BATCH_TOKENS):
                outputs = [
                    out.float().cpu() for out in self(self.collate([items[r] for r in rows]))
                ]
                if any((out.isnan() | (out == torch.inf)).any() for out in outputs):
                    raise StoreError(
                        f"{self.encoder.name}: gives NaN or infinity; its weights are damaged"
                    )
                for index, row in enumerate(rows.tolist()):
                    yield row, tuple(out[index] for out in outputs)


_INIT_STD = 0.02


class LinearHead(nn.Module):
    """A linear layer over the concatenated states of some tokens.

    Args:
        width: Width of the states.
        n_scores: Number of scores.
        n_positions: Number of tokens.
    """

    def __init__(self, width: int, n_scores: int, n_positions: int = 1) -> None:
        super().__init__()
        self.linear = nn.Linear(n_positions * width, n_scores)
        nn.init.normal_(self.linear.weight, std=_INIT_STD)
        nn.init.zeros_(self.linear.bias)

    def forward(self, states: Tensor) -> Outputs:
        """Compute scores: (sequences, positions, width) to (sequences, scores)."""
        return (self.linear(states.flatten(1)),)


class Sized(Protocol):
    """A training item with a length: one sequence, or several of which it returns the longest."""

    @property
    def tokens(self) -> Sequence[int]:
        """Token ids, special tokens included."""


Example_contra = TypeVar("Example_contra", contravariant=True)
Prediction = TypeVar("Prediction")


class Report(Protocol):
    """The evaluation of predictions against labelled examples."""

    def to_json(self) -> dict[str, Any]:
        """Return all metrics as plain values, those of ``TaskKind.metrics`` by name among them.

        The chance level, where it is known, is under ``chance``.
        """


class TaskModel(Protocol[Example_contra, Prediction]):
    """A model of one task, made of an encoder, a configuration and labels.

    Examples are what the files of the task hold (documents, pairs, questions). The class also has
    ``from_examples(encoder, config, examples)``, which makes an untrained model for their labels.
    """

    kind: str
    """The name in ``TASKS``, set by the run that creates the model and by ``open_task``."""
    network: TaskNetwork
    labels: tuple[str, ...]
    config: Any

    def training_items(
        self, examples: Sequence[Example_contra]
    ) -> tuple[Sequence[Sized], Counter[str]]:
        """Return the training sequences, and counts of what cannot be learned by reason."""

    def loss(self, network: nn.Module, items: Sequence[Any]) -> tuple[Tensor, dict[str, float]]:
        """Compute the loss of a batch.

        Args:
            network: The network in training, as the loop wraps it.
            items: Training items of the batch.
        """

    def predict(
        self, examples: Sequence[Example_contra], precision: str = "auto"
    ) -> list[Prediction]:
        """Return one prediction for each example.

        Args:
            examples: Examples; labels are not used.
            precision: One of ``models.precision.PRECISIONS``.
        """

    def report(
        self, examples: Sequence[Example_contra], predictions: Sequence[Prediction]
    ) -> Report:
        """Evaluate predictions against the labels of the examples.

        Args:
            examples: Examples with gold labels.
            predictions: Prediction for each.
        """

    def write(
        self, examples: Sequence[Example_contra], predictions: Sequence[Prediction], path: Path
    ) -> None:
        """Write predictions as JSON Lines.

        Args:
            examples: Examples of the file.
            predictions: Prediction for each.
            path: File to write.
        """

    def settings(self) -> Mapping[str, Any]:
        """Return further entries for the manifest of a saved model."""


@runtime_checkable
class ResamplingModel(Protocol):
    """A model that trains on a new sample in each epoch."""

    def sample_epoch(self, items: Sequence[Any], rng: np.random.Generator) -> Sequence[Sized]:
        """Return the items of an epoch, as many as were given, each with a sample of its parts.

        Args:
            items: All training items.
            rng: Random numbers of the epoch.
        """


@runtime_checkable
class CountingModel(Protocol):
    """A model whose loss is a mean over parts of items, such as words; else it is over items."""

    def count(self, items: Sequence[Any]) -> int:
        """Count the parts that the loss of a batch is a mean over."""


AnyItem = TypeVar("AnyItem", bound=Sized)
SampleEpoch = Callable[[Sequence[Any], np.random.Generator], Sequence[Any]]

N_BATCHES_SORTED = 32
"""This many batches are sampled at random, sorted by length, and split again."""


class LengthBatches(Generic[AnyItem]):
    """Shuffled batches of items of similar length, the same for the same seed and epoch.

    Of ``world * size`` items that are together every process takes ``size``, so that they are the
    same for any number of processes; a remainder that does not divide is left out.

    Args:
        items: Items with tokens.
        size: Size of a batch of one process.
        seed: Seed of the order.
        rank: Number of this process.
        world: Number of processes.
        sample_epoch: Returns the items of an epoch, as many as there are; default: all, always.
    """

    def __init__(
        self,
        items: Sequence[AnyItem],
        size: int,
        *,
        seed: int,
        rank: int = 0,
        world: int = 1,
        sample_epoch: SampleEpoch | None = None,
    ) -> None:
        self._items, self._seed = items, seed
        self._rank, self._world, self._sample_epoch = rank, world, sample_epoch
        self._together = size * world
        if len(items) < world:
            raise ConfigError(f"{len(items)} examples are too few for {world} processes")

    def __len__(self) -> int:
        whole, rest = divmod(len(self._items), self._together)
        return whole + (rest >= self._world)

    def batches(self, epoch: int, position: int = 0) -> Iterator[list[AnyItem]]:
        """Yield the batches of an epoch, starting at a position.

        Args:
            epoch: Number of the epoch.
            position: First batch.
        """
        return self.every(1, epoch, position)

    def every(self, step: int, epoch: int, position: int) -> Iterator[list[AnyItem]]:
        """Yield every ``step``-th batch of an epoch, starting at a position.

        Args:
            step: Distance between batches.
            epoch: Number of the epoch.
            position: First batch.
        """
        rng = np.random.default_rng([self._seed, epoch])
        items = self._of_epoch(epoch)
        lengths = np.fromiter((len(item.tokens) for item in items), np.int64, len(items))
        order = rng.permutation(len(items))
        window = self._together * N_BATCHES_SORTED
        batches = []
        for start in range(0, len(order), window):
            rows = order[start : start + window]
            rows = rows[np.argsort(-lengths[rows], kind="stable")]
            batches += [rows[k : k + self._together] for k in range(0, len(rows), self._together)]
        for index in rng.permutation(len(self))[position::step]:
            n_shared = len(batches[index]) // self._world * self._world
            yield [items[row] for row in batches[index][self._rank : n_shared : self._world]]

    def _of_epoch(self, epoch: int) -> Sequence[AnyItem]:
        """Return the items of an epoch; sampling them does not change the order of batches."""
        if self._sample_epoch is None:
            return self._items
        return self._sample_epoch(self._items, np.random.default_rng([self._seed, epoch, 1]))
