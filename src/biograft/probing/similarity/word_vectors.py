"""Vectors of characters or words, trained on text, as a measure of how similar names are.

A Chinese character is a token, elsewhere a word is. A name is the mean of its tokens' vectors;
tokens that the text does not have often enough say nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from biograft.corpus.shards import Shards
from biograft.errors import ConfigError, InputError
from biograft.probing.similarity.judging import AskedNames, Scores, Vectors
from biograft.progress import Progress
from biograft.sources.files import read_lines
from biograft.text import HAN, normalise

LEAST_OFTEN = 5
"""How often a token must stand in the text."""
_ALONE = rf"\u3005-\u3007\u3041-\u312f{HAN}"  # kana, bopomofo, Chinese characters
_TOKEN = re.compile(rf"[{_ALONE}]|[^\s{_ALONE}]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingConfig:
    """How vectors are trained."""

    dim: int = 100
    epochs: int = 0
    """How often the text (GloVe: the table of its counts) is gone through; 0: as is usual."""
    seed: int = 0

    def __post_init__(self) -> None:
        for key, least in (("dim", 1), ("epochs", 0), ("seed", 0)):
            if getattr(self, key) < least:
                raise ConfigError(f"{key}: expected {least} or more, found {getattr(self, key)}")


@dataclass(frozen=True)
class TrainingText:
    """Text as numbers of tokens, the most frequent first; those too rare are left out."""

    tokens: list[str]
    counts: npt.NDArray[np.int64]
    numbers: npt.NDArray[np.int32]
    ends: npt.NDArray[np.int64]  # (lines,)

    def lines(self) -> Iterator[npt.NDArray[np.int32]]:
        """Give the numbers of each line that has any."""
        start = 0
        for end in self.ends.tolist():
            if end > start:
                yield self.numbers[start:end]
            start = end


@dataclass(frozen=True)
class WordVectors:
    """A vector for each token."""

    tokens: list[str]
    vectors: Vectors

    def __call__(self, names: AskedNames, progress: Progress | None = None) -> Scores:
        """Score what is offered to each query."""
        return names.cosines(self.encode(names.texts))

    def encode(self, texts: Iterable[str]) -> Vectors:
        """Average the vectors of the tokens of each text; zeros where none is known."""
        numbers = {token: row for row, token in enumerate(self.tokens)}
        found = [[numbers[t] for t in tokenize(text) if t in numbers] for text in texts]
        nothing = np.zeros(self.vectors.shape[1], np.float32)
        means = [self.vectors[rows].mean(axis=0) if rows else nothing for rows in found]
        return np.array(means, np.float32).reshape(-1, self.vectors.shape[1])


def tokenize(text: str) -> list[str]:
    """Part a text into characters of Chinese and words of all else; signs vanish.

    >>> tokenize("2型糖尿病 (Type-2)")
    ['2', '型', '糖', '尿', '病', 'type', '2']
    """
    return _TOKEN.findall(normalise(text))


def read_text_lines(path: Path) -> Iterator[str]:
    """Read the texts of a file, one a line, or of a folder of annotated text."""
    if path.is_dir():
        yield from (document.text for document in Shards.open(path))
    else:
        yield from (line for _, line in read_lines(path))


def read_training_text(path: Path, progress: Progress | None = None) -> TrainingText:
    """Number the tokens of a text; two readings give the same."""
    numbers: dict[str, int] = {}
    met: list[npt.NDArray[np.int32]] = []
    for line in read_text_lines(path):
        tokens = tokenize(line)
        row = [numbers.setdefault(token, len(numbers)) for token in tokens]
        met.append(np.array(row, np.int32))
        if progress:
            progress.advance(1)
    lengths = np.fromiter(map(len, met), np.int64, len(met))
    every = np.concatenate([np.zeros(0, np.int32), *met])
    counts = np.bincount(every, minlength=len(numbers))
    order = np.argsort(-counts, kind="stable")
    kept = order[counts[order] >= LEAST_OFTEN]
    if not len(kept):
        raise InputError(
            f"has no word or character {LEAST_OFTEN} times", path=path, remedy="give more text"
        )
    renumbered = np.full(len(numbers), -1, np.int32)
    renumbered[kept] = np.arange(len(kept), dtype=np.int32)
    every = renumbered[every]
    lines = np.repeat(np.arange(len(met)), lengths)[every >= 0]
    words = list(numbers)
    return TrainingText(
        [words[k] for k in kept.tolist()],
        counts[kept],
        every[every >= 0],
        np.cumsum(np.bincount(lines, minlength=len(met))),
    )
