"""Word vectors (skip-gram, GloVe) trained on text, as a similarity measure of names.

Tokens are words, and in Chinese its characters, or its words as rjieba segments them. A name is the
mean of its tokens' vectors; rare tokens are ignored.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from biograft.compute import njit
from biograft.errors import ConfigError, InputError
from biograft.kb.names import HAN, normalise
from biograft.kb.sources.files import read_lines
from biograft.progress import Progress
from biograft.text.segmentation.config import CHINESE
from biograft.text.segmentation.words import RjiebaWordSegmenter, Unit, runs
from biograft.text.shards import Shards
from biograft_lab.probing.similarity.report import QueryNames, Scores, Vectors

MIN_COUNT = 5
"""Minimum frequency of a token."""
_SINGLE = rf"\u3005-\u3007\u3041-\u312f{HAN}"  # kana, bopomofo, Chinese characters
_TOKEN = re.compile(rf"[{_SINGLE}]|[^\s{_SINGLE}]+")


Tokenizer = Callable[[str], list[str]]


def tokenize(text: str) -> list[str]:
    """Split a text into Chinese characters and other words, without punctuation.

    >>> tokenize("2型糖尿病 (Type-2)")
    ['2', '型', '糖', '尿', '病', 'type', '2']
    """
    return _TOKEN.findall(normalise(text))


class ChineseWordTokenizer:
    """Splits a text into words, Chinese ones by rjieba with the given names as dictionary."""

    def __init__(self, names: Iterable[str] = ()) -> None:
        self._segmenter = RjiebaWordSegmenter()
        for name in names:
            grouped = runs(name, CHINESE)
            if len(grouped) == 1 and len(grouped[0]) > 1:
                self._segmenter.add(_form(grouped[0]))

    def __call__(self, text: str) -> list[str]:
        """Return the words of a text, without punctuation."""
        return [_form(word) for run in runs(text, CHINESE) for word in self._segmenter.split(run)]


def _form(units: Iterable[Unit]) -> str:
    return "".join(unit.form for unit in units)


@dataclass(frozen=True, slots=True, kw_only=True)
class WordVectorConfig:
    """Configuration of word vector training."""

    dim: int = 100
    epochs: int = 0
    """Epochs over the text (GloVe: over the co-occurrences); 0: the usual number."""
    seed: int = 0

    def __post_init__(self) -> None:
        for key, minimum in (("dim", 1), ("epochs", 0), ("seed", 0)):
            if getattr(self, key) < minimum:
                raise ConfigError(f"{key}: expected {minimum} or more, found {getattr(self, key)}")


@dataclass(frozen=True)
class TrainingText:
    """Text as token indices, most frequent first, without rare tokens."""

    tokens: list[str]
    counts: npt.NDArray[np.int64]
    token_ids: npt.NDArray[np.int32]
    ends: npt.NDArray[np.int64]  # (lines,)
    split: Tokenizer = tokenize

    def lines(self) -> Iterator[npt.NDArray[np.int32]]:
        """Yield the token indices of each line that is not empty."""
        start = 0
        for end in self.ends.tolist():
            if end > start:
                yield self.token_ids[start:end]
            start = end


@dataclass(frozen=True)
class WordVectors:
    """A vector for each token."""

    tokens: list[str]
    vectors: Vectors
    split: Tokenizer = tokenize
    """Function that splits a text into tokens."""

    def __call__(self, names: QueryNames, progress: Progress | None = None) -> Scores:
        """Score the candidates of each query."""
        return names.cosines(self.encode(names.texts))

    def encode(self, texts: Iterable[str]) -> Vectors:
        """Return the mean token vector of each text; zeros without known tokens.

        A text whose words are all rare has the mean of its characters' vectors.
        """
        rows = {token: row for row, token in enumerate(self.tokens)}
        zeros = np.zeros(self.vectors.shape[1], np.float32)
        means = []
        for text in texts:
            known = [rows[t] for t in self.split(text) if t in rows]
            known = known or [rows[t] for t in tokenize(text) if t in rows]
            means.append(self.vectors[known].mean(axis=0) if known else zeros)
        return np.array(means, np.float32).reshape(-1, self.vectors.shape[1])


def read_text_lines(path: Path) -> Iterator[str]:
    """Read the texts of a file, one a line, or of a folder of annotated text."""
    if path.is_dir():
        yield from (document.text for document in Shards.open(path))
    else:
        yield from (line for _, line in read_lines(path))


def read_training_text(
    path: Path, progress: Progress | None = None, split: Tokenizer = tokenize
) -> TrainingText:
    """Read a text and index its tokens, the same way each time."""
    ids: dict[str, int] = {}
    rows_of_lines: list[npt.NDArray[np.int32]] = []
    for line in read_text_lines(path):
        tokens = split(line)
        row = [ids.setdefault(token, len(ids)) for token in tokens]
        rows_of_lines.append(np.array(row, np.int32))
        if progress:
            progress.advance(1)
    lengths = np.fromiter(map(len, rows_of_lines), np.int64, len(rows_of_lines))
    tokens_of_text = np.concatenate([np.zeros(0, np.int32), *rows_of_lines])
    counts = np.bincount(tokens_of_text, minlength=len(ids))
    order = np.argsort(-counts, kind="stable")
    frequent = order[counts[order] >= MIN_COUNT]
    if not len(frequent):
        raise InputError(
            f"has no word or character {MIN_COUNT} times", path=path, remedy="give more text"
        )
    new_ids = np.full(len(ids), -1, np.int32)
    new_ids[frequent] = np.arange(len(frequent), dtype=np.int32)
    tokens_of_text = new_ids[tokens_of_text]
    lines = np.repeat(np.arange(len(rows_of_lines)), lengths)[tokens_of_text >= 0]
    token_list = list(ids)
    return TrainingText(
        [token_list[k] for k in frequent.tolist()],
        counts[frequent],
        tokens_of_text[tokens_of_text >= 0],
        np.cumsum(np.bincount(lines, minlength=len(rows_of_lines))),
        split,
    )


SGNS_EPOCHS, SGNS_WINDOW, NEGATIVES = 5, 5, 5
_MAX_LINE_TOKENS = 10_000
"""Maximum length of a line for gensim, which would drop the rest."""


def train_sgns(text: TrainingText, config: WordVectorConfig) -> WordVectors:
    """Train skip-gram vectors on text; single-threaded, so reproducible with the same seed."""
    from gensim.models import Word2Vec

    model = Word2Vec(
        _Lines(text),
        vector_size=config.dim,
        window=SGNS_WINDOW,
        min_count=MIN_COUNT,
        sg=1,
        negative=NEGATIVES,
        epochs=config.epochs or SGNS_EPOCHS,
        seed=config.seed,
        workers=1,
    )
    tokens = list(model.wv.index_to_key)
    return WordVectors(tokens, np.asarray(model.wv.vectors, np.float32), text.split)


class _Lines:
    """The lines of a text as tokens; may be iterated several times."""

    def __init__(self, text: TrainingText) -> None:
        self.text = text

    def __iter__(self) -> Iterator[list[str]]:
        for line in self.text.lines():
            for start in range(0, len(line), _MAX_LINE_TOKENS):
                yield [self.text.tokens[k] for k in line[start : start + _MAX_LINE_TOKENS].tolist()]


GLOVE_EPOCHS, GLOVE_WINDOW = 25, 10
FULL_WEIGHT, POWER = 100.0, 0.75
RATE = 0.05
_BLOCK = 1_000_000
"""Tokens whose co-occurrences are counted at once."""

_I32 = npt.NDArray[np.int32]
_I64 = npt.NDArray[np.int64]
_F64 = npt.NDArray[np.float64]


class Cooccurrences(NamedTuple):
    """Sparse co-occurrence matrix, ordered by row and column."""

    rows: _I32
    columns: _I32
    values: _F64


class GloveParameters(NamedTuple):
    """Vectors and biases of tokens and contexts, with their sums of squared gradients."""

    vectors: _F64  # (2, tokens, dim + 1): the bias last
    squares: _F64  # (2, tokens, dim + 1)


def train_glove(
    text: TrainingText, config: WordVectorConfig, progress: Progress | None = None
) -> WordVectors:
    """Train GloVe vectors on text; reproducible with the same seed."""
    counts = count_neighbours(text)
    rng = np.random.default_rng(config.seed)
    parameters = new_parameters(len(text.tokens), config.dim, rng)
    n_epochs = config.epochs or GLOVE_EPOCHS
    for epoch in range(n_epochs):
        update(*counts, *parameters, rng.permutation(len(counts.rows)))
        if progress:
            progress.advance(len(counts.rows), (epoch + 1) / n_epochs)
    both = parameters.vectors.sum(axis=0)[:, :-1]
    return WordVectors(text.tokens, both.astype(np.float32), text.split)


def new_parameters(n_tokens: int, dim: int, rng: np.random.Generator) -> GloveParameters:
    """Return random initial vectors; sums of squares begin at 1."""
    shape = (2, n_tokens, dim + 1)
    return GloveParameters((rng.random(shape) - 0.5) / dim, np.ones(shape))


def count_neighbours(text: TrainingText) -> Cooccurrences:
    """Count the co-occurrences of tokens in lines, on both sides."""
    n = len(text.tokens)
    keys, values = np.zeros(0, np.int64), np.zeros(0)
    starts = np.concatenate([[0], text.ends[:-1]])
    line_starts = np.repeat(starts, text.ends - starts)  # where the line of each token begins
    for begin in range(0, len(text.token_ids), _BLOCK):
        end = min(begin + _BLOCK, len(text.token_ids))
        found = _count_pairs(text.token_ids, line_starts, begin, end, n)
        keys, values = _sum_by_key(
            np.concatenate([keys, found[0]]), np.concatenate([values, found[1]])
        )
    return Cooccurrences((keys // n).astype(np.int32), (keys % n).astype(np.int32), values)


def _sum_by_key(keys: _I64, values: _F64) -> tuple[_I64, _F64]:
    """Sum the values of equal keys; return ascending keys."""
    order = np.argsort(keys, kind="stable")
    keys, values = keys[order], values[order]
    first = np.flatnonzero(np.diff(keys, prepend=-1))
    return keys[first], np.add.reduceat(values, first) if len(first) else values


@njit()
def _count_pairs(
    token_ids: _I32, line_starts: _I64, begin: int, end: int, n: int
) -> tuple[_I64, _F64]:
    """Return the token pairs within the window, in both directions, with 1 / distance."""
    keys = np.empty(2 * GLOVE_WINDOW * (end - begin), np.int64)
    values = np.empty(len(keys))
    k = 0
    for position in range(begin, end):
        token = np.int64(token_ids[position])
        for context_position in range(
            max(line_starts[position], position - GLOVE_WINDOW), position
        ):
            context = np.int64(token_ids[context_position])
            keys[k], keys[k + 1] = token * n + context, context * n + token
            values[k] = values[k + 1] = 1.0 / (position - context_position)
            k += 2
    return keys[:k], values[:k]


@njit()
def update(
    rows: _I32, columns: _I32, values: _F64, vectors: _F64, squares: _F64, order: _I64
) -> float:
    """Make an AdaGrad step for each entry, in the given order; return the sum of losses."""
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
        gradient = weight * error
        for k in range(dim + 1):
            gradient_w = gradient * (c[k] if k < dim else 1.0)
            gradient_c = gradient * (w[k] if k < dim else 1.0)
            w[k] -= RATE * gradient_w / np.sqrt(squares[0, i, k])
            c[k] -= RATE * gradient_c / np.sqrt(squares[1, j, k])
            squares[0, i, k] += gradient_w * gradient_w
            squares[1, j, k] += gradient_c * gradient_c
    return total
