"""Choose the best neighbours by score, and say whether the choice is beyond doubt."""

from __future__ import annotations

import numba
import numpy as np
import numpy.typing as npt

from biograft.graph.adjacency import Floats, Ints, Longs

Picks = npt.NDArray[np.int64]


@numba.njit(cache=True, nogil=True)
def choose(
    scores: Floats, margins: Floats, steps: Floats, rows: Ints, ends: Longs, k: int
) -> tuple[Picks, npt.NDArray[np.bool_]]:
    """Pick ``k`` entries of each group, the best first, of equals the lower row.

    A choice is sure if no entry left out can be better than one picked, within the margins.
    Entries whose steps are all equal are twins: their order is by row, not in doubt.
    """
    picks = np.full((len(ends), k), -1, np.int64)
    sure = np.ones(len(ends), np.bool_)
    taken = np.zeros(len(scores), np.bool_)
    first = 0
    for group in range(len(ends)):
        stop = ends[group]
        low = np.inf
        last = -1
        for rank in range(min(k, stop - first)):
            last = _best(scores, rows, taken, first, stop)
            picks[group, rank], taken[last] = last, True
            low = min(low, scores[last] - margins[last])
        for at in range(first, stop):
            near = not taken[at] and scores[at] + margins[at] > low
            if near and not _are_twins(scores, steps, at, last):
                sure[group] = False
                break
        first = stop
    return picks, sure


@numba.njit(cache=True, nogil=True)
def _best(scores: Floats, rows: Ints, taken: npt.NDArray[np.bool_], first: int, stop: int) -> int:
    best = -1
    for at in range(first, stop):
        if taken[at]:
            continue
        equal = best >= 0 and scores[at] == scores[best]
        if best < 0 or scores[at] > scores[best] or (equal and rows[at] < rows[best]):
            best = at
    return best


@numba.njit(cache=True, nogil=True)
def _are_twins(scores: Floats, steps: Floats, a: int, b: int) -> bool:
    return scores[a] == scores[b] and bool(np.all(steps[a] == steps[b]))
