"""Batches of examples of like length, of which less is padded."""

from __future__ import annotations

from typing import TypeVar

import numpy as np
import numpy.typing as npt

Number = TypeVar("Number", bound=np.integer)


def put_like_lengths_together(
    order: npt.NDArray[Number],
    lengths: npt.NDArray[np.integer],
    batch_size: int,
    n_batches: int,
    draw: np.random.Generator,
) -> npt.NDArray[Number]:
    """Sort within so many batches by length, and shuffle whole batches; a smaller one stays last.

    ``lengths`` are those of all examples, ``order`` the numbers of those that are read.
    """
    window = np.arange(len(order)) // (batch_size * n_batches)
    order = order[np.lexsort((lengths[order], window))]
    n_whole = len(order) // batch_size
    whole = order[: n_whole * batch_size].reshape(n_whole, batch_size)
    return np.concatenate([draw.permutation(whole).ravel(), order[whole.size :]])
