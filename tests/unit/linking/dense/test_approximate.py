import sys

import numpy as np
import pytest

from biograft.errors import MissingExtraError, StoreError
from biograft.linking.dense.approximate import GRAPH, GraphSearch
from biograft.linking.dense.vectors import VectorTable


@pytest.fixture
def table(tmp_path):
    pytest.importorskip("faiss")
    vectors = np.random.default_rng(0).normal(size=(500, 16)).astype(np.float32)
    vectors[400] = vectors[20]
    made = VectorTable.create(tmp_path, "float32", 500, 16)
    made.write(np.arange(500), vectors / np.linalg.norm(vectors, axis=1, keepdims=True))
    GraphSearch.build(made, tmp_path)
    return made


def test_finds_nearly_what_brute_force_finds(tmp_path, table, brute_force):
    vectors = table.take(np.arange(500))
    queries = vectors[:50] + 0.01
    found = GraphSearch.open(table, tmp_path).search(queries, 10)
    expected = brute_force(vectors, queries, 10)
    recall = np.mean([len(set(a) & set(b)) / 10 for a, b in zip(found.rows, expected.rows)])  # noqa: B905
    assert recall > 0.98
    same = (found.rows == expected.rows).all(axis=1)
    np.testing.assert_array_equal(found.scores[same], expected.scores[same])


def test_ties_go_to_the_lower_row(tmp_path, table):
    found = GraphSearch.open(table, tmp_path).search(table.take(np.array([400])), 3)
    assert found.rows[0, :2].tolist() == [20, 400]


def test_more_wanted_than_there_are(tmp_path, table):
    found = GraphSearch.open(table, tmp_path).search(table.take(np.arange(2)), 600)
    assert (found.rows[:, 500:] == -1).all()
    assert (found.scores[:, 500:] == -np.inf).all()
    assert GraphSearch.open(table, tmp_path).search(np.zeros((0, 16), np.float32), 3).rows.size == 0


def test_a_damaged_graph_is_refused(tmp_path, table):
    content = (tmp_path / GRAPH).read_bytes()
    (tmp_path / GRAPH).write_bytes(content[: len(content) // 2])
    with pytest.raises(StoreError, match=r"graph.faiss: damaged; run `biograft index` again"):
        GraphSearch.open(table, tmp_path)


def test_a_graph_of_other_vectors_is_refused(tmp_path, table):
    (tmp_path / "other").mkdir()
    other = VectorTable.create(tmp_path / "other", "float32", 3, 16)
    other.write(np.arange(3), table.take(np.arange(3)))
    GraphSearch.build(other, tmp_path)
    with pytest.raises(StoreError, match="is of other vectors"):
        GraphSearch.open(table, tmp_path)


def test_without_faiss_the_extra_is_named(tmp_path, table, monkeypatch):
    monkeypatch.setitem(sys.modules, "faiss", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'biograft\[faiss\]'"):
        GraphSearch.build(table, tmp_path)
