"""Segmenter of long Chinese entities (EMBERT): cut points, then words, with phrases as fallback.

An entity is cut at cut-point characters, except inside a short word; each part is split into
words; single characters that usually begin or end a word are joined to their neighbour. If too
many single characters are left, the entity vocabulary splits the entity instead; if that leaves
too many as well, the entity counts as short.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from biograft.text.segmentation.config import CHINESE, SegmentationConfig
from biograft.text.segmentation.cut_points import AFTER, BEFORE, CutPoint
from biograft.text.segmentation.heads import SegmentedEntity, span_of, whole
from biograft.text.segmentation.words import (
    UnigramVocabulary,
    Unit,
    WordSegmenter,
    join,
    runs,
)

Segments = list[Sequence[Unit]]

_OPENING, _CLOSING = "(（[【", ")）]】"
_CONJUNCTIONS = "和与及或并伴"
"""Words of one character that belong to neither side."""
_MAX_SUFFIX = 2
"""Maximum letters or digits that are joined to the word before them, as in ``维生素B1``."""
_MAX_PROTECTED = 3
"""Maximum characters of a word that a cut point does not split."""


class ChineseSegmenter:
    """Splits Chinese entities; ``learn`` collects the short ones."""

    def __init__(
        self,
        vocabulary: UnigramVocabulary,
        words: WordSegmenter,
        cut_points: Iterable[CutPoint],
        config: SegmentationConfig | None = None,
    ) -> None:
        self.vocabulary, self.words = vocabulary, words
        self.config = config or SegmentationConfig()
        self._side = {point.character: point.side for point in cut_points}
        self.short: dict[str, None] = {}

    def learn(self, names: Iterable[str]) -> None:
        """Add the short names to the dictionary.

        These are the names of few characters, then, by length, the longer ones that the dictionary
        so far cannot split.
        """
        for name in sorted(set(names), key=lambda name: (len(name), name)):
            if len(name) < self.config.long_from or not self._split(name).is_long:
                self.add_word(_form(runs(name, CHINESE)))

    def add_word(self, form: str) -> None:
        """Add the form of a short name to the dictionary."""
        if form and form not in self.short:
            self.short[form] = None
            self.words.add(form)

    def segment(self, text: str) -> SegmentedEntity:
        """Split an entity; one that is short, or that cannot be split, is one segment."""
        short = len(text) < self.config.long_from or _form(runs(text, CHINESE)) in self.short
        return whole(text) if short else self._split(text)

    def _split(self, text: str) -> SegmentedEntity:
        core, added = _split_bracket(runs(text, CHINESE), text)
        for split in (self._split_by_words, self._split_by_phrases):
            segments = [segment for run in core for segment in self._join_affixes(split(run))]
            if not self._too_many_single(segments):
                break
        else:
            return whole(text)
        if len(segments) < 2:
            return whole(text)
        rest = [
            segment for run in added for segment in self._join_affixes(self._split_by_words(run))
        ]
        spans = tuple(span_of(segment) for segment in segments)
        return SegmentedEntity(
            text,
            spans + tuple(span_of(segment) for segment in rest),
            (spans[0][0], spans[-2][1]),
            spans[-1],
        )

    def _split_by_words(self, run: Sequence[Unit]) -> Segments:
        segments: Segments = []
        start = 0
        for position in range(1, len(run) + 1):
            if position == len(run) or self._is_cut(run, position):
                segments += self._join_unknown(self.words.split(run[start:position]))
                start = position
        return segments

    def _split_by_phrases(self, run: Sequence[Unit]) -> Segments:
        return self.vocabulary.split(run, whole=False)

    def _is_cut(self, run: Sequence[Unit], position: int) -> bool:
        """Whether a cut point is at a position of a run that no short word crosses."""
        after = self._side.get(run[position - 1].form) == AFTER
        before = self._side.get(run[position].form) == BEFORE
        if not (after or before):
            return False
        for length in range(2, _MAX_PROTECTED + 1):
            for start in range(max(0, position - length + 1), min(position, len(run) - length + 1)):
                if self._is_protected(run[start : start + length]):
                    return False
        return True

    def _is_protected(self, run: Sequence[Unit]) -> bool:
        """Whether a run is a word that must not be split.

        A dictionary word that is a suffix and another word (``性肝炎``) may be split.
        """
        forms = [unit.form for unit in run]
        word = join(forms, CHINESE)
        if word in self.short or not self.words.knows(word):
            return word in self.short
        suffixed = len(run) > 2 and self._side.get(forms[0]) == AFTER
        return not (suffixed and self.words.knows(join(forms[1:], CHINESE)))

    def _join_unknown(self, segments: Segments) -> Segments:
        """Join neighbours that are in no dictionary, such as parts of transliterated names.

        A single character is joined to an unknown neighbour, unless it is the last segment (as
        dosage forms are) or a cut point.
        """
        joined: Segments = []
        was_unknown = False
        for position, segment in enumerate(segments):
            form = join([unit.form for unit in segment], CHINESE)
            unknown = len(segment) > 1 and not self.words.knows(form)
            loose = position < len(segments) - 1 and self._is_joinable(segment)
            follows = was_unknown and (unknown or loose)
            if joined and (follows or (unknown and self._is_joinable(joined[-1]))):
                joined[-1] = [*joined[-1], *segment]
            else:
                joined.append(segment)
            was_unknown = unknown or (was_unknown and loose)
        return joined

    def _is_joinable(self, segment: Sequence[Unit]) -> bool:
        form = segment[0].form
        single = len(segment) == 1 and len(form) == 1 and not form.isascii()
        return single and form not in self._side and form not in _CONJUNCTIONS

    def _join_affixes(self, segments: Segments) -> Segments:
        """Join single characters that usually end or begin a word."""
        joined: Segments = []
        for position, segment in enumerate(segments):
            if joined and self._belongs_to(
                joined[-1], segment, is_last=position == len(segments) - 1
            ):
                joined[-1] = [*joined[-1], *segment]
            else:
                joined.append(segment)
        return joined

    def _belongs_to(
        self, before: Sequence[Unit], segment: Sequence[Unit], *, is_last: bool
    ) -> bool:
        """Whether a segment belongs to the one before: a letter, a suffix, or after a prefix.

        A last character stays a separate head after a word of three characters or more.
        """
        if self._is_latin(segment):
            return True
        if self._is_single(segment, AFTER):
            return not is_last or len(before) < _MAX_PROTECTED
        return self._is_single(before, BEFORE) and len(segment) > 1

    def _is_latin(self, segment: Sequence[Unit]) -> bool:
        form = segment[0].form
        return len(segment) == 1 and form.isascii() and len(form) <= _MAX_SUFFIX

    def _is_single(self, segment: Sequence[Unit], side: str) -> bool:
        form = segment[0].form
        return len(segment) == 1 and form not in _CONJUNCTIONS and self._side.get(form) == side

    def _too_many_single(self, segments: Segments) -> bool:
        lengths = [sum(len(unit.form) for unit in segment) for segment in segments]
        single = sum(
            length == 1 and not segment[0].form.isascii()
            for length, segment in zip(lengths, segments, strict=True)
        )
        return single > self.config.max_single * sum(lengths)


def _form(grouped: Iterable[Sequence[Unit]]) -> str:
    return "".join(unit.form for run in grouped for unit in run)


def _split_bracket(
    grouped: list[list[Unit]], text: str
) -> tuple[list[list[Unit]], list[list[Unit]]]:
    """Split off a bracket at the end, which repeats the entity or gives its kind."""
    core = [run for run in grouped if run[0].start < _last_bracket(text)]
    return (core, grouped[len(core) :]) if core else (grouped, [])


def _last_bracket(text: str) -> int:
    """Return the position of the bracket that ends the text; -1 if there is none."""
    depth = 0
    for position in range(len(text) - 1, -1, -1):
        depth += (text[position] in _CLOSING) - (text[position] in _OPENING)
        if depth <= 0:
            return position if position < len(text) - 1 else -1
    return -1
