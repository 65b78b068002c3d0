"""Segmented entities, and the head segmenter for languages written with spaces."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from biograft.text.name_rules import FUNCTION_WORDS
from biograft.text.segmentation.config import SegmentationConfig
from biograft.text.segmentation.words import UnigramVocabulary, Unit, join, read_units

Offsets = tuple[int, int]
NO_OFFSETS: Offsets = (0, 0)


@dataclass(frozen=True, slots=True)
class SegmentedEntity:
    """An entity split into segments; a short entity has one segment, its head.

    Segments are sorted and disjoint, with only punctuation and whitespace between them.
    """

    text: str
    segments: tuple[Offsets, ...]
    adjective: Offsets
    """The part that modifies the head; ``(0, 0)`` in a short entity."""
    head: Offsets
    """The atomic part, the core of the entity."""

    @property
    def is_long(self) -> bool:
        """Whether the entity has an adjective part."""
        return self.adjective != NO_OFFSETS

    def cut(self, span: Offsets) -> str:
        """Return the text of a segment, the adjective part or the head."""
        return self.text[span[0] : span[1]]


def whole(text: str) -> SegmentedEntity:
    """Return a short entity, which is a single segment."""
    return SegmentedEntity(text, ((0, len(text)),) if text else (), NO_OFFSETS, (0, len(text)))


def span_of(units: Sequence[Unit]) -> Offsets:
    """Return the offsets of neighbouring units."""
    return units[0].start, units[-1].end


MAX_HEAD_WORDS = 3
"""Maximum words of a head."""
_MAX_WORD_FRACTION = 0.8
"""A word that precedes a head in more than this ratio of names belongs to the head."""

_WORDS = "en"  # all languages but Chinese are split into units alike
_PREPOSITIONS = frozenset(
    "about after against among around associated at before between by caused due during following "
    "for from in into involving of on over related secondary through to under upon via with within "
    "without not nos unspecified".split()
)
_DESIGNATORS = frozenset("type types grade stage group class form variant subtype".split())
_NOUN_GROUP_END = re.compile(r"[,;:]\s|[(\[]")
_NUMBER = re.compile(r"(?:[0-9]+[a-z]?|[ivx]+[ab]?|[a-z][0-9]*)")


class HeadSegmenter:
    """Splits entities written with spaces; ``learn`` fits it to the names."""

    def __init__(
        self,
        vocabulary: UnigramVocabulary,
        heads: Mapping[str, int] | None = None,
        config: SegmentationConfig | None = None,
    ) -> None:
        self.vocabulary = vocabulary
        self.config = config or SegmentationConfig(language=_WORDS)
        self.heads = dict(heads or {})

    def learn(self, names: Iterable[str]) -> None:
        """Count the different words that precede each end of the names' noun groups."""
        before: dict[str, Counter[str]] = defaultdict(Counter)
        alone = set()
        for name in names:
            group, after = _noun_group(name, read_units(name, _WORDS))
            forms = [unit.form for unit in group]
            if len(forms) == 1 and not after:
                alone.add(forms[0])
            for length in range(1, min(MAX_HEAD_WORDS, len(forms) - 1) + 1):
                before[join(forms[-length:], _WORDS)][forms[-length - 1]] += 1
        self.heads = dict.fromkeys(alone, 0)
        for end, seen in before.items():
            free = max(seen.values()) <= _MAX_WORD_FRACTION * seen.total()
            if len(seen) >= self.config.min_heads and free:
                self.heads[end] = len(seen)

    def segment(self, text: str) -> SegmentedEntity:
        """Split an entity; it is short if it has a single word or is a head as a whole."""
        units = read_units(text, _WORDS)
        if len(units) < 2:
            return whole(text)
        group, after = _noun_group(text, units)
        modifiers = group[: len(group) - self._head_length(group)]
        noun = span_of(group[len(modifiers) :])
        segments, rest = self._split_modifiers(modifiers), self._split_modifiers(after)
        if rest and not _is_tied(text, noun, after):
            # the whole noun group is the head, so that the adjective part is contiguous
            return _assemble(text, [*segments, noun, *rest], rest, (group[0].start, noun[1]))
        if rest and modifiers:  # "spinocerebellar ataxia 17": the number stays with its noun
            noun, rest = (noun[0], rest[-1][1]), []
        return _assemble(text, [*segments, noun, *rest], segments or rest, noun)

    def _split_modifiers(self, units: Sequence[Unit]) -> list[Offsets]:
        """Split units outside the head; a function word is joined to the next segment."""
        spans: list[Offsets] = []
        start = None
        for segment in self.vocabulary.split(units):
            first, end = span_of(segment)
            start = first if start is None else start
            if segment[-1].form not in FUNCTION_WORDS or segment[-1] is units[-1]:
                spans.append((start, end))
                start = None
        return spans

    def _head_length(self, group: Sequence[Unit]) -> int:
        for length in range(1, min(MAX_HEAD_WORDS, len(group)) + 1):
            if join([unit.form for unit in group[-length:]], _WORDS) in self.heads:
                return length
        return 1


def _assemble(
    text: str, segments: Sequence[Offsets], modifying: Sequence[Offsets], head: Offsets
) -> SegmentedEntity:
    if not modifying:
        return whole(text)
    return SegmentedEntity(text, tuple(segments), (modifying[0][0], modifying[-1][1]), head)


def _noun_group(text: str, units: Sequence[Unit]) -> tuple[list[Unit], list[Unit]]:
    """Split a name after its noun group: at a preposition, comma, bracket or number."""
    cut = len(units)
    for position in range(1, len(units)):
        gap = text[units[position - 1].end : units[position].start]
        if units[position].form in _PREPOSITIONS or _NOUN_GROUP_END.search(gap):
            cut = position
            break
    group, after = list(units[:cut]), list(units[cut:])
    if not after:
        while len(group) > 1 and _is_designation(group[-1:]):
            after.insert(0, group.pop())
    return group, after


def _is_tied(text: str, noun: Offsets, after: Sequence[Unit]) -> bool:
    """Whether a noun is followed by its number, with only whitespace between."""
    return _is_designation(after) and not text[noun[1] : after[0].start].strip()


def _is_designation(units: Sequence[Unit]) -> bool:
    """Whether units are a designation: ``2``, ``type 1A``, ``II``."""
    return all(unit.form in _DESIGNATORS or _NUMBER.fullmatch(unit.form) for unit in units)
