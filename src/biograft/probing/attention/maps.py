"""Which attention is looked at: of which layer, of which head, in which direction."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from biograft.corpus.alignment import NONE, Ints, align_spans
from biograft.errors import ConfigError, StoreError, shorten
from biograft.nn import TextEncoder
from biograft.nn.knowledge import KnowledgeBertModel
from biograft.nn.pretrained import max_input_tokens
from biograft.tasks.tokens import TaskTokenizer

DIRECTIONS = ("to", "from")
CURVES_LAYER, INSIDE_LAYER = 11, 10
"""EMBERT's layers: for what stands around an entity, and for what goes on inside it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AttentionConfig:
    """Layers and heads are counted from 1, as in papers."""

    layer: int = 0
    """0: EMBERT's, or the last but one of an encoder that has fewer layers."""
    head: int = 0
    """0: all heads of the layer, summed."""
    direction: str = "to"
    """``to``: how much the context attends to the entity; ``from``: the other way round."""

    def __post_init__(self) -> None:
        for name in ("layer", "head"):
            if getattr(self, name) < 0:
                raise ConfigError(f"{name}: expected 0 or more, found {getattr(self, name)}")
        if self.direction not in DIRECTIONS:
            raise ConfigError(
                f"direction: expected {' or '.join(DIRECTIONS)}, found {self.direction!r}"
            )

    @property
    def around(self) -> str:
        """Say what the curves show."""
        return f"attention {self.direction} the entity, {self._heads}"

    @property
    def inside(self) -> str:
        """Say what the heat maps show."""
        return f"attention among the entity's tokens, {self._heads}"

    @property
    def _heads(self) -> str:
        return f"head {self.head}" if self.head else "all heads summed"


def choose_layer(asked: int, usual: int, n_layers: int, name: str) -> int:
    """Give the layer asked for; for 0 the usual one, or the last but one where it is not there."""
    if asked > n_layers:
        raise ConfigError(f"layer: expected 1 to {n_layers}, the layers of {name}, found {asked}")
    return asked or (usual if usual <= n_layers else max(n_layers - 1, 1))


Values = npt.NDArray[np.float64]


class UnfitError(ConfigError):
    """A sentence that cannot be looked at; in a file of many it is counted and left out."""

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(f"{reason}: {detail}")
        self.reason = reason


@dataclass(frozen=True, slots=True)
class AttentionMap:
    """Attention within one text; special tokens, such as ``[CLS]``, take part in it."""

    text: str
    ids: Ints  # (tokens,)
    offsets: Ints  # (tokens, 2); equal start and end for special tokens
    weights: Values  # (tokens, tokens): how much a row's token attends to a column's

    def tokens_of(self, start: int, end: int) -> tuple[int, int]:
        """Give the first and the last token of a stretch of the text, both inclusive."""
        [[first, last]] = align_spans(self.offsets, [(start, end)]).tolist()
        if first == NONE:
            raise UnfitError(
                "no token stands for the entity", f"found {shorten(self.text[start:end])!r}"
            )
        return first, last

    def context(self, first: int, last: int) -> Ints:
        """Give the tokens of the text outside a stretch, in the order of the text."""
        held = np.flatnonzero(self.offsets[:, 0] < self.offsets[:, 1])
        return held[(held < first) | (held > last)]

    def around(self, first: int, last: int, direction: str) -> Values:
        """Sum, for each token of the context, its attention to (or from) all tokens of a stretch.

        ``to``: sum over e of weights[t, e]; ``from``: sum over e of weights[e, t].
        """
        weights = self.weights if direction == "to" else self.weights.T
        summed: Values = weights[:, first : last + 1].sum(axis=1)
        return summed[self.context(first, last)]

    def inside(self, first: int, last: int) -> Values:
        """Give the attention among the tokens of a stretch: (its tokens, its tokens)."""
        return self.weights[first : last + 1, first : last + 1]

    def shown(self, token: int) -> str:
        """Give the characters of the text that a token stands for."""
        start, end = self.offsets[token]
        return " ".join(self.text[start:end].split()) or "␣"


class AttentionReader:
    """An encoder whose attention can be looked at; of an encoder-decoder, the half that reads."""

    def __init__(self, encoder: TextEncoder) -> None:
        # only this way of computing attention keeps the weights
        encoder.model.set_attn_implementation("eager")
        whole = encoder.model.eval()
        self.name = encoder.name
        self._model: Any = whole.get_encoder() if whole.config.is_encoder_decoder else whole
        self._tokenizer, self._device = TaskTokenizer(encoder), encoder.device
        self._most = max_input_tokens(whole, encoder.tokenizer)
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
