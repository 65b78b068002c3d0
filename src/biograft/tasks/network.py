"""The network of a task: an encoder, and a head on the states of some of its tokens."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
import torch
from torch import Tensor, nn

from biograft.errors import StoreError
from biograft.nn import TextEncoder
from biograft.nn.batches import pad, token_batches
from biograft.nn.precision import computing_in

Outputs = tuple[Tensor, ...]
"""What a head computes: scores, and whatever else its loss needs."""
_TOKENS_AT_ONCE = 8192
"""Tokens of a batch that is only read, the padding counted."""


class Item(Protocol):
    """One sequence that goes through the encoder."""

    @property
    def tokens(self) -> Sequence[int]:
        """Numbers in the vocabulary, special tokens included."""

    @property
    def places(self) -> Sequence[int]:
        """The tokens whose states the head reads."""


@runtime_checkable
class SegmentedItem(Item, Protocol):
    """A sequence of which it is known to which of two texts each token belongs."""

    @property
    def segments(self) -> Sequence[int]:
        """The text of each token (``token_type_ids``); nothing where the encoder has none."""


@dataclass(frozen=True, slots=True)
class ItemBatch:
    """Sequences and places, padded."""

    inputs: Mapping[str, Tensor]
    places: Tensor
    """(sequences, places), 0 at padding."""
    held: Tensor
    """Which of the places are none of the padding."""


def score(head: nn.Module, states: Tensor) -> Outputs:
    """Let a head score in full precision: in bfloat16 scores that differ often come out equal."""
    with torch.autocast(states.device.type, enabled=False):
        outputs: Outputs = head(states.float())
    return outputs


class TaskNetwork(nn.Module):
    """An encoder, dropout, and a head of any kind."""

    def __init__(self, encoder: TextEncoder, head: nn.Module, dropout: float) -> None:
        super().__init__()
        self.encoder = encoder
        self.model: nn.Module = encoder.model
        self.dropout = nn.Dropout(dropout)
        self.head = head
        self.to(encoder.device)

    def collate(self, items: Sequence[Item]) -> ItemBatch:
        """Put sequences together, each filled up to the longest, where the network lives."""
        device = self.encoder.device
        filler = int(self.encoder.tokenizer.pad_token_id or 0)
        inputs = pad([item.tokens for item in items], filler)
        segments = [item.segments for item in items if isinstance(item, SegmentedItem)]
        if any(segments):
            inputs["token_type_ids"] = pad(segments, 0)["input_ids"]
        places = pad([item.places for item in items], 0)
        return ItemBatch(
            {name: value.to(device) for name, value in self.encoder.tell(inputs).items()},
            places["input_ids"].to(device),
            places["attention_mask"].bool().to(device),
        )

    def forward(self, batch: ItemBatch) -> Outputs:
        """Read a batch; the head sees (sequences, places, width) in full precision."""
        states = self.model(**batch.inputs).last_hidden_state  # (sequences, tokens, width)
        rows = torch.arange(len(states), device=states.device)[:, None]
        return score(self.head, self.dropout(states[rows, batch.places]))

    @contextmanager
    def reading(self, precision: str) -> Iterator[None]:
        """Neither drop out nor keep gradients."""
        training = self.training
        self.eval()
        try:
            with torch.inference_mode(), computing_in(precision, self.encoder.device):
                yield
        finally:
            self.train(training)

    def read(self, items: Sequence[Item], precision: str) -> Iterator[tuple[int, Outputs]]:
        """Give for each sequence its number and what the head says, those of like length together.

        Outputs are cut to one sequence each, the padding not taken off, and lie on the CPU.
        """
        lengths = np.fromiter((len(item.tokens) for item in items), np.int64, len(items))
        with self.reading(precision):
            for rows in token_batches(lengths, _TOKENS_AT_ONCE):
                outputs = [
                    out.float().cpu() for out in self(self.collate([items[r] for r in rows]))
                ]
                if any((out.isnan() | (out == torch.inf)).any() for out in outputs):
                    raise StoreError(
                        f"{self.encoder.name}: gives NaN or infinity; its weights are damaged"
                    )
                for place, row in enumerate(rows.tolist()):
                    yield row, tuple(out[place] for out in outputs)


_SPREAD = 0.02


class LinearHead(nn.Module):
    """Scores from the states of so many places."""

    def __init__(self, width: int, n_scores: int, n_places: int = 1) -> None:
        super().__init__()
        self.linear = nn.Linear(n_places * width, n_scores)
        nn.init.normal_(self.linear.weight, std=_SPREAD)
        nn.init.zeros_(self.linear.bias)

    def forward(self, states: Tensor) -> Outputs:
        """Score sequences: (sequences, places, width) to (sequences, scores)."""
        return (self.linear(states.flatten(1)),)
