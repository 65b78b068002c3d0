"""Walks through hubs, against powers of the transition matrix, and their time."""

from __future__ import annotations

import time

import numpy as np
import pytest

from biograft.graph import PageRank, PeprConfig, build_adjacency, pepr

N_STEPS = 5


def random_graph(n, n_hubs, seed):
    """A sparse random graph, some entities of which are joined to many."""
    rng = np.random.default_rng(seed)
    pairs = [rng.integers(0, n, (n, 2))]
    for hub in range(n_hubs):
        others = rng.choice(n, rng.integers(n // 4, n), replace=False)
        pairs.append(np.stack([np.full(len(others), hub), others], axis=1))
    return build_adjacency(*np.concatenate(pairs).T, n)


def star(n):
    """One entity joined to ``n``, each of which has a leaf of its own."""
    leaves = np.arange(1, n + 1)
    return build_adjacency(np.append(leaves * 0, leaves), np.append(leaves, leaves + n), 2 * n + 1)


def plain_steps(graph):
    """The mass after 1 to 5 steps of each entity at its neighbours: (edges, 5)."""
    n, owners = graph.n_linked, np.repeat(np.arange(graph.n_linked), graph.degrees)
    step = np.zeros((n, n))
    step[owners, graph.neighbours] = 1 / graph.degrees[owners]
    walk, masses = np.eye(n), []
    for _ in range(N_STEPS):
        walk = walk @ step
        masses.append(walk[owners, graph.neighbours])
    return np.stack(masses, axis=1)


def all_positions(graph):
    return np.arange(graph.n_linked, dtype=np.int32)


@pytest.mark.parametrize("cost", [0, 1, 4, 1e9])
@pytest.mark.parametrize("seed", range(4))
def test_steps_equal_powers_of_the_matrix(monkeypatch, cost, seed):
    monkeypatch.setattr(pepr, "_COST", cost)
    graph = random_graph(120, n_hubs=seed, seed=seed)
    double = PageRank(graph, PeprConfig(rounds=6))
    single = PageRank(graph, PeprConfig())
    n_hubs = single._links.n_hubs
    assert n_hubs == {0: graph.n_linked, 1e9: 0}.get(cost, n_hubs)
    positions, expected = all_positions(graph), plain_steps(graph)
    assert np.abs(double._steps(positions) - expected).max() < 2e-14
    assert np.allclose(single._steps(positions), expected, rtol=3e-6, atol=0)


def test_ranking_is_that_without_hubs(monkeypatch):
    graph = random_graph(400, n_hubs=3, seed=7)
    positions = all_positions(graph)
    monkeypatch.setattr(pepr, "_COST", 1e9)
    plain = PageRank(graph, PeprConfig(refine=True)).rank(positions)
    monkeypatch.setattr(pepr, "_COST", 1)
    pagerank = PageRank(graph, PeprConfig(refine=True))
    assert pagerank._links.n_hubs >= 3
    ranked = pagerank.rank(positions)
    assert np.array_equal(np.sort(ranked.positions), np.sort(plain.positions))
    assert np.abs(ranked.scores - plain.scores).max() < 1e-6


@pytest.mark.parametrize("cost", [1, 10])
@pytest.mark.parametrize("rounds", [0, 6])
def test_entities_with_the_same_neighbours_stay_equal(monkeypatch, rounds, cost):
    """Their rank is decided by the row, not by rounding: hubs themselves, and others."""
    monkeypatch.setattr(pepr, "_COST", cost)
    rng = np.random.default_rng(3)
    others = rng.choice(np.arange(5, 200), 90, replace=False)
    pairs = [np.stack([np.full(90, hub), others], axis=1) for hub in range(3)]
    graph = build_adjacency(*np.concatenate([*pairs, rng.integers(10, 200, (150, 2))]).T, 200)
    pagerank = PageRank(graph, PeprConfig(rounds=rounds))
    assert pagerank._links.n_hubs >= 3
    steps = pagerank._steps(all_positions(graph))
    owners = np.repeat(np.arange(graph.n_linked), graph.degrees)
    for other in graph.position_of[others]:
        twins = steps[(owners == other) & np.isin(graph.neighbours, graph.position_of[:3])]
        assert len(twins) == 3
        assert (twins == twins[0]).all()


def test_time_of_a_star_grows_with_its_size():
    """It was quadratic: 9 s for 20,000 leaves, 36 s for 40,000."""

    def seconds(n):
        graph = star(n)
        start = time.process_time()
        pagerank = PageRank(graph)
        pagerank.prepare()
        for position in range(0, graph.n_linked, 32):
            pagerank.rank(all_positions(graph)[position : position + 32])
        return time.process_time() - start

    seconds(2000)  # compile
    times = [min(seconds(n) for _ in range(2)) for n in (4_000, 32_000)]
    assert times[1] < 24 * times[0]  # 8 if linear, 64 if quadratic
