"""Interface of task models (``TaskModel``), their networks, and length-sorted training batches.

The network of a task that gives labels to tokens or texts is the model that transformers has for
it (``LabelNetwork``). Any other is an encoder and a head on the states of selected tokens
(``TaskNetwork``). To add a task, write one module with a model of this protocol and a
``TaskKind``, and register it in ``tasks/task.py``.
"""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar, runtime_checkable

import numpy as np
import torch
from torch import Tensor, nn
from transformers import AutoModelForSequenceClassification, AutoModelForTokenClassification

from biograft.errors import ConfigError, StoreError
from biograft.models import TextEncoder
from biograft.models.adapters import merge_adapters
from biograft.models.batches import pad, token_batches
from biograft.models.precision import autocast_in
from biograft.models.pretrained import build_empty, quiet_transformers, save_tokenizer
from biograft.models.settings import write_settings
from biograft.text.tasks.rows import is_one

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
        return score(self.head, self.dropout(_at(states, batch.positions)))

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


def _at(states: Tensor, positions: Tensor) -> Tensor:
    """Select the states of some tokens: (sequences, positions, width)."""
    return states[torch.arange(len(states), device=states.device)[:, None], positions]


class NoHead(nn.Module):
    """The head of a network whose scores are its outputs."""

    def forward(self, scores: Tensor) -> Outputs:
        """Return the scores."""
        return (scores,)


class LabelNetwork(TaskNetwork):
    """The model that transformers has for labels of tokens, or of a text, around an encoder.

    Its last layers, which are new, are those of transformers for the architecture of the encoder,
    such as ``BertForTokenClassification``. ``save_pretrained`` writes a folder that transformers
    opens.

    Args:
        encoder: Encoder, which is trained.
        labels: Names of the labels, in the order of the scores.
        dropout: Probability of dropout before the last layers.
        of_tokens: Labels are of tokens; otherwise of a text, or a pair of texts.
        head: What follows the scores, such as a CRF.
        settings: Further values of the configuration of transformers.
    """

    def __init__(
        self,
        encoder: TextEncoder,
        labels: Sequence[str],
        dropout: float,
        *,
        of_tokens: bool = False,
        head: nn.Module | None = None,
        **settings: Any,
    ) -> None:
        super().__init__(encoder, head or NoHead(), dropout)
        kind = AutoModelForTokenClassification if of_tokens else AutoModelForSequenceClassification
        config = copy.deepcopy(encoder.model.config)
        config.update({"id2label": dict(enumerate(labels)), **settings})
        config.label2id = {label: row for row, label in enumerate(labels)}
        config.pad_token_id = encoder.tokenizer.pad_token_id
        try:
            model = build_empty(kind, config)
        except ValueError as error:
            raise ConfigError(
                f"{encoder.name}: transformers has no {kind.__name__} for {config.model_type!r}"
            ) from error
        self.model: Any = _graft(model, encoder.model, len(labels), dropout).to(encoder.device)

    def forward(self, batch: ItemBatch) -> Outputs:
        """Compute the outputs of a batch; scores are (sequences, positions or none, labels)."""
        scores = self.model(**batch.inputs).logits
        return score(self.head, _at(scores, batch.positions) if scores.ndim == 3 else scores)

    def label_weights(self) -> dict[str, Tensor]:
        """Return the weights of the last layers, by their names in the model of transformers."""
        body = f"{self.model.base_model_prefix}."
        weights = self.model.state_dict().items()
        return {name: weight for name, weight in weights if not name.startswith(body)}

    def save_pretrained(self, folder: Path) -> None:
        """Write the model, its tokenizer and the settings of the encoder."""
        tokenizer = self.encoder.tokenizer
        if getattr(self.model.config, "type_vocab_size", 0) > 1:  # transformers may leave them out
            names = dict.fromkeys([*tokenizer.model_input_names, "token_type_ids"])
            tokenizer.model_input_names = tokenizer.init_kwargs["model_input_names"] = [*names]
        with quiet_transformers():
            merge_adapters(self.model).save_pretrained(folder)
        save_tokenizer(tokenizer, folder)
        write_settings(folder, self.encoder.settings)


def _graft(model: Any, body: Any, n_labels: int, dropout: float) -> Any:
    """Put an encoder into a model without weights, and initialise the layers after it."""
    name = model.base_model_prefix
    empty = getattr(model, name)
    if type(empty) is not type(body):
        raise ConfigError(
            f"encoder: expected a {type(empty).__name__}, as {type(model).__name__} has it, found "
            f"a {type(body).__name__}"
        )
    if getattr(empty, "pooler", body) is None:
        body.pooler = None
    elif pooler := getattr(body, "pooler", None):
        pooler.requires_grad_(True)  # one of the last layers, also beside adapters
    setattr(model, name, nn.Identity())
    layers = {own: each for own, each in model.named_modules() if isinstance(each, nn.Linear)}
    last, layer = layers.popitem()
    has_bias = layer.bias is not None
    model.set_submodule(last, _ScoreLayer(layer.in_features, n_labels, has_bias, device="meta"))
    for module in model.modules():
        if isinstance(module, nn.Dropout):
            module.p = dropout
    for module in model.children():
        module.to_empty(device="cpu").apply(model._init_weights)
    setattr(model, name, body)
    return model


class _ScoreLayer(nn.Linear):
    """A linear layer that computes in 32 bits; bfloat16 would make different scores equal."""

    def forward(self, states: Tensor) -> Tensor:
        """Compute scores: (..., width) to (..., labels)."""
        with torch.autocast(states.device.type, enabled=False):
            return super().forward(states.float())


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


class Predicting(Generic[Prediction]):
    """A task model that is called with one example or several, as transformers' pipelines are."""

    record = ""
    """The kind of its examples: ``document``, or one of ``biograft.text.tasks``."""

    def __call__(self, examples: Any, precision: str = "auto") -> Any:
        """Return the prediction for one example, such as a text, or a list of them for several.

        Args:
            examples: A text, a pair of texts, a record or a dictionary; or several, in a list, a
                frame of pandas or polars, or a ``datasets.Dataset``.
            precision: One of ``models.precision.PRECISIONS``.
        """
        predictions = self.predict([examples] if is_one(examples) else examples, precision)
        return predictions[0] if is_one(examples) else predictions

    def predict(self, examples: Any, precision: str = "auto") -> list[Prediction]:
        """Return one prediction for each example."""
        raise NotImplementedError


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
