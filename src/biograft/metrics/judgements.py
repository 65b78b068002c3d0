"""What was judged of a run, query by query: the one input of all metrics of linking."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Values = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Judgements:
    """How each query was answered; every query has its row, answered or not.

    ``right[i, k-1]`` is the chance that query ``i`` is right when ``k`` answers count: 0 or 1,
    or between them where equal scores leave the order open. ``found[i, k-1]`` is the share of
    the query that is right then, less than all where a mention speaks of several concepts.
    """

    right: Values  # (queries, depth)
    found: Values  # (queries, depth)
    nil: Flags  # (queries,): the gold answer is that no concept fits
    answered_nil: Flags  # (queries,)
    probability: Values  # (queries,): of the first answer; nan where none is said, 0 where none is
    documents: tuple[str, ...]
    """Which document each query is from: what is drawn together in a bootstrap."""

    def __len__(self) -> int:
        return len(self.right)

    @property
    def depth(self) -> int:
        """How many ranks were judged."""
        return int(self.right.shape[1])

    def take(self, rows: npt.NDArray[np.intp] | Flags) -> Judgements:
        """Give the judgements of some queries only."""
        places = np.flatnonzero(rows) if rows.dtype == bool else rows
        return Judgements(
            self.right[places],
            self.found[places],
            self.nil[places],
            self.answered_nil[places],
            self.probability[places],
            tuple(self.documents[place] for place in places.tolist()),
        )

    @classmethod
    def join(cls, pieces: Sequence[Judgements], documents: tuple[str, ...]) -> Judgements:
        """Put the judgements of several batches one after the other, and name their documents."""
        return cls(
            np.concatenate([piece.right for piece in pieces]),
            np.concatenate([piece.found for piece in pieces]),
            np.concatenate([piece.nil for piece in pieces]),
            np.concatenate([piece.answered_nil for piece in pieces]),
            np.concatenate([piece.probability for piece in pieces]),
            documents,
        )
