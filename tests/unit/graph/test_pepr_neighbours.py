"""The table of neighbours: what it lists, resuming, threads, and folders that do not fit."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import typer
from typer.testing import CliRunner

from biograft.cli.graph_neighbours import neighbours
from biograft.errors import BiograftError, ConfigError, NotFoundError, OutputError, StoreError
from biograft.graph import ranking
from biograft.graph.neighbour_table import COLUMNS, DIRECTIONS, NeighbourTable
from biograft.graph.neighbours import build_neighbours
from biograft.graph.pepr import PageRank, PeprConfig, Ranked
from biograft.kb import KnowledgeBase, build_store

Build = Callable[..., KnowledgeBase]
FACTS = ["a\tcauses\tb", "a\ttreats\tb", "b\tcauses\ta", "a\tcauses\ta", "c\tcauses\ta"]


@pytest.fixture
def store(tmp_path: Path) -> Build:
    """Build a store from triples."""
    from biograft.kb import BuildConfig
    from biograft.sources import SourceConfig

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


def told(table: NeighbourTable, kb: KnowledgeBase, identifier: str) -> list[tuple[str, str, str]]:
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
    assert sorted(told(table, kb, "a")) == [
        ("b", "causes", "in"),
        ("b", "causes", "out"),
        ("b", "treats", "out"),
        ("c", "causes", "in"),
    ]
    assert told(table, kb, "c") == [("a", "causes", "out")]
    assert len(table[kb.row("d")]) == 0
    assert (manifest["n_entities"], manifest["n_linked"], manifest["n_edges"]) == (4, 3, 8)


def test_gather_pads_and_cuts(store: Build, tmp_path: Path) -> None:
    kb = store("kb", FACTS)
    build_neighbours(kb, tmp_path / "n", PeprConfig(k=2))
    table = NeighbourTable.open(tmp_path / "n", kb)
    rows = [kb.row("a"), -1, kb.row("c")]
    block = table.gather(rows)
    assert block.neighbours.shape == (3, 2)
    assert block.neighbours[1].tolist() == [-1, -1]
    assert block.neighbours[2].tolist() == [kb.row("a"), -1]
    assert (block.scores[0] > 0).all()
    wide = table.gather([rows], width=5)
    assert wide.relations.shape == (1, 3, 5)
    assert wide.relations[0, 0, :4].tolist() == table[rows[0]].relations.tolist()
    assert wide.types[0, 0, 4] == -1
    with pytest.raises(NotFoundError, match="rows: expected -1 to 2"):
        table.gather([3])


def test_best_first(store: Build, tmp_path: Path) -> None:
    kb = store("kb", random_facts(60, 300, 1))
    build_neighbours(kb, tmp_path / "n", PeprConfig(k=4))
    table = NeighbourTable.open(tmp_path / "n", kb)
    counts = []
    for row in range(len(table)):
        edges = table[row]
        assert (np.diff(edges.scores) <= 0).all()
        known = set(kb.neighbours(kb.id_at(row))) - {kb.id_at(row)}
        kept = {kb.id_at(int(place)) for place in edges.neighbours}
        assert kept <= known
        assert len(kept) == min(4, len(known))
        counts.append(len(known))
    assert max(counts) > 4


def columns(folder: Path) -> dict[str, Any]:
    return {name: np.load(folder / f"{name}.npy").tolist() for name in COLUMNS}


def test_threads_and_a_stop_midway_change_nothing(
    store: Build, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kb = store("kb", random_facts(200, 1500, 2))
    monkeypatch.setattr(ranking, "BLOCK", 64)
    build_neighbours(kb, tmp_path / "one", PeprConfig(threads=1))
    build_neighbours(kb, tmp_path / "three", PeprConfig(threads=3))
    rank, calls = PageRank.rank, []

    def stopping(self: PageRank, places: Any) -> Ranked:
        calls.append(int(places[0]))
        if len(calls) == 4:
            raise KeyboardInterrupt
        return rank(self, places)

    monkeypatch.setattr(PageRank, "rank", stopping)
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
    assert told(table, kb, "a") == [("b", "treats", "out")]
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


def test_command(store: Build, tmp_path: Path) -> None:
    kb = store("kb", FACTS)
    app = typer.Typer()
    app.command()(neighbours)
    out = tmp_path / "n"
    done = CliRunner().invoke(app, [str(kb.folder), "-o", str(out), "-k", "1", "--json"])
    assert done.exit_code == 0, done.output
    report = json.loads(done.stdout)
    assert (report["n_linked"], report["config"]["k"]) == (3, 1)
    assert len(NeighbourTable.open(out, kb)) == 3


def test_few_rounds_begin_with_frequencies(store: Build, tmp_path: Path) -> None:
    kb = store("kb", FACTS)
    app = typer.Typer()
    app.command()(neighbours)
    counts = tmp_path / "counts.tsv"
    counts.write_text("b\t3\nc\t1\n", encoding="utf-8")
    given = [str(kb.folder), "--frequencies", str(counts), "--samples", "100"]
    run = CliRunner().invoke(app, [*given, "-o", str(tmp_path / "n"), "--rounds", "1"])
    assert run.exit_code == 0, run.output
    edges = NeighbourTable.open(tmp_path / "n", kb)[kb.row("b")]
    # one round: 0.85 * (what b and c have, handed on whole) + 0.15 / 3
    assert edges.scores[0] == pytest.approx(0.85 * (3 / 4 + 1 / 4) + 0.15 / 3)
    for content, rounds in (("b\tmany\n", "1"), ("x\t1\n", "1"), ("b\t1\n", "0")):
        counts.write_text(content, encoding="utf-8")
        bad = CliRunner().invoke(app, [*given, "-o", str(tmp_path / "m"), "--rounds", rounds])
        assert isinstance(bad.exception, BiograftError)
