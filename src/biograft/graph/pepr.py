"""Personalised PageRank of entities (PEPR, SMedBERT): score and rank the neighbours of each entity.

The first steps of each walk are computed exactly. The rest is estimated by a linear correction
fitted on a few pilot entities, with an error margin that tells which rankings are certain.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from biograft.compiled import njit
from biograft.errors import ConfigError
from biograft.graph.adjacency import Adjacency, Floats, Ints, Longs, stationary_distribution
from biograft.graph.config import EXPONENTS, PeprConfig
from biograft.graph.pepr_exact import N_STEPS, first_steps, solve, solve_at_neighbours
from biograft.graph.pepr_hubs import find_hubs, walk_through_hubs

Selection = npt.NDArray[np.int64]


@njit()
def select_top_k(
    scores: Floats, margins: Floats, steps: Floats, rows: Ints, ends: Longs, k: int
) -> tuple[Selection, npt.NDArray[np.bool_]]:
    """Select the ``k`` best entries of each group, best first; ties go to the lower row.

    A selection is certain if no other entry can be better than a selected one, within the margins.
    Entries whose steps are all equal are twins: ordered by row, and never uncertain.
    """
    selected = np.full((len(ends), k), -1, np.int64)
    certain = np.ones(len(ends), np.bool_)
    taken = np.zeros(len(scores), np.bool_)
    first = 0
    for group in range(len(ends)):
        stop = ends[group]
        low = np.inf
        last = -1
        for rank in range(min(k, stop - first)):
            last = _best(scores, rows, taken, first, stop)
            selected[group, rank], taken[last] = last, True
            low = min(low, scores[last] - margins[last])
        for at in range(first, stop):
            close = not taken[at] and scores[at] + margins[at] > low
            if close and not _are_twins(scores, steps, at, last):
                certain[group] = False
                break
        first = stop
    return selected, certain


@njit()
def _best(scores: Floats, rows: Ints, taken: npt.NDArray[np.bool_], first: int, stop: int) -> int:
    best = -1
    for at in range(first, stop):
        if taken[at]:
            continue
        equal = best >= 0 and scores[at] == scores[best]
        if best < 0 or scores[at] > scores[best] or (equal and rows[at] < rows[best]):
            best = at
    return best


@njit()
def _are_twins(scores: Floats, steps: Floats, a: int, b: int) -> bool:
    return scores[a] == scores[b] and bool(np.all(steps[a] == steps[b]))


_FITTED_FROM = 2
"""The first step is the same for all neighbours of an entity."""
_COVERAGE = 0.99
"""Fraction of the pilots' neighbours whose error lies within the margin."""
_MIN_ERROR_FACTOR = 0.05
_FLOAT32_ERROR = 2e-7
"""Relative error of sums in single precision, measured against double precision."""

_DECIMALS = 14
"""To which steps in double precision are rounded, so that equal ones stay equal."""

Stationary = tuple[Floats, Floats]


@dataclass(frozen=True, slots=True)
class TailCorrection:
    """Linear correction of a walk's remaining steps, with its error relative to its size.

    The differences between an entity's neighbours, which decide their order, and their mean,
    which does not, are corrected separately.
    """

    stationary: Stationary
    damping: float
    slopes: Floats
    mean_slopes: Floats
    error_factor: float
    n_pilots: int

    def estimate(self, steps: Floats, neighbours: Ints, ends: Longs) -> tuple[Floats, Floats]:
        """Estimate the personal PageRank at the neighbours, and its error margins."""
        known_sum, deviations = split_walk(steps, neighbours, self.stationary, self.damping)
        means = _means(deviations, ends)
        correction = (deviations - means) @ self.slopes
        margins = self.error_factor * _error_scale(correction, ends) + _FLOAT32_ERROR * known_sum
        return known_sum + correction + means @ self.mean_slopes, margins


def split_walk(
    steps: Floats, neighbours: Ints, stationary: Stationary, damping: float
) -> tuple[Floats, Floats]:
    """Sum the known steps and a stationary rest; return the deviations from stationary, too."""
    c = 1 - damping
    powers = damping * c ** np.arange(1, N_STEPS + 1)
    even, odd = stationary[0][neighbours], stationary[1][neighbours]
    rest = damping * c ** (N_STEPS + 1) / (1 - c * c) * (even + c * odd)
    stationary_steps = [even if step % 2 == 0 else odd for step in range(_FITTED_FROM, N_STEPS + 1)]
    deviations = steps[:, _FITTED_FROM - 1 :] - np.stack(stationary_steps, axis=1)
    return steps @ powers + rest, deviations


def fit_tail(
    steps: Floats,
    walk: Floats,
    neighbours: Ints,
    ends: Longs,
    stationary: Stationary,
    damping: float,
) -> TailCorrection:
    """Fit the correction to walks that are known exactly, with equal weight for each pilot."""
    n = N_STEPS - _FITTED_FROM + 1
    if not len(ends):
        return TailCorrection(stationary, damping, np.zeros(n), np.zeros(n), 1.0, 0)
    known_sum, deviations = split_walk(steps, neighbours, stationary, damping)
    missing = (walk - known_sum)[:, None]
    means, missing_means = _means(deviations, ends), _means(missing, ends)
    counts = np.diff(ends, prepend=0)
    weight = np.sqrt(np.repeat(counts, counts))[:, None]  # each neighbour's mass is 1 / neighbours
    slopes = _fit(weight * (deviations - means), weight * (missing - missing_means))
    firsts = ends - counts
    mean_slopes = _fit(
        counts[:, None] * means[firsts],
        counts[:, None] * missing_means[firsts],
    )
    correction = (deviations - means) @ slopes
    error = np.abs((missing - missing_means)[:, 0] - correction)
    size = np.maximum(_error_scale(correction, ends), np.finfo(float).tiny)
    beyond = np.maximum(error - _FLOAT32_ERROR * known_sum, 0) / size
    error_factor = max(float(np.quantile(beyond, _COVERAGE)), _MIN_ERROR_FACTOR)
    return TailCorrection(stationary, damping, slopes, mean_slopes, error_factor, len(ends))


def _fit(x: Floats, y: Floats) -> Floats:
    scale = np.sqrt((x * x).sum(axis=0))
    scale[scale == 0] = 1
    slopes: Floats = np.linalg.lstsq(x / scale, y[:, 0], rcond=1e-8)[0] / scale
    return slopes


def _means(values: Floats, ends: Longs) -> Floats:
    """Return the mean over an entity's neighbours, repeated for each of them."""
    counts = np.diff(ends, prepend=0)
    means = np.add.reduceat(values, ends - counts, axis=0) / counts[:, None]
    return np.repeat(means, counts, axis=0)


def _error_scale(correction: Floats, ends: Longs) -> Floats:
    """Return the size of corrections: each plus the root mean square of its entity."""
    rms = np.sqrt(_means((correction * correction)[:, None], ends)[:, 0])
    size: Floats = np.abs(correction) + rms
    return size


def _round_like(steps: Floats, numbers: npt.NDArray[Any]) -> Floats:
    """Round steps to the precision of other numbers: sums in another order become equal."""
    if numbers.dtype == np.float32:
        return steps.astype(np.float32).astype(np.float64)
    return np.round(steps, _DECIMALS)


_PILOT_SEED = 0


@dataclass(frozen=True, slots=True)
class Ranked:
    """The best neighbours of some entities: positions (-1 as padding) and scores."""

    positions: Ints  # (entities, k)
    scores: Floats  # (entities, k)
    n_certified: int
    n_refined: int
    n_uncertain: int


class PageRank:
    """Scores and ranks the neighbours of entities; both are given by position in the graph."""

    def __init__(
        self, graph: Adjacency, config: PeprConfig | None = None, *, start: Floats | None = None
    ) -> None:
        """Compute the global scores; ``start`` (by row) is used with ``rounds`` only."""
        self.graph, self.config = graph, config or PeprConfig()
        if start is not None and np.shape(start) != (graph.n_entities,):
            raise ConfigError(
                f"start: expected {graph.n_entities} numbers, one for each entity, found an array "
                f"of {' x '.join(map(str, np.shape(start)))}"
            )
        self._degrees = graph.degrees.astype(np.float64)
        self._exponent = EXPONENTS[self.config.normalise]
        self._stationary = stationary_distribution(graph)
        self._rows = graph.row_of[: graph.n_linked]
        self._inverse = np.float32(1) / self._degrees.astype(np.float32)
        self._links = find_hubs(graph)
        self.global_scores = self._global_scores(start)

    @cached_property
    def tail_correction(self) -> TailCorrection:
        """The correction for the remaining steps of a walk, fitted on pilot entities."""
        rng, groups = np.random.default_rng(_PILOT_SEED), []
        for group in (self._degrees > self.config.k, self._degrees <= self.config.k):
            candidates = np.flatnonzero(group).astype(np.int32)
            n = min(self.config.pilots, len(candidates))
            groups.append(rng.choice(candidates, n, replace=False))
        pilots = np.sort(np.concatenate(groups))
        steps = self._steps(pilots)
        neighbours = self._neighbours_of(pilots)
        exact = [self._solve(int(position)) for position in pilots]
        ends = np.cumsum([len(values) for values in exact])
        target = np.concatenate(exact) if exact else np.zeros(0)
        return fit_tail(steps, target, neighbours, ends, self._stationary, self.config.damping)

    @cached_property
    def _hub_steps(self) -> Floats:
        return walk_through_hubs(self._links)

    def prepare(self) -> None:
        """Compute what ranking needs before several threads use it."""
        if not self.config.exact:
            _ = self._hub_steps
        if not (self.config.exact or self.config.rounds):
            _ = self.tail_correction

    def exact_scores(self, position: int) -> Floats:
        """Score the neighbours of one linked entity within the tolerance."""
        neighbours = self._neighbours_of(np.array([position], np.int32))
        return self._finish(self._solve(position), neighbours, self._degrees[position])

    def rank(self, positions: Ints) -> Ranked:
        """Rank the neighbours of some linked entities."""
        counts = self.graph.ends[positions + 1] - self.graph.ends[positions]
        ends, neighbours = np.cumsum(counts), self._neighbours_of(positions)
        source_degrees = np.repeat(self._degrees[positions], counts)
        if self.config.exact:
            walk = np.concatenate([self._solve(int(position)) for position in positions])
            steps, margins = np.zeros((len(neighbours), N_STEPS)), np.zeros(len(neighbours))
        else:
            steps = self._steps(positions)
            walk, margins = self._estimate(steps, neighbours, ends)
        scores = self._finish(walk, neighbours, source_degrees)
        if self.config.exact:
            scores = self._snap(scores)
        margins = margins * self._scale(neighbours, source_degrees)
        selected, certain = select_top_k(
            scores, margins, steps, self._rows[neighbours], ends, self.config.k
        )
        uncertain = np.flatnonzero(~certain & (not self.config.exact))
        refined = uncertain if self.config.refine else uncertain[:0]
        for at in refined:
            span = slice(ends[at] - counts[at], ends[at])
            scores[span] = self._snap(self.exact_scores(int(positions[at])))
            selected[at] = self._select_exactly(scores[span], neighbours[span], int(span.start))
        valid = selected >= 0
        best_positions = np.where(valid, neighbours[selected], -1).astype(np.int32)
        best = np.where(valid, scores[selected], 0.0)
        n_certified, n_uncertain = len(positions) - len(uncertain), len(uncertain) - len(refined)
        return Ranked(best_positions, best, n_certified, len(refined), n_uncertain)

    def _select_exactly(self, scores: Floats, neighbours: Ints, first: int) -> Longs:
        zeros, single = np.zeros((len(neighbours), 1)), np.array([len(neighbours)])
        rows = self._rows[neighbours]
        selected, _ = select_top_k(scores, zeros[:, 0].copy(), zeros, rows, single, self.config.k)
        return np.where(selected[0] >= 0, selected[0] + first, -1)

    def _neighbours_of(self, positions: Ints) -> Ints:
        ends = self.graph.ends
        groups = [
            self.graph.neighbours[ends[position] : ends[position + 1]] for position in positions
        ]
        return np.concatenate(groups) if groups else np.zeros(0, np.int32)

    def _solve(self, position: int) -> Floats:
        """Return the PageRank of the walk from one entity at its neighbours."""
        config = self.config
        if config.rounds:
            single = np.array([position], np.int32)
            return self._few_rounds(self._steps(single))
        return solve_at_neighbours(
            self.graph, position, damping=config.damping, tolerance=config.tolerance
        )

    def _steps(self, positions: Ints) -> Floats:
        counts = self.graph.ends[positions + 1] - self.graph.ends[positions]
        steps = np.zeros((int(counts.sum()), N_STEPS))
        inverse = 1 / self._degrees if self.config.rounds else self._inverse
        first_steps(self._links, inverse, positions, steps)
        if self._links.n_hubs:
            ends = self.graph.ends
            edges = [np.arange(ends[position], ends[position + 1]) for position in positions]
            steps[:, 1:] += self._hub_steps[np.concatenate(edges)]
            steps = _round_like(steps, inverse)
        return steps

    def _estimate(self, steps: Floats, neighbours: Ints, ends: Longs) -> tuple[Floats, Floats]:
        if self.config.rounds:
            return self._few_rounds(steps), np.zeros(len(neighbours))
        return self.tail_correction.estimate(steps, neighbours, ends)

    def _few_rounds(self, steps: Floats) -> Floats:
        config = self.config
        powers = config.damping * (1 - config.damping) ** np.arange(1, N_STEPS + 1)
        powers[config.rounds - 1 :] = 0
        walk: Floats = steps @ powers
        return walk

    def _finish(self, walk: Floats, neighbours: Ints, source_degrees: Floats | float) -> Floats:
        """Turn a walk's PageRank into the score: normalise it and add the global scores."""
        personal = (1 - 1 / self.graph.n_entities) * walk * self._scale(neighbours, source_degrees)
        scores: Floats = self.global_scores[neighbours] + personal
        return scores

    def _scale(self, neighbours: Ints, source_degrees: Floats | float) -> Floats:
        scale: Floats = (source_degrees / self._degrees[neighbours]) ** self._exponent
        return scale

    def _snap(self, scores: Floats) -> Floats:
        """Round scores to the tolerance, so that ties go to the lower row."""
        snapped: Floats = np.round(scores / self.config.tolerance) * self.config.tolerance
        return snapped

    def _global_scores(self, start: Floats | None) -> Floats:
        """Compute the part of the scores that does not depend on the entity."""
        config, z = self.config, self.graph.n_entities
        jump, d, t = config.damping / max(z, 1), self._degrees, self._exponent
        if not config.rounds:
            right = jump * d**t
            tolerance = config.tolerance / 10
            y = solve(self.graph, right, damping=config.damping, tolerance=tolerance)
            return np.asarray(d ** (1 - t) * y)
        global_scores = (
            np.full(z, 1 / max(z, 1)) if start is None else np.asarray(start, np.float64)
        )
        global_scores = global_scores[self.graph.row_of][: self.graph.n_linked]
        source_degrees = np.repeat(np.arange(len(d)), self.graph.degrees)
        for _ in range(config.rounds):
            flow = (d ** (t - 1) * global_scores)[self.graph.neighbours]
            arrived = np.bincount(source_degrees, weights=flow, minlength=len(d))
            global_scores = (1 - config.damping) * d**-t * arrived + jump
        return global_scores
