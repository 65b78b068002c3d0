"""Several generators as one: names that are the text itself first, then by weighted scores.

The score of a name is

* its lexical score where the name is the text, as written (1.0) or after normalising (0.99),
* else the sum of the generators' scores, weighted by ``weights`` brought to the sum of 1, and
  never above 0.98. A generator that does not hold a name adds nothing.

Weights were not tuned on any test set: lexical and dense count alike unless told otherwise.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from biograft.errors import ConfigError, nearest
from biograft.linking.candidates import Generator, NameHits, Rows, Scores
from biograft.linking.gathering import Gathered, gather

DEFAULT_WEIGHTS = {"lexical": 0.5, "dense": 0.5}
"""How much each generator counts; one that is not named here counts 0.5."""
LEXICAL = "lexical"
SAME_NAME = np.float32(0.99)
"""The lexical score of a name that is the text after normalising."""
MOST_SIMILAR = np.float32(0.98)


class FusedSearch:
    """Generators whose scores lie between -1 and 1 (cosines) as one generator."""

    name = "fused"

    def __init__(
        self, generators: Sequence[Generator], weights: Mapping[str, float] | None = None
    ) -> None:
        self.generators = tuple(generators)
        names = [generator.name for generator in self.generators]
        if not names or len(set(names)) < len(names):
            raise ConfigError(f"generators: expected some, each of its own name; found {names}")
        self.weights = weight_shares(names, weights or {})

    def __str__(self) -> str:
        return "+".join(f"{name}*{share:.3g}" for name, share in sorted(self.weights.items()))

    def gather(self, texts: Sequence[str], k: int) -> Gathered:
        """Unite the k nearest names of each generator."""
        return gather(self.generators, texts, k)

    def fuse(self, gathered: Gathered) -> Scores:
        """Bring the scores of all generators to one: (texts, names), -inf where no name is."""
        return fuse_scores(gathered, self.weights)

    def search(self, texts: Sequence[str], k: int) -> NameHits:
        """Find the k best of the names that are among the k nearest of any generator."""
        gathered = self.gather(texts, k)
        return best_names(gathered.rows, self.fuse(gathered), k)

    def score(self, texts: Sequence[str], rows: Rows) -> Scores:
        """Score names of one's own choice for each text."""
        names = tuple(generator.name for generator in self.generators)
        scores = np.stack([generator.score(texts, rows) for generator in self.generators])
        fused = self.fuse(Gathered(names, rows, scores, np.zeros(scores.shape, np.int32)))
        return np.where(np.isfinite(scores).any(axis=0), fused, -np.inf).astype(np.float32)


def fuse_scores(gathered: Gathered, weights: Mapping[str, float]) -> Scores:
    """Bring the scores of all generators to one, by weights that add up to 1: (texts, names)."""
    if len(gathered.generators) == 1:
        only: Scores = gathered.scores[0]
        return only
    fused = np.zeros(gathered.rows.shape, np.float32)
    for name, scores in zip(gathered.generators, gathered.scores, strict=True):
        fused += np.float32(weights[name]) * np.where(np.isfinite(scores), scores, 0)
    fused = np.minimum(fused, MOST_SIMILAR)
    if LEXICAL in gathered.generators:
        lexical = gathered.scores[gathered.generators.index(LEXICAL)]
        fused = np.where(lexical >= SAME_NAME, lexical, fused)
    return np.where(gathered.rows >= 0, fused, -np.inf).astype(np.float32)


def best_names(rows: Rows, scores: Scores, k: int) -> NameHits:
    """Take the k names of the highest scores for each text; of equal ones the lower row first."""
    order = np.lexsort((rows, -scores), axis=1)[:, :k]
    best = np.full((len(rows), k), -1, np.int64)
    out = np.full((len(rows), k), -np.inf, np.float32)
    best[:, : order.shape[1]] = np.take_along_axis(rows, order, axis=1)
    out[:, : order.shape[1]] = np.take_along_axis(scores, order, axis=1)
    best[~np.isfinite(out)] = -1
    return NameHits(best, out)


def weight_shares(names: Sequence[str], weights: Mapping[str, float]) -> dict[str, float]:
    """Check weights and bring them to the sum of 1; a generator without counts as usual."""
    for name, weight in weights.items():
        if name not in names:
            raise ConfigError(f"weights: no generator is called {name!r}; {nearest(name, names)}")
        if not math.isfinite(weight) or weight < 0:
            raise ConfigError(f"weights: expected {name} to be 0 or more, found {weight}")
    chosen = {name: weights.get(name, DEFAULT_WEIGHTS.get(name, 0.5)) for name in names}
    total = sum(chosen.values())
    if total <= 0:
        raise ConfigError("weights: expected at least one above 0, found none")
    return {name: weight / total for name, weight in chosen.items()}
