"""Personalised entity PageRank (PEPR) of every entity's own neighbours, after SMedBERT.

V_e = (1 - a) A V_e + a P, with P = 1 at e and 1/Z elsewhere. That is linear in P, so V_e is one
vector that all entities share plus (1 - 1/Z) times the PageRank p_e of a walk that begins at e.
Of p_e five steps are computed exactly (:mod:`~biograft.graph.pepr_steps`). The rest is where such
a walk settles, corrected by a linear function of how far steps 2 to 5 are from settled; it is
fitted on pilot entities that are solved exactly, and so is how far to trust it. An entity whose
first K neighbours are not apart from the others by that margin is counted as unsure, or solved
exactly too (``refine``), which costs a hundred times as much.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from biograft.errors import ConfigError
from biograft.graph.adjacency import Adjacency, Floats, Ints, Longs, settle
from biograft.graph.pepr_choice import choose
from biograft.graph.pepr_exact import solve, solve_at_neighbours
from biograft.graph.pepr_steps import N_STEPS, first_steps
from biograft.graph.pepr_tail import Tail, fit_tail

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
