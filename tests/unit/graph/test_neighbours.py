"""The table of neighbours: its edges, resuming, threads, and folders that do not fit."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from array_damage import DAMAGES, damage, put
from one_writer import held_elsewhere
from typer.testing import CliRunner

from biograft.cli import app
from biograft.errors import BiograftError, ConfigError, NotFoundError, OutputError, StoreError
from biograft.graph import (
    NeighbourTable,
    PageRank,
    PeprConfig,
    Ranked,
    build_neighbours,
    neighbours as ranking,
)
from biograft.graph.neighbours import COLUMNS, DIRECTIONS
from biograft.kb import KnowledgeBase, build_store

Build = Callable[..., KnowledgeBase]
FACTS = ["a\tcauses\tb", "a\ttreats\tb", "b\tcauses\ta", "a\tcauses\ta", "c\tcauses\ta"]


def stop_at_fourth(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Interrupt the fourth block; return the first position of each block, as they come."""
    rank = PageRank.rank
    calls: list[int] = []

    def stopping(self: PageRank, positions: Any) -> Ranked:
        calls.append(int(positions[0]))
        if len(calls) == 4:
            raise KeyboardInterrupt
        return rank(self, positions)

    monkeypatch.setattr(PageRank, "rank", stopping)
    return calls


@pytest.fixture
def store(tmp_path: Path) -> Build:
    """Build a store from triples."""
    from biograft.kb import BuildConfig
    from biograft.kb.sources import SourceConfig

    def build(name: str, facts: list[str]) -> KnowledgeBase:
        path = tmp_path / f"{name}.tsv"
        path.write_text("head\trelation\ttail\n" + "\n".join(facts) + "\n", encoding="utf-8")
        folder = tmp_path / name
        build_store(BuildConfig(sources=(SourceConfig(path=path, format="triples"),)), folder)
        return KnowledgeBase.open(folder)

    return build


def random_facts(n: int, n_facts: int, seed: int) -> list[str]:
    rng = np.random.default_rng(seed)
    ends = (n * rng.random((n_facts, 2)) ** 2).astype(int)
    return [f"e{a}\tr{rng.integers(3)}\te{b}" for a, b in ends]


def list_edges(
    table: NeighbourTable, kb: KnowledgeBase, identifier: str
) -> list[tuple[str, str, str]]:
    edges = table[kb.row(identifier)]
    return [
        (kb.id_at(int(row)), kb.relation_names[relation], DIRECTIONS[direction])
        for row, relation, direction in zip(
            edges.neighbours, edges.relations, edges.directions, strict=True
        )
    ]


def test_every_edge_of_a_kept_neighbour_is_listed_once(store: Build, tmp_path: Path) -> None:
    kb = store("kb", [*FACTS, "a\tcauses\tb", "d\tcauses\td"])
    manifest = build_neighbours(kb, tmp_path / "n")
    table = NeighbourTable.open(tmp_path / "n", kb)
    assert sorted(list_edges(table, kb, "a")) == [
        ("b", "causes", "in"),
        ("b", "causes", "out"),
        ("b", "treats", "out"),
        ("c", "causes", "in"),
    ]
    assert list_edges(table, kb, "c") == [("a", "causes", "out")]
    assert len(table[kb.row("d")]) == 0
    assert (manifest["n_entities"], manifest["n_linked"], manifest["n_edges"]) == (4, 3, 8)


@pytest.mark.parametrize("n", [None, 0, 1, 2, 3, 100])
def test_gather_equals_a_loop_over_rows(store: Build, tmp_path: Path, n: int | None) -> None:
    """At all bounds: no neighbour, one, as many as an entity has, one more, many more."""
    kb = store("kb", [*FACTS, "d\tcauses\td"])  # of 4, 3, 1 and 0 edges
    build_neighbours(kb, tmp_path / "n", PeprConfig(k=3))
    table = NeighbourTable.open(tmp_path / "n", kb)
    rows = np.array([[kb.row("a"), -1, kb.row("b")], [kb.row("c"), kb.row("d"), kb.row("a")]])
    block = table.gather(rows, n)
    assert [len(table[kb.row(name)]) for name in "abcd"] == [4, 3, 1, 0]
    for name in ("neighbours", "relations", "directions", "types", "scores"):
        column, padding = getattr(block, name), 0 if name == "scores" else -1
        expected = {at: edges_to_first(table, rows[at], n, name) for at in np.ndindex(2, 3)}
        width = max(map(len, expected.values()))
        assert column.shape == (2, 3, width)
        for at, edges in expected.items():
            assert column[at].tolist() == (edges + [padding] * width)[:width]


def edges_to_first(table: NeighbourTable, row: int, n: int | None, name: str) -> list[float]:
    """List what the edges to the first n neighbours of an entity hold."""
    edges = table[int(row)] if row >= 0 else None
    if edges is None:
        return []
    first = list(dict.fromkeys(edges.neighbours.tolist()))[:n]
    values = zip(edges.neighbours.tolist(), getattr(edges, name).tolist(), strict=True)
    return [value for neighbour, value in values if neighbour in first]


def test_gather_refuses_a_number_below_0(store: Build, tmp_path: Path) -> None:
    kb = store("kb", FACTS)
    build_neighbours(kb, tmp_path / "n")
    table = NeighbourTable.open(tmp_path / "n", kb)
    with pytest.raises(ConfigError, match="n: expected 0 or more, found -1"):
        table.gather([0], n=-1)
    with pytest.raises(NotFoundError, match="rows: expected -1 to 2"):
        table.gather([3])


def test_gather_finds_edges_beyond_what_32_bits_count(store: Build, tmp_path: Path) -> None:
    kb = store("kb", FACTS)
    build_neighbours(kb, tmp_path / "n")
    table, first = NeighbourTable.open(tmp_path / "n", kb), 2**33 + 7

    class LargeColumn:
        """A very long column in which each edge holds its own index."""

        def __len__(self) -> int:
            return first + 5

        def __getitem__(self, at: Any) -> Any:
            assert at.dtype == np.int64
            return np.where(at >= first, at - first, -7)

    ends = np.array([0, first, first + 3, first + 5])
    table._columns = {name: ends if name == "ends" else LargeColumn() for name in COLUMNS}  # type: ignore[misc]
    assert table.gather([1, 2]).neighbours.tolist() == [[0, 1, 2], [3, 4, -1]]
    assert table[2].neighbours.tolist() == [3, 4]


def test_best_first(store: Build, tmp_path: Path) -> None:
    kb = store("kb", random_facts(60, 300, 1))
    build_neighbours(kb, tmp_path / "n", PeprConfig(k=4))
    table = NeighbourTable.open(tmp_path / "n", kb)
    counts = []
    for row in range(len(table)):
        edges = table[row]
        assert (np.diff(edges.scores) <= 0).all()
        expected = set(kb.neighbours(kb.id_at(row))) - {kb.id_at(row)}
        best = {kb.id_at(int(row)) for row in edges.neighbours}
        assert best <= expected
        assert len(best) == min(4, len(expected))
        counts.append(len(expected))
    assert max(counts) > 4


def columns(folder: Path) -> dict[str, Any]:
    return {name: np.load(folder / f"{name}.npy").tolist() for name in COLUMNS}


def test_results_do_not_depend_on_threads_or_resuming(
    store: Build, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kb = store("kb", random_facts(200, 1500, 2))
    monkeypatch.setattr(ranking, "BLOCK", 64)
    build_neighbours(kb, tmp_path / "one", PeprConfig(threads=1))
    build_neighbours(kb, tmp_path / "three", PeprConfig(threads=3))
    calls = stop_at_fourth(monkeypatch)
    with pytest.raises(KeyboardInterrupt):
        build_neighbours(kb, tmp_path / "stopped", PeprConfig(threads=1))
    assert not (tmp_path / "stopped").exists()
    calls[:] = [0] * 4
    build_neighbours(kb, tmp_path / "stopped", PeprConfig(threads=1))
    assert calls[4] == 64
    assert not (tmp_path / "stopped.partial").exists()
    assert columns(tmp_path / "one") == columns(tmp_path / "three") == columns(tmp_path / "stopped")


def test_some_relations_only(store: Build, tmp_path: Path) -> None:
    kb = store("kb", FACTS)
    build_neighbours(kb, tmp_path / "n", PeprConfig(relations=("treats",)))
    table = NeighbourTable.open(tmp_path / "n", kb)
    assert list_edges(table, kb, "a") == [("b", "treats", "out")]
    with pytest.raises(ConfigError, match="no relation 'treat'; did you mean 'treats'"):
        build_neighbours(kb, tmp_path / "m", PeprConfig(relations=("treat",)))


def test_folders_that_do_not_fit(store: Build, tmp_path: Path) -> None:
    kb, other = store("kb", FACTS), store("other", FACTS[:2])
    folder = tmp_path / "n"
    build_neighbours(kb, folder)
    with pytest.raises(OutputError, match="exists already"):
        build_neighbours(kb, folder)
    with pytest.raises(StoreError, match="made from another knowledge base"):
        NeighbourTable.open(folder, other)
    with pytest.raises(StoreError, match="no such table of neighbours"):
        NeighbourTable.open(tmp_path / "none", kb)
    (folder / "scores.npy").write_bytes(b"x")
    with pytest.raises(StoreError, match=r"scores\.npy: damaged .* make it again") as caught:
        NeighbourTable.open(folder, kb)
    assert "\n" not in str(caught.value)


HARMLESS = {
    ("scores", "beyond"),
    ("scores", "below"),
    ("types", "below"),
    ("directions", "in narrower numbers"),
}
"""Damages that give scores that could be true, or change nothing."""


@pytest.mark.parametrize("how", DAMAGES)
@pytest.mark.parametrize("name", COLUMNS)
def test_damaged_columns_are_refused(store: Build, tmp_path: Path, name: str, how: str) -> None:
    """Guards: neighbours, relations and types of no concept were passed on to the training."""
    if (name, how) in HARMLESS:
        return
    kb = store("kb", FACTS)
    build_neighbours(kb, tmp_path / "n")
    damage(tmp_path / "n", name, how)
    with pytest.raises(StoreError, match=r"damaged .* make it again") as caught:
        NeighbourTable.open(tmp_path / "n", kb)
    assert "\n" not in str(caught.value)


def test_ends_that_go_back_and_scores_that_are_none_are_refused(
    store: Build, tmp_path: Path
) -> None:
    kb = store("kb", FACTS)
    build_neighbours(kb, tmp_path / "n")
    for name, value in (("ends", 1000), ("scores", np.nan)):
        array = np.load(tmp_path / "n" / f"{name}.npy")
        changed = array.copy()
        changed[1] = value
        put(tmp_path / "n", name, changed)
        with pytest.raises(StoreError, match=f"damaged .*{name}"):
            NeighbourTable.open(tmp_path / "n", kb)
        put(tmp_path / "n", name, array)


@pytest.mark.parametrize("value", [-2, 1000])
def test_results_out_of_range_are_computed_again(
    store: Build, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, value: int
) -> None:
    """Guards: interrupted work was resumed with neighbours that are none, or IndexError."""
    kb = store("kb", [f"e{n}\tr\te{(n + k) % 20}" for n in range(20) for k in (1, 2)])
    build_neighbours(kb, tmp_path / "whole")
    monkeypatch.setattr(ranking, "BLOCK", 2)
    monkeypatch.setattr(ranking, "_CHUNK", 1)
    with monkeypatch.context() as within:
        stop_at_fourth(within)
        with pytest.raises(KeyboardInterrupt):
            build_neighbours(kb, tmp_path / "n", PeprConfig(threads=1))
    path = tmp_path / "n.partial" / "positions.npy"
    positions = np.load(path)
    positions[0, 0] = value
    np.save(path, positions)
    build_neighbours(kb, tmp_path / "n", PeprConfig(threads=1))
    for name in COLUMNS:
        one, other = (np.load(tmp_path / made / f"{name}.npy") for made in ("n", "whole"))
        np.testing.assert_array_equal(one, other)


def test_few_rounds_begin_with_frequencies(store: Build, tmp_path: Path) -> None:
    kb = store("kb", FACTS)
    counts = tmp_path / "counts.tsv"
    counts.write_text("b\t3\nc\t1\n", encoding="utf-8")
    given = [str(kb.folder), "--frequencies", str(counts), "--samples", "100"]
    run = CliRunner().invoke(
        app, ["graph", "neighbours", *given, "-o", str(tmp_path / "n"), "--rounds", "1"]
    )
    assert run.exit_code == 0, run.output
    edges = NeighbourTable.open(tmp_path / "n", kb)[kb.row("b")]
    # one round: 0.85 * (what b and c have, handed on whole) + 0.15 / 3
    assert edges.scores[0] == pytest.approx(0.85 * (3 / 4 + 1 / 4) + 0.15 / 3)
    for content, rounds in (("b\tmany\n", "1"), ("x\t1\n", "1"), ("b\t1\n", "0")):
        counts.write_text(content, encoding="utf-8")
        bad = CliRunner().invoke(
            app, ["graph", "neighbours", *given, "-o", str(tmp_path / "m"), "--rounds", rounds]
        )
        assert isinstance(bad.exception, BiograftError)


def test_work_of_another_start_is_not_resumed(
    store: Build, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A weighted sum was used as hash: work of another start was resumed."""
    kb, config = store("kb", random_facts(200, 1500, 2)), PeprConfig(rounds=1, threads=1)
    draw = np.random.default_rng(0)
    start = draw.random(len(kb))
    other = start.copy()
    other[0], other[1] = start[0] + 0.2, start[1] - 0.1  # the same sum by place
    monkeypatch.setattr(ranking, "BLOCK", 64)
    calls = stop_at_fourth(monkeypatch)
    with pytest.raises(KeyboardInterrupt):
        build_neighbours(kb, tmp_path / "n", config, start=start)
    calls[:] = [0] * 4
    build_neighbours(kb, tmp_path / "n", config, start=other)
    assert calls[4] == 0
    build_neighbours(kb, tmp_path / "fresh", config, start=other)
    assert columns(tmp_path / "n") == columns(tmp_path / "fresh")


def test_a_start_of_another_length_is_refused(store: Build, tmp_path: Path) -> None:
    """A longer one was accepted."""
    kb = store("kb", FACTS)
    for shape, size in (((4,), "4"), ((2,), "2"), ((3, 1), "3 x 1")):
        with pytest.raises(ConfigError, match=f"start: expected 3 numbers.* array of {size}$"):
            build_neighbours(kb, tmp_path / "n", PeprConfig(rounds=1), start=np.ones(shape))


def test_a_foreign_folder_at_the_working_path_is_kept(store: Build, tmp_path: Path) -> None:
    """It was removed silently."""
    kb, partial = store("kb", FACTS), tmp_path / "n.partial"
    partial.mkdir()
    (partial / "mine.txt").write_text("mine", encoding="utf-8")
    with pytest.raises(OutputError, match=r"n\.partial: .* it holds mine\.txt, which is none"):
        build_neighbours(kb, tmp_path / "n")
    assert (partial / "mine.txt").exists()
    (partial / "mine.txt").rename(partial / "scores.npy")
    build_neighbours(kb, tmp_path / "n")
    assert not partial.exists()


def test_one_at_a_time(store: Build, tmp_path: Path) -> None:
    """Two runs into one folder wrote into one unfinished table."""
    kb = store("kb", FACTS)
    with held_elsewhere(tmp_path / "n"), pytest.raises(OutputError):
        build_neighbours(kb, tmp_path / "n")
    assert not (tmp_path / "n.partial").exists()
    build_neighbours(kb, tmp_path / "n")
