"""Personalised PageRank of entities (PEPR, SMedBERT): score and rank the neighbours of each entity.

The score of a neighbour is the probability to be there on a walk from the entity that ends with
probability ``damping`` at each step. How it is computed:

1. The first five steps of each walk are followed exactly (:func:`first_steps`). Walks that pass an
   entity with very many neighbours, a hub, are computed together (:func:`walk_through_hubs`).
2. The rest is the stationary distribution with a linear correction, fitted on a few pilot entities
   that are solved exactly (:class:`TailCorrection`). Its errors on them give a margin, which tells
   which rankings are certain.
3. On request uncertain rankings, or all, are solved by conjugate gradients to a stated bound
   (:func:`solve`).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from biograft.compute import njit
from biograft.errors import ConfigError
from biograft.graph.adjacency import Adjacency, Floats, Ints, Longs, stationary_distribution
from biograft.graph.config import EXPONENTS, MAX_ROUNDS, PeprConfig

Masses = npt.NDArray[Any]
"""Probabilities in 32 or 64 bits."""
N_STEPS = MAX_ROUNDS - 1
"""Steps of a walk that are computed exactly."""
_MAX_ITERATIONS = 5000
_SPARSE = 4
"""A third step that reaches less than 1 / 4 of the graph is cleared by its list."""
_COST = 50
"""Time of a hub by edge, in steps of walks that are followed one by one."""


@njit(fastmath={"reassoc", "nsz", "contract"})
def _sum_at(positions: Ints, values: Masses) -> float:
    """Sum the values at some positions."""
    total = values[0] * 0
    for position in positions:
        total += values[position]
    return total  # type: ignore[no-any-return]


def solve(
    graph: Adjacency,
    right: Floats,
    *,
    damping: float,
    tolerance: float,
    max_degree: float | None = None,
) -> Floats:
    """Solve for the PageRank of a start vector, divided by the degrees.

    With W the 0/1 adjacency, D the numbers of neighbours, c = 1 - damping and y = p / D, the fixed
    point of p = c W D^-1 p + b solves (D - c W) y = b, which is symmetric and positive definite; D
    is the preconditioner of conjugate gradients. The smallest eigenvalue of
    I - c D^-1/2 W D^-1/2 is at least the damping, so with residual r the error of p(u) is at most
    sqrt(D_u) sqrt(r D^-1 r) / damping.

    Args:
        graph: the adjacency.
        right: the right side b, by position.
        damping: the teleport probability.
        tolerance: the largest error of p = D y.
        max_degree: the largest degree where the tolerance is to hold; by default everywhere.

    Returns:
        y, by position.
    """
    if not graph.n_linked:
        return np.zeros(0)
    threshold = tolerance * damping / np.sqrt(max_degree or float(graph.degrees[0]))
    y: Floats = _solve(graph.ends, graph.neighbours, right.copy(), 1 - damping, threshold)
    return y


@njit()
def _solve(ends: Longs, neighbours: Ints, r: Floats, c: float, threshold: float) -> Floats:
    """Run conjugate gradients until the residual is small; ``r`` is overwritten."""
    y, p, q = np.zeros_like(r), np.zeros_like(r), np.empty_like(r)
    before = 1.0
    for _ in range(_MAX_ITERATIONS):
        rho = 0.0  # r D^-1 r
        for u in range(len(r)):
            rho += r[u] * r[u] / (ends[u + 1] - ends[u])
        if np.sqrt(rho) <= threshold:
            break
        for u in range(len(r)):
            p[u] = r[u] / (ends[u + 1] - ends[u]) + rho / before * p[u]
        product = 0.0
        for u in range(len(r)):  # q = (D - c W) p
            first, stop = ends[u], ends[u + 1]
            q[u] = (stop - first) * p[u] - c * _sum_at(neighbours[first:stop], p)
            product += p[u] * q[u]
        step = rho / product
        for u in range(len(r)):
            y[u] += step * p[u]
            r[u] -= step * q[u]
        before = rho
    return y


class Links(NamedTuple):
    """A graph whose hubs have the first positions, for walks that do not pass a hub."""

    starts: Longs
    """The neighbours of u that are no hubs are ``neighbours[starts[u] : ends[u + 1]]``."""
    ends: Longs
    neighbours: Ints
    n_hubs: int


def find_hubs(graph: Adjacency) -> Links:
    """Find the hubs: it saves time to treat the walks through them together.

    Entities with equally many neighbours are hubs together, so that those with the same neighbours
    are computed in the same way, and stay equal.

    Args:
        graph: the adjacency, whose positions are ordered by degree.

    Returns:
        the graph with its number of hubs.
    """
    n, n_hubs = graph.n_linked, 0
    if n:
        degrees = graph.degrees.astype(np.float64)
        volumes = np.add.reduceat(degrees[graph.neighbours], graph.ends[:-1])
        starts = np.flatnonzero(np.diff(degrees, prepend=-1))  # of entities with equal degrees
        sizes = np.diff(starts, append=n)
        saved = np.add.reduceat(degrees * volumes, starts)
        are_hubs = saved > _COST * len(graph.neighbours) * sizes
        n_hubs = int(sizes[: np.argmin(np.append(are_hubs, False))].sum())
    owners = np.repeat(np.arange(n), graph.degrees)
    n_skipped = np.bincount(owners[graph.neighbours < n_hubs], minlength=n)
    return Links(graph.ends[:-1] + n_skipped, graph.ends, graph.neighbours, n_hubs)


@njit()
def walk_through_hubs(links: Links) -> Floats:
    """Compute the mass of walks through hubs, for each edge after 2 to 5 steps: (edges, 4).

    Following each walk through a hub takes, for every neighbour of the hub, as many steps as the
    hub has neighbours: quadratic time. Walks are therefore split at the first hub between their
    ends. If ``f_j`` is the mass that is at hub h after j steps, without a hub before, the mass
    after k steps at an entity u is that of the walks without a hub, plus the sum over h and j of
    ``f_j P^(k-j)(h, u)``. Both factors come from walks that start at the hub: walks are
    reversible, so that the mass from a source s at h is that from h at s, times the neighbours of
    h over those of s. A hub takes time in proportion to the number of edges.

    Args:
        links: the graph and its hubs.

    Returns:
        the masses, of walks that start or end at a hub, too; empty without hubs.
    """
    starts, ends, neighbours, n_hubs = links
    n = len(ends) - 1
    out = np.zeros((len(neighbours) if n_hubs else 0, N_STEPS - 1))
    walks, alone = np.empty((n, N_STEPS)), np.empty((n, N_STEPS))  # alone: without hubs on the way
    here, here_alone = np.zeros(n), np.zeros(n)
    for hub in range(n_hubs):
        degree = ends[hub + 1] - ends[hub]
        walks[:], alone[:] = 0, 0
        for u in neighbours[ends[hub] : ends[hub + 1]]:
            walks[u, 0] = alone[u, 0] = 1 / degree
        for step in range(1, N_STEPS):
            for u in range(n):
                here[u] = walks[u, step - 1] / (ends[u + 1] - ends[u])
                here_alone[u] = alone[u, step - 1] / (ends[u + 1] - ends[u])
            for u in range(n):
                walks[u, step] = _sum_at(neighbours[ends[u] : ends[u + 1]], here)
                alone[u, step] = _sum_at(neighbours[starts[u] : ends[u + 1]], here_alone)
        for source in range(n_hubs, n):
            first = alone[source] * (degree / (ends[source + 1] - ends[source]))
            if not np.any(first):
                continue
            for m in range(ends[source], ends[source + 1]):
                second = walks[neighbours[m]]
                for k in range(N_STEPS - 1):
                    for j in range(k + 1):
                        out[m, k] += first[j] * second[k - j]
            for m in range(ends[source], starts[source]):
                if neighbours[m] == hub:
                    out[m] += first[1:]  # the walk ends here
        for m in range(ends[hub], ends[hub + 1]):
            out[m] = walks[neighbours[m], 1:]
    return out


@njit()
def first_steps(links: Links, inverse: Masses, sources: Ints, out: Floats) -> None:
    """Follow the walks from some entities for five steps.

    Args:
        links: the graph; walks that start at a hub, end there or pass one are left out after the
            first step.
        inverse: one over the degree of each entity; its type sets the precision.
        sources: positions of the entities.
        out: receives the mass at each neighbour of all sources after steps 1 to 5.
    """
    starts, ends, neighbours, n_hubs = links
    n = len(ends) - 1
    two, three, four = np.zeros_like(inverse), np.zeros_like(inverse), np.zeros_like(inverse)
    listed, touched = np.empty(n, np.int32), np.empty(n, np.int32)
    stop = 0
    for source in sources:
        start, stop = stop, stop + ends[source + 1] - ends[source]
        out[start:stop, 0] = inverse[source]
        if source < n_hubs:
            continue
        n_listed, volume = 0, 0
        for k in range(starts[source], ends[source + 1]):
            u = neighbours[k]
            mass = inverse[source] * inverse[u]
            for m in range(starts[u], ends[u + 1]):
                v = neighbours[m]
                if two[v] == 0:
                    listed[n_listed] = v
                    n_listed += 1
                    volume += ends[v + 1] - starts[v]
                two[v] += mass
        if volume < n // _SPARSE:
            n_touched = _third_listed(links, two, listed[:n_listed], three, touched)
        else:
            n_touched = -1
            _third(links, inverse, two, listed[:n_listed], three)
        for v in listed[:n_listed]:
            four[v] = _sum_at(neighbours[starts[v] : ends[v + 1]], three) * inverse[v]
        at = start + starts[source] - ends[source]
        for u in neighbours[starts[source] : ends[source + 1]]:
            out[at, 1] = two[u]
            out[at, 2] = three[u] * (ends[u + 1] - ends[u])
            out[at, 3] = _sum_at(neighbours[starts[u] : ends[u + 1]], three)
            out[at, 4] = _sum_at(neighbours[starts[u] : ends[u + 1]], four)
            at += 1
        for v in listed[:n_listed]:
            two[v] = 0
        if n_touched < 0:
            three[:] = 0
        else:
            for w in touched[:n_touched]:
                three[w] = 0


@njit()
def _third(links: Links, inverse: Masses, two: Masses, listed: Ints, three: Masses) -> None:
    """Take the third step, each mass divided by the degree of its end."""
    starts, ends, neighbours, _ = links
    for v in listed:
        mass = two[v] * inverse[v]
        for m in range(starts[v], ends[v + 1]):
            three[neighbours[m]] += mass
    for w in range(len(three)):
        three[w] *= inverse[w]


@njit()
def _third_listed(links: Links, two: Masses, listed: Ints, three: Masses, touched: Ints) -> int:
    """Take the third step where few positions are reached, and list them."""
    starts, ends, neighbours, _ = links
    n_touched = 0
    for v in listed:
        mass = two[v] / (ends[v + 1] - ends[v])
        for m in range(starts[v], ends[v + 1]):
            w = neighbours[m]
            if three[w] == 0:
                touched[n_touched] = w
                n_touched += 1
            three[w] += mass
    for w in touched[:n_touched]:
        three[w] /= ends[w + 1] - ends[w]
    return n_touched


@njit()
def select_top_k(
    scores: Floats, margins: Floats, steps: Floats, rows: Ints, ends: Longs, k: int
) -> tuple[Longs, npt.NDArray[np.bool_]]:
    """Select the ``k`` best entries of each group, best first; ties go to the lower row.

    Args:
        scores: the score of each entry.
        margins: the largest error of each score.
        steps: the steps of each entry's walk: entries that have equal ones are twins, ordered by
            row and never uncertain.
        rows: the row of each entry.
        ends: where each group ends.
        k: entries to select.

    Returns:
        the entries selected, -1 where there are too few, and whether each selection is certain:
        no other entry can be better than a selected one, within the margins.
    """
    selected = np.full((len(ends), k), -1, np.int64)
    certain = np.ones(len(ends), np.bool_)
    taken = np.zeros(len(scores), np.bool_)
    stop = 0
    for group in range(len(ends)):
        first, stop = stop, ends[group]
        low, last = np.inf, -1
        for rank in range(min(k, stop - first)):
            last = -1
            for at in range(first, stop):
                if not taken[at] and (
                    last < 0
                    or scores[at] > scores[last]
                    or (scores[at] == scores[last] and rows[at] < rows[last])
                ):
                    last = at
            selected[group, rank], taken[last] = last, True
            low = min(low, scores[last] - margins[last])
        for at in range(first, stop):
            if not taken[at] and scores[at] + margins[at] > low:
                twins = scores[at] == scores[last] and np.all(steps[at] == steps[last])
                if not twins:
                    certain[group] = False
                    break
    return selected, certain


_FITTED_FROM = 2
"""The first step is the same for all neighbours of an entity."""
_COVERAGE = 0.99
"""Fraction of the pilots' neighbours whose error lies within the margin."""
_MIN_ERROR_FACTOR = 0.05
_FLOAT32_ERROR = 2e-7
"""Relative error of sums in single precision, measured against double precision."""
_DECIMALS = 14
"""To which steps in double precision are rounded, so that equal ones stay equal."""
_PILOT_SEED = 0


class TailCorrection:
    """Linear correction of a walk's remaining steps, with its error relative to its size.

    The differences between an entity's neighbours, which decide their order, and their mean,
    which does not, are corrected separately.
    """

    def __init__(self, stationary: tuple[Floats, Floats], damping: float) -> None:
        self.stationary, self.damping = stationary, damping
        self.slopes = self.mean_slopes = np.zeros(N_STEPS - _FITTED_FROM + 1)
        self.error_factor = 1.0

    def _split(self, steps: Floats, neighbours: Ints, ends: Longs) -> tuple[Floats, Floats, Floats]:
        """Sum the known steps and a stationary rest.

        Returns that, the means of the deviations from stationary, and the deviations from those.
        """
        c = 1 - self.damping
        powers = self.damping * c ** np.arange(1, N_STEPS + 1)
        even, odd = (values[neighbours] for values in self.stationary)
        rest = self.damping * c ** (N_STEPS + 1) / (1 - c * c) * (even + c * odd)
        stationary = [odd if step % 2 else even for step in range(_FITTED_FROM, N_STEPS + 1)]
        deviations = steps[:, _FITTED_FROM - 1 :] - np.stack(stationary, axis=1)
        means = _means(deviations, ends)
        return steps @ powers + rest, means, deviations - means

    def fit(self, steps: Floats, walk: Floats, neighbours: Ints, ends: Longs) -> None:
        """Fit the correction to walks that are known exactly, with equal weight for each pilot.

        Args:
            steps: the first steps of the walks from the pilots to their neighbours.
            walk: the exact masses of these walks.
            neighbours: the positions of the neighbours.
            ends: where the neighbours of each pilot end.
        """
        known_sum, means, deviations = self._split(steps, neighbours, ends)
        missing = (walk - known_sum)[:, None]
        mean_missing = _means(missing, ends)
        counts = np.diff(ends, prepend=0)
        weight = np.sqrt(np.repeat(counts, counts))[:, None]  # a neighbour's mass is 1 / neighbours
        self.slopes = _fit(weight * deviations, weight * (missing - mean_missing))
        firsts = ends - counts
        self.mean_slopes = _fit(
            counts[:, None] * means[firsts], counts[:, None] * mean_missing[firsts]
        )
        correction = deviations @ self.slopes
        error = np.abs((missing - mean_missing)[:, 0] - correction)
        size = np.maximum(_error_scale(correction, ends), np.finfo(float).tiny)
        beyond = np.maximum(error - _FLOAT32_ERROR * known_sum, 0) / size
        self.error_factor = max(float(np.quantile(beyond, _COVERAGE)), _MIN_ERROR_FACTOR)

    def estimate(self, steps: Floats, neighbours: Ints, ends: Longs) -> tuple[Floats, Floats]:
        """Estimate the personal PageRank at the neighbours of some entities.

        Args:
            steps: the first steps of the walks to the neighbours.
            neighbours: their positions.
            ends: where the neighbours of each entity end.

        Returns:
            the estimates, and their error margins.
        """
        known_sum, means, deviations = self._split(steps, neighbours, ends)
        correction = deviations @ self.slopes
        margins = self.error_factor * _error_scale(correction, ends) + _FLOAT32_ERROR * known_sum
        return known_sum + correction + means @ self.mean_slopes, margins


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
    size: Floats = np.abs(correction) + np.sqrt(_means((correction**2)[:, None], ends)[:, 0])
    return size


@dataclass(frozen=True, slots=True)
class Ranked:
    """The best neighbours of some entities: positions (-1 as padding) and scores."""

    positions: Ints  # (entities, k)
    scores: Floats  # (entities, k)
    n_certified: int
    n_refined: int
    n_uncertain: int


class PageRank:
    """Scores and ranks the neighbours of entities; both are given by position in the graph.

    Args:
        graph: the adjacency.
        config: damping, normalisation, number of neighbours and precision.
        start: the start vector by row, used with ``config.rounds`` only; default: uniform.
    """

    def __init__(
        self, graph: Adjacency, config: PeprConfig | None = None, *, start: Floats | None = None
    ) -> None:
        self.graph, self.config = graph, config or PeprConfig()
        if start is not None and np.shape(start) != (graph.n_entities,):
            raise ConfigError(
                f"start: expected {graph.n_entities} numbers, one for each entity, found an array "
                f"of {' x '.join(map(str, np.shape(start)))}"
            )
        self._degrees = graph.degrees.astype(np.float64)
        self._exponent = EXPONENTS[self.config.normalise]
        self._rows = graph.row_of[: graph.n_linked]
        self._inverse: Masses = 1 / self._degrees
        if not self.config.rounds:
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
        correction = TailCorrection(stationary_distribution(self.graph), self.config.damping)
        if len(pilots):
            exact = [self._solve(int(position)) for position in pilots]
            ends = np.cumsum([len(values) for values in exact])
            edges = self._edges_of(pilots)
            correction.fit(
                self._steps(pilots), np.concatenate(exact), self.graph.neighbours[edges], ends
            )
        return correction

    @cached_property
    def _hub_steps(self) -> Floats:
        steps: Floats = walk_through_hubs(self._links)
        return steps

    def prepare(self) -> None:
        """Compute what ranking needs before several threads use it."""
        if not self.config.exact:
            _ = self._hub_steps
            if not self.config.rounds:
                _ = self.tail_correction

    def exact_scores(self, position: int) -> Floats:
        """Score the neighbours of one linked entity within the tolerance.

        Args:
            position: the entity.

        Returns:
            the scores of its neighbours, in their order in the graph.
        """
        edges = self._edges_of(np.array([position]))
        return self._finish(
            self._solve(position), self.graph.neighbours[edges], self._degrees[position]
        )

    def rank(self, positions: Ints) -> Ranked:
        """Rank the neighbours of some linked entities.

        Args:
            positions: the entities.

        Returns:
            the best neighbours of each, and how many rankings are certain.
        """
        config, neighbours = self.config, self.graph.neighbours[self._edges_of(positions)]
        counts = self.graph.ends[positions + 1] - self.graph.ends[positions]
        ends = np.cumsum(counts)
        margins = np.zeros(len(neighbours))
        if config.exact:
            walk = np.concatenate([self._solve(int(position)) for position in positions])
            steps = np.zeros((len(neighbours), N_STEPS))
        else:
            steps = self._steps(positions)
            if config.rounds:
                walk = self._few_rounds(steps)
            else:
                walk, margins = self.tail_correction.estimate(steps, neighbours, ends)
        source_degrees = np.repeat(self._degrees[positions], counts)
        scores = self._finish(walk, neighbours, source_degrees)
        if config.exact:
            scores = self._snap(scores)
        margins = margins * (source_degrees / self._degrees[neighbours]) ** self._exponent
        rows = self._rows[neighbours]
        selected, certain = select_top_k(scores, margins, steps, rows, ends, config.k)
        uncertain = np.flatnonzero(~certain & (not config.exact))
        refined = uncertain if config.refine else uncertain[:0]
        for at in refined:
            first, stop = ends[at] - counts[at], ends[at]
            scores[first:stop] = self._snap(self.exact_scores(int(positions[at])))
            order = first + np.lexsort((rows[first:stop], -scores[first:stop]))[: config.k]
            selected[at, : len(order)] = order
        valid = selected >= 0
        return Ranked(
            np.where(valid, neighbours[selected], -1).astype(np.int32),
            np.where(valid, scores[selected], 0.0),
            n_certified=len(positions) - len(uncertain),
            n_refined=len(refined),
            n_uncertain=len(uncertain) - len(refined),
        )

    def _edges_of(self, positions: Ints) -> Longs:
        ends = self.graph.ends
        edges = [np.arange(ends[position], ends[position + 1]) for position in positions]
        return np.concatenate([np.zeros(0, np.int64), *edges])

    def _solve(self, position: int) -> Floats:
        """Return the PageRank of the walk from one entity at its neighbours."""
        config, graph = self.config, self.graph
        if config.rounds:
            return self._few_rounds(self._steps(np.array([position], np.int32)))
        neighbours = graph.neighbours[graph.ends[position] : graph.ends[position + 1]]
        right = np.zeros(graph.n_linked)
        right[position] = config.damping
        degrees = self._degrees[neighbours]
        # positions are ordered by degree, so the first neighbour has the largest
        y = solve(
            graph,
            right,
            damping=config.damping,
            tolerance=config.tolerance,
            max_degree=float(degrees[0]),
        )
        return y[neighbours] * degrees

    def _steps(self, positions: Ints) -> Floats:
        edges = self._edges_of(positions)
        steps = np.zeros((len(edges), N_STEPS))
        first_steps(self._links, self._inverse, positions, steps)
        if self._links.n_hubs:  # sums in another order become equal by rounding
            steps[:, 1:] += self._hub_steps[edges]
            if self.config.rounds:
                return np.round(steps, _DECIMALS)
            return steps.astype(np.float32).astype(np.float64)
        return steps

    def _few_rounds(self, steps: Floats) -> Floats:
        config = self.config
        powers = config.damping * (1 - config.damping) ** np.arange(1, N_STEPS + 1)
        powers[config.rounds - 1 :] = 0
        walk: Floats = steps @ powers
        return walk

    def _finish(self, walk: Floats, neighbours: Ints, source_degrees: Floats | float) -> Floats:
        """Turn a walk's PageRank into the score: normalise it and add the global scores."""
        scale = (source_degrees / self._degrees[neighbours]) ** self._exponent
        personal = (1 - 1 / self.graph.n_entities) * walk * scale
        scores: Floats = self.global_scores[neighbours] + personal
        return scores

    def _snap(self, scores: Floats) -> Floats:
        """Round scores to the tolerance, so that ties go to the lower row."""
        snapped: Floats = np.round(scores / self.config.tolerance) * self.config.tolerance
        return snapped

    def _global_scores(self, start: Floats | None) -> Floats:
        """Compute the part of the scores that does not depend on the entity."""
        config, z = self.config, max(self.graph.n_entities, 1)
        jump, d, t = config.damping / z, self._degrees, self._exponent
        if not config.rounds:
            right, tolerance = jump * d**t, config.tolerance / 10
            y = solve(self.graph, right, damping=config.damping, tolerance=tolerance)
            return np.asarray(d ** (1 - t) * y)
        scores = np.full(len(d), 1 / z)
        if start is not None:
            scores = np.asarray(start, np.float64)[self._rows]
        sources = np.repeat(np.arange(len(d)), self.graph.degrees)
        for _ in range(config.rounds):
            flow = (d ** (t - 1) * scores)[self.graph.neighbours]
            arrived = np.bincount(sources, weights=flow, minlength=len(d))
            scores = (1 - config.damping) * d**-t * arrived + jump
        return scores
