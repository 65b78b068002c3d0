"""What several generators find for some texts, side by side: every name with every score."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from biograft.errors import ConfigError
from biograft.linking.candidates import Generator, NameHits, Rows, Scores

Ranks = npt.NDArray[np.int32]


@dataclass(frozen=True, slots=True)
class Gathered:
    """The names that any of some generators found for some texts.

    The names of a text stand in ascending order; rows are filled up with -1.
    """

    generators: tuple[str, ...]
    rows: Rows  # (texts, names)
    scores: Scores  # (generators, texts, names): -inf where a generator does not hold the name
    ranks: Ranks  # (generators, texts, names): from 1; 0 where a generator did not find the name

    def __len__(self) -> int:
        return len(self.rows)


def gather(generators: Sequence[Generator], texts: Sequence[str], k: int) -> Gathered:
    """Search with every generator, unite what they find, and have each score all of it."""
    if k < 1:
        raise ConfigError(f"k: expected at least 1, found {k}")
    found = [generator.search(texts, k) for generator in generators]
    rows = _unite([hits.rows for hits in found])
    ranks = np.stack([_ranks_of(rows, hits) for hits in found])
    if len(generators) == 1:
        scores = _scores_of(found[0], ranks[0])[None]
    else:
        scores = np.stack([generator.score(texts, rows) for generator in generators])
    return Gathered(tuple(generator.name for generator in generators), rows, scores, ranks)


def gather_nothing(n_texts: int) -> Gathered:
    """Say that nobody has searched for some texts."""
    rows, scores = np.zeros((n_texts, 0), np.int64), np.zeros((0, n_texts, 0), np.float32)
    return Gathered((), rows, scores, np.zeros(scores.shape, np.int32))


def widen(gathered: Gathered, rows: Rows) -> Gathered:
    """Make room for further names, which none of the generators has found: (texts, names).

    -1 stands for no name; what is there already is not taken twice.
    """
    united = _unite([gathered.rows, rows])
    n_generators = len(gathered.generators)
    scores = np.full((n_generators, *united.shape), -np.inf, np.float32)
    ranks = np.zeros((n_generators, *united.shape), np.int32)
    line, place = np.nonzero(gathered.rows >= 0)
    column = _columns(united, line, gathered.rows[line, place])
    scores[:, line, column] = gathered.scores[:, line, place]
    ranks[:, line, column] = gathered.ranks[:, line, place]
    return Gathered(gathered.generators, united, scores, ranks)


def _unite(parts: Sequence[Rows]) -> Rows:
    """Give the distinct rows of every line in ascending order, -1 behind the last."""
    last = np.iinfo(np.int64).max
    rows = np.concatenate(parts, axis=1)
    rows = np.sort(np.where(rows < 0, last, rows), axis=1)
    rows[:, 1:][rows[:, 1:] == rows[:, :-1]] = last
    rows = np.sort(rows, axis=1)
    widest = int((rows < last).sum(axis=1).max(initial=0))
    united = rows[:, :widest]
    return np.where(united == last, -1, united)


def _ranks_of(rows: Rows, hits: NameHits) -> Ranks:
    """Say at which rank hits have each row; 0 where they do not."""
    ranks = np.zeros(rows.shape, np.int32)
    line, place = np.nonzero(hits.rows >= 0)
    column = _columns(rows, line, hits.rows[line, place])
    # the same name cannot be found twice, so each place is written once
    ranks[line, column] = place + 1
    return ranks


def _columns(rows: Rows, line: Rows, wanted: Rows) -> Rows:
    """Find in which column of its line each wanted row stands; all are there."""
    span = int(rows.max(initial=0)) + 2
    known_line, known_column = np.nonzero(rows >= 0)
    keys = known_line * span + rows[known_line, known_column]  # ascending
    columns: Rows = known_column[np.searchsorted(keys, line * span + wanted)]
    return columns


def _scores_of(hits: NameHits, ranks: Ranks) -> Scores:
    """Take the scores of a single generator from its own hits."""
    scores = np.full(ranks.shape, -np.inf, np.float32)
    line, column = np.nonzero(ranks)
    scores[line, column] = hits.scores[line, ranks[line, column] - 1]
    return scores
