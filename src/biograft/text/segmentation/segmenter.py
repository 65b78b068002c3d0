"""Segmenters of long entities (EMBERT): Chinese ones, and those written with spaces.

A Chinese entity is cut at *cut points*, characters at which words begin or end, except inside a
short word; each part is split into words; single characters that usually begin or end a word are
joined to their neighbour. If too many single characters are left, the entity vocabulary splits the
entity instead; if that leaves too many as well, the entity counts as short.

To find cut points, the names of a store are split with the entity vocabulary; the most frequent
characters at the start or the end of segments are the cut points. They are written to a file for
review: deleting a line, or commenting it out, removes the cut point. A character cuts on the side
where segment boundaries are more frequent: before 急, after 性.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain, pairwise
from pathlib import Path

from biograft.artifacts import write_lines
from biograft.errors import FormatError
from biograft.kb.sources.files import read_lines
from biograft.text.name_rules import FUNCTION_WORDS
from biograft.text.segmentation.config import CHINESE, SegmentationConfig
from biograft.text.segmentation.words import (
    UnigramVocabulary,
    Unit,
    WordSegmenter,
    join,
    read_units,
    runs,
)

BEFORE, AFTER = "before", "after"
COLUMNS = ("character", "side", "count", "starts", "ends", "ratio")
_FILE_HEADER = f"""\
# Characters at which names are cut. Delete the line of one that should not cut.
# side: cut before or after it. count: segments that begin (starts) or end (ends) with it.
# ratio: how many of its occurrences inside names are such a cut.
# {chr(9).join(COLUMNS)}"""


@dataclass(frozen=True, slots=True)
class CutPoint:
    """A character at which names are cut, with its statistics."""

    character: str
    """The character."""
    side: str
    """Side of the cut: before or after the character."""
    starts: int
    """Number of segments that begin with the character."""
    ends: int
    """Number of segments that end with the character."""
    ratio: float
    """Share of its occurrences inside long names that are cuts."""

    @property
    def count(self) -> int:
        """The number of segments that begin or end with the character."""
        return self.starts + self.ends


def find_cut_points(
    names: Iterable[Sequence[Unit]],
    vocabulary: UnigramVocabulary,
    *,
    n: int = 100,
    min_ratio: float = 0.0,
) -> list[CutPoint]:
    """Count the characters at the edges of segments and return the most frequent.

    Args:
        names: Runs of the units of names.
        vocabulary: Splits them into segments.
        n: The number of characters.
        min_ratio: Drops characters that are a segment boundary at a lower ratio of occurrences.
    """
    starts, ends = Counter[str](), Counter[str]()
    positions, cuts = Counter[tuple[str, str]](), Counter[tuple[str, str]]()
    for run in names:
        if len(run) < 2:
            continue
        for unit, following in pairwise(run):
            positions[unit.form, AFTER] += 1
            positions[following.form, BEFORE] += 1
        for segment in vocabulary.split(run, whole=False):
            first, last = segment[0], segment[-1]
            starts[first.form] += _is_character(first)
            ends[last.form] += _is_character(last)
            cuts[first.form, BEFORE] += first is not run[0]
            cuts[last.form, AFTER] += last is not run[-1]
    points = []
    for form in starts.keys() | ends.keys():
        side = BEFORE if starts[form] > ends[form] else AFTER
        n_inside = positions[form, side]
        ratio = round(cuts[form, side] / n_inside if n_inside else 0.0, 3)
        if ratio >= min_ratio:
            points.append(CutPoint(form, side, starts[form], ends[form], ratio))
    points.sort(key=lambda point: (-point.count, point.character))
    return points[:n]


def _is_character(unit: Unit) -> bool:
    """Whether a unit is a single Chinese character, not a number or a Latin word."""
    return len(unit.form) == 1 and unit.form.isalpha() and not unit.form.isascii()


def write_cut_points(points: Iterable[CutPoint], path: Path, *, overwrite: bool = False) -> None:
    """Write cut points for review, the most frequent first.

    Args:
        points: Cut points, in the order of the rows.
        path: File to write.
        overwrite: Replace a file that exists.
    """
    rows = (
        f"{p.character}\t{p.side}\t{p.count}\t{p.starts}\t{p.ends}\t{p.ratio:.3f}" for p in points
    )
    write_lines(path, chain([_FILE_HEADER], rows), overwrite=overwrite)


def read_cut_points(path: Path) -> list[CutPoint]:
    """Read cut points; empty lines and lines that begin with ``#`` are skipped."""
    points: dict[str, CutPoint] = {}
    for number, line in read_lines(path):
        if not line.strip() or line.startswith("#"):
            continue
        point = _read_point(line)
        if point is None or point.character in points:
            problem = (
                f"expected one character and, separated by tabs, {', '.join(COLUMNS[1:])}"
                if point is None
                else "a character that is in the file already"
            )
            raise FormatError(problem, path=path, line=number, text=line)
        points[point.character] = point
    return list(points.values())


def _read_point(line: str) -> CutPoint | None:
    fields = line.split("\t")
    if len(fields) != len(COLUMNS) or len(fields[0]) != 1 or fields[1] not in (BEFORE, AFTER):
        return None
    try:
        return CutPoint(fields[0], fields[1], int(fields[3]), int(fields[4]), float(fields[5]))
    except ValueError:
        return None


Offsets = tuple[int, int]
NO_OFFSETS: Offsets = (0, 0)


@dataclass(frozen=True, slots=True)
class SegmentedEntity:
    """An entity split into segments; a short entity has one segment, its head.

    Segments are sorted and disjoint, with only punctuation and whitespace between them.
    """

    text: str
    """Text of the entity."""
    segments: tuple[Offsets, ...]
    """Offsets of the segments in the text."""
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
    """Splits entities written with spaces; ``learn`` fits it to the names.

    Args:
        vocabulary: Words with their counts.
        heads: Counts of words at the end of names; default: none learned yet.
        config: Settings of the segmentation.
    """

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


Segments = list[Sequence[Unit]]

_OPENING, _CLOSING = "(（[【", ")）]】"
_CONJUNCTIONS = "和与及或并伴"
"""Words of one character that belong to neither side."""
_MAX_SUFFIX = 2
"""Maximum letters or digits that are joined to the word before them, as in ``维生素B1``."""
_MAX_PROTECTED = 3
"""Maximum characters of a word that a cut point does not split."""


class ChineseSegmenter:
    """Splits Chinese entities; ``learn`` collects the short ones.

    Args:
        vocabulary: Words with their counts.
        words: Splits text into words.
        cut_points: Characters before or after which an entity is split.
        config: Settings of the segmentation.
    """

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
        by_phrases = partial(self.vocabulary.split, whole=False)
        for split in (self._split_by_words, by_phrases):
            segments = [segment for run in core for segment in self._join_affixes(split(run))]
            if not self._too_many_single(segments):
                break
        else:
            return whole(text)
        if len(segments) < 2:
            return whole(text)
        spans = tuple(map(span_of, segments))
        rest = [span_of(s) for run in added for s in self._join_affixes(self._split_by_words(run))]
        return SegmentedEntity(text, (*spans, *rest), (spans[0][0], spans[-2][1]), spans[-1])

    def _split_by_words(self, run: Sequence[Unit]) -> Segments:
        segments: Segments = []
        start = 0
        for position in range(1, len(run) + 1):
            if position == len(run) or self._is_cut(run, position):
                segments += self._join_unknown(self.words.split(run[start:position]))
                start = position
        return segments

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
            is_last = position == len(segments) - 1
            if joined and self._belongs_to(joined[-1], segment, is_last=is_last):
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
        form = segment[0].form
        if len(segment) == 1 and form.isascii() and len(form) <= _MAX_SUFFIX:
            return True
        if self._is_single(segment, AFTER):
            return not is_last or len(before) < _MAX_PROTECTED
        return self._is_single(before, BEFORE) and len(segment) > 1

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
