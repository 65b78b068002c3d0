"""Attention curves (EMBERT): attention between context and entity, synonym or random entity.

The three names replace each other in one sentence. The curve of the synonym should be close to the
curve of the entity.
"""

from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import fmean, stdev
from typing import Any

import numpy as np

from biograft.errors import shorten
from biograft.progress import Progress
from biograft_lab.probing.attention.maps import (
    CURVES_LAYER,
    INSIDE_LAYER,
    AttentionMap,
    AttentionReader,
    UnfitError,
    Values,
)
from biograft_lab.probing.config import AttentionConfig

OTHERS = ("synonym", "random")
VARIANTS = ("entity", *OTHERS)


@dataclass(frozen=True, slots=True)
class ReplacedSentence:
    """A sentence, the span of its entity, and the names that replace it."""

    text: str
    start: int
    end: int
    synonym: str = ""
    random: str = ""
    """A name of another entity."""
    id: str = ""
    """Id of the source text, if known."""
    concepts: tuple[str, ...] = ()
    language: str = ""

    @property
    def entity(self) -> str:
        """The entity as written in the sentence."""
        return self.text[self.start : self.end]

    def name(self, variant: str) -> str:
        """Return the name of a variant."""
        return {"entity": self.entity, "synonym": self.synonym, "random": self.random}[variant]

    def written(self, variant: str) -> str:
        """Return the sentence with the name of a variant."""
        return self.text[: self.start] + self.name(variant) + self.text[self.end :]


@dataclass(frozen=True, slots=True)
class Curves:
    """Attention between each context token and the name, for each variant."""

    encoder: str
    layer: int
    tokens: tuple[str, ...]
    position: int
    """Number of tokens before the entity."""
    values: dict[str, Values]  # of each variant (tokens,)

    @property
    def differences(self) -> dict[str, float]:
        """Mean absolute difference of each other curve to the entity's."""
        reference = self.values["entity"]
        return {each: float(np.abs(self.values[each] - reference).mean()) for each in OTHERS}

    @property
    def rounded(self) -> dict[str, float]:
        """The differences with six digits."""
        return {name: round(value, 6) for name, value in self.differences.items()}

    def to_json(self) -> dict[str, Any]:
        """Return plain values."""
        return {
            "encoder": self.encoder,
            "layer": self.layer,
            "tokens": list(self.tokens),
            "entity_position": self.position,
            "curves": {
                each: [round(float(value), 6) for value in self.values[each]] for each in VARIANTS
            },
            "differences": self.rounded,
        }


def compare_names(
    reader: AttentionReader, sentence: ReplacedSentence, config: AttentionConfig
) -> Curves:
    """Compute the attention curves of a sentence with each of the three names."""
    reader.check_head(config.head)
    layer = reader.layer(config.layer, CURVES_LAYER)
    _refuse_equal(sentence)
    by_variant = {
        each: _read_variant(reader, sentence, each, layer, config.head) for each in VARIANTS
    }
    reference = by_variant["entity"]
    for variant in OTHERS:
        if by_variant[variant].context_ids != reference.context_ids:
            raise UnfitError(
                "the tokens beside the entity change with what stands there",
                f"{shorten(sentence.entity)!r} is joined to the text around it, unlike "
                f"{shorten(sentence.name(variant))!r}; separate it by spaces",
            )
    context = reference.attention.context(reference.first, reference.last)
    if not len(context):
        raise UnfitError(
            "the sentence holds nothing beside the entity", "expected a context around it"
        )
    return Curves(
        reader.name,
        layer,
        tuple(reference.attention.token_text(token) for token in context.tolist()),
        int((context < reference.first).sum()),
        {
            name: placed.attention.around(placed.first, placed.last, config.direction)
            for name, placed in by_variant.items()
        },
    )


@dataclass(frozen=True, slots=True)
class _VariantMap:
    """An attention map, and the tokens of the name in it."""

    attention: AttentionMap
    first: int
    last: int

    @property
    def context_ids(self) -> tuple[list[int], list[int]]:
        """The token ids before and after the name."""
        context = self.attention.context(self.first, self.last)
        before, behind = context[context < self.first], context[context > self.last]
        return self.attention.ids[before].tolist(), self.attention.ids[behind].tolist()


def _read_variant(
    reader: AttentionReader, sentence: ReplacedSentence, variant: str, layer: int, head: int
) -> _VariantMap:
    attention = reader.read(sentence.written(variant), layer, head)
    end = sentence.start + len(sentence.name(variant))
    return _VariantMap(attention, *attention.tokens_of(sentence.start, end))


def _refuse_equal(sentence: ReplacedSentence) -> None:
    for variant in OTHERS:
        if not sentence.name(variant).strip():
            raise UnfitError(
                f"the {variant} is missing",
                f"for {shorten(sentence.entity)!r}; name one, or sample it from a store (--kb)",
            )
        if sentence.name(variant) == sentence.entity:
            raise UnfitError(
                f"the {variant} is the entity itself", f"found {shorten(sentence.entity)!r} twice"
            )


@dataclass(frozen=True, slots=True)
class InsideEntity:
    """Attention among the tokens of one entity."""

    encoder: str
    layer: int
    tokens: tuple[str, ...]
    weights: Values  # (tokens, tokens): how much a row's token attends to a column's

    @property
    def to_others(self) -> float:
        """Mean attention of a token to the entity's other tokens."""
        return float((self.weights.sum() - np.trace(self.weights)) / len(self.weights))

    def to_json(self) -> dict[str, Any]:
        """Return plain values."""
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
    """Compute the attention among the tokens of an entity in a text."""
    reader.check_head(config.head)
    layer = reader.layer(config.layer, INSIDE_LAYER)
    attention = reader.read(text, layer, config.head)
    first, last = attention.tokens_of(*span)
    if first == last:
        raise UnfitError(
            "the entity is a single token", f"found {attention.token_text(first)!r} only"
        )
    tokens = tuple(attention.token_text(token) for token in range(first, last + 1))
    return InsideEntity(reader.name, layer, tokens, attention.inside(first, last))


def compare_many(
    readers: Sequence[AttentionReader],
    sentences: Sequence[ReplacedSentence],
    config: AttentionConfig,
    fill: Callable[[ReplacedSentence], ReplacedSentence] | None = None,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Compare encoders on many sentences; sentences that one of them cannot read are left out.

    Args:
        readers: The encoders.
        sentences: The sentences.
        config: Layer, head and direction.
        fill: Adds the missing names of a sentence.
        progress: Shows the sentences.
    """
    used: list[ReplacedSentence] = []
    rows: list[list[Curves]] = []
    left_out: Counter[str] = Counter()
    for n, sentence in enumerate(sentences, 1):
        try:
            filled = fill(sentence) if fill else sentence
            rows.append([compare_names(reader, filled, config) for reader in readers])
        except UnfitError as error:
            left_out[error.reason] += 1
        else:
            used.append(filled)
        if progress:
            progress.advance(1, n / len(sentences))
    if not used:
        reasons = "; ".join(f"{n:,}: {reason}" for reason, n in left_out.most_common())
        raise UnfitError("no sentence can be used", reasons or "there is none")
    return {
        "n_sentences": len(used),
        "left_out": dict(left_out.most_common()),
        "models": [_summary(curves) for curves in zip(*rows, strict=True)],
        "sentences": [
            {"id": each.id, **{name: each.name(name) for name in VARIANTS}}
            | {"differences": [curves.rounded for curves in row]}
            for each, row in zip(used, rows, strict=True)
        ],
    }


def _summary(curves: Sequence[Curves]) -> dict[str, Any]:
    """Return means, deviations and how often the synonym is closer, of one encoder."""
    summary: dict[str, Any] = {"encoder": curves[0].encoder, "layer": curves[0].layer}
    values = {name: [each.differences[name] for each in curves] for name in OTHERS}
    for name, each in values.items():
        deviation = round(stdev(each), 6) if len(each) > 1 else None
        summary[name] = {"mean": round(fmean(each), 6), "deviation": deviation}
    nearer = map(operator.lt, *values.values())
    return summary | {"n_synonym_nearer": sum(nearer)}
