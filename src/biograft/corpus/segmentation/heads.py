"""What segmentation gives of an entity: its sub-entities, and its two halves."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from biograft.corpus.dictionary import FUNCTION_WORDS
from biograft.corpus.segmentation.config import SegmentationConfig
from biograft.corpus.segmentation.words import Unit, Vocabulary, join, read_units

Span = tuple[int, int]
NOTHING: Span = (0, 0)


@dataclass(frozen=True, slots=True)
class Segmented:
    """An entity in pieces; a short one has one piece, its head.

    Pieces ascend and do not overlap; between them stand signs and blanks alone.
    """

    text: str
    pieces: tuple[Span, ...]
    adjective: Span
    """What modifies the head; ``(0, 0)`` in a short entity."""
    head: Span
    """The atomic part, the core of the entity."""

    @property
    def is_long(self) -> bool:
        """Whether there is anything besides the head."""
        return self.adjective != NOTHING

    def cut(self, span: Span) -> str:
        """Give the text of a piece, the adjective part or the head."""
        return self.text[span[0] : span[1]]


def whole(text: str) -> Segmented:
    """Give a short entity, which is one piece."""
    return Segmented(text, ((0, len(text)),) if text else (), NOTHING, (0, len(text)))


def span_of(units: Sequence[Unit]) -> Span:
    """Say where neighbouring units stand."""
    return units[0].start, units[-1].end


LONGEST_HEAD = 3
"""Words of the longest head."""
_NEARLY_ALWAYS = 0.8
"""A word that stands before an end in more than this share of names belongs to the head."""

_WORDS = "en"  # any language that is not Chinese is taken apart alike
_PREPOSITIONS = frozenset(
    "about after against among around associated at before between by caused due during following "
    "for from in into involving of on over related secondary through to under upon via with within "
    "without not nos unspecified".split()
)
_KINDS = frozenset("type types grade stage group class form variant subtype".split())
_PARTS = re.compile(r"[,;:]\s|[(\[]")
_NUMBER = re.compile(r"(?:[0-9]+[a-z]?|[ivx]+[ab]?|[a-z][0-9]*)")


class HeadSegmenter:
    """Splits entities written with blanks; ``learn`` first shows it the names."""

    def __init__(
        self,
        vocabulary: Vocabulary,
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
            for length in range(1, min(LONGEST_HEAD, len(forms) - 1) + 1):
                before[join(forms[-length:], _WORDS)][forms[-length - 1]] += 1
        self.heads = dict.fromkeys(alone, 0)
        for end, seen in before.items():
            free = max(seen.values()) <= _NEARLY_ALWAYS * seen.total()
            if len(seen) >= self.config.min_heads and free:
                self.heads[end] = len(seen)

    def segment(self, text: str) -> Segmented:
        """Split an entity; one of a single word, or that is a head as a whole, is short."""
        units = read_units(text, _WORDS)
        if len(units) < 2:
            return whole(text)
        group, after = _noun_group(text, units)
        modifiers = group[: len(group) - self._head_length(group)]
        noun = span_of(group[len(modifiers) :])
        pieces, rest = self._pieces(modifiers), self._pieces(after)
        if rest and not _is_tied(text, noun, after):
            # the whole noun group is the head, so that the adjective part is one stretch
            return _assemble(text, [*pieces, noun, *rest], rest, (group[0].start, noun[1]))
        if rest and modifiers:  # "spinocerebellar ataxia 17": the number stays with its noun
            noun, rest = (noun[0], rest[-1][1]), []
        return _assemble(text, [*pieces, noun, *rest], pieces or rest, noun)

    def _pieces(self, units: Sequence[Unit]) -> list[Span]:
        """Split what is not the head; a function word goes with what follows it."""
        spans: list[Span] = []
        start = None
        for piece in self.vocabulary.split(units):
            first, end = span_of(piece)
            start = first if start is None else start
            if piece[-1].form not in FUNCTION_WORDS or piece[-1] is units[-1]:
                spans.append((start, end))
                start = None
        return spans

    def _head_length(self, group: Sequence[Unit]) -> int:
        for length in range(1, min(LONGEST_HEAD, len(group)) + 1):
            if join([unit.form for unit in group[-length:]], _WORDS) in self.heads:
                return length
        return 1


def _assemble(
    text: str, pieces: Sequence[Span], modifying: Sequence[Span], head: Span
) -> Segmented:
    if not modifying:
        return whole(text)
    return Segmented(text, tuple(pieces), (modifying[0][0], modifying[-1][1]), head)


def _noun_group(text: str, units: Sequence[Unit]) -> tuple[list[Unit], list[Unit]]:
    """Part a name where its noun group ends: at a preposition, a comma, a bracket, a number."""
    cut = len(units)
    for place in range(1, len(units)):
        gap = text[units[place - 1].end : units[place].start]
        if units[place].form in _PREPOSITIONS or _PARTS.search(gap):
            cut = place
            break
    group, after = list(units[:cut]), list(units[cut:])
    if not after:
        while len(group) > 1 and _is_designation(group[-1:]):
            after.insert(0, group.pop())
    return group, after


def _is_tied(text: str, noun: Span, after: Sequence[Unit]) -> bool:
    """Whether what follows a noun is its number, with nothing but a blank between."""
    return _is_designation(after) and not text[noun[1] : after[0].start].strip()


def _is_designation(units: Sequence[Unit]) -> bool:
    """Whether units only tell which of several: ``2``, ``type 1A``, ``II``."""
    return all(unit.form in _KINDS or _NUMBER.fullmatch(unit.form) for unit in units)
