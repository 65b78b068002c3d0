"""Numbers of the graph: PEPR, TransE and TransR, their ranks and training; and prefix trees."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from biograft import BuildConfig, KnowledgeBase, SourceConfig, build_store
from biograft.graph import NeighbourTable, PeprConfig, Triples, build_neighbours
from biograft.graph.embedding import (
    Embeddings,
    GraphRecipe,
    ModelConfig,
    Tables,
    embed_graph,
    predict_links,
)
from biograft.models.generation import FlatTrie

MODELS = {
    "transe l1": ModelConfig(dim=8, norm="l1"),
    "transe l2": ModelConfig(dim=8, norm="l2"),
    "transr": ModelConfig(kind="transr", dim=8, relation_dim=5, norm="l2-squared", clamp=False),
    "transr clamped": ModelConfig(kind="transr", dim=8, relation_dim=5, norm="l2", clamp=True),
}
STEPS = {
    "transe": ("transe", ["loss.kind=margin", "sampling.kind=uniform"]),
    "transe self-adversarial": ("transe", []),
    "transr": ("transr-smedbert", ["model.relation_dim=4", "optimiser.kind=adagrad"]),
}


def wave(*shape: int, phase: float = 0.0) -> np.ndarray:
    """Fixed numbers between -1 and 1, without a generator whose stream may change."""
    n = int(np.prod(shape))
    return np.sin(1.7 * np.arange(1, n + 1) ** 1.3 + phase).reshape(shape)


def numbers(values: np.ndarray) -> list[Any]:
    flat = values.astype(np.float64).ravel()
    return [list(values.shape), float(np.linalg.norm(flat)), float(flat @ wave(len(flat)))]


def build(folder: Path, files: dict[str, list[str]]) -> KnowledgeBase:
    """Build a store of files of triples."""
    (folder / "graph").mkdir()
    for name, lines in files.items():
        (folder / "graph" / f"{name}.txt").write_text("\n".join(lines) + "\n")
    source = SourceConfig(path=folder / "graph")
    if len(files) == 1:
        source = SourceConfig(path=folder / "graph" / "train.txt", format="triples")
    build_store(BuildConfig(sources=(source,)), folder / "KB")
    return KnowledgeBase.open(folder / "KB")


def ring() -> dict[str, list[str]]:
    """Thirty entities in a ring, with three relations."""
    lines = [
        f"e{k}\t{name}\te{(k + n) % 30}"
        for n, name in ((1, "next"), (7, "far"), (3, "by"))
        for k in range(30)
    ]
    return {"train": lines[:72], "valid": lines[72:81], "test": lines[81:]}


def neighbours(kb: KnowledgeBase, folder: Path, config: PeprConfig) -> dict[str, Any]:
    build_neighbours(kb, folder, config)
    table = NeighbourTable.open(folder, kb)
    return {
        kb.id_at(row): [
            [kb.id_at(int(each)), float(score)]
            for each, score in zip(table[row].neighbours, table[row].scores, strict=True)
        ]
        for row in range(len(kb))
    }


@pytest.mark.parametrize("normalise", ["columns", "symmetric", "rows"])
@pytest.mark.parametrize("exact", [True, False])
def test_pepr(normalise, exact, tmp_path, golden):
    kb = build(tmp_path, ring())
    found = neighbours(kb, tmp_path / "N", PeprConfig(normalise=normalise, exact=exact, k=4))
    golden("graph", f"pepr {normalise} {exact}", dict(sorted(found.items())))


def test_pepr_of_the_reference(shared_data, tmp_path):
    """The ten best neighbours and their scores, as the equations of SMedBERT give them."""
    from safetensors.numpy import load_file

    scores = load_file(shared_data("parity/smedbert/pepr.safetensors"))["scores"]
    expected = json.loads(shared_data("parity/smedbert/pepr.json").read_text())["top10_neighbours"]
    lines = shared_data("parity/smedbert/pepr_triples.tsv").read_text().splitlines()[1:]
    cells = [line.split("\t") for line in lines]
    # an edge from an entity to itself does not count, but makes it known, in this order
    facts = [f"e{row:02}\tself\te{row:02}" for row in range(60)]
    facts += [f"e{int(head):02}\tr{relation}\te{int(tail):02}" for head, relation, tail in cells]
    kb = build(tmp_path, {"train": facts})
    found = neighbours(kb, tmp_path / "N", PeprConfig(exact=True, tolerance=1e-12))
    assert len(kb) == 60
    for row, best in expected.items():
        got = {int(each[1:]): score for each, score in found[f"e{int(row):02}"]}
        assert list(got) == best
        for other, score in got.items():
            assert score == pytest.approx(scores[int(row), other], abs=1e-6)


def tables_of(model: ModelConfig) -> Tables:
    is_transr = model.kind == "transr"
    width = model.relation_dim if is_transr else model.dim
    return Tables(
        wave(12, model.dim),
        wave(3, width, phase=1),
        wave(3 if is_transr else 0, model.dim, width, phase=2)
        if is_transr
        else np.zeros((0, model.dim, model.dim)),
    )


def triples_of(rows: list[list[int]], sizes: list[int], n_entities: int = 12) -> Triples:
    heads, relations, tails = (
        np.ascontiguousarray(column) for column in np.array(rows, np.int32).T
    )
    splits = np.repeat(np.arange(3, dtype=np.uint8), sizes)
    return Triples(heads, relations, tails, splits, n_entities, ("r0", "r1", "r2"))


@pytest.mark.parametrize("name", MODELS)
def test_ranks(name, golden):
    rows = [[k % 12, k % 3, (5 * k + 1) % 12] for k in range(30)]
    result = predict_links(tables_of(MODELS[name]), MODELS[name], triples_of(rows, [18, 4, 8]))
    for side in ("head", "tail"):
        golden(
            "graph",
            f"ranks {name} {side}",
            [
                [float(rank) for rank in result.ranks(side, "realistic")],
                result.metrics(side, "realistic"),
            ],
        )


def test_ranks_of_the_reference(shared_data):
    """Ranks of PyKEEN's evaluator, ties included."""
    from safetensors.numpy import load_file

    arrays = load_file(shared_data("parity/kge/embeddings.safetensors"))
    report = json.loads(shared_data("parity/kge/expected.json").read_text())
    parts = [report["graph"][split] for split in ("train", "valid", "test")]
    triples = triples_of([row for part in parts for row in part], [len(part) for part in parts])
    tables = Tables(arrays["entity"], arrays["relation"], np.zeros((0, 8, 8)))
    result = predict_links(tables, ModelConfig(dim=8), triples)
    expected = {(*each["triple"], each["side"]): each for each in report["ranks"]}
    for side in ("head", "tail"):
        for ties in ("optimistic", "realistic", "pessimistic"):
            found = [float(rank) for rank in result.ranks(side, ties)]
            assert found == [expected[(*row, side)][ties] for row in parts[2]]
            theirs = report["metrics"][f"{side}.{ties}"]["inverse_harmonic_mean_rank"]
            assert result.metrics(side, ties)["mrr"] == pytest.approx(theirs, rel=1e-6)


@pytest.mark.parametrize("name", STEPS)
def test_a_step_of_training(name, tmp_path, golden):
    """One epoch of one batch from the vectors of a fixed seed, in compiled loops."""
    kb = build(tmp_path, ring())
    recipe, changes = STEPS[name]
    common = ["model.dim=6", "training.batch=128", "training.epochs=1", "training.seed=4"]
    embed_graph(kb, GraphRecipe.load(recipe, [*common, *changes]), tmp_path / "E")
    tables = Embeddings.open(tmp_path / "E").tables
    golden("graph", f"step {name}", [numbers(np.asarray(table)) for table in tables])


NAMES = ([5, 6, 7, 2], [5, 6, 2], [5, 8, 2], [9, 2], [5, 6, 7, 2], [2])


def next_tokens(trie: FlatTrie, prefix: list[int]) -> list[int]:
    node = trie.root
    for token in prefix:
        node = trie.child(node, token)
    first, end = (int(bound[0]) for bound in trie.children(np.array([node])))
    return [int(token) for token in trie.tokens[first:end]]


def test_next_tokens_of_a_prefix_tree():
    """What may follow every prefix is what follows it in a list of the names."""
    tokens = np.array([token for name in NAMES for token in name])
    trie, _ = FlatTrie.build(tokens, np.cumsum([len(name) for name in NAMES]))
    assert trie.n_sequences == 5
    for name in NAMES:
        for n in range(len(name)):
            prefix = list(name[:n])
            wanted = {other[n] for other in NAMES if list(other[:n]) == prefix and len(other) > n}
            assert next_tokens(trie, prefix) == sorted(wanted)
