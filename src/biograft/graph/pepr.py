"""Choose the best neighbours by score, and say whether the choice is beyond doubt."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numba
import numpy as np
import numpy.typing as npt

from biograft.errors import ConfigError
from biograft.graph.adjacency import Adjacency, Floats, Ints, Longs, settle
from biograft.graph.pepr_exact import N_STEPS, first_steps, solve, solve_at_neighbours

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


_FITTED_FROM = 2
"""The first step is the same for all neighbours of an entity."""
_TRUSTED = 0.99
"""Part of the pilots' neighbours whose error lies within the margin."""
_LEAST = 0.05
_SINGLE = 2e-7
"""Relative error of sums in single precision, seen against double."""

Settled = tuple[Floats, Floats]


@dataclass(frozen=True, slots=True)
class Tail:
    """A linear correction of the walk's rest, and how many times its own size it may be wrong.

    The differences between an entity's neighbours, which decide their order, and their mean,
    which does not, are corrected apart.
    """

    settled: Settled
    damping: float
    slopes: Floats
    mean_slopes: Floats
    doubt: float
    n_pilots: int

    def estimate(self, steps: Floats, near: Ints, ends: Longs) -> tuple[Floats, Floats]:
        """Give the PageRank at the neighbours and its margins, leaving out what all share."""
        known, apart = split_walk(steps, near, self.settled, self.damping)
        means = _means(apart, ends)
        correction = (apart - means) @ self.slopes
        margins = self.doubt * _size(correction, ends) + _SINGLE * known
        return known + correction + means @ self.mean_slopes, margins


def split_walk(
    steps: Floats, near: Ints, settled: Settled, damping: float
) -> tuple[Floats, Floats]:
    """Add up the known steps and a settled rest; give how far steps were from settled too."""
    c = 1 - damping
    powers = damping * c ** np.arange(1, N_STEPS + 1)
    even, odd = settled[0][near], settled[1][near]
    rest = damping * c ** (N_STEPS + 1) / (1 - c * c) * (even + c * odd)
    by_step = [even if step % 2 == 0 else odd for step in range(_FITTED_FROM, N_STEPS + 1)]
    apart = steps[:, _FITTED_FROM - 1 :] - np.stack(by_step, axis=1)
    return steps @ powers + rest, apart


def fit_tail(
    steps: Floats, walk: Floats, near: Ints, ends: Longs, settled: Settled, damping: float
) -> Tail:
    """Fit the correction to walks that are known exactly, each pilot counting alike."""
    n = N_STEPS - _FITTED_FROM + 1
    if not len(ends):
        return Tail(settled, damping, np.zeros(n), np.zeros(n), 1.0, 0)
    known, apart = split_walk(steps, near, settled, damping)
    missing = (walk - known)[:, None]
    means, missing_means = _means(apart, ends), _means(missing, ends)
    counts = np.diff(ends, prepend=0)
    weight = np.sqrt(np.repeat(counts, counts))[:, None]  # what is shared out is 1 / neighbours
    slopes = _fit(weight * (apart - means), weight * (missing - missing_means))
    firsts = ends - counts
    mean_slopes = _fit(
        counts[:, None] * means[firsts],
        counts[:, None] * missing_means[firsts],
    )
    correction = (apart - means) @ slopes
    error = np.abs((missing - missing_means)[:, 0] - correction)
    size = np.maximum(_size(correction, ends), np.finfo(float).tiny)
    beyond = np.maximum(error - _SINGLE * known, 0) / size
    doubt = max(float(np.quantile(beyond, _TRUSTED)), _LEAST)
    return Tail(settled, damping, slopes, mean_slopes, doubt, len(ends))


def _fit(x: Floats, y: Floats) -> Floats:
    scale = np.sqrt((x * x).sum(axis=0))
    scale[scale == 0] = 1
    slopes: Floats = np.linalg.lstsq(x / scale, y[:, 0], rcond=1e-8)[0] / scale
    return slopes


def _means(values: Floats, ends: Longs) -> Floats:
    """Give each entity's mean for each of its neighbours."""
    counts = np.diff(ends, prepend=0)
    means = np.add.reduceat(values, ends - counts, axis=0) / counts[:, None]
    return np.repeat(means, counts, axis=0)


def _size(correction: Floats, ends: Longs) -> Floats:
    """Say how large corrections are, each beside the usual one of its entity."""
    usual = np.sqrt(_means((correction * correction)[:, None], ends)[:, 0])
    size: Floats = np.abs(correction) + usual
    return size


READINGS = {"columns": 0.0, "symmetric": 0.5, "rows": 1.0}
"""How the adjacency is normalised: A = D^-t W D^(t - 1), by the t of each reading."""
_MOST_ROUNDS = N_STEPS + 1
_PILOT_SEED = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class PeprConfig:
    """How neighbours are scored, and how many are kept."""

    k: int = 10
    damping: float = 0.15
    normalise: str = "columns"
    rounds: int = 0
    """Rounds from the start vector; 0: the fixed point, where the start has no influence."""
    tolerance: float = 1e-9
    """How far an exact score may be from the fixed point."""
    pilots: int = 32
    """Entities solved exactly to learn from: so many with over ``k`` neighbours, and of others."""
    relations: tuple[str, ...] = ()
    """Join entities by these relations only; none: by all."""
    threads: int = 0
    """0: one for each core; the result is the same."""
    refine: bool = False
    """Solve exactly the entities whose choice is not sure."""
    exact: bool = False
    """Solve all entities exactly; slow, the oracle of benchmarks."""

    def __post_init__(self) -> None:
        for name, low, high in (
            ("k", 1, 1000),
            ("damping", 0.01, 0.99),
            ("rounds", 0, _MOST_ROUNDS),
            ("tolerance", 1e-14, 1e-4),
            ("pilots", 8, 10_000),
            ("threads", 0, 1024),
        ):
            value = getattr(self, name)
            if not low <= value <= high:
                raise ConfigError(f"{name}: expected {low} to {high}, found {value}")
        if self.normalise not in READINGS:
            raise ConfigError(
                f"normalise: expected one of {', '.join(READINGS)}, found {self.normalise!r}"
            )


@dataclass(frozen=True, slots=True)
class Ranked:
    """The best neighbours of some entities: places, -1 where there are fewer, and scores."""

    places: Ints  # (entities, k)
    scores: Floats  # (entities, k)
    n_certified: int
    n_refined: int
    n_unsure: int


class PageRank:
    """Scores the neighbours of a graph's entities; entities and neighbours are places."""

    def __init__(
        self, graph: Adjacency, config: PeprConfig | None = None, *, start: Floats | None = None
    ) -> None:
        """Prepare what all entities share; ``start`` (by row) matters with few rounds only."""
        self.graph, self.config = graph, config or PeprConfig()
        if start is not None and np.shape(start) != (graph.n_entities,):
            raise ConfigError(
                f"start: expected {graph.n_entities} numbers, one for each entity, found an array "
                f"of {' x '.join(map(str, np.shape(start)))}"
            )
        self._degrees = graph.degrees.astype(np.float64)
        self._turn = READINGS[self.config.normalise]
        self._settled = settle(graph)
        self._rows = graph.row_at[: graph.n_linked]
        self._inverse = np.float32(1) / self._degrees.astype(np.float32)
        self.shared = self._share(start)

    @cached_property
    def tail(self) -> Tail:
        """What is known of the walk after the steps that are computed, from pilot entities."""
        generator, parts = np.random.default_rng(_PILOT_SEED), []
        for group in (self._degrees > self.config.k, self._degrees <= self.config.k):
            members = np.flatnonzero(group).astype(np.int32)
            n = min(self.config.pilots, len(members))
            parts.append(generator.choice(members, n, replace=False))
        pilots = np.sort(np.concatenate(parts))
        steps = self._steps(pilots)
        near = self._near(pilots)
        exact = [self._solve(int(place)) for place in pilots]
        ends = np.cumsum([len(values) for values in exact])
        target = np.concatenate(exact) if exact else np.zeros(0)
        return fit_tail(steps, target, near, ends, self._settled, self.config.damping)

    def prepare(self) -> None:
        """Do at once what all ranking needs, before threads ask for it side by side."""
        if not (self.config.exact or self.config.rounds):
            _ = self.tail

    def exact_scores(self, place: int) -> Floats:
        """Score the neighbours of one linked entity, in their order, to the tolerance."""
        near = self._near(np.array([place], np.int32))
        return self._finish(self._solve(place), near, self._degrees[place])

    def rank(self, places: Ints) -> Ranked:
        """Keep the best neighbours of some linked entities."""
        counts = self.graph.ends[places + 1] - self.graph.ends[places]
        ends, near = np.cumsum(counts), self._near(places)
        own = np.repeat(self._degrees[places], counts)
        if self.config.exact:
            walk = np.concatenate([self._solve(int(place)) for place in places])
            steps, margins = np.zeros((len(near), N_STEPS)), np.zeros(len(near))
        else:
            steps = self._steps(places)
            walk, margins = self._estimate(steps, near, ends)
        scores = self._finish(walk, near, own)
        if self.config.exact:
            scores = self._snap(scores)
        margins = margins * self._scale(near, own)
        picks, sure = choose(scores, margins, steps, self._rows[near], ends, self.config.k)
        unsure = np.flatnonzero(~sure & (not self.config.exact))
        refined = unsure if self.config.refine else unsure[:0]
        for at in refined:
            part = slice(ends[at] - counts[at], ends[at])
            scores[part] = self._snap(self.exact_scores(int(places[at])))
            picks[at] = self._choose_again(scores[part], near[part], int(part.start))
        found = picks >= 0
        chosen = np.where(found, near[picks], -1).astype(np.int32)
        best = np.where(found, scores[picks], 0.0)
        n_certified, n_unsure = len(places) - len(unsure), len(unsure) - len(refined)
        return Ranked(chosen, best, n_certified, len(refined), n_unsure)

    def _choose_again(self, scores: Floats, near: Ints, first: int) -> Longs:
        nothing, one = np.zeros((len(near), 1)), np.array([len(near)])
        rows = self._rows[near]
        picks, _ = choose(scores, nothing[:, 0].copy(), nothing, rows, one, self.config.k)
        return np.where(picks[0] >= 0, picks[0] + first, -1)

    def _near(self, places: Ints) -> Ints:
        ends = self.graph.ends
        parts = [self.graph.neighbours[ends[place] : ends[place + 1]] for place in places]
        return np.concatenate(parts) if parts else np.zeros(0, np.int32)

    def _solve(self, place: int) -> Floats:
        """Give the PageRank of the walk from one place at its neighbours."""
        config = self.config
        if config.rounds:
            one = np.array([place], np.int32)
            return self._few_rounds(self._steps(one))
        return solve_at_neighbours(
            self.graph, place, damping=config.damping, tolerance=config.tolerance
        )

    def _steps(self, places: Ints) -> Floats:
        counts = self.graph.ends[places + 1] - self.graph.ends[places]
        steps = np.zeros((int(counts.sum()), N_STEPS))
        inverse = 1 / self._degrees if self.config.rounds else self._inverse
        first_steps(self.graph.ends, self.graph.neighbours, inverse, places, steps)
        return steps

    def _estimate(self, steps: Floats, near: Ints, ends: Longs) -> tuple[Floats, Floats]:
        if self.config.rounds:
            return self._few_rounds(steps), np.zeros(len(near))
        return self.tail.estimate(steps, near, ends)

    def _few_rounds(self, steps: Floats) -> Floats:
        config = self.config
        powers = config.damping * (1 - config.damping) ** np.arange(1, N_STEPS + 1)
        powers[config.rounds - 1 :] = 0
        walk: Floats = steps @ powers
        return walk

    def _finish(self, walk: Floats, near: Ints, own: Floats | float) -> Floats:
        """Turn a walk's PageRank into the score: the reading, and what all entities share."""
        personal = (1 - 1 / self.graph.n_entities) * walk * self._scale(near, own)
        scores: Floats = self.shared[near] + personal
        return scores

    def _scale(self, near: Ints, own: Floats | float) -> Floats:
        scale: Floats = (own / self._degrees[near]) ** self._turn
        return scale

    def _snap(self, scores: Floats) -> Floats:
        """Take scores that are equal as far as they are known for equal: the lower row wins."""
        snapped: Floats = np.round(scores / self.config.tolerance) * self.config.tolerance
        return snapped

    def _share(self, start: Floats | None) -> Floats:
        """Compute the part of the score that does not depend on the entity."""
        config, z = self.config, self.graph.n_entities
        jump, d, t = config.damping / max(z, 1), self._degrees, self._turn
        if not config.rounds:
            right = jump * d**t
            tolerance = config.tolerance / 10
            y = solve(self.graph, right, damping=config.damping, tolerance=tolerance)
            return np.asarray(d ** (1 - t) * y)
        shared = np.full(z, 1 / max(z, 1)) if start is None else np.asarray(start, np.float64)
        shared = shared[self.graph.row_at][: self.graph.n_linked]
        own = np.repeat(np.arange(len(d)), self.graph.degrees)
        for _ in range(config.rounds):
            flow = (d ** (t - 1) * shared)[self.graph.neighbours]
            arrived = np.bincount(own, weights=flow, minlength=len(d))
            shared = (1 - config.damping) * d**-t * arrived + jump
        return shared
