"""How large a model is that is made from scratch."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar

from biograft.errors import ConfigError
from biograft.registry import load_object

FEWEST_TOKENS = 300
"""The special tokens, all bytes, and some room."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """Sizes of a new model; ``n_tokens`` is what its vocabulary has at most.

    ``max_length`` is how many tokens it takes at most; ``dropout`` is also that of attention.
    """

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

    @property
    def spread(self) -> float:
        """The deviation of new weights.

        The usual 0.02 suits a width of 1,024; drawn so, a narrow model long attends to all alike.
        """
        return float(self.width**-0.5)


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

    def create(self, texts: Iterable[str], seed: int) -> Any:
        """Make the model, its tokenizer from some texts."""
        return load_object("biograft.nn.scratch:create_bert")(self, texts, seed)


@dataclass(frozen=True, slots=True, kw_only=True)
class NewSeq2Seq(Sizes):
    """How large a new BART is: ``layers`` of each half, ``max_length`` to read and to write."""

    reads: ClassVar[tuple[str, ...]] = ("name_templates",)
    """The kinds of streams that it can learn from."""

    def create(self, texts: Iterable[str], seed: int) -> Any:
        """Make the model, its tokenizer from some texts."""
        return load_object("biograft.nn.scratch:create_namer")(self, texts, seed)
