"""What one layer attends to in one text, and what of it concerns an entity."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from biograft.corpus.alignment import NONE, Ints, align_spans
from biograft.errors import ConfigError, shorten

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
