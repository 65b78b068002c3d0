"""What phrases and pieces are made of: characters in Chinese, words elsewhere.

In Chinese a run of Latin letters, Greek letters or digits is one unit (``HPV``, ``B12``), and so
are single characters tied by hyphens, as transliterated names are (``洛-穆-比``). Signs and blanks
belong to no unit.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate
from typing import Any, Protocol

from biograft.errors import ConfigError, MissingExtraError

CHINESE = "zh"

_LATIN = "A-Za-z0-9\u00c0-\u024f\u0370-\u03ff\uff10-\uff19\uff21-\uff3a\uff41-\uff5a"
_TIED = r"[^\W_](?:-[^\W_]){2,}|(?<![^\W_])[^\W_]-[^\W_]"
_IN_CHINESE = re.compile(
    rf"[{_LATIN}]+(?:[-/.'’][{_LATIN}]+)*|{_TIED}|[^\W_]",
)
_IN_WORDS = re.compile(r"[^\W_]+(?:[-'’./+][^\W_]+)*")


@dataclass(frozen=True, slots=True)
class Unit:
    """A character or a word: where it stands, and the form in which it is compared."""

    start: int
    end: int
    form: str


def read_units(text: str, language: str) -> list[Unit]:
    """Take a text apart; what lies between units are signs and blanks."""
    pattern = _IN_CHINESE if language == CHINESE else _IN_WORDS
    return [Unit(*found.span(), fold(found[0])) for found in pattern.finditer(text)]


def runs(text: str, language: str) -> list[list[Unit]]:
    """Group the units of a text that no sign parts; in Chinese no blank either."""
    grouped: list[list[Unit]] = []
    end = -1
    for unit in read_units(text, language):
        gap = text[end : unit.start] if end >= 0 else ""
        if end < 0 or (gap if language == CHINESE else gap.strip()):
            grouped.append([])
        grouped[-1].append(unit)
        end = unit.end
    return grouped


@lru_cache(1 << 16)
def fold(text: str) -> str:
    """Make the form in which units are compared: NFKC, case folded."""
    if text.isascii():
        return text.lower()
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())


def join(forms: Sequence[str], language: str) -> str:
    """Write the forms of neighbouring units as one text."""
    return ("" if language == CHINESE else " ").join(forms)


def is_number(form: str) -> bool:
    """Whether a unit is a number, which says nothing about the phrase around it."""
    return not any(char.isalpha() for char in form)


ROUNDS = 2
_ALONE = 0.02
"""What a unit that is no word counts for, as a share of what a word met once does."""


class Vocabulary:
    """Words with counts; splits runs of units by the product of their probabilities."""

    def __init__(
        self, counts: Mapping[str, float], language: str, total: float | None = None
    ) -> None:
        """Take words with counts; ``total``: what they are shares of, if words are yet to come."""
        self.language = language
        self.counts = dict(counts)
        self.total = math.fsum(self.counts.values()) if total is None else total
        self._log_total = math.log(self.total + 1)
        self._alone = math.log(_ALONE) - self._log_total
        self._longest = 1
        self._log = {word: math.log(n) - self._log_total for word, n in self.counts.items()}
        for word in self.counts:
            self._longest = max(self._longest, self._length(word))

    def __contains__(self, word: str) -> bool:
        return word in self._log

    def __len__(self) -> int:
        return len(self._log)

    def add(self, word: str, count: float = 1.0) -> None:
        """Add a word, or make a known one as frequent as this."""
        if count > self.counts.get(word, 0.0):
            self.counts[word] = count
            self._log[word] = math.log(count) - self._log_total
            self._longest = max(self._longest, self._length(word))

    def split(self, run: Sequence[Unit], *, whole: bool = True) -> list[Sequence[Unit]]:
        """Split a run where that is most probable; ``whole=False`` forbids leaving it whole.

        Of splits that are equally probable the one with the longer last word is taken.
        """
        forms = [unit.form for unit in run]
        n = len(run)
        best, cut = [0.0] + [-math.inf] * n, [0] * (n + 1)
        for end in range(1, n + 1):
            for start in range(max(0, end - self._longest), end):
                if not whole and end - start == n > 1:
                    continue
                chance = best[start] + self._chance(forms[start:end])
                if chance > best[end]:
                    best[end], cut[end] = chance, start
        pieces: list[Sequence[Unit]] = []
        while n:
            pieces.append(run[cut[n] : n])
            n = cut[n]
        return pieces[::-1]

    def _chance(self, forms: Sequence[str]) -> float:
        known = self._log.get(forms[0] if len(forms) == 1 else join(forms, self.language))
        if known is not None:
            return known
        return self._alone if len(forms) == 1 else -math.inf

    def _length(self, word: str) -> int:
        """Bound a word's length in units from above."""
        return word.count(" ") + 1 if " " in word else len(word)


def fit_vocabulary(
    counts: Mapping[str, float], names: Iterable[Sequence[Unit]], language: str
) -> Vocabulary:
    """Fit the probabilities of words to the names that they make up.

    ``names`` are runs of units. None is left whole, since how it falls apart is the question; a
    word that no split uses keeps a small count.
    """
    runs = [run for run in names if len(run) > 1]
    vocabulary = Vocabulary(counts, language)
    for _ in range(ROUNDS):
        used: Counter[str] = Counter()
        for run in runs:
            for piece in vocabulary.split(run, whole=False):
                used[join([unit.form for unit in piece], language)] += 1
        fresh = {word: used.get(word, 0) + _kept(counts[word]) for word in counts}
        vocabulary = Vocabulary(fresh, language)
    return vocabulary


def _kept(count: float) -> float:
    """Let the corpus speak softly: its everyday words are not those of names."""
    return 0.1 + 0.1 * math.log1p(count)


WORDS = ("rjieba", "own")


class Words(Protocol):
    """Splits a run of units into words; knows which texts are words."""

    def add(self, word: str) -> None:
        """Add a word to the dictionary."""

    def knows(self, word: str) -> bool:
        """Whether a text is a word of the dictionary."""

    def split(self, run: Sequence[Unit]) -> list[Sequence[Unit]]:
        """Split a run of units."""


class OwnWords:
    """The most probable split by phrases and short entities, counted as in a vocabulary."""

    def __init__(self, vocabulary: Vocabulary, phrases: Iterable[str]) -> None:
        self._counts = vocabulary.counts
        known = {phrase: vocabulary.counts[phrase] for phrase in phrases}
        self._vocabulary = Vocabulary(known, vocabulary.language, vocabulary.total)

    def add(self, word: str) -> None:
        """Add a word to the dictionary."""
        self._vocabulary.add(word, self._counts.get(word, 1.0))

    def knows(self, word: str) -> bool:
        """Whether a text is a word of the dictionary."""
        return word in self._vocabulary

    def split(self, run: Sequence[Unit]) -> list[Sequence[Unit]]:
        """Split a run of units."""
        return self._vocabulary.split(run)


class RjiebaWords:
    """rjieba with the short entities as user dictionary."""

    def __init__(self) -> None:
        try:
            import rjieba
        except ModuleNotFoundError as error:
            raise MissingExtraError(
                "zh", "splitting Chinese words (words = 'own' does without)"
            ) from error
        self._jieba: Any = rjieba.Jieba()
        self._added: set[str] = set()

    def add(self, word: str) -> None:
        """Add a word, as frequent as it must be to stay whole."""
        if word not in self._added:
            self._added.add(word)
            self._jieba.add_word(word, None, None)

    def knows(self, word: str) -> bool:
        """Whether a text is a word of the user's or the built-in dictionary."""
        return bool(self._jieba.has_word(word))

    def split(self, run: Sequence[Unit]) -> list[Sequence[Unit]]:
        """Split a run of units; what would part a unit is no cut."""
        words = self._jieba.cut(join([unit.form for unit in run], CHINESE))
        cuts = set(accumulate(map(len, words)))
        pieces, start, end = [], 0, 0
        for place, unit in enumerate(run, 1):
            end += len(unit.form)
            if end in cuts or place == len(run):
                pieces.append(run[start:place])
                start = place
        return pieces


def open_words(name: str, vocabulary: Vocabulary, phrases: Iterable[str]) -> Words:
    """Open a word segmenter by its name; ``own`` begins with phrases of the vocabulary."""
    if name not in WORDS:
        raise ConfigError(f"words: expected one of {', '.join(WORDS)}, found {name!r}")
    return RjiebaWords() if name == "rjieba" else OwnWords(vocabulary, phrases)
