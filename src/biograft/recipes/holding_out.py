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
