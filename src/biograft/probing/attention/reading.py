"""Have an encoder read a text, and take down what one of its layers attends to."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch

from biograft.errors import ConfigError, StoreError, shorten
from biograft.nn import TextEncoder
from biograft.nn.knowledge import KnowledgeBertModel
from biograft.nn.loading import most_tokens
from biograft.probing.attention.config import choose_layer
from biograft.probing.attention.maps import AttentionMap, UnfitError
from biograft.tasks.tokens import TaskTokenizer


class AttentionReader:
    """An encoder whose attention can be looked at; of an encoder-decoder, the half that reads."""

    def __init__(self, encoder: TextEncoder) -> None:
        # only this way of computing attention keeps the weights
        encoder.model.set_attn_implementation("eager")
        whole = encoder.model.eval()
        self.name = encoder.name
        self._model: Any = whole.get_encoder() if whole.config.is_encoder_decoder else whole
        self._tokenizer, self._device = TaskTokenizer(encoder), encoder.device
        self._most = most_tokens(whole, encoder.tokenizer)
        self.n_layers = int(whole.config.num_hidden_layers)
        self.n_heads = int(whole.config.num_attention_heads)

    @classmethod
    def from_pretrained(
        cls, name_or_folder: str | Path, *, device: str | None = None
    ) -> AttentionReader:
        """Load an encoder from a folder or, by name, from the hub of models."""
        return cls(TextEncoder.from_pretrained(name_or_folder, device=device))

    def layer(self, asked: int, usual: int) -> int:
        """Say which layer is looked at when this one is asked for, 0 being the usual one."""
        return choose_layer(asked, usual, self.n_layers, self.name)

    def check_head(self, head: int) -> None:
        """Refuse a head that there is none of."""
        if head > self.n_heads:
            raise ConfigError(
                f"head: expected 1 to {self.n_heads}, the heads of {self.name}, found {head}"
            )

    def read(self, text: str, layer: int, head: int = 0) -> AttentionMap:
        """Read a text; the map is that of a layer's head, or of all its heads, summed."""
        [tokens] = self._tokenizer.read([text])
        ids = self._tokenizer.frame(tokens.ids)
        if len(ids) > self._most:
            raise UnfitError(
                "the text is too long for the encoder",
                f"{len(ids):,} tokens, and {self.name} reads {self._most:,} ({shorten(text)!r})",
            )
        weights = self._attend(torch.tensor([ids], device=self._device), layer)
        chosen = weights[head - 1] if head else weights.double().sum(dim=0)
        offsets = np.zeros((len(ids), 2), np.int64)
        own = slice(self._tokenizer.n_before, self._tokenizer.n_before + len(tokens.ids))
        offsets[own] = tokens.offsets
        return AttentionMap(text, np.array(ids, np.int64), offsets, chosen.double().cpu().numpy())

    def _attend(self, ids: torch.Tensor, layer: int) -> torch.Tensor:
        """Give the weights of a layer's heads: (heads, tokens, tokens)."""
        inputs = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
        with torch.inference_mode():
            if isinstance(self._model, KnowledgeBertModel):
                found = self._overhear(inputs, layer)
            else:
                maps = self._model(**inputs, output_attentions=True).attentions
                found = maps[layer - 1] if maps and len(maps) == self.n_layers else None
        if found is None or found.shape != (1, self.n_heads, ids.shape[1], ids.shape[1]):
            raise StoreError(
                f"{self.name}: does not give a map of attention for each layer and head; "
                "expected an encoder such as BERT"
            )
        return found[0]

    def _overhear(self, inputs: dict[str, torch.Tensor], layer: int) -> torch.Tensor | None:
        """Take the weights where they are made: a model with a knowledge layer returns none."""
        heard: list[torch.Tensor] = []
        attention = self._model.bert.encoder.layer[layer - 1].attention.self
        handle = attention.register_forward_hook(lambda _, __, given: heard.append(given[1]))
        try:
            self._model(**inputs)
        finally:
            handle.remove()
        return heard[0] if heard else None
