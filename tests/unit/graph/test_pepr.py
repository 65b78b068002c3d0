"""PEPR against the fixture, and against plain power iteration on small graphs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from biograft.graph import PageRank, PeprConfig, build_adjacency, stationary_distribution

Floats = npt.NDArray[np.float64]
Longs = npt.NDArray[np.int64]
SharedData = Callable[[str], Path]


def dense(heads: Longs, tails: Longs, n: int, t: float = 0.0, row: int | None = None) -> Floats:
    """Return V (row e: scores of all for e; or for ``row`` only) by power iteration."""
    w = np.zeros((n, n))
    w[heads, tails] = w[tails, heads] = 1
    np.fill_diagonal(w, 0)
    d = np.maximum(w.sum(axis=0), 1e-300)
    a = np.where(w > 0, d[:, None] ** -t * w * d[None, :] ** (t - 1), 0)
    jump = 0.15 * np.where(np.eye(n) > 0, 1, 1 / n)[slice(None) if row is None else row]
    v = np.full(jump.T.shape, 1 / n)
    for _ in range(150):  # 0.85 ** 150 is 3e-11
        v = 0.85 * a @ v + jump.T
    return v.T


def scale_free(n: int, per_node: int, seed: int) -> tuple[npt.NDArray[np.int64], ...]:
    rng, ends, pairs = np.random.default_rng(seed), [0], []
    for node in range(1, n):
        for other in {int(rng.choice(ends)) for _ in range(per_node)}:
            pairs.append((node, other))
            ends += [node, other]
    heads, tails = np.array(pairs).T
    return heads, tails


@pytest.mark.parametrize(("normalise", "t"), [("columns", 0.0), ("symmetric", 0.5), ("rows", 1.0)])
def test_exact_scores_agree_with_power_iteration(normalise: str, t: float) -> None:
    heads, tails = scale_free(80, 3, 1)
    graph = build_adjacency(heads, tails, 90)
    expected = dense(heads, tails, 90, t)
    pagerank = PageRank(graph, PeprConfig(normalise=normalise, tolerance=1e-12))
    for position in range(graph.n_linked):
        neighbours = graph.neighbours[graph.ends[position] : graph.ends[position + 1]]
        exact = expected[graph.row_of[position], graph.row_of[neighbours]]
        assert np.abs(pagerank.exact_scores(position) - exact).max() < 1e-9


@pytest.mark.parametrize("refine", [True, False])
def test_fast_ranking_agrees_with_power_iteration(refine: bool) -> None:
    heads, tails = scale_free(600, 8, 2)
    graph = build_adjacency(heads, tails, 600)
    fast = PageRank(graph, PeprConfig(refine=refine, k=5))
    exact = PageRank(graph, PeprConfig(exact=True, k=5))
    positions = np.arange(graph.n_linked, dtype=np.int32)
    result, true = fast.rank(positions), exact.rank(positions)
    equal = (np.sort(result.positions, axis=1) == np.sort(true.positions, axis=1)).all(axis=1)
    assert equal.mean() > 0.99
    assert 0 < result.n_certified < len(positions)
    assert result.n_certified + result.n_refined + result.n_uncertain == len(positions)
    assert (result.n_refined > 0) == refine == (result.n_uncertain == 0)
    for position in (0, 300, 550):
        expected = dense(heads, tails, 600, row=int(graph.row_of[position]))
        rows = graph.row_of[true.positions[position]]
        n = int((true.positions[position] >= 0).sum())
        assert np.abs(expected[rows[:n]] - true.scores[position, :n]).max() < 1e-8
    assert np.abs(result.scores - true.scores).max() < 1e-4


@pytest.mark.parametrize("entity", [7, 25, 59])
def test_few_rounds_of_the_fixture(shared_data: SharedData, entity: int) -> None:
    from safetensors.numpy import load_file

    arrays = load_file(shared_data("parity/smedbert/pepr.safetensors"))
    heads, tails = np.nonzero(arrays["adjacency"])
    counts = arrays["entity_frequency"]
    start = np.where(counts > 0, counts / counts.sum(), 1 / 5000)
    graph = build_adjacency(heads, tails, 60)
    position = int(graph.position_of[entity])
    for rounds in (1, 2, 3):
        pagerank = PageRank(graph, PeprConfig(rounds=rounds), start=start)
        if position >= graph.n_linked:
            continue
        neighbours = graph.neighbours[graph.ends[position] : graph.ends[position + 1]]
        expected = arrays[f"iterates_{entity}"][rounds][graph.row_of[neighbours]]
        assert np.abs(pagerank.exact_scores(position) - expected).max() < 1e-9


def test_adjacency_drops_loops_and_duplicates_and_keeps_isolated_entities() -> None:
    graph = build_adjacency([0, 1, 0, 3, 3], [1, 0, 1, 3, 1], 5)
    neighbours_of = {
        int(graph.row_of[p]): graph.row_of[
            graph.neighbours[graph.ends[p] : graph.ends[p + 1]]
        ].tolist()
        for p in range(graph.n_linked)
    }
    assert neighbours_of == {1: [0, 3], 0: [1], 3: [1]}
    assert graph.row_of[graph.n_linked :].tolist() == [2, 4]
    assert graph.row_of[graph.position_of].tolist() == [0, 1, 2, 3, 4]


def test_stationary_distribution_of_bipartite_components() -> None:
    graph = build_adjacency([0, 1, 3, 4, 5], [1, 2, 4, 5, 3], 6)
    even, odd = stationary_distribution(graph)
    at = graph.position_of
    assert [even[at[0]], even[at[1]]] == [0, 0]
    assert [odd[at[0]], odd[at[1]]] == [0.5, 1.0]
    assert even[at[3]] == odd[at[3]] == pytest.approx(1 / 3)
