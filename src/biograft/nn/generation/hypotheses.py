"""Names begun and names ended: which go on, which are kept."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from biograft.nn.generation.config import BeamConfig
from biograft.nn.generation.flat_trie import FlatTrie, Ints
from biograft.nn.generation.following import Following

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Live:
    """Hypotheses that go on, those of a mention side by side or not."""

    mentions: Ints
    nodes: Ints
    sums: Floats
    """Log-probability of the tokens of the name so far."""
    n_tokens: Ints
    """How many these are."""

    @classmethod
    def begin(cls, roots: Ints) -> Live:
        """Begin one for each mention."""
        n = len(roots)
        return cls(np.arange(n), roots.astype(np.int64), np.zeros(n), np.zeros(n, np.int64))

    @classmethod
    def join(cls, some: Live, others: Live) -> Live:
        """Put hypotheses behind others."""
        return cls(
            np.concatenate([some.mentions, others.mentions]),
            np.concatenate([some.nodes, others.nodes]),
            np.concatenate([some.sums, others.sums]),
            np.concatenate([some.n_tokens, others.n_tokens]),
        )

    def __len__(self) -> int:
        return len(self.mentions)

    def take(self, rows: Ints) -> Live:
        """Give some of them."""
        return Live(self.mentions[rows], self.nodes[rows], self.sums[rows], self.n_tokens[rows])


class GoingOn(NamedTuple):
    """What a step leaves alive."""

    live: Live
    parents: Ints
    """The row that each comes from."""
    tokens: Ints
    """The token that each has been lengthened by."""


class Finished:
    """The names that have ended, the best of each mention."""

    def __init__(self, n_mentions: int, config: BeamConfig) -> None:
        self._config = config
        self._names: list[list[tuple[float, int]]] = [[] for _ in range(n_mentions)]

    def count(self, mention: int) -> int:
        """Say how many names a mention has."""
        return len(self._names[mention])

    def add(self, mention: int, sequence: int, total: float, n_tokens: int) -> None:
        """Keep a name if it is among the best."""
        names = self._names[mention]
        names.append((self.score(total, n_tokens), sequence))
        names.sort(key=_order)
        del names[self._config.beams :]

    def score(self, total: float, n_tokens: int) -> float:
        """Give what a name of these tokens scores."""
        return total / float(n_tokens**self._config.length_penalty)

    def is_settled(self, mention: int, best: float) -> bool:
        """Whether to stop: there are names enough, and no hypothesis scores more than the last.

        ``best`` is what the best hypothesis scores now; ``published`` does not ask for it. This is
        the usual early stop, as in transformers, and no bound: a hypothesis that goes on with
        tokens that are nearly certain rises with its length, and might have come among the names.
        """
        names = self._names[mention]
        full = len(names) >= self._config.beams
        return full and (self._config.published or best <= names[-1][0])

    def ranked(self) -> tuple[Ints, npt.NDArray[np.float32]]:
        """Give the names of all mentions, best first."""
        shape = (len(self._names), self._config.beams)
        sequences, scores = np.full(shape, -1, np.int64), np.full(shape, -np.inf, np.float32)
        for row, names in enumerate(self._names):
            for place, (score, sequence) in enumerate(names):
                sequences[row, place], scores[row, place] = sequence, score
        return sequences, scores


def choose(
    live: Live, following: Following, trie: FlatTrie, finished: Finished, config: BeamConfig
) -> GoingOn:
    """Keep what is best among all continuations of each mention."""
    found, parents = _in_order(live, following)
    ended = trie.sequence_of(found.nodes)
    of_mention = np.searchsorted(found.mentions, found.mentions)  # its first continuation
    rank = np.arange(len(found)) - of_mention
    ends, goes = np.flatnonzero(ended >= 0), ended < 0
    if config.published:
        before = np.array([finished.count(each) for each in found.mentions[ends].tolist()])
        ends = ends[rank[ends] < config.beams - before.astype(np.int64)]
    else:
        so_far: Ints = np.cumsum(goes) - goes
        rank = so_far - so_far[of_mention]
    for row in ends.tolist():
        mention, sequence = int(found.mentions[row]), int(ended[row])
        finished.add(mention, sequence, float(found.sums[row]), int(found.n_tokens[row]))
    rows = np.flatnonzero(goes & (rank < config.beams))
    rows = rows[_unsettled(found.take(rows), finished)]
    going_on = found.take(rows)
    return GoingOn(going_on, parents[rows], trie.tokens[going_on.nodes].astype(np.int64))


def _in_order(live: Live, following: Following) -> tuple[Live, Ints]:
    """List all continuations, mention by mention, the best first, and the row of each before."""
    parents, place = np.nonzero(following.nodes >= 0)
    nodes = following.nodes[parents, place]
    sums = live.sums[parents] + following.scores[parents, place]
    found = Live(live.mentions[parents], nodes, sums, live.n_tokens[parents] + 1)
    order = np.lexsort((nodes, -sums, found.mentions))
    return found.take(order), parents[order]


def _unsettled(going_on: Live, finished: Finished) -> Ints:
    """Give the rows of the mentions that may yet find better names; the best stands first."""
    mentions, first, n_each = np.unique(going_on.mentions, return_index=True, return_counts=True)
    open_ = [
        not finished.is_settled(
            int(mention), finished.score(float(going_on.sums[row]), int(going_on.n_tokens[row]))
        )
        for mention, row in zip(mentions, first, strict=True)
    ]
    return np.flatnonzero(np.repeat(np.array(open_, np.bool_), n_each))


def _order(name: tuple[float, int]) -> tuple[float, int]:
    return -name[0], name[1]
