"""One sentence three times: what of the attention around an entity changes with its name.

EMBERT's first picture: the entity itself, a synonym, and another entity stand in the same place.
The curve of the synonym should lie close to the entity's.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from biograft.errors import shorten
from biograft.probing.attention.maps import (
    CURVES_LAYER,
    INSIDE_LAYER,
    AttentionConfig,
    AttentionMap,
    AttentionReader,
    UnfitError,
    Values,
)
from biograft.progress import Progress

OTHERS = ("synonym", "random")
VARIANTS = ("entity", *OTHERS)


@dataclass(frozen=True, slots=True)
class ReplacedSentence:
    """A sentence, where its entity stands, and what is put in its place."""

    text: str
    start: int
    end: int
    synonym: str = ""
    random: str = ""
    """A name of another entity."""
    id: str = ""
    """Where it comes from, if that is known."""
    concepts: tuple[str, ...] = ()
    language: str = ""

    @property
    def entity(self) -> str:
        """The entity as the sentence has it."""
        return self.text[self.start : self.end]

    def name(self, variant: str) -> str:
        """Give what stands in the entity's place."""
        return {"entity": self.entity, "synonym": self.synonym, "random": self.random}[variant]

    def written(self, variant: str) -> str:
        """Give the sentence with a name in the entity's place."""
        return self.text[: self.start] + self.name(variant) + self.text[self.end :]


@dataclass(frozen=True, slots=True)
class Curves:
    """Attention between each token of the context and what stands in the entity's place."""

    encoder: str
    layer: int
    tokens: tuple[str, ...]
    place: int
    """How many of the tokens stand before the entity."""
    values: dict[str, Values]  # of each variant (tokens,)

    @property
    def differences(self) -> dict[str, float]:
        """The mean absolute difference of each other curve to the entity's."""
        own = self.values["entity"]
        return {each: float(np.abs(self.values[each] - own).mean()) for each in OTHERS}

    def to_json(self) -> dict[str, Any]:
        """Give the numbers as plain values."""
        return {
            "encoder": self.encoder,
            "layer": self.layer,
            "tokens": list(self.tokens),
            "entity_place": self.place,
            "curves": {
                each: [round(float(value), 6) for value in self.values[each]] for each in VARIANTS
            },
            "differences": {each: round(d, 6) for each, d in self.differences.items()},
        }


def compare_names(
    reader: AttentionReader, sentence: ReplacedSentence, config: AttentionConfig
) -> Curves:
    """Read a sentence with each of the three names."""
    reader.check_head(config.head)
    layer = reader.layer(config.layer, CURVES_LAYER)
    _refuse_equal(sentence)
    placed = {each: _placed(reader, sentence, each, layer, config.head) for each in VARIANTS}
    own = placed["entity"]
    for variant in OTHERS:
        if placed[variant].beside != own.beside:
            raise UnfitError(
                "the tokens beside the entity change with what stands there",
                f"{shorten(sentence.entity)!r} is joined to the text around it, with "
                f"{shorten(sentence.name(variant))!r} otherwise; part it with blanks",
            )
    context = own.found.context(own.first, own.last)
    if not len(context):
        raise UnfitError(
            "the sentence holds nothing beside the entity", "expected a context around it"
        )
    return Curves(
        reader.name,
        layer,
        tuple(own.found.shown(token) for token in context.tolist()),
        int((context < own.first).sum()),
        {name: p.found.around(p.first, p.last, config.direction) for name, p in placed.items()},
    )


@dataclass(frozen=True, slots=True)
class _Placed:
    """A map, and the tokens of what stands in the entity's place."""

    found: AttentionMap
    first: int
    last: int

    @property
    def beside(self) -> tuple[list[int], list[int]]:
        """The tokens before and those behind it."""
        context = self.found.context(self.first, self.last)
        before, behind = context[context < self.first], context[context > self.last]
        return self.found.ids[before].tolist(), self.found.ids[behind].tolist()


def _placed(
    reader: AttentionReader, sentence: ReplacedSentence, variant: str, layer: int, head: int
) -> _Placed:
    found = reader.read(sentence.written(variant), layer, head)
    end = sentence.start + len(sentence.name(variant))
    return _Placed(found, *found.tokens_of(sentence.start, end))


def _refuse_equal(sentence: ReplacedSentence) -> None:
    for variant in OTHERS:
        if not sentence.name(variant).strip():
            raise UnfitError(
                f"the {variant} is missing",
                f"for {shorten(sentence.entity)!r}; name one, or draw it from a store (--kb)",
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


@dataclass(frozen=True, slots=True)
class EncoderSummary:
    """What one encoder made of all sentences."""

    encoder: str
    layer: int
    differences: dict[str, Values]  # of each other name (sentences,)

    def to_json(self) -> dict[str, Any]:
        """Give mean and sample deviation, and how often the synonym is nearer, as plain values."""
        told: dict[str, Any] = {"encoder": self.encoder, "layer": self.layer}
        for name, values in self.differences.items():
            deviation = float(values.std(ddof=1)) if len(values) > 1 else None
            told[name] = {
                "mean": round(float(values.mean()), 6),
                "deviation": None if deviation is None else round(deviation, 6),
            }
        nearer = self.differences["synonym"] < self.differences["random"]
        return told | {"n_synonym_nearer": int(nearer.sum())}


@dataclass(frozen=True, slots=True)
class AttentionSummary:
    """What several encoders made of the same sentences."""

    sentences: tuple[ReplacedSentence, ...]
    encoders: tuple[EncoderSummary, ...]
    left_out: Counter[str] = field(default_factory=Counter)
    """Sentences by why they could not be looked at, by one of the encoders at least."""

    def to_json(self) -> dict[str, Any]:
        """Give all figures as plain values."""
        return {
            "n_sentences": len(self.sentences),
            "left_out": dict(self.left_out.most_common()),
            "models": [each.to_json() for each in self.encoders],
            "sentences": [self._row(k) for k in range(len(self.sentences))],
        }

    def _row(self, k: int) -> dict[str, Any]:
        sentence = self.sentences[k]
        return {
            "id": sentence.id,
            "entity": sentence.entity,
            "synonym": sentence.synonym,
            "random": sentence.random,
            "differences": [
                {name: round(float(each.differences[name][k]), 6) for name in OTHERS}
                for each in self.encoders
            ],
        }


def compare_many(
    readers: Sequence[AttentionReader],
    sentences: Sequence[ReplacedSentence],
    config: AttentionConfig,
    fill: Callable[[ReplacedSentence], ReplacedSentence] | None = None,
    progress: Progress | None = None,
) -> AttentionSummary:
    """Read many sentences; all encoders are judged by those that every one of them can read.

    ``fill`` gives a sentence the names that it lacks.
    """
    kept: list[ReplacedSentence] = []
    found: list[list[Curves]] = []
    left_out: Counter[str] = Counter()
    for n, sentence in enumerate(sentences, 1):
        try:
            filled = fill(sentence) if fill else sentence
            found.append([compare_names(reader, filled, config) for reader in readers])
        except UnfitError as error:
            left_out[error.reason] += 1
        else:
            kept.append(filled)
        if progress:
            progress.advance(1, n / len(sentences))
    if not kept:
        reasons = "; ".join(f"{n:,}: {reason}" for reason, n in left_out.most_common())
        raise UnfitError("no sentence can be looked at", reasons or "there is none")
    columns = [[row[k] for row in found] for k in range(len(readers))]
    return AttentionSummary(tuple(kept), tuple(map(_summary, columns)), left_out)


def _summary(curves: Sequence[Curves]) -> EncoderSummary:
    differences = {
        name: np.array([each.differences[name] for each in curves], np.float64) for name in OTHERS
    }
    return EncoderSummary(curves[0].encoder, curves[0].layer, differences)
