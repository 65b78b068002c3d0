"""Vectors by GloVe: products of vectors are fitted to logarithms of co-occurrence.

Minimised is the sum over pairs of tokens of ``f(x) (w_i . c_j + b_i + d_j - log x)^2 / 2`` with
``f(x) = min(1, (x / 100)^0.75)``, where x counts how often j stands within 10 tokens of i, each
time by 1 / distance (Pennington et al. 2014). A token's vector is w + c.
"""

from __future__ import annotations

from typing import NamedTuple

import numba
import numpy as np
import numpy.typing as npt

from biograft.probing.similarity.word_vectors import TrainingConfig, TrainingText, WordVectors
from biograft.progress import Progress

EPOCHS, WINDOW = 25, 10
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
    n_epochs = config.epochs or EPOCHS
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
    keys = np.empty(2 * WINDOW * (end - begin), np.int64)
    values = np.empty(len(keys))
    k = 0
    for place in range(begin, end):
        token = np.int64(numbers[place])
        for other in range(max(of_line[place], place - WINDOW), place):
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
