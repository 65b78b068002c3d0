import sys

import numpy as np
import pytest

from biograft.errors import MissingExtraError, StoreError
from biograft.linking.dense.search import GRAPH, GraphSearch, VectorTable


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


def relink(graph, change):
    """Change the links of a graph, given with the levels and the beginnings of all vectors."""
    import faiss

    hnsw = graph.hnsw
    links, levels, begins = map(faiss.vector_to_array, (hnsw.neighbors, hnsw.levels, hnsw.offsets))
    change(links, levels, begins.astype(np.int64))
    faiss.copy_array_to_vector(links, hnsw.neighbors)
    faiss.copy_array_to_vector(levels, hnsw.levels)


def link_to_a_lower_level(links, levels, begins):
    upper, lower = np.flatnonzero(levels > 1), np.flatnonzero(levels == 1)[-1]
    links[begins[upper] + 64] = lower


def link_out_of_the_graph(links, levels, begins):
    links[:9] = 1 << 30


def raise_a_level(links, levels, begins):
    levels[np.flatnonzero(levels == 1)[0]] = 2


@pytest.mark.parametrize("change", [link_to_a_lower_level, link_out_of_the_graph, raise_a_level])
def test_links_that_lead_nowhere_are_refused(tmp_path, table, change):
    """Guards: faiss follows links unseen; one to a vector of a lower level was a SIGSEGV."""
    import faiss

    graph = faiss.read_index(str(tmp_path / GRAPH))
    relink(graph, change)
    faiss.write_index(graph, str(tmp_path / GRAPH))
    with pytest.raises(StoreError, match="damaged"):
        GraphSearch.open(table, tmp_path)


@pytest.mark.parametrize("level", [-1, 3])
def test_a_search_that_begins_elsewhere_is_refused(tmp_path, table, level):
    """Guards: the walk began on a level that its first vector does not have."""
    import faiss

    graph = faiss.read_index(str(tmp_path / GRAPH))
    graph.hnsw.max_level = level
    faiss.write_index(graph, str(tmp_path / GRAPH))
    with pytest.raises(StoreError, match="damaged"):
        GraphSearch.open(table, tmp_path)


def test_another_kind_of_graph_is_refused(tmp_path, table):
    """Guards: what is no graph of neighbours was a traceback."""
    import faiss

    flat = faiss.IndexFlatIP(16)
    flat.add(table.take(np.arange(500)))
    faiss.write_index(flat, str(tmp_path / GRAPH))
    with pytest.raises(StoreError, match="damaged"):
        GraphSearch.open(table, tmp_path)


def test_a_graph_of_nothing_is_opened(tmp_path):
    pytest.importorskip("faiss")
    empty = VectorTable.create(tmp_path, "float32", 0, 16)
    GraphSearch.build(empty, tmp_path)
    assert GraphSearch.open(empty, tmp_path).search(np.ones((1, 16), np.float32), 2).rows.max() < 0


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
