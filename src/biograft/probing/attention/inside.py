"""How the tokens of a long entity attend to each other: EMBERT's second picture."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from biograft.probing.attention.config import INSIDE_LAYER, AttentionConfig
from biograft.probing.attention.maps import UnfitError, Values
from biograft.probing.attention.reading import AttentionReader


@dataclass(frozen=True, slots=True)
class InsideEntity:
    """Attention among the tokens of one entity."""

    encoder: str
    layer: int
    tokens: tuple[str, ...]
    weights: Values  # (tokens, tokens): how much a row's token attends to a column's

    @property
    def to_others(self) -> float:
        """How much a token attends to the entity's other tokens, in the mean."""
        return float((self.weights.sum() - np.trace(self.weights)) / len(self.weights))

    def to_json(self) -> dict[str, Any]:
        """Give the numbers as plain values."""
        return {
            "encoder": self.encoder,
            "layer": self.layer,
            "tokens": list(self.tokens),
            "weights": [[round(float(value), 6) for value in row] for row in self.weights],
            "to_others": round(self.to_others, 6),
        }


def look_inside(
    reader: AttentionReader, text: str, span: tuple[int, int], config: AttentionConfig
) -> InsideEntity:
    """Read a text, and see how the tokens of one of its entities attend to each other."""
    reader.check_head(config.head)
    layer = reader.layer(config.layer, INSIDE_LAYER)
    found = reader.read(text, layer, config.head)
    first, last = found.tokens_of(*span)
    if first == last:
        raise UnfitError(
            "the entity is a single token", f"nothing goes on inside {found.shown(first)!r}"
        )
    tokens = tuple(found.shown(token) for token in range(first, last + 1))
    return InsideEntity(reader.name, layer, tokens, found.inside(first, last))
