"""What may be chosen of a BART that is made from scratch."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from biograft.nn.sizes import Sizes

if TYPE_CHECKING:
    from biograft.nn.seq2seq.namer import Namer


@dataclass(frozen=True, slots=True, kw_only=True)
class NewSeq2Seq(Sizes):
    """How large a new BART is: ``layers`` of each half, ``max_length`` to read and to write."""

    reads: ClassVar[tuple[str, ...]] = ("name_templates",)
    """The kinds of streams that it can learn from."""

    def create(self, texts: Iterable[str], seed: int) -> Namer:
        """Make the model, its tokenizer from some texts."""
        from biograft.nn.seq2seq.creating import create_namer

        return create_namer(self, texts, seed)
