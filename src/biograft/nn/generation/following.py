"""What may follow each hypothesis: the best few of the tokens that some name goes on with."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from biograft.nn.generation.config import BeamConfig
from biograft.nn.generation.flat_trie import FlatTrie, Ints

Floats = npt.NDArray[np.float64]
_WIDE = 256
"""Children from which on a node is looked at by itself, not padded beside others."""


class Following(NamedTuple):
    """The best continuations of each hypothesis, best first."""

    nodes: Ints  # (hypotheses, best): -1 where there are fewer
    scores: Floats  # (hypotheses, best): log-probabilities, -inf where there are fewer


def best_following(logits: Tensor, trie: FlatTrie, nodes: Ints, config: BeamConfig) -> Following:
    """Find what follows each node best, by the scores (hypotheses, vocabulary).

    One more than there are beams is kept of each, so that where one is an end, enough go on.
    """
    n_best = config.beams + 1
    best = Following(
        np.full((len(nodes), n_best), -1, np.int64), np.full((len(nodes), n_best), -np.inf)
    )
    if not len(nodes):
        return best
    # on processors quicker than the norm alone, and what is wanted of it is little
    known = logits.float() if config.renormalise else logits.float().log_softmax(dim=-1)
    first, last = (side.astype(np.int64) for side in trie.children(nodes))
    n_each = last - first
    for rows in _groups(nodes, n_each):
        alike = rows[:1] if n_each[rows[0]] > _WIDE else rows
        tokens, there = _tokens_of(trie, first[alike], n_each[alike])
        places = torch.from_numpy(rows[:, None] * known.shape[1] + tokens)
        scores = known.take(places.to(known.device))
        if there is not None:
            scores.masked_fill_(~torch.from_numpy(there).to(known.device), -torch.inf)
        top, chosen = scores.topk(min(n_best, scores.shape[1]), dim=-1)
        values = top.double()
        if config.renormalise:
            values -= scores.double().logsumexp(dim=-1, keepdim=True)
        k = values.shape[1]
        best.scores[rows, :k] = values.cpu().numpy()
        found = first[rows][:, None] + chosen.cpu().numpy()
        best.nodes[rows, :k] = np.where(np.isfinite(best.scores[rows, :k]), found, -1)
    return best


def _groups(nodes: Ints, n_each: Ints) -> list[Ints]:
    """Put hypotheses together: those at one wide node, and all at narrow ones."""
    narrow = np.flatnonzero(n_each <= _WIDE)
    wide = np.flatnonzero(n_each > _WIDE)
    groups = [wide[nodes[wide] == node] for node in np.unique(nodes[wide])]
    return [*groups, narrow[n_each[narrow] > 0]] if (n_each[narrow] > 0).any() else groups


def _tokens_of(
    trie: FlatTrie, first: Ints, n_each: Ints
) -> tuple[Ints, npt.NDArray[np.bool_] | None]:
    """Give the tokens of the children of nodes, (nodes, most children), and which are there."""
    steps = np.arange(int(n_each.max()))
    if (n_each == len(steps)).all():
        return trie.tokens[first[:, None] + steps].astype(np.int64), None
    there = steps < n_each[:, None]
    places = np.where(there, first[:, None] + steps, first[:, None])
    return trie.tokens[places].astype(np.int64), there
