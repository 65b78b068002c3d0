"""Graphs to train on, and recorded results of PyKEEN."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from biograft.graph import SPLITS, Triples


@pytest.fixture
def graph():
    """Make triples: ``graph([(h, r, t), ...], valid=[...], test=[...])``."""

    def make(train, valid=(), test=(), n_entities=12, n_relations=3):
        rows = np.array([*train, *valid, *test], np.int32).reshape(-1, 3)
        sizes = [len(train), len(valid), len(test)]
        splits = np.repeat(np.arange(len(SPLITS), dtype=np.uint8), sizes)
        names = tuple(f"r{k}" for k in range(n_relations))
        heads, relations, tails = (np.ascontiguousarray(column) for column in rows.T)
        return Triples(heads, relations, tails, splits, n_entities, names)

    return make


@pytest.fixture
def random_graph(graph):
    """Make a graph of random triples, each once: ``drawn_graph(n, n_entities, n_relations)``."""

    def make(n=60, n_entities=12, n_relations=3, seed=0):
        rng = np.random.default_rng(seed)
        columns = (rng.integers(0, top, 3 * n) for top in (n_entities, n_relations, n_entities))
        rows = list(dict.fromkeys(zip(*(map(int, column) for column in columns), strict=True)))
        return graph(rows[:n], (), (), n_entities, n_relations)

    return make


@pytest.fixture
def pykeen(shared_data):
    """Recorded results of PyKEEN: tensors and JSON."""
    from biograft.graph.embedding.embeddings import read_tensors

    folder: Path = shared_data("parity/kge")
    expected = json.loads((folder / "expected.json").read_text())
    return read_tensors(folder / "embeddings.safetensors"), expected


@pytest.fixture
def small_base(tmp_path):
    """Build a store of a folder with train, valid and test: 30 entities in a ring."""
    from biograft.kb import BuildConfig, KnowledgeBase, build_store
    from biograft.sources import SourceConfig

    lines = [f"e{k}\t{name}\te{(k + n) % 30}" for n, name in ((1, "next"), (7, "far"), (3, "by"))
             for k in range(30)]  # fmt: skip
    folder = tmp_path / "graph"
    folder.mkdir()
    for name, rows in (
        ("train", lines[:72]),
        ("valid", lines[72:81]),
        ("test", lines[81:]),
    ):
        (folder / f"{name}.txt").write_text("\n".join(rows) + "\n")
    build_store(BuildConfig(sources=(SourceConfig(path=folder),)), tmp_path / "kb")
    return KnowledgeBase.open(tmp_path / "kb")
