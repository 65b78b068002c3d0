"""The network of a task model: an encoder and a head on the states of selected tokens."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
import torch
from torch import Tensor, nn

from biograft.errors import StoreError
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
    """Compute the scores of a head in 32 bits; bfloat16 would make different scores equal."""
    with torch.autocast(states.device.type, enabled=False):
        outputs: Outputs = head(states.float())
    return outputs


class TaskNetwork(nn.Module):
    """An encoder, dropout and a task head."""

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
    """A linear layer over the concatenated states of ``n_positions`` tokens."""

    def __init__(self, width: int, n_scores: int, n_positions: int = 1) -> None:
        super().__init__()
        self.linear = nn.Linear(n_positions * width, n_scores)
        nn.init.normal_(self.linear.weight, std=_INIT_STD)
        nn.init.zeros_(self.linear.bias)

    def forward(self, states: Tensor) -> Outputs:
        """Compute scores: (sequences, positions, width) to (sequences, scores)."""
        return (self.linear(states.flatten(1)),)
