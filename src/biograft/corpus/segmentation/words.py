"""Word segmenters whose dictionary is the short entities: rjieba's, or one of our own.

``rjieba`` (extra ``zh``) brings a dictionary of everyday Chinese and guesses at words in neither;
``own`` knows the short entities and the mined phrases alone, and needs no package.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import accumulate
from typing import Any, Protocol

from biograft.corpus.segmentation.units import CHINESE, Unit, join
from biograft.corpus.segmentation.vocabulary import Vocabulary
from biograft.errors import ConfigError, MissingExtraError

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
