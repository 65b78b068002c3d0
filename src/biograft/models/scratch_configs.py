"""Configurations of new models, importable without torch: BERT, BART, a decoder on an encoder."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, TypeAlias

from biograft.config import AtLeast, Config, Range, check_fields
from biograft.errors import ConfigError
from biograft.registry import load_object

MIN_VOCABULARY_SIZE = 300
"""Room for the special tokens and all bytes."""


Positive: TypeAlias = Annotated[int, AtLeast(1)]


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSize(Config):
    """The size of a new model; ``n_tokens`` is the maximum size of its vocabulary.

    ``max_length`` is the maximum length of its input; ``dropout`` applies to attention, too.
    """

    width: Positive = 256
    layers: Positive = 3
    heads: Positive = 4
    feed_forward: Positive = 1024
    n_tokens: Annotated[int, AtLeast(MIN_VOCABULARY_SIZE)] = 8000
    max_length: Annotated[int, AtLeast(8)] = 256
    dropout: Annotated[float, Range(min=0, below=1)] = 0.1

    def __post_init__(self) -> None:
        check_fields(self)
        if self.width % self.heads:
            raise ConfigError(
                f"heads: expected a divisor of the width {self.width}, found {self.heads}"
            )

    @property
    def initial_std(self) -> float:
        """The standard deviation of initial weights.

        The usual 0.02 suits a width of 1,024; with it, the attention of a narrow model stays
        uniform for long.
        """
        return float(self.width**-0.5)


@dataclass(frozen=True, slots=True, kw_only=True)
class NewBert(ModelSize):
    """A new BERT.

    Every Chinese character is a token, so that ``n_tokens`` limits the number of known ones; other
    scripts have subwords. ``lower`` removes case and accents. With ``informed``, token embeddings
    start from co-occurrence (PPMI) in the texts and position embeddings from sinusoids; otherwise
    both are random.
    """

    stream_kinds: ClassVar[tuple[str, ...]] = ("annotated_text",)
    """The kinds of streams that it can be trained on."""

    layers: Positive = 4
    """Number of layers."""
    max_length: Annotated[int, AtLeast(8)] = 512
    """Largest number of tokens of a text."""
    lower: bool = True
    informed: bool = False

    def create(self, texts: Iterable[str], seed: int) -> Any:
        """Create the model, with a tokenizer trained on some texts.

        Args:
            texts: Texts to learn the tokenizer from.
            seed: Seed of the weights.
        """
        return load_object("biograft.models.scratch:create_bert")(self, texts, seed)


@dataclass(frozen=True, slots=True, kw_only=True)
class NewSeq2Seq(ModelSize):
    """A new BART: ``layers`` of encoder and decoder each, ``max_length`` of input and output."""

    stream_kinds: ClassVar[tuple[str, ...]] = ("name_templates",)
    """The kinds of streams that it can be trained on."""

    def create(self, texts: Iterable[str], seed: int) -> Any:
        """Create the model, with a tokenizer trained on some texts."""
        return load_object("biograft.models.scratch:create_bart")(self, texts, seed)


@dataclass(frozen=True, slots=True, kw_only=True)
class NewDecoder(Config):
    """A new decoder on a given encoder, of the encoder's width, which shares its token embeddings.

    ``max_length`` is the maximum number of tokens of a prompt and a name together; the random
    weights follow from ``seed``.
    """

    layers: Positive = 2
    """Number of layers."""
    max_length: Annotated[int, AtLeast(8)] = 128
    seed: Annotated[int, AtLeast(0)] = 0
