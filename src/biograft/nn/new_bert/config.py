"""What may be chosen of a BERT that is made from scratch."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from biograft.nn.sizes import Sizes

if TYPE_CHECKING:
    from biograft.nn.loading import MaskedLM


@dataclass(frozen=True, slots=True, kw_only=True)
class NewBert(Sizes):
    """How large a new BERT is.

    Every Chinese character is a token, so ``n_tokens`` bounds how many of them are known; other
    scripts have pieces of words. ``lower`` takes case and accents off. ``informed``: vectors of
    tokens begin by what stands beside them in the texts, those of places as waves; else at random.
    """

    reads: ClassVar[tuple[str, ...]] = ("annotated_text",)
    """The kinds of streams that it can learn from."""

    layers: int = 4
    max_length: int = 512
    lower: bool = True
    informed: bool = False

    def create(self, texts: Iterable[str], seed: int) -> MaskedLM:
        """Make the model, its tokenizer from some texts."""
        from biograft.nn.new_bert.creating import create_bert

        return create_bert(self, texts, seed)
