"""PEPR against the fixture, and against plain power iteration on small graphs."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from biograft.errors import ConfigError
from biograft.graph.adjacency import build_adjacency, settle
from biograft.graph.pepr import PageRank, PeprConfig

Floats = npt.NDArray[np.float64]
Longs = npt.NDArray[np.int64]
SharedData = Callable[[str], Path]


def dense(heads: Longs, tails: Longs, n: int, turn: float = 0.0, row: int | None = None) -> Floats:
    """Give V (row e: scores of all for e; or for ``row`` alone) by power iteration."""
    w = np.zeros((n, n))
    w[heads, tails] = w[tails, heads] = 1
    np.fill_diagonal(w, 0)
    d = np.maximum(w.sum(axis=0), 1e-300)
    a = np.where(w > 0, d[:, None] ** -turn * w * d[None, :] ** (turn - 1), 0)
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


def ranked_rows(pagerank: PageRank) -> dict[int, list[int]]:
    graph = pagerank.graph
    found = pagerank.rank(np.arange(graph.n_linked, dtype=np.int32))
    return {
        int(graph.row_at[place]): [int(graph.row_at[p]) for p in found.places[place] if p >= 0]
        for place in range(graph.n_linked)
    }


@pytest.mark.parametrize(("reading", "turn"), [("columns", 0.0), ("symmetric", 0.5), ("rows", 1.0)])
def test_exact_scores_agree_with_power_iteration(reading: str, turn: float) -> None:
    heads, tails = scale_free(80, 3, 1)
    graph = build_adjacency(heads, tails, 90)
    expected = dense(heads, tails, 90, turn)
    pagerank = PageRank(graph, PeprConfig(normalise=reading, tolerance=1e-12))
    for place in range(graph.n_linked):
        near = graph.neighbours[graph.ends[place] : graph.ends[place + 1]]
        exact = expected[graph.row_at[place], graph.row_at[near]]
        assert np.abs(pagerank.exact_scores(place) - exact).max() < 1e-9


@pytest.mark.parametrize("refine", [True, False])
def test_the_fast_way_finds_what_power_iteration_finds(refine: bool) -> None:
    heads, tails = scale_free(1500, 8, 2)
    graph = build_adjacency(heads, tails, 1500)
    fast = PageRank(graph, PeprConfig(refine=refine, k=5))
    exact = PageRank(graph, PeprConfig(exact=True, k=5))
    places = np.arange(graph.n_linked, dtype=np.int32)
    found, true = fast.rank(places), exact.rank(places)
    same = (np.sort(found.places, axis=1) == np.sort(true.places, axis=1)).all(axis=1)
    assert same.mean() > 0.99
    assert 0 < found.n_certified < len(places)
    assert found.n_certified + found.n_refined + found.n_unsure == len(places)
    assert (found.n_refined > 0) == refine == (found.n_unsure == 0)
    for place in (0, 700, 1400):
        expected = dense(heads, tails, 1500, row=int(graph.row_at[place]))
        rows = graph.row_at[true.places[place]]
        n = int((true.places[place] >= 0).sum())
        assert np.abs(expected[rows[:n]] - true.scores[place, :n]).max() < 1e-8
    assert np.abs(found.scores - true.scores).max() < 1e-4


@pytest.mark.parametrize("exact", [True, False])
def test_fixture(shared_data: SharedData, exact: bool) -> None:
    from safetensors.numpy import load_file

    arrays = load_file(shared_data("parity/smedbert/pepr.safetensors"))
    told = json.loads(shared_data("parity/smedbert/pepr.json").read_text(encoding="utf-8"))
    triples = np.loadtxt(
        shared_data("parity/smedbert/pepr_triples.tsv"), np.int64, delimiter="\t", skiprows=1
    )
    graph = build_adjacency(triples[:, 0], triples[:, 2], 60)
    pagerank = PageRank(graph, PeprConfig(exact=exact, refine=True, tolerance=1e-12))
    isolated = set(graph.row_at[graph.n_linked :].tolist())
    assert isolated == set(told["entities_without_edges"])
    for place in range(graph.n_linked):
        near = graph.neighbours[graph.ends[place] : graph.ends[place + 1]]
        scores = arrays["scores"][graph.row_at[place], graph.row_at[near]]
        assert np.abs(pagerank.exact_scores(place) - scores).max() < 1e-9
    found = ranked_rows(pagerank)
    expected = {int(row): best for row, best in told["top10_neighbours"].items() if best}
    if exact:
        assert found == expected
    assert {r: set(best) for r, best in found.items()} == {r: set(b) for r, b in expected.items()}


@pytest.mark.parametrize("entity", [7, 25, 59])
def test_few_rounds_of_the_fixture(shared_data: SharedData, entity: int) -> None:
    from safetensors.numpy import load_file

    arrays = load_file(shared_data("parity/smedbert/pepr.safetensors"))
    heads, tails = np.nonzero(arrays["adjacency"])
    counts = arrays["entity_frequency"]
    start = np.where(counts > 0, counts / counts.sum(), 1 / 5000)
    graph = build_adjacency(heads, tails, 60)
    place = int(graph.place_of[entity])
    for rounds in (1, 2, 3):
        pagerank = PageRank(graph, PeprConfig(rounds=rounds), start=start)
        if place >= graph.n_linked:
            continue
        near = graph.neighbours[graph.ends[place] : graph.ends[place + 1]]
        expected = arrays[f"iterates_{entity}"][rounds][graph.row_at[near]]
        assert np.abs(pagerank.exact_scores(place) - expected).max() < 1e-9


def test_adjacency_drops_loops_and_repeats_and_knows_the_isolated() -> None:
    graph = build_adjacency([0, 1, 0, 3, 3], [1, 0, 1, 3, 1], 5)
    joined = {
        int(graph.row_at[p]): graph.row_at[
            graph.neighbours[graph.ends[p] : graph.ends[p + 1]]
        ].tolist()
        for p in range(graph.n_linked)
    }
    assert joined == {1: [0, 3], 0: [1], 3: [1]}
    assert graph.row_at[graph.n_linked :].tolist() == [2, 4]
    assert graph.row_at[graph.place_of].tolist() == [0, 1, 2, 3, 4]


def test_settle_knows_parts_with_two_sides() -> None:
    graph = build_adjacency([0, 1, 3, 4, 5], [1, 2, 4, 5, 3], 6)
    even, odd = settle(graph)
    at = graph.place_of
    assert [even[at[0]], even[at[1]]] == [0, 0]
    assert [odd[at[0]], odd[at[1]]] == [0.5, 1.0]
    assert even[at[3]] == odd[at[3]] == pytest.approx(1 / 3)


def test_a_hub_and_twins_by_lower_row() -> None:
    leaves = np.arange(1, 40)
    graph = build_adjacency(np.zeros(39, np.int64), leaves, 40)
    found = ranked_rows(PageRank(graph))
    assert found[0] == list(range(1, 11))
    assert found[7] == [0]


@pytest.mark.parametrize("n", [0, 3])
def test_no_edges(n: int) -> None:
    pagerank = PageRank(build_adjacency([], [], n))
    assert pagerank.graph.n_linked == 0


@pytest.mark.parametrize(
    ("name", "value"), [("k", 0), ("damping", 1.0), ("rounds", 7), ("normalise", "cubes")]
)
def test_config_names_what_is_wrong(name: str, value: object) -> None:
    with pytest.raises(ConfigError, match=f"^{name}: expected .* found"):
        PeprConfig(**{name: value})  # type: ignore[arg-type]
