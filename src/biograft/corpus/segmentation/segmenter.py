"""Split long Chinese entities by rule: cut points, then words, then phrases as a way out.

A candidate is cut at cut-point characters, unless a short word would be torn; each part is split
into words; single characters that usually begin or end a word are joined to their neighbour. If
too many single characters are left, the split by the entity vocabulary is taken instead; if that
is no better, the entity cannot be split and is short.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from biograft.corpus.segmentation.config import SegmentationConfig
from biograft.corpus.segmentation.cut_points import AFTER, BEFORE, CutPoint
from biograft.corpus.segmentation.heads import Segmented, span_of, whole
from biograft.corpus.segmentation.words import CHINESE, Unit, Vocabulary, Words, join, runs

Pieces = list[Sequence[Unit]]

_OPENING, _CLOSING = "(（[【", ")）]】"
_CONJUNCTIONS = "和与及或并伴"
"""Words of one character that belong to neither side."""
_LETTERS = 2
"""Letters or digits that belong to the word before them, as in ``维生素B1``."""
_LONGEST_TORN = 3
"""A word of up to so many characters is not torn by a cut."""


class ChineseSegmenter:
    """Splits Chinese entities; ``learn`` first tells it which are short."""

    def __init__(
        self,
        vocabulary: Vocabulary,
        words: Words,
        cut_points: Iterable[CutPoint],
        config: SegmentationConfig | None = None,
    ) -> None:
        self.vocabulary, self.words = vocabulary, words
        self.config = config or SegmentationConfig()
        self._side = {point.character: point.side for point in cut_points}
        self.short: dict[str, None] = {}

    def learn(self, names: Iterable[str]) -> None:
        """Put the short names in the dictionary.

        These are the names of few characters, then, the shortest first, the longer ones that the
        dictionary so far cannot split.
        """
        for name in sorted(set(names), key=lambda name: (len(name), name)):
            if len(name) < self.config.long_from or not self._split(name).is_long:
                self.add_word(_form(runs(name, CHINESE)))

    def add_word(self, form: str) -> None:
        """Make the form of a short name a word of the dictionary."""
        if form and form not in self.short:
            self.short[form] = None
            self.words.add(form)

    def segment(self, text: str) -> Segmented:
        """Split an entity; one that is short, or that cannot be split, is one piece."""
        short = len(text) < self.config.long_from or _form(runs(text, CHINESE)) in self.short
        return whole(text) if short else self._split(text)

    def _split(self, text: str) -> Segmented:
        core, added = _without_bracket(runs(text, CHINESE), text)
        for split in (self._by_words, self._by_phrases):
            pieces = [piece for run in core for piece in self._join_affixes(split(run))]
            if not self._too_many_single(pieces):
                break
        else:
            return whole(text)
        if len(pieces) < 2:
            return whole(text)
        rest = [piece for run in added for piece in self._join_affixes(self._by_words(run))]
        spans = tuple(span_of(piece) for piece in pieces)
        return Segmented(
            text,
            spans + tuple(span_of(piece) for piece in rest),
            (spans[0][0], spans[-2][1]),
            spans[-1],
        )

    def _by_words(self, run: Sequence[Unit]) -> Pieces:
        pieces: Pieces = []
        start = 0
        for place in range(1, len(run) + 1):
            if place == len(run) or self._cuts(run, place):
                pieces += self._join_unknown(self.words.split(run[start:place]))
                start = place
        return pieces

    def _by_phrases(self, run: Sequence[Unit]) -> Pieces:
        return self.vocabulary.split(run, whole=False)

    def _cuts(self, run: Sequence[Unit], place: int) -> bool:
        """Whether a cut point stands at a place of a run where no short word goes across."""
        after = self._side.get(run[place - 1].form) == AFTER
        before = self._side.get(run[place].form) == BEFORE
        if not (after or before):
            return False
        for length in range(2, _LONGEST_TORN + 1):
            for start in range(max(0, place - length + 1), min(place, len(run) - length + 1)):
                if self._is_torn(run[start : start + length]):
                    return False
        return True

    def _is_torn(self, run: Sequence[Unit]) -> bool:
        """Whether a run is a word that a cut must not tear.

        One of a general dictionary that is another word behind a suffix (``性肝炎``) is none.
        """
        forms = [unit.form for unit in run]
        word = join(forms, CHINESE)
        if word in self.short or not self.words.knows(word):
            return word in self.short
        suffixed = len(run) > 2 and self._side.get(forms[0]) == AFTER
        return not (suffixed and self.words.knows(join(forms[1:], CHINESE)))

    def _join_unknown(self, pieces: Pieces) -> Pieces:
        """Join neighbours that are in no dictionary, as parts of transliterated names are.

        A single character belongs to an unknown word beside it, unless it ends the part (dosage
        forms do) or is a cut point.
        """
        joined: Pieces = []
        was_unknown = False
        for place, piece in enumerate(pieces):
            form = join([unit.form for unit in piece], CHINESE)
            unknown = len(piece) > 1 and not self.words.knows(form)
            loose = place < len(pieces) - 1 and self._is_loose(piece)
            follows = was_unknown and (unknown or loose)
            if joined and (follows or (unknown and self._is_loose(joined[-1]))):
                joined[-1] = [*joined[-1], *piece]
            else:
                joined.append(piece)
            was_unknown = unknown or (was_unknown and loose)
        return joined

    def _is_loose(self, piece: Sequence[Unit]) -> bool:
        form = piece[0].form
        single = len(piece) == 1 and len(form) == 1 and not form.isascii()
        return single and form not in self._side and form not in _CONJUNCTIONS

    def _join_affixes(self, pieces: Pieces) -> Pieces:
        """Join single characters that words usually end, or begin, with."""
        joined: Pieces = []
        for place, piece in enumerate(pieces):
            if joined and self._belong(joined[-1], piece, is_last=place == len(pieces) - 1):
                joined[-1] = [*joined[-1], *piece]
            else:
                joined.append(piece)
        return joined

    def _belong(self, before: Sequence[Unit], piece: Sequence[Unit], *, is_last: bool) -> bool:
        """Whether a letter, a suffix or what follows a prefix belongs to the piece before it.

        A last character stays a head of its own behind a word of three characters or more.
        """
        if self._is_letter(piece):
            return True
        if self._is_single(piece, AFTER):
            return not is_last or len(before) < _LONGEST_TORN
        return self._is_single(before, BEFORE) and len(piece) > 1

    def _is_letter(self, piece: Sequence[Unit]) -> bool:
        form = piece[0].form
        return len(piece) == 1 and form.isascii() and len(form) <= _LETTERS

    def _is_single(self, piece: Sequence[Unit], side: str) -> bool:
        form = piece[0].form
        return len(piece) == 1 and form not in _CONJUNCTIONS and self._side.get(form) == side

    def _too_many_single(self, pieces: Pieces) -> bool:
        lengths = [sum(len(unit.form) for unit in piece) for piece in pieces]
        single = sum(
            length == 1 and not piece[0].form.isascii()
            for length, piece in zip(lengths, pieces, strict=True)
        )
        return single > self.config.max_single * sum(lengths)


def _form(grouped: Iterable[Sequence[Unit]]) -> str:
    return "".join(unit.form for run in grouped for unit in run)


def _without_bracket(
    grouped: list[list[Unit]], text: str
) -> tuple[list[list[Unit]], list[list[Unit]]]:
    """Part what stands in a bracket at the end, which says the entity again or tells its kind."""
    core = [run for run in grouped if run[0].start < _last_bracket(text)]
    return (core, grouped[len(core) :]) if core else (grouped, [])


def _last_bracket(text: str) -> int:
    """Say where the bracket opens that the text ends with; -1 if it ends with none."""
    depth = 0
    for place in range(len(text) - 1, -1, -1):
        depth += (text[place] in _CLOSING) - (text[place] in _OPENING)
        if depth <= 0:
            return place if place < len(text) - 1 else -1
    return -1
