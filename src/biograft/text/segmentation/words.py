"""Units of text, unigram vocabulary and word segmenters (rjieba, unigram) for entity names.

A unit is a character in Chinese, else a word. In Chinese a run of Latin letters, Greek letters or
digits is one unit (``HPV``, ``B12``), and so are single characters joined by hyphens, as in
transliterated names (``洛-穆-比``). Punctuation and whitespace belong to no unit.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate
from typing import Any, TypeAlias

from biograft.errors import MissingExtraError
from biograft.text.segmentation.config import CHINESE

_LATIN = "A-Za-z0-9\u00c0-\u024f\u0370-\u03ff\uff10-\uff19\uff21-\uff3a\uff41-\uff5a"
_TIED = r"[^\W_](?:-[^\W_]){2,}|(?<![^\W_])[^\W_]-[^\W_]"
_IN_CHINESE = re.compile(
    rf"[{_LATIN}]+(?:[-/.'’][{_LATIN}]+)*|{_TIED}|[^\W_]",
)
_IN_WORDS = re.compile(r"[^\W_]+(?:[-'’./+][^\W_]+)*")


@dataclass(frozen=True, slots=True)
class Unit:
    """A character or a word: its offsets, and its normalised form."""

    start: int
    end: int
    form: str


def read_units(text: str, language: str) -> list[Unit]:
    """Split a text into units; punctuation and whitespace between them are dropped.

    Args:
        text: A text.
        language: Decides about units: words, or characters of Chinese.
    """
    pattern = _IN_CHINESE if language == CHINESE else _IN_WORDS
    return [Unit(*match.span(), fold(match[0])) for match in pattern.finditer(text)]


def runs(text: str, language: str) -> list[list[Unit]]:
    """Group the units of a text that no punctuation separates, in Chinese no whitespace either.

    Args:
        text: A text.
        language: Decides about units: words, or characters of Chinese.
    """
    grouped: list[list[Unit]] = []
    end = -1
    for unit in read_units(text, language):
        gap = text[end : unit.start] if end >= 0 else ""
        if end < 0 or (gap if language == CHINESE else gap.strip()):
            grouped.append([])
        grouped[-1].append(unit)
        end = unit.end
    return grouped


@dataclass(frozen=True, slots=True)
class NameRuns:
    """The runs of many names, split anew each time that they are iterated, to save memory."""

    names: Sequence[str]
    language: str

    def __iter__(self) -> Iterator[list[Unit]]:
        for name in self.names:
            yield from runs(name, self.language)


@lru_cache(1 << 16)
def fold(text: str) -> str:
    """Normalise a unit: NFKC, case folded."""
    if text.isascii():
        return text.lower()
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())


def join(forms: Sequence[str], language: str) -> str:
    """Join the forms of neighbouring units into a text.

    Args:
        forms: Forms of units.
        language: Decides about blanks between them.
    """
    return ("" if language == CHINESE else " ").join(forms)


def is_number(form: str) -> bool:
    """Whether a unit has no letter."""
    return not any(char.isalpha() for char in form)


N_ITERATIONS = 2
_SINGLE_UNIT_COUNT = 0.02
"""The count of a unit that is no word of the vocabulary."""


class UnigramVocabulary:
    """A unigram model of words: splits runs of units into the most probable words."""

    def __init__(
        self, counts: Mapping[str, float], language: str, total: float | None = None
    ) -> None:
        """Take words with counts.

        Args:
            counts: Count of each word.
            language: Language, which decides about units: words, or characters of Chinese.
            total: Sum of the counts, if not all words are given.
        """
        self.language = language
        self.counts = dict(counts)
        self.total = math.fsum(self.counts.values()) if total is None else total
        self._log_total = math.log(self.total + 1)
        self._log_single = math.log(_SINGLE_UNIT_COUNT) - self._log_total
        self._max_length = 1
        self._log = {word: math.log(n) - self._log_total for word, n in self.counts.items()}
        for word in self.counts:
            self._max_length = max(self._max_length, self._length(word))

    def __contains__(self, word: str) -> bool:
        return word in self._log

    def __len__(self) -> int:
        return len(self._log)

    def add(self, word: str, count: float = 1.0) -> None:
        """Add a word, or raise the count of a known one.

        Args:
            word: The word.
            count: Its count.
        """
        if count > self.counts.get(word, 0.0):
            self.counts[word] = count
            self._log[word] = math.log(count) - self._log_total
            self._max_length = max(self._max_length, self._length(word))

    def split(self, run: Sequence[Unit], *, whole: bool = True) -> list[Sequence[Unit]]:
        """Split a run into its most probable words.

        Of equally probable splits the one with the longer last word is taken.

        Args:
            run: Neighbouring units.
            whole: The run may be one word; without, at least two are required.
        """
        forms = [unit.form for unit in run]
        n = len(run)
        best, cut = [0.0] + [-math.inf] * n, [0] * (n + 1)
        for end in range(1, n + 1):
            for start in range(max(0, end - self._max_length), end):
                if not whole and end - start == n > 1:
                    continue
                log_probability = best[start] + self._log_probability(forms[start:end])
                if log_probability > best[end]:
                    best[end], cut[end] = log_probability, start
        segments: list[Sequence[Unit]] = []
        while n:
            segments.append(run[cut[n] : n])
            n = cut[n]
        return segments[::-1]

    def _log_probability(self, forms: Sequence[str]) -> float:
        known = self._log.get(forms[0] if len(forms) == 1 else join(forms, self.language))
        if known is not None:
            return known
        return self._log_single if len(forms) == 1 else -math.inf

    def _length(self, word: str) -> int:
        """Return an upper bound of a word's length in units."""
        return word.count(" ") + 1 if " " in word else len(word)


def fit_vocabulary(
    counts: Mapping[str, float], names: Iterable[Sequence[Unit]], language: str
) -> UnigramVocabulary:
    """Fit word probabilities to names by hard EM.

    A word that no split uses keeps a small count: common words of text are not those of names.

    Args:
        counts: The count of each word in the corpus.
        names: Runs of units, iterated repeatedly; each must be split into at least two words.
        language: Their language.
    """
    vocabulary = UnigramVocabulary(counts, language)
    for _ in range(N_ITERATIONS):
        used: Counter[str] = Counter()
        for run in names:
            if len(run) > 1:
                for segment in vocabulary.split(run, whole=False):
                    used[join([unit.form for unit in segment], language)] += 1
        fresh = {word: used[word] + (0.1 + 0.1 * math.log1p(n)) for word, n in counts.items()}
        vocabulary = UnigramVocabulary(fresh, language)
    return vocabulary


class UnigramWordSegmenter:
    """The most probable split into phrases and short entities, with a vocabulary's counts.

    Args:
        vocabulary: Words with their counts.
        phrases: Phrases of the vocabulary that the segmenter starts from.
    """

    def __init__(self, vocabulary: UnigramVocabulary, phrases: Iterable[str]) -> None:
        self._counts = vocabulary.counts
        known = {phrase: vocabulary.counts[phrase] for phrase in phrases}
        self._vocabulary = UnigramVocabulary(known, vocabulary.language, vocabulary.total)

    def add(self, word: str) -> None:
        """Add a word to the dictionary."""
        self._vocabulary.add(word, self._counts.get(word, 1.0))

    def knows(self, word: str) -> bool:
        """Whether a text is a word of the dictionary."""
        return word in self._vocabulary

    def split(self, run: Sequence[Unit]) -> list[Sequence[Unit]]:
        """Split a run of units."""
        return self._vocabulary.split(run)


class RjiebaWordSegmenter:
    """The rjieba segmenter with the short entities as user dictionary."""

    def __init__(self) -> None:
        try:
            import rjieba
        except ModuleNotFoundError as error:
            raise MissingExtraError(
                "zh", "splitting Chinese words (word_segmenter = 'unigram' does without)"
            ) from error
        self._jieba: Any = rjieba.Jieba()
        self._added: set[str] = set()

    def add(self, word: str) -> None:
        """Add a word with the frequency that keeps it whole."""
        if word not in self._added:
            self._added.add(word)
            self._jieba.add_word(word, None, None)

    def knows(self, word: str) -> bool:
        """Whether a text is a word of the user or the built-in dictionary."""
        return bool(self._jieba.has_word(word))

    def split(self, run: Sequence[Unit]) -> list[Sequence[Unit]]:
        """Split a run of units; cuts inside a unit are ignored."""
        words = self._jieba.cut(join([unit.form for unit in run], CHINESE))
        cuts = set(accumulate(map(len, words)))
        segments, start, end = [], 0, 0
        for position, unit in enumerate(run, 1):
            end += len(unit.form)
            if end in cuts or position == len(run):
                segments.append(run[start:position])
                start = position
        return segments


WordSegmenter: TypeAlias = UnigramWordSegmenter | RjiebaWordSegmenter
"""Splits a run of units into words of a dictionary."""


def open_word_segmenter(
    name: str, vocabulary: UnigramVocabulary, phrases: Iterable[str]
) -> WordSegmenter:
    """Open a word segmenter by its name; ``unigram`` starts from phrases of the vocabulary.

    Args:
        name: ``rjieba`` or ``unigram``.
        vocabulary: Words with their counts, for ``unigram``.
        phrases: Phrases of the vocabulary that ``unigram`` starts from.
    """
    return RjiebaWordSegmenter() if name == "rjieba" else UnigramWordSegmenter(vocabulary, phrases)
