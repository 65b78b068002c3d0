"""The decoder, one token further at a time, with what it has read kept from step to step."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from transformers import DynamicCache, EncoderDecoderCache
from transformers.modeling_outputs import BaseModelOutput

Rows = npt.NDArray[np.int64]


class Stepper:
    """Runs a decoder over hypotheses that come and go.

    What a mention's hypotheses see of its source is the same, so it is kept once a mention and
    laid out anew only when other hypotheses than before are alive.
    """

    def __init__(self, model: Any, sources: Tensor, mask: Tensor) -> None:
        self._model, self._device = model, next(model.parameters()).device
        self._mask = mask.to(self._device)
        encoder = model.get_encoder()
        states = encoder(input_ids=sources.to(self._device), attention_mask=self._mask)
        self._states: Tensor = states.last_hidden_state
        self._own: Any = DynamicCache(config=model.config.get_text_config(decoder=True))
        self._seen: list[tuple[Tensor, Tensor]] = []  # by layer, (mentions, heads, length, width)
        self._layout: Rows = np.arange(len(sources))
        self._cache: Any = EncoderDecoderCache(self._own, DynamicCache())
        self._laid: tuple[Tensor, Tensor] = (self._states, self._mask)

    def read(self, tokens: Tensor) -> Tensor:
        """Read what every mention begins with, (mentions, length); give the last scores."""
        logits = self._run(tokens)
        layers = self._cache.cross_attention_cache.layers
        self._seen = [(layer.keys, layer.values) for layer in layers]
        return logits

    def step(self, tokens: Rows, parents: Rows, mentions: Rows) -> Tensor:
        """Go on with one token for each hypothesis, whose row before was ``parents``.

        Gives the scores of the vocabulary, (hypotheses, tokens).
        """
        chosen = torch.from_numpy(parents).to(self._device)
        for layer in self._own.layers:
            layer.keys = layer.keys.index_select(0, chosen)
            layer.values = layer.values.index_select(0, chosen)
        if not np.array_equal(mentions, self._layout):
            self._lay_out(mentions)
        return self._run(torch.from_numpy(tokens)[:, None])

    def _lay_out(self, mentions: Rows) -> None:
        chosen = torch.from_numpy(mentions).to(self._device)
        layers = self._cache.cross_attention_cache.layers
        for layer, (keys, values) in zip(layers, self._seen, strict=True):
            layer.keys, layer.values = keys.index_select(0, chosen), values.index_select(0, chosen)
        self._laid = (self._states.index_select(0, chosen), self._mask.index_select(0, chosen))
        self._layout = mentions

    def _run(self, tokens: Tensor) -> Tensor:
        states, mask = self._laid
        given = self._model(
            decoder_input_ids=tokens.to(self._device),
            encoder_outputs=BaseModelOutput(last_hidden_state=states),
            attention_mask=mask,
            past_key_values=self._cache,
            use_cache=True,
        )
        scores: Tensor = given.logits[:, -1]
        return scores
