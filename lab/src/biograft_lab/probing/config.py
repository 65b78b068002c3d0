"""Settings of the probes, which are the options of their commands."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from biograft.config import AtLeast, Choice, Config, Option, Range, check_fields, split_list
from biograft.errors import ConfigError, shorten
from biograft.kb.names import language_codes, whole_number

_MAX_LENGTH = 512
"""The tokens that an answer of the cloze probe may have."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryConfig(Config):
    """Selection of the queries of a store."""

    languages: Annotated[
        tuple[str, ...],
        Option("Names in these languages only.", "--lang", "en,zh", language_codes),
    ] = ("en",)
    """Languages of names; queries use the first one in which a concept has a name."""
    masked: Annotated[
        str, Choice("both", "head", "tail"), Option("End of the triple to predict.")
    ] = "both"
    relations: Annotated[
        tuple[str, ...], Option("Queries of these relations only.", metavar="treats,...")
    ] = ()
    per_relation: Annotated[
        int, AtLeast(0), Option("Queries per relation, sampled; 0: all.", metavar="N")
    ] = 200
    limit: Annotated[int, AtLeast(0), Option("Queries in all, sampled; 0: all.", metavar="N")] = 0
    seed: Annotated[
        int, AtLeast(0), Option("Random seed of the queries and intervals.", metavar="N")
    ] = 0


def parse_lengths(text: str) -> tuple[int, ...]:
    """Parse numbers of masks.

    >>> parse_lengths("1-3,5")
    (1, 2, 3, 5)
    """
    numbers: list[int] = []
    for item in split_list(text):
        low, dash, high = item.partition("-")
        first, last = whole_number(low), whole_number(high if dash else low)
        if first is None or last is None or not 0 < first <= last <= _MAX_LENGTH:
            raise ConfigError(
                "--lengths: expected numbers such as 1-10 or 1,2,5, up to "
                f"{_MAX_LENGTH}, found {shorten(repr(text))}"
            )
        numbers += range(first, last + 1)
    return tuple(dict.fromkeys(numbers))


@dataclass(frozen=True, slots=True, kw_only=True)
class DecodingConfig(Config):
    """Configuration of the beam search; the defaults are those of KeBioLM's probe."""

    lengths: Annotated[
        tuple[int, ...],
        Option(
            "Numbers of mask tokens to try for each blank.", metavar="1-10", parse=parse_lengths
        ),
    ] = tuple(range(1, 11))
    beam: Annotated[
        int, AtLeast(1), Option("Beam size, and answers per number of masks.", metavar="B")
    ] = 5
    """1: greedy."""
    order: Annotated[
        str, Choice("any", "left-to-right"), Option("Order of filling the mask tokens.")
    ] = "any"
    """``any``: the most confident position first."""
    batch: Annotated[int, AtLeast(0)] = 0
    """Batch size; 0: as many queries as memory allows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SimilarityConfig(Config):
    """Selection of the queries of a store."""

    same_as: Annotated[
        tuple[str, ...],
        Option(
            "Relation that joins concepts that are the same; repeatable.",
            metavar="RELATION",
            repeated=True,
        ),
    ] = ()
    pairs: Annotated[
        str,
        Choice("all", "names", "relations"),
        Option("Pair names of one concept, of two joined by --same-as, or all."),
    ] = "all"
    languages: Annotated[
        tuple[str, ...],
        Option("Pair names in these only; default: any.", "--lang", "en,zh", language_codes),
    ] = ()
    across_languages: Annotated[bool, Option("Also pair names of two languages.")] = False
    negatives: Annotated[int, AtLeast(1), Option("Hard negatives per query.", metavar="N")] = 19
    jaro_winkler: Annotated[
        float,
        Range(min=0, below=1),
        Option("Minimum similarity (exclusive) of a hard negative to the name.", metavar="X"),
    ] = 0.6
    limit: Annotated[
        int, AtLeast(0), Option("Number of pairs, sampled; 0: all of them.", metavar="N")
    ] = 0
    seed: Annotated[
        int, AtLeast(0), Option("Random seed of samples and intervals.", metavar="N")
    ] = 0

    def __post_init__(self) -> None:
        check_fields(self)
        if self.pairs == "relations" and not self.same_as:
            raise ConfigError(
                "pairs: 'relations' needs a relation between equivalent concepts (--same-as)"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class WordVectorConfig(Config):
    """Configuration of word vector training."""

    dim: Annotated[int, AtLeast(1), Option("Dimension of sgns and glove.", metavar="N")] = 100
    epochs: Annotated[
        int, AtLeast(0), Option("Epochs of sgns and glove; 0: 5 and 25.", metavar="N")
    ] = 0
    """Epochs over the text (GloVe: over the co-occurrences); 0: the usual number."""
    seed: Annotated[int, AtLeast(0)] = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class AttentionConfig(Config):
    """Selection of layer, head and direction; layers and heads count from 1, as in papers."""

    layer: Annotated[
        int, AtLeast(0), Option("Layer, from 1; 0: 11 with --replace, else 10.", metavar="N")
    ] = 0
    """0: EMBERT's, or the last but one of encoders with fewer layers."""
    head: Annotated[
        int, AtLeast(0), Option("Attention head, from 1; 0: sum of all heads.", metavar="N")
    ] = 0
    direction: Annotated[
        str, Choice("to", "from"), Option("With --replace: to the entity, or from it.")
    ] = "to"
    """``to``: attention of the context to the entity; ``from``: of the entity to the context."""

    @property
    def around(self) -> str:
        """Label of the curves."""
        heads = f"head {self.head}" if self.head else "all heads summed"
        return f"attention {self.direction} the entity, {heads}"


@dataclass(frozen=True, slots=True, kw_only=True)
class SubstituteConfig(Config):
    """Selection of substitutes."""

    languages: Annotated[
        tuple[str, ...],
        Option(
            "Sample names in these; default: the text's language.",
            "--lang",
            "en,zh",
            language_codes,
        ),
    ] = ()
    """Languages of names; none: that of the text or, if unknown, of the entity."""
    seed: Annotated[int, AtLeast(0), Option("Random seed of the samples.", metavar="N")] = 0
