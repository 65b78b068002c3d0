"""From groups of names to pairs of them, in arrays: no pair is ever a Python object.

All unordered pairs of all groups are numbered in one row: a name's pairs with the partners that
stand before it in its group follow those of the name before. A running total of the partners of
each name thus leads from a pair's number to its two names, so that a sample of pairs can be drawn
without listing those that are not drawn.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]


def count_partners(groups: Ints, blocks: Ints | None = None) -> Ints:
    """Count for each name the partners before it in its group.

    ``groups`` is ascending. With ``blocks`` (languages, ascending within a group) only names of
    other blocks are partners.
    """
    places = np.arange(len(groups), dtype=np.int64)
    if blocks is None:
        return places - _starts(groups)
    return _starts(groups, blocks) - _starts(groups)


def sample_pairs(
    groups: Ints, partners: Ints, cap: int, rng: np.random.Generator
) -> tuple[Ints, int]:
    """Give the pairs as (n, 2) places of names, at most ``cap`` of a group (0: all).

    Also says how many groups were cut to the cap.
    """
    ends = np.cumsum(partners)
    bounds = np.flatnonzero(np.r_[True, groups[1:] != groups[:-1]]) if len(groups) else groups
    per_group = np.add.reduceat(partners, bounds) if len(groups) else partners
    first = np.cumsum(per_group) - per_group
    over = per_group > cap if cap else np.zeros(len(per_group), bool)
    numbers = _ranges(first[~over], per_group[~over])
    if over.any():
        chosen = _draw(per_group[over], cap, rng) + first[over, None]
        numbers = np.concatenate([numbers, chosen.ravel()])
    numbers.sort()
    right = np.searchsorted(ends, numbers, side="right")
    left = _starts(groups)[right] + numbers - (ends - partners)[right]
    return np.stack([left, right], axis=1), int(over.sum())


def _starts(*keys: Ints) -> Ints:
    """Give for each row where the run of rows with equal keys begins."""
    changed = np.zeros(len(keys[0]), bool)
    changed[:1] = True
    for key in keys:
        changed[1:] |= key[1:] != key[:-1]
    places = np.arange(len(keys[0]), dtype=np.int64)
    starts: Ints = np.maximum.accumulate(np.where(changed, places, 0))
    return starts


def _ranges(starts: Ints, lengths: Ints) -> Ints:
    """Give start, start + 1, ... for each start, one after the other."""
    ends = np.cumsum(lengths)
    total = int(ends[-1]) if len(ends) else 0
    shifts: Ints = np.repeat(starts - (ends - lengths), lengths)
    return np.arange(total, dtype=np.int64) + shifts


def _draw(sizes: Ints, n: int, rng: np.random.Generator) -> Ints:
    """Draw ``n`` different numbers below each size (Floyd's sampling, all sizes at once)."""
    chosen = np.full((len(sizes), n), -1, np.int64)
    for k in range(n):
        highest = sizes - n + k
        drawn = rng.integers(0, highest + 1)
        taken = (chosen[:, :k] == drawn[:, None]).any(axis=1)
        chosen[:, k] = np.where(taken, highest, drawn)
    return chosen
