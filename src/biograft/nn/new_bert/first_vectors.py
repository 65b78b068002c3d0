"""Vectors that a new model begins with: of tokens by what stands beside them, of places as waves.

A model whose vectors begin at random first learns how often each token occurs, and for long nothing
else. Tokens that stand beside the same others begin alike here: positive pointwise mutual
information of tokens at most four places apart, near ones counting more, reduced to the width by a
singular value decomposition. Waves of many lengths let it tell from the start how far two places
are from each other.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.nn.functional import normalize

REACH = 4
"""How many places apart tokens may be to count as beside each other."""
_RARER = 0.75
"""Power of the counts that a token is expected with, so that rare ones do not stand out."""
_ROUNDS = 4
_LONGEST = 10_000.0


def vectors_of_tokens(
    sequences: Iterable[Sequence[int]], n_tokens: int, width: int, seed: int
) -> Tensor:
    """Give a vector of length 1 for each token; one that stands beside none begins at random."""
    rows, columns, values = _information(_count(sequences, n_tokens), n_tokens)
    made = torch.randn(n_tokens, width, generator=torch.Generator().manual_seed(seed))
    kept = min(width, n_tokens)
    if len(values):
        matrix = torch.sparse_coo_tensor(
            torch.from_numpy(np.stack([rows, columns])),
            torch.from_numpy(values),
            (n_tokens, n_tokens),
            check_invariants=True,
        ).coalesce()
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            left, sizes, _ = torch.svd_lowrank(matrix, q=kept, niter=_ROUNDS)
        known = torch.from_numpy(np.unique(rows))
        made[known] = 0.0
        made[known, :kept] = (left * sizes.sqrt())[known]
    return normalize(made, dim=1)


def vectors_of_places(n_places: int, width: int) -> Tensor:
    """Give a vector of length 1 for each place: sines and cosines of ever longer waves."""
    lengths = _LONGEST ** (torch.arange((width + 1) // 2) * 2 / width)
    angles = torch.arange(n_places)[:, None] / lengths
    waves = torch.stack([angles.sin(), angles.cos()], dim=2).reshape(n_places, -1)[:, :width]
    return normalize(waves, dim=1)


_Counts = tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]


def _count(sequences: Iterable[Sequence[int]], n_tokens: int) -> _Counts:
    """Count neighbours, both ways, a pair written as one number; d places apart it counts 1/d."""
    parts = [np.asarray(sequence, dtype=np.int64) for sequence in sequences]
    tokens = np.concatenate(parts) if parts else np.empty(0, np.int64)
    of = np.repeat(np.arange(len(parts)), [len(part) for part in parts])
    pairs, weights = [], []
    for distance in range(1, REACH + 1):
        together = of[distance:] == of[:-distance]
        first, second = tokens[:-distance][together], tokens[distance:][together]
        both = np.concatenate([first * n_tokens + second, second * n_tokens + first])
        found, counts = np.unique(both, return_counts=True)
        pairs.append(found)
        weights.append(counts / distance)
    found, where = np.unique(np.concatenate(pairs), return_inverse=True)
    totals = np.bincount(where, weights=np.concatenate(weights), minlength=len(found))
    return found.astype(np.int64), totals.astype(np.float64)


def _information(
    counts: _Counts, n_tokens: int
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.float32]]:
    """Give the pairs that meet more often than by chance, and how much more."""
    pairs, joint = counts
    rows, columns = np.divmod(pairs, n_tokens)
    alone = np.bincount(rows, weights=joint, minlength=n_tokens)
    expected = alone**_RARER
    expected /= max(float(expected.sum()), 1e-12)
    more = np.log(joint / (alone[rows] * expected[columns]))
    above = more > 0
    return rows[above], columns[above], more[above].astype(np.float32)
