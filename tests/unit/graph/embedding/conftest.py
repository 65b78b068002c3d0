"""Graphs to train on, and recorded results of PyKEEN."""

from __future__ import annotations

import json
import shutil
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


@pytest.fixture(scope="session")
def ring(tmp_path_factory):
    """A folder with train, valid and test, of 30 entities in a ring, and the store of it."""
    from biograft.kb import BuildConfig, build_store
    from biograft.kb.sources import SourceConfig

    lines = [
        f"e{k}\t{name}\te{(k + n) % 30}"
        for n, name in ((1, "next"), (7, "far"), (3, "by"))
        for k in range(30)
    ]
    folder = tmp_path_factory.mktemp("ring")
    (folder / "graph").mkdir()
    parts = {"train": lines[:72], "valid": lines[72:81], "test": lines[81:]}
    for name, rows in parts.items():
        (folder / "graph" / f"{name}.txt").write_text("\n".join(rows) + "\n")
    source = SourceConfig(path=folder / "graph")
    build_store(BuildConfig(sources=(source,)), folder / "kb")
    return folder


@pytest.fixture
def small_base(ring, tmp_path):
    """The store of the ring, and its source beside it, to be changed by a test."""
    from biograft.kb import KnowledgeBase

    shutil.copytree(ring, tmp_path, dirs_exist_ok=True)
    return KnowledgeBase.open(tmp_path / "kb")
