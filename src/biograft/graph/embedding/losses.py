"""What one true triple and its false ones cost, and how that changes with their scores."""

from __future__ import annotations

from typing import Any, NamedTuple

import numba
import numpy as np

from biograft.graph.embedding.config import LOSSES, NORMS, LossConfig, ModelConfig
from biograft.graph.embedding.scoring import FAST, Floats

MARGIN, SELF_ADVERSARIAL = range(len(LOSSES))


class Rules(NamedTuple):
    """How triples are scored and what they cost, as compiled loops take it."""

    norm: int
    clamp: bool
    loss: int
    margin: float
    temperature: float


def make_rules(model: ModelConfig, loss: LossConfig) -> Rules:
    """Number a model's distance and a loss for compiled loops."""
    norm, kind = NORMS.index(model.norm), LOSSES.index(loss.kind)
    return Rules(norm, model.clamp, kind, loss.margin, loss.temperature)


@numba.njit(cache=True, nogil=True)
def log_sigmoid(x: float) -> Any:
    """Give the logarithm of the logistic function, without overflow."""
    return min(x, 0.0) - np.log1p(np.exp(-abs(x)))


@numba.njit(cache=True, nogil=True)
def sigmoid(x: float) -> Any:
    """Give the logistic function, without overflow."""
    small = np.exp(-abs(x))
    return 1.0 / (1.0 + small) if x >= 0 else small / (1.0 + small)


@numba.njit(cache=True, nogil=True)
def cost_slopes(scores: Floats, slopes: Floats, n_triples: int, rules: Rules) -> Any:
    """Write the slopes by the scores (the true triple's first) and give the loss of a triple.

    Both are shares of a mean over ``n_triples`` true triples. Margin ranking takes the mean over
    pairs; of the self-adversarial loss the weights count as fixed, and the half of both parts.
    """
    if rules.loss == MARGIN:
        return _margin(scores, slopes, n_triples, rules)
    return _self_adversarial(scores, slopes, n_triples, rules)


@numba.njit(fastmath=FAST, cache=True, nogil=True)
def _margin(scores: Floats, slopes: Floats, n_triples: int, rules: Rules) -> Any:
    n_negatives = len(scores) - 1
    share = 1.0 / (n_triples * n_negatives)
    total, n_active = 0.0, 0
    for k in range(1, n_negatives + 1):
        excess = rules.margin + scores[k] - scores[0]
        slopes[k] = share if excess > 0 else 0.0
        if not excess <= 0:  # also if it is no number
            total += excess
            n_active += 1
    slopes[0] = -share * n_active
    return share * total


@numba.njit(fastmath=FAST, cache=True, nogil=True)
def _self_adversarial(scores: Floats, slopes: Floats, n_triples: int, rules: Rules) -> Any:
    n_negatives = len(scores) - 1
    share = 0.5 / n_triples
    highest = scores[1:].max()
    weights: Any = np.exp(rules.temperature * (scores[1:] - highest))
    weights /= weights.sum()
    true = rules.margin + np.float64(scores[0])
    loss = -log_sigmoid(true)
    slopes[0] = -share * sigmoid(-true)
    for k in range(n_negatives):
        false = rules.margin + np.float64(scores[k + 1])
        loss -= weights[k] * log_sigmoid(-false)
        slopes[k + 1] = share * weights[k] * sigmoid(false)
    return share * loss
