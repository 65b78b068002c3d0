"""Vectors of characters or words, trained on text, as a measure of how similar names are.

A Chinese character is a token, elsewhere a word is. A name is the mean of its tokens' vectors;
tokens that the text does not have often enough say nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numba
import numpy as np
import numpy.typing as npt

from biograft.corpus.shards import Shards
from biograft.errors import ConfigError, InputError, MissingExtraError
from biograft.probing.similarity.report import AskedNames, Scores, Vectors
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


SGNS_EPOCHS, SGNS_WINDOW, NEGATIVES = 5, 5, 5
_LONGEST = 10_000
"""Tokens of a line that gensim reads; it would drop the rest."""


def train_sgns(text: TrainingText, config: TrainingConfig) -> WordVectors:
    """Train vectors on text; on one core, so that the same seed gives the same."""
    try:
        from gensim.models import Word2Vec
    except ImportError as error:
        raise MissingExtraError("vectors", "training vectors by skip-gram") from error
    model = Word2Vec(
        _Lines(text),
        vector_size=config.dim,
        window=SGNS_WINDOW,
        min_count=LEAST_OFTEN,
        sg=1,
        negative=NEGATIVES,
        epochs=config.epochs or SGNS_EPOCHS,
        seed=config.seed,
        workers=1,
    )
    tokens = list(model.wv.index_to_key)
    return WordVectors(tokens, np.asarray(model.wv.vectors, np.float32))


class _Lines:
    """The lines of a text as tokens, as often as they are asked for."""

    def __init__(self, text: TrainingText) -> None:
        self.text = text

    def __iter__(self) -> Iterator[list[str]]:
        for line in self.text.lines():
            for start in range(0, len(line), _LONGEST):
                yield [self.text.tokens[k] for k in line[start : start + _LONGEST].tolist()]


GLOVE_EPOCHS, GLOVE_WINDOW = 25, 10
FULL_WEIGHT, POWER = 100.0, 0.75
RATE = 0.05
_BLOCK = 1_000_000
"""Tokens whose neighbours are counted at once."""

_I32 = npt.NDArray[np.int32]
_I64 = npt.NDArray[np.int64]
_F64 = npt.NDArray[np.float64]


class Counts(NamedTuple):
    """How often two tokens stand near one another: the table's entries, by row, then column."""

    rows: _I32
    columns: _I32
    values: _F64


class Parameters(NamedTuple):
    """Vectors and biases of tokens and of their contexts, each with its sum of squared slopes."""

    vectors: _F64  # (2, tokens, dim + 1): the bias last
    squares: _F64  # (2, tokens, dim + 1)


def train_glove(
    text: TrainingText, config: TrainingConfig, progress: Progress | None = None
) -> WordVectors:
    """Train vectors on text; the same seed gives the same."""
    counts = count_neighbours(text)
    rng = np.random.default_rng(config.seed)
    parameters = new_parameters(len(text.tokens), config.dim, rng)
    n_epochs = config.epochs or GLOVE_EPOCHS
    for epoch in range(n_epochs):
        update(*counts, *parameters, rng.permutation(len(counts.rows)))
        if progress:
            progress.advance(len(counts.rows), (epoch + 1) / n_epochs)
    both = parameters.vectors.sum(axis=0)[:, :-1]
    return WordVectors(text.tokens, both.astype(np.float32))


def new_parameters(n_tokens: int, dim: int, rng: np.random.Generator) -> Parameters:
    """Draw small vectors to begin with; sums of squares begin at 1."""
    shape = (2, n_tokens, dim + 1)
    return Parameters((rng.random(shape) - 0.5) / dim, np.ones(shape))


def count_neighbours(text: TrainingText) -> Counts:
    """Count how often tokens stand near one another in a line, on either side."""
    n = len(text.tokens)
    keys, values = np.zeros(0, np.int64), np.zeros(0)
    starts = np.concatenate([[0], text.ends[:-1]])
    of_line = np.repeat(starts, text.ends - starts)  # where the line of each token begins
    for begin in range(0, len(text.numbers), _BLOCK):
        end = min(begin + _BLOCK, len(text.numbers))
        found = _near(text.numbers, of_line, begin, end, n)
        keys, values = _added(np.concatenate([keys, found[0]]), np.concatenate([values, found[1]]))
    return Counts((keys // n).astype(np.int32), (keys % n).astype(np.int32), values)


def _added(keys: _I64, values: _F64) -> tuple[_I64, _F64]:
    """Add up the values of equal keys; keys become ascending."""
    order = np.argsort(keys, kind="stable")
    keys, values = keys[order], values[order]
    first = np.flatnonzero(np.diff(keys, prepend=-1))
    return keys[first], np.add.reduceat(values, first) if len(first) else values


@numba.njit(cache=True)
def _near(numbers: _I32, of_line: _I64, begin: int, end: int, n: int) -> tuple[_I64, _F64]:
    """Give each token with each up to 10 before it, both ways round, by 1 / distance."""
    keys = np.empty(2 * GLOVE_WINDOW * (end - begin), np.int64)
    values = np.empty(len(keys))
    k = 0
    for place in range(begin, end):
        token = np.int64(numbers[place])
        for other in range(max(of_line[place], place - GLOVE_WINDOW), place):
            context = np.int64(numbers[other])
            keys[k], keys[k + 1] = token * n + context, context * n + token
            values[k] = values[k + 1] = 1.0 / (place - other)
            k += 2
    return keys[:k], values[:k]


@numba.njit(cache=True)
def update(
    rows: _I32, columns: _I32, values: _F64, vectors: _F64, squares: _F64, order: _I64
) -> float:
    """Take an AdaGrad step for each entry of the table, in an order; give the sum of losses."""
    dim = vectors.shape[2] - 1
    total = 0.0
    for entry in order:
        i, j, x = rows[entry], columns[entry], values[entry]
        w, c = vectors[0, i], vectors[1, j]
        error = w[dim] + c[dim] - np.log(x)
        for k in range(dim):
            error += w[k] * c[k]
        weight = min(1.0, (x / FULL_WEIGHT) ** POWER)
        total += 0.5 * weight * error * error
        slope = weight * error
        for k in range(dim + 1):
            of_w = slope * (c[k] if k < dim else 1.0)
            of_c = slope * (w[k] if k < dim else 1.0)
            w[k] -= RATE * of_w / np.sqrt(squares[0, i, k])
            c[k] -= RATE * of_c / np.sqrt(squares[1, j, k])
            squares[0, i, k] += of_w * of_w
            squares[1, j, k] += of_c * of_c
    return total
