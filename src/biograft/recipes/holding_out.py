"""What a run does not learn from, but looks at to see how far it has come."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Numbers = npt.NDArray[np.int64]
_SHARE, _MOST = 0.01, 256
"""The share of examples that is held out, and its bound."""


def hold_out(n: int, seed: int) -> tuple[Numbers, Numbers]:
    """Part the numbers of examples that are learned from and of those that are only looked at."""
    n_shown = min(int(n * _SHARE), _MOST)
    order = np.random.default_rng([seed, n]).permutation(n)
    return np.sort(order[n_shown:]), np.sort(order[:n_shown])


def hold_out_together(groups: Numbers, seed: int) -> tuple[Numbers, Numbers]:
    """Part the numbers of examples so that those of one group stay together.

    Copies of a document are a group: what is looked at must not be learned from in another form.
    """
    n_shown = min(int(len(groups) * _SHARE), _MOST)
    known, sizes = np.unique(groups, return_counts=True)
    order = np.random.default_rng([seed, len(groups)]).permutation(len(known))
    n_groups = int(np.searchsorted(np.cumsum(sizes[order]), n_shown, side="right"))
    is_shown = np.isin(groups, known[order[:n_groups]])
    return np.flatnonzero(~is_shown), np.flatnonzero(is_shown)
