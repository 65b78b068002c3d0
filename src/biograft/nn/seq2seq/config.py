"""What may be chosen of a BART that is made from scratch."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from biograft.errors import ConfigError

if TYPE_CHECKING:
    from biograft.nn.seq2seq.namer import Namer

FEWEST_TOKENS = 300
"""The special tokens, all bytes, and some room."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NewSeq2Seq:
    """How large a new BART is: ``layers`` of each half, ``n_tokens`` at most in its vocabulary.

    ``max_length`` is how many tokens it reads and writes at most; ``dropout`` is also that of
    attention.
    """

    reads: ClassVar[tuple[str, ...]] = ("name_templates",)
    """The kinds of streams that it can learn from."""

    width: int = 256
    layers: int = 3
    heads: int = 4
    feed_forward: int = 1024
    n_tokens: int = 8000
    max_length: int = 256
    dropout: float = 0.1

    def __post_init__(self) -> None:
        least = {"n_tokens": FEWEST_TOKENS, "max_length": 8}
        for name in ("width", "layers", "heads", "feed_forward", "n_tokens", "max_length"):
            if getattr(self, name) < least.get(name, 1):
                raise ConfigError(
                    f"{name}: expected at least {least.get(name, 1)}, found {getattr(self, name)}"
                )
        if self.width % self.heads:
            raise ConfigError(
                f"heads: expected a divisor of the width {self.width}, found {self.heads}"
            )
        if not 0 <= self.dropout < 1:
            raise ConfigError(f"dropout: expected a share from 0 to below 1, found {self.dropout}")

    def create(self, texts: Iterable[str], seed: int) -> Namer:
        """Make the model, its tokenizer from some texts."""
        from biograft.nn.seq2seq.creating import create_namer

        return create_namer(self, texts, seed)
