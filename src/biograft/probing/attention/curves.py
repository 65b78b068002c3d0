"""One sentence three times: what of the attention around an entity changes with its name.

EMBERT's first picture: the entity itself, a synonym, and another entity stand in the same place.
The curve of the synonym should lie close to the entity's.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from biograft.errors import shorten
from biograft.probing.attention.config import CURVES_LAYER, AttentionConfig
from biograft.probing.attention.maps import AttentionMap, UnfitError, Values
from biograft.probing.attention.reading import AttentionReader

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
