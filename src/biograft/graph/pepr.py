"""Personalised PageRank of entities (PEPR, SMedBERT): score and rank the neighbours of each entity.

The score of a neighbour is the probability to be there on a walk from the entity that ends with
probability ``damping`` at each step. How it is computed:

1. The first five steps of each walk are followed exactly (:func:`first_steps`). Walks that pass an
   entity with very many neighbours, a hub, are computed together (:func:`walk_through_hubs`).
2. The rest is the stationary distribution with a linear correction, fitted on a few pilot entities
   that are solved exactly. Its errors on them give a margin, which tells which rankings are
   certain.
3. On request uncertain rankings, or all, are solved by conjugate gradients to a stated bound
   (:func:`solve`).

The graph of entities is undirected, without loops and duplicates. Entities are ordered by degree,
highest first, so that frequent ones are close together in memory. A *position* is the index in that
order; entities without neighbours come last.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from biograft.arrays import Array, Flags, Floats, Int32s, Ints
from biograft.compute import njit
from biograft.errors import ConfigError
from biograft.graph.config import EXPONENTS, MAX_ROUNDS, PeprConfig

Masses = Array
"""Probabilities in 32 or 64 bits."""
N_STEPS = MAX_ROUNDS - 1
"""Steps of a walk that are computed exactly."""
_MAX_ITERATIONS = 5000
_SPARSE = 4
"""A third step that reaches less than 1 / 4 of the graph is cleared by its list."""
_COST = 50
"""Time of a hub by edge, in steps of walks that are followed one by one."""
_FITTED_FROM = 2
"""The first step is the same for all neighbours of an entity."""
_N_FITTED = N_STEPS + 1 - _FITTED_FROM
_COVERAGE = 0.99
"""Fraction of the pilots' neighbours whose error lies within the margin."""
_MIN_ERROR_FACTOR = 0.05
_FLOAT32_ERROR = 2e-7
"""Relative error of sums in single precision, measured against double precision."""
_DECIMALS = 14
"""To which steps in double precision are rounded, so that equal ones stay equal."""
_PILOT_SEED = 0


@dataclass(frozen=True, slots=True)
class Adjacency:
    """Neighbours by position: those of ``p`` are ``neighbours[ends[p] : ends[p + 1]]``."""

    ends: Ints  # (n_linked + 1,)
    neighbours: Int32s  # positions, ascending for each entity
    row_of: Int32s  # (n_entities,) row of the store by position
    position_of: Int32s  # (n_entities,) position by row of the store

    @property
    def n_entities(self) -> int:
        """Number of entities, with or without neighbours."""
        return len(self.row_of)

    @property
    def n_linked(self) -> int:
        """Number of entities with neighbours, which have the first positions."""
        return len(self.ends) - 1

    @property
    def degrees(self) -> Ints:
        """Number of neighbours of each linked entity."""
        return np.diff(self.ends)


def build_adjacency(heads: npt.ArrayLike, tails: npt.ArrayLike, n_entities: int) -> Adjacency:
    """Join heads with tails, ignoring relation, direction and duplicates.

    Args:
        heads: a row of the knowledge base for each triple.
        tails: the row that it is joined to.
        n_entities: the number of rows.

    Returns:
        the adjacency.
    """
    a, b = np.asarray(heads, np.int64), np.asarray(tails, np.int64)
    a, b = a[a != b], b[a != b]
    n = max(n_entities, 1)
    pairs = np.sort(np.concatenate((a * n + b, b * n + a)))
    pairs = pairs[np.diff(pairs, prepend=-1) > 0]
    degrees = np.bincount(pairs // n, minlength=n_entities)
    row_of = np.argsort(-degrees, kind="stable").astype(np.int32)
    position_of = np.empty(n_entities, np.int32)
    position_of[row_of] = np.arange(n_entities, dtype=np.int32)
    sorted_pairs = np.sort(position_of[pairs // n].astype(np.int64) * n + position_of[pairs % n])
    n_linked = int(np.count_nonzero(degrees))
    ends = np.concatenate(([0], np.cumsum(degrees[row_of[:n_linked]]))).astype(np.int64)
    return Adjacency(ends, (sorted_pairs % n).astype(np.int32), row_of, position_of)


def stationary_distribution(graph: Adjacency) -> tuple[Floats, Floats]:
    """Return the probability to be at a *neighbour* of the start after many even or odd steps.

    It is the neighbour's degree over the sum of degrees in its connected component, except that in
    a bipartite component a walk is at a neighbour after odd steps only.

    Args:
        graph: the adjacency.

    Returns:
        the probabilities by position, after even and after odd steps.
    """
    component, bipartite = _components(graph.ends, graph.neighbours)
    degrees = graph.degrees.astype(np.float64)
    ratio = degrees / np.bincount(component, weights=degrees)[component]
    in_bipartite = bipartite[component]
    return np.where(in_bipartite, 0.0, ratio), np.where(in_bipartite, 2 * ratio, ratio)


@njit()
def _components(ends: Ints, neighbours: Int32s) -> tuple[Int32s, Flags]:
    """Number the connected components, and find which of them are bipartite."""
    n = len(ends) - 1
    component = np.full(n, -1, np.int32)
    side = np.zeros(n, np.uint8)
    bipartite = np.ones(n, np.bool_)
    queue = np.empty(n, np.int32)
    n_components = 0
    for start in range(n):
        if component[start] >= 0:
            continue
        component[start], queue[0] = n_components, start
        first, last = 0, 1
        while first < last:
            u = queue[first]
            first += 1
            for k in range(ends[u], ends[u + 1]):
                v = neighbours[k]
                if component[v] < 0:
                    component[v], side[v] = n_components, 1 - side[u]
                    queue[last] = v
                    last += 1
                elif side[v] == side[u]:
                    bipartite[n_components] = False
        n_components += 1
    return component, bipartite


@njit(fastmath={"reassoc", "nsz", "contract"})
def _sum_at(positions: Int32s, values: Masses) -> float:
    """Sum the values at some positions."""
    total = values[0] * 0
    for position in positions:
        total += values[position]
    return total  # type: ignore[no-any-return]


def solve(
    graph: Adjacency,
    start: Floats,
    *,
    damping: float,
    tolerance: float,
    max_degree: float | None = None,
) -> Floats:
    """Solve for the PageRank of walks, each of which ends with probability ``damping`` at a step.

    With W the 0/1 adjacency, D the numbers of neighbours, c = 1 - damping and z = D^-1/2 p, the
    fixed point of p = c W D^-1 p + damping s solves (I - c D^-1/2 W D^-1/2) z = damping D^-1/2 s.
    This is symmetric, with eigenvalues of at least the damping, so with residual r of conjugate
    gradients the error of p(u) is at most sqrt(D_u) |r| / damping.

    Args:
        graph: the adjacency.
        start: the probabilities s of the starts of the walks, by position.
        damping: the teleport probability.
        tolerance: the largest error of p.
        max_degree: the largest degree where the tolerance is to hold; by default everywhere.

    Returns:
        p, by position.
    """
    if not graph.n_linked:
        return np.zeros(0)
    root = np.sqrt(graph.degrees)
    threshold = tolerance * damping / np.sqrt(max_degree or float(graph.degrees[0]))
    residual = damping * start / root
    z: Floats = _solve(graph.ends, graph.neighbours, 1 / root, residual, 1 - damping, threshold)
    return root * z


@njit()
def _solve(
    ends: Ints, neighbours: Int32s, scale: Floats, r: Floats, c: float, threshold: float
) -> Floats:
    """Run conjugate gradients until the residual ``r`` is small; it is overwritten."""
    z, p, q = np.zeros_like(r), r.copy(), np.empty_like(r)
    rho = (r * r).sum()
    for _ in range(_MAX_ITERATIONS):
        if np.sqrt(rho) <= threshold:
            break
        flow, product = scale * p, 0.0
        for u in range(len(r)):
            q[u] = p[u] - c * scale[u] * _sum_at(neighbours[ends[u] : ends[u + 1]], flow)
            product += p[u] * q[u]
        step, before, rho = rho / product, rho, 0.0
        for u in range(len(r)):
            z[u] += step * p[u]
            r[u] -= step * q[u]
            rho += r[u] * r[u]
        for u in range(len(r)):
            p[u] = r[u] + rho / before * p[u]
    return z


class Links(NamedTuple):
    """A graph whose hubs have the first positions, for walks that do not pass a hub."""

    starts: Ints
    """The neighbours of u that are no hubs are ``neighbours[starts[u] : ends[u + 1]]``."""
    ends: Ints
    neighbours: Int32s
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
    n, n_hubs, degrees = graph.n_linked, 0, graph.degrees.astype(np.float64)
    if n:
        saved = degrees * np.add.reduceat(degrees[graph.neighbours], graph.ends[:-1])
        _, firsts, group = np.unique(-degrees, return_index=True, return_inverse=True)
        are_hubs = np.bincount(group, saved) > _COST * len(graph.neighbours) * np.bincount(group)
        n_hubs = int(np.append(firsts, n)[np.argmin(np.append(are_hubs, False))])
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
    degrees = np.diff(ends)
    n = len(degrees)
    out = np.zeros((len(neighbours) if n_hubs else 0, N_STEPS - 1))
    walks, alone = np.empty((n, N_STEPS)), np.empty((n, N_STEPS))  # alone: without hubs on the way
    for hub in range(n_hubs):
        walks[:], alone[:] = 0, 0
        for u in neighbours[ends[hub] : ends[hub + 1]]:
            walks[u, 0] = alone[u, 0] = 1 / degrees[hub]
        for step in range(1, N_STEPS):
            flow, flow_alone = walks[:, step - 1] / degrees, alone[:, step - 1] / degrees
            for u in range(n):
                walks[u, step] = _sum_at(neighbours[ends[u] : ends[u + 1]], flow)
                alone[u, step] = _sum_at(neighbours[starts[u] : ends[u + 1]], flow_alone)
        for source in range(n_hubs, n):
            first = alone[source] * (degrees[hub] / degrees[source])
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
def first_steps(links: Links, inverse: Masses, sources: Int32s, out: Floats) -> None:
    """Follow the walks from some entities for five steps.

    Args:
        links: the graph; walks that start at a hub, end there or pass one are left out after the
            first step.
        inverse: one over the degree of each entity; its type sets the precision.
        sources: positions of the entities.
        out: receives the mass at each neighbour of all sources after steps 1 to 5.
    """
    starts, ends, neighbours, n_hubs = links
    n = len(inverse)
    two, three, four = np.zeros_like(inverse), np.zeros_like(inverse), np.zeros_like(inverse)
    listed, reached, everyone = (
        np.empty(n, np.int32),
        np.empty(n, np.int32),
        np.arange(n, dtype=np.int32),
    )
    stop = 0
    for source in sources:
        start, stop = stop, stop + ends[source + 1] - ends[source]
        out[start:stop, 0] = inverse[source]
        if source < n_hubs:
            continue
        n_listed = n_reached = volume = 0
        for u in neighbours[starts[source] : ends[source + 1]]:
            mass = inverse[source] * inverse[u]
            for v in neighbours[starts[u] : ends[u + 1]]:
                if two[v] == 0:
                    listed[n_listed] = v
                    n_listed += 1
                    volume += ends[v + 1] - starts[v]
                two[v] += mass
        is_sparse = volume < n // _SPARSE
        for v in listed[:n_listed]:
            mass = two[v] * inverse[v]
            for w in neighbours[starts[v] : ends[v + 1]]:
                if is_sparse and three[w] == 0:
                    reached[n_reached] = w
                    n_reached += 1
                three[w] += mass
        touched = reached[:n_reached] if is_sparse else everyone
        for w in touched:
            three[w] *= inverse[w]
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
        for w in touched:
            three[w] = 0


def _select_top_k(
    scores: Floats, margins: Floats, steps: Floats, rows: Int32s, ends: Ints, k: int
) -> tuple[Ints, Flags]:
    """Select the ``k`` best entries of each group, best first; ties go to the lower row.

    ``ends`` tells where the groups end. Entries with equal steps are twins, ordered by row and
    never uncertain. Returns the entries selected, -1 where there are too few, and whether each
    selection is certain: no other entry can be better than a selected one, within the margins.
    """
    counts = np.diff(ends, prepend=0)
    starts, group = ends - counts, np.repeat(np.arange(len(ends)), counts)
    order = np.lexsort((rows, -scores, group))
    ranks = np.empty_like(order)
    ranks[order] = np.arange(len(order)) - starts[group]
    places = starts[:, None] + np.arange(k)
    selected = np.where(places < ends[:, None], order[np.minimum(places, len(order) - 1)], -1)
    is_selected = ranks < k
    low = np.minimum.reduceat(np.where(is_selected, scores - margins, np.inf), starts)
    last = order[np.minimum(starts + k, ends) - 1][group]
    twins = (scores == scores[last]) & (steps == steps[last]).all(axis=1)
    beyond = ~is_selected & (scores + margins > low[group]) & ~twins
    return selected, ~np.logical_or.reduceat(beyond, starts)


def _means(values: Floats, ends: Ints) -> Floats:
    """Return the mean over an entity's neighbours, repeated for each of them."""
    counts = np.diff(ends, prepend=0)
    sums = np.add.reduceat(values, ends - counts, axis=0)
    return np.repeat((sums.T / counts).T, counts, axis=0)


def _error_scale(correction: Floats, ends: Ints) -> Floats:
    """Return the size of corrections: each plus the root mean square of its entity."""
    size: Floats = np.abs(correction) + np.sqrt(_means(correction**2, ends))
    return size


@dataclass(frozen=True, slots=True)
class Ranked:
    """The best neighbours of some entities: positions (-1 as padding) and scores."""

    positions: Int32s  # (entities, k)
    """Positions of the neighbours in the graph, best first."""
    scores: Floats  # (entities, k)
    """Scores of the neighbours; 0 as padding."""
    n_certified: int
    """Number of entities whose order is proven by bounds."""
    n_refined: int
    """Number of entities that needed further iterations."""
    n_uncertain: int
    """Number of entities whose order is not proven."""


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
        precision = np.float64 if self.config.rounds else np.float32
        self._inverse: Masses = np.divide(1, self._degrees, dtype=precision)
        self._links = find_hubs(graph)
        self._global_scores = self._score_globally(start)

    @cached_property
    def _hub_steps(self) -> Floats:
        steps: Floats = walk_through_hubs(self._links)
        return steps

    @cached_property
    def _stationary(self) -> tuple[Floats, Floats]:
        return stationary_distribution(self.graph)

    @cached_property
    def _correction(self) -> tuple[Floats, float]:
        """The correction of a walk's remaining steps, fitted on pilots that are solved exactly.

        Returns the slopes of a linear correction, and its error relative to the size.
        """
        rng, pilots = np.random.default_rng(_PILOT_SEED), []
        for group in (self._degrees > self.config.k, self._degrees <= self.config.k):
            candidates = np.flatnonzero(group).astype(np.int32)
            n = min(self.config.pilots, len(candidates))
            pilots.append(rng.choice(candidates, n, replace=False))
        positions = np.sort(np.concatenate(pilots))
        edges, ends = self._edges(positions)
        neighbours = self.graph.neighbours[edges]
        known, features = self._split(self._steps(positions), neighbours, ends)
        missing = self._solve(positions) - known
        counts = np.diff(ends, prepend=0)
        # equal weight for each pilot: a neighbour's mass is 1 / neighbours
        weight = np.sqrt(np.repeat(counts, counts))
        weighted = weight[:, None] * features
        scale = np.sqrt((weighted**2).sum(axis=0))
        scale[scale == 0] = 1
        slopes = np.linalg.lstsq(weighted / scale, weight * missing, rcond=1e-8)[0] / scale
        correction = features[:, :_N_FITTED] @ slopes[:_N_FITTED]
        error = np.abs(missing - _means(missing, ends) - correction) - _FLOAT32_ERROR * known
        size = np.maximum(_error_scale(correction, ends), np.finfo(float).tiny)
        factor = float(np.quantile(np.maximum(error, 0) / size, _COVERAGE))
        return slopes, max(factor, _MIN_ERROR_FACTOR)

    def prepare(self) -> None:
        """Compute what ranking needs before several threads use it."""
        if not self.config.exact:
            _ = self._hub_steps
            if not self.config.rounds and self.graph.n_linked:
                _ = self._correction

    def exact_scores(self, position: int) -> Floats:
        """Score the neighbours of one linked entity within the tolerance.

        Args:
            position: the entity.

        Returns:
            the scores of its neighbours, in their order in the graph.
        """
        positions = np.array([position], np.int32)
        neighbours = self.graph.neighbours[self._edges(positions)[0]]
        walk = self._few_rounds(self._steps(positions))
        if not self.config.rounds:
            walk = self._solve(positions)
        scale = (self._degrees[position] / self._degrees[neighbours]) ** self._exponent
        return self._finish(walk * scale, neighbours)

    def rank(self, positions: Int32s) -> Ranked:
        """Rank the neighbours of some linked entities.

        Args:
            positions: the entities.

        Returns:
            the best neighbours of each, and how many rankings are certain.
        """
        config, (edges, ends) = self.config, self._edges(positions)
        neighbours, counts = self.graph.neighbours[edges], np.diff(ends, prepend=0)
        rows = self.graph.row_of[neighbours]
        steps, margins = np.zeros((len(edges), N_STEPS)), np.zeros(len(edges))
        if config.rounds or not config.exact:
            steps = self._steps(positions)
        if config.rounds:
            walk = self._few_rounds(steps)
        elif config.exact:
            walk = self._solve(positions)
        else:
            slopes, error_factor = self._correction
            known, features = self._split(steps, neighbours, ends)
            correction = features[:, :_N_FITTED] @ slopes[:_N_FITTED]
            walk = known + features @ slopes
            margins = error_factor * _error_scale(correction, ends) + _FLOAT32_ERROR * known
        source_degrees = np.repeat(self._degrees[positions], counts)
        scale = (source_degrees / self._degrees[neighbours]) ** self._exponent
        scores = self._finish(walk * scale, neighbours)
        if config.exact:
            scores = self._snap(scores)
        margins *= scale
        selected, certain = _select_top_k(scores, margins, steps, rows, ends, config.k)
        uncertain = np.flatnonzero(~certain)
        if config.refine and len(uncertain):
            for at in uncertain:
                exact = self._snap(self.exact_scores(int(positions[at])))
                scores[ends[at] - counts[at] : ends[at]] = exact
            selected, _ = _select_top_k(scores, margins, steps, rows, ends, config.k)
        valid, n_refined = selected >= 0, len(uncertain) * config.refine
        return Ranked(
            np.where(valid, neighbours[selected], -1).astype(np.int32),
            np.where(valid, scores[selected], 0.0),
            n_certified=len(positions) - len(uncertain),
            n_refined=n_refined,
            n_uncertain=len(uncertain) - n_refined,
        )

    def _edges(self, positions: Int32s) -> tuple[Ints, Ints]:
        """Return the edges of some entities, and where those of each end."""
        starts = self.graph.ends[positions]
        counts = self.graph.ends[positions + 1] - starts
        ends = np.cumsum(counts)
        return np.arange(counts.sum()) + np.repeat(starts - ends + counts, counts), ends

    def _solve(self, positions: Int32s) -> Floats:
        """Return the PageRank of the walks from some entities at their neighbours."""
        config, graph, walks = self.config, self.graph, [np.zeros(0)]
        for position in positions:
            neighbours = graph.neighbours[graph.ends[position] : graph.ends[position + 1]]
            start = np.zeros(graph.n_linked)
            start[position] = 1
            walk = solve(
                graph,
                start,
                damping=config.damping,
                tolerance=config.tolerance,
                # positions are ordered by degree, so the first neighbour has the largest
                max_degree=self._degrees[neighbours[0]],
            )
            walks.append(walk[neighbours])
        return np.concatenate(walks)

    def _steps(self, positions: Int32s) -> Floats:
        edges, _ = self._edges(positions)
        steps = np.zeros((len(edges), N_STEPS))
        first_steps(self._links, self._inverse, positions, steps)
        if self._links.n_hubs:  # sums in another order become equal by rounding
            steps[:, 1:] += self._hub_steps[edges]
            if self.config.rounds:
                return np.round(steps, _DECIMALS)
            return steps.astype(np.float32).astype(np.float64)
        return steps

    def _split(self, steps: Floats, neighbours: Int32s, ends: Ints) -> tuple[Floats, Floats]:
        """Sum the known steps and a stationary rest; return that, and what the error depends on.

        These are the differences of an entity's neighbours from stationary, which decide their
        order, and the means of these differences, which do not.
        """
        damping, c = self.config.damping, 1 - self.config.damping
        powers = damping * c ** np.arange(1, N_STEPS + 1)
        even, odd = (values[neighbours] for values in self._stationary)
        rest = damping * c ** (N_STEPS + 1) / (1 - c * c) * (even + c * odd)
        stationary = [odd if step % 2 else even for step in range(_FITTED_FROM, N_STEPS + 1)]
        deviations = steps[:, _FITTED_FROM - 1 :] - np.stack(stationary, axis=1)
        means = _means(deviations, ends)
        return steps @ powers + rest, np.hstack((deviations - means, means))

    def _few_rounds(self, steps: Floats) -> Floats:
        config = self.config
        powers = config.damping * (1 - config.damping) ** np.arange(1, N_STEPS + 1)
        powers[max(config.rounds - 1, 0) :] = 0
        walk: Floats = steps @ powers
        return walk

    def _finish(self, personal: Floats, neighbours: Int32s) -> Floats:
        """Add the global scores to normalised personal ones."""
        scores: Floats = (
            self._global_scores[neighbours] + (1 - 1 / self.graph.n_entities) * personal
        )
        return scores

    def _snap(self, scores: Floats) -> Floats:
        """Round scores to the tolerance, so that ties go to the lower row."""
        snapped: Floats = np.round(scores / self.config.tolerance) * self.config.tolerance
        return snapped

    def _score_globally(self, start: Floats | None) -> Floats:
        """Compute the part of the scores that does not depend on the entity."""
        config, z = self.config, max(self.graph.n_entities, 1)
        d, t = self._degrees, self._exponent
        if not config.rounds:
            tolerance = config.tolerance / 10
            p = solve(self.graph, d**t / z, damping=config.damping, tolerance=tolerance)
            return np.asarray(d**-t * p)
        scores = np.full(len(d), 1 / z)
        if start is not None:
            scores = np.asarray(start, np.float64)[self.graph.row_of[: len(d)]]
        sources = np.repeat(np.arange(len(d)), self.graph.degrees)
        for _ in range(config.rounds):
            flow = (d ** (t - 1) * scores)[self.graph.neighbours]
            arrived = np.bincount(sources, weights=flow, minlength=len(d))
            scores = (1 - config.damping) * d**-t * arrived + config.damping / z
        return scores
