"""Attention maps of an encoder: one layer, one head or all heads, between the tokens of a text."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from biograft.arrays import Ints
from biograft.errors import ConfigError, StoreError, shorten
from biograft.models import TextEncoder
from biograft.models.knowledge import KnowledgeBertModel
from biograft.models.pretrained import max_input_tokens
from biograft.models.tasks.tokens import TaskTokenizer
from biograft.text.alignment import NONE, align_spans

CURVES_LAYER, INSIDE_LAYER = 11, 10
"""EMBERT's layers for attention around an entity, and inside it."""


def choose_layer(requested: int, default: int, n_layers: int, name: str) -> int:
    """Return the requested layer; for 0 the default, or the last but one if it does not exist."""
    if requested > n_layers:
        raise ConfigError(
            f"layer: expected 1 to {n_layers}, the layers of {name}, found {requested}"
        )
    return requested or (default if default <= n_layers else max(n_layers - 1, 1))


Values = npt.NDArray[np.float64]


class UnfitError(ConfigError):
    """A sentence that cannot be used; in a file of many it is counted and left out."""

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(f"{reason}: {detail}")
        self.reason = reason


@dataclass(frozen=True, slots=True)
class AttentionMap:
    """Attention between the tokens of a text, including special tokens such as ``[CLS]``."""

    text: str
    ids: Ints  # (tokens,)
    offsets: Ints  # (tokens, 2); equal start and end for special tokens
    weights: Values  # (tokens, tokens): how much a row's token attends to a column's

    def tokens_of(self, start: int, end: int) -> tuple[int, int]:
        """Return the first and the last token of a span, both inclusive."""
        [[first, last]] = align_spans(self.offsets, [(start, end)]).tolist()
        if first == NONE:
            raise UnfitError(
                "no token stands for the entity", f"found {shorten(self.text[start:end])!r}"
            )
        return first, last

    def context(self, first: int, last: int) -> Ints:
        """Return the tokens of the text outside a span of tokens."""
        text_tokens = np.flatnonzero(self.offsets[:, 0] < self.offsets[:, 1])
        return text_tokens[(text_tokens < first) | (text_tokens > last)]

    def around(self, first: int, last: int, direction: str) -> Values:
        """Sum, for each context token, the attention to (or from) all tokens of a span.

        ``to``: sum over e of weights[t, e]; ``from``: sum over e of weights[e, t].
        """
        weights = self.weights if direction == "to" else self.weights.T
        summed: Values = weights[:, first : last + 1].sum(axis=1)
        return summed[self.context(first, last)]

    def inside(self, first: int, last: int) -> Values:
        """Return the attention among the tokens of a span."""
        return self.weights[first : last + 1, first : last + 1]

    def token_text(self, token: int) -> str:
        """Return the text of a token."""
        start, end = self.offsets[token]
        return " ".join(self.text[start:end].split()) or "␣"


class AttentionReader:
    """Computes attention maps of an encoder, or of the encoder half of an encoder-decoder."""

    def __init__(self, encoder: TextEncoder) -> None:
        # only the eager implementation returns the weights
        encoder.model.set_attn_implementation("eager")
        model = encoder.model.eval()
        self.name = encoder.name
        self._model: Any = model.get_encoder() if model.config.is_encoder_decoder else model
        self._tokenizer, self._device = TaskTokenizer(encoder), encoder.device
        self._max_length = max_input_tokens(model, encoder.tokenizer)
        self.n_layers = int(model.config.num_hidden_layers)
        self.n_heads = int(model.config.num_attention_heads)

    @classmethod
    def from_pretrained(
        cls, name_or_folder: str | Path, *, device: str | None = None
    ) -> AttentionReader:
        """Load an encoder from a folder or, by name, from the hub."""
        # the states are not pooled here
        return cls(TextEncoder.from_pretrained(name_or_folder, pooling="mean", device=device))

    def layer(self, requested: int, default: int) -> int:
        """Return the requested layer; for 0 the default."""
        return choose_layer(requested, default, self.n_layers, self.name)

    def check_head(self, head: int) -> None:
        """Refuse a head that does not exist."""
        if head > self.n_heads:
            raise ConfigError(
                f"head: expected 1 to {self.n_heads}, the heads of {self.name}, found {head}"
            )

    def read(self, text: str, layer: int, head: int = 0) -> AttentionMap:
        """Compute the map of a text for a layer's head, or for all heads, summed."""
        [tokens] = self._tokenizer.read([text])
        ids = self._tokenizer.frame(tokens.ids)
        if len(ids) > self._max_length:
            raise UnfitError(
                "the text is too long for the encoder",
                f"{len(ids):,} tokens, and {self.name} reads {self._max_length:,} "
                f"({shorten(text)!r})",
            )
        weights = self._attend(torch.tensor([ids], device=self._device), layer)
        head_weights = weights[head - 1] if head else weights.double().sum(dim=0)
        offsets = np.zeros((len(ids), 2), np.int64)
        inner = slice(self._tokenizer.n_before, self._tokenizer.n_before + len(tokens.ids))
        offsets[inner] = tokens.offsets
        return AttentionMap(
            text, np.array(ids, np.int64), offsets, head_weights.double().cpu().numpy()
        )

    def _attend(self, ids: torch.Tensor, layer: int) -> torch.Tensor:
        """Return the weights of a layer's heads: (heads, tokens, tokens)."""
        inputs = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
        with torch.inference_mode():
            if isinstance(self._model, KnowledgeBertModel):
                attention = self._capture(inputs, layer)
            else:
                maps = self._model(**inputs, output_attentions=True).attentions
                attention = maps[layer - 1] if maps and len(maps) == self.n_layers else None
        if attention is None or attention.shape != (1, self.n_heads, ids.shape[1], ids.shape[1]):
            raise StoreError(
                f"{self.name}: does not give a map of attention for each layer and head; "
                "expected an encoder such as BERT"
            )
        return attention[0]

    def _capture(self, inputs: dict[str, torch.Tensor], layer: int) -> torch.Tensor | None:
        """Capture the weights with a hook: models with a knowledge layer do not return them."""
        captured: list[torch.Tensor] = []
        attention = self._model.bert.encoder.layer[layer - 1].attention.self
        handle = attention.register_forward_hook(lambda _, __, output: captured.append(output[1]))
        try:
            self._model(**inputs)
        finally:
            handle.remove()
        return captured[0] if captured else None
