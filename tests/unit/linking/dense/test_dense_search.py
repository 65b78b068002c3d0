from __future__ import annotations

import sys

import numpy as np
import pytest

from biograft.errors import MissingExtraError, StoreError
from biograft.linking import STORAGES, ExactSearch, GraphSearch, UnitVectorTable, VectorTable
from biograft.linking.dense import search as module
from biograft.linking.dense.search import CHUNK, GRAPH, SCALES, VECTORS


@pytest.fixture(autouse=True)
def _small_blocks(monkeypatch):
    """Let a hundred rows be many: several chunks, blocks and rounds."""
    monkeypatch.setattr(module, "CHUNK", 16)
    monkeypatch.setattr(module, "_QUERIES", 7)
    monkeypatch.setattr(module, "_RESCORED", 3)
    monkeypatch.setattr(module, "SPARE", 2)
    monkeypatch.setattr(module, "_ROOM", 10)


def table_of(folder, vectors, storage="float32"):
    table = VectorTable.create(folder, storage, *vectors.shape)
    table.write(np.arange(len(vectors)), vectors)
    return table


def random_vectors(n, dim=24, seed=0, *, unit=True):
    made = np.random.default_rng(seed).normal(size=(n, dim)).astype(np.float32)
    return made / np.linalg.norm(made, axis=1, keepdims=True) if unit else made


def equal(found, expected):
    np.testing.assert_array_equal(found.rows, expected.rows)
    np.testing.assert_array_equal(found.scores, expected.scores)


@pytest.mark.parametrize("coarse", [False, True])
@pytest.mark.parametrize("storage", list(STORAGES))
@pytest.mark.parametrize("k", [1, 10, 150])
def test_equals_brute_force(tmp_path, brute_force, storage, k, coarse):
    table = table_of(tmp_path, random_vectors(120), storage)
    queries = random_vectors(20, seed=1)
    found = ExactSearch(table, table.largest_norm(), coarse=coarse).search(queries, k)
    equal(found, brute_force(table.take(np.arange(120)), queries, k))


@pytest.mark.parametrize("coarse", [False, True])
def test_vectors_of_any_length(tmp_path, brute_force, coarse):
    vectors = random_vectors(120, unit=False) * np.linspace(0.1, 30, 120)[:, None]
    table = table_of(tmp_path, vectors.astype(np.float32))
    queries = 100 * random_vectors(20, seed=1, unit=False)
    found = ExactSearch(table, table.largest_norm(), coarse=coarse).search(queries, 5)
    equal(found, brute_force(table.take(np.arange(120)), queries, 5))


@pytest.mark.parametrize("coarse", [False, True])
@pytest.mark.parametrize("storage", list(STORAGES))
def test_inner_products_of_norms_that_differ_a_thousandfold(tmp_path, brute_force, storage, coarse):
    """The bound of the scan must hold for the longest vector beside the shortest."""
    vectors = random_vectors(120) * np.logspace(-1.5, 1.5, 120)[::-1, None]
    table = table_of(tmp_path, vectors.astype(np.float32), storage)
    queries = random_vectors(20, seed=1) * np.logspace(-1, 2, 20)[:, None]
    queries = np.concatenate([queries, -vectors[:3], vectors[-3:]]).astype(np.float32)
    found = ExactSearch(table, table.largest_norm(), coarse=coarse).search(queries, 7)
    equal(found, brute_force(table.take(np.arange(120)), queries, 7))


@pytest.mark.parametrize("coarse", [False, True])
@pytest.mark.parametrize("storage", list(STORAGES))
def test_vectors_divided_by_their_norms(tmp_path, brute_force, storage, coarse):
    vectors = random_vectors(120) * np.logspace(-1, 1, 120)[:, None]
    vectors[7] = 0
    unit = UnitVectorTable(table_of(tmp_path, vectors.astype(np.float32), storage))
    rows = unit.take(np.arange(120))
    norms = np.linalg.norm(rows, axis=1)
    np.testing.assert_allclose(norms, [0 if row == 7 else 1 for row in range(120)], atol=1e-6)
    np.testing.assert_array_equal(unit.chunk(16, 40), rows[16:40])
    queries = random_vectors(20, seed=1)
    found = ExactSearch(unit, 1 + 2.0**-20, coarse=coarse).search(queries, 5)
    equal(found, brute_force(rows, queries, 5))


@pytest.mark.parametrize("coarse", [False, True])
def test_what_a_coarse_scan_cannot_tell_apart(tmp_path, brute_force, coarse):
    """The best of a hundred rows that are one and the same in 8 bits."""
    centre = random_vectors(1)
    vectors = centre + 1e-5 * random_vectors(100, seed=2)
    table = table_of(tmp_path, vectors.astype(np.float32))
    queries = np.concatenate([centre, vectors[90:93], random_vectors(3, seed=3)])
    found = ExactSearch(table, table.largest_norm(), coarse=coarse).search(
        queries.astype(np.float32), 4
    )
    equal(found, brute_force(table.take(np.arange(100)), queries.astype(np.float32), 4))


def test_a_row_that_a_scan_in_32_bits_cannot_see_is_found(tmp_path, brute_force):
    """Large numbers that cancel out swallow what differs; the bound of the scan allows for that."""
    vectors = np.repeat(np.float32([[1, 0.5, 1]]), 40, axis=0)
    vectors[30, 1] = 1
    query = np.float32([[2**30, 1, -(2**30)]])
    vectors, query = np.repeat(vectors, 64, axis=1), np.repeat(query, 64, axis=1)
    table = table_of(tmp_path, vectors)
    found = ExactSearch(table, table.largest_norm(), coarse=False).search(query, 2)
    assert found.rows.tolist() == [[30, 0]]
    equal(found, brute_force(vectors, query, 2))


@pytest.mark.parametrize("coarse", [False, True])
def test_ties_go_to_the_lower_row_wherever_they_stand(tmp_path, coarse):
    """Equal vectors in many chunks, more than a scan keeps at first."""
    few = random_vectors(3)
    vectors = few[np.arange(100) % 3]
    table = table_of(tmp_path, vectors)
    found = ExactSearch(table, table.largest_norm(), coarse=coarse).search(few, 6)
    for query in range(3):
        assert found.rows[query].tolist() == list(range(query, query + 18, 3))
        assert len(set(found.scores[query].tolist())) == 1


def rounded(vectors):
    made = module.Rounded.empty(*vectors.shape)
    made.fill(0, vectors)
    return made


def test_rounded_vectors_are_as_near_as_they_say(tmp_path):
    vectors = random_vectors(50, unit=False)
    vectors[3] = 0
    made = rounded(vectors)
    rest = vectors.astype(np.float64) - made.codes * made.scales[:, None].astype(np.float64)
    errors = np.linalg.norm(rest, axis=1)
    assert (errors <= made.errors).all()
    assert np.allclose(errors, made.errors, rtol=1e-5)
    assert np.allclose(made.norms, np.linalg.norm(vectors, axis=1), rtol=1e-5)


def test_products_of_rounded_vectors_alone_would_be_wrong(brute_force):
    """Shows that the tests above need the second look."""
    vectors = (random_vectors(1) + 1e-3 * random_vectors(100, seed=2)).astype(np.float32)
    made = rounded(vectors)
    coarse = (made.codes.astype(np.int32) @ made.codes.T) * made.scales
    assert (coarse.argmax(axis=1) != brute_force(vectors, vectors, 1).rows[:, 0]).any()


def test_bounds_allow_for_rounding_of_vectors_that_8_bits_hold_exactly():
    """Their products have no error but that of 32 bits."""
    rng = np.random.default_rng(3)
    wholes = rng.integers(-126, 127, (2, 60, 24)).astype(np.float32)
    wholes[:, :, 0] = 127  # so that the scale is the factor
    factors = (rng.integers(2049, 4095, (2, 60, 1)) / 4096).astype(np.float32)
    vectors, queries = wholes * factors
    assert rounded(vectors).errors.tolist() == [0] * 60
    found = module.find_candidates(rounded(vectors), queries, 40, 16)
    exact = queries.astype(np.float64) @ vectors.T.astype(np.float64)
    assert (np.take_along_axis(exact, found.rows[:, :40], axis=1) <= found.upper[:, :40]).all()


@pytest.mark.parametrize("k", [1, 10, 40])
@pytest.mark.parametrize("unit", [True, False])
def test_every_row_among_the_best_is_a_candidate_within_its_bound(monkeypatch, k, unit):
    monkeypatch.setattr(module, "_ROOM", 100)
    vectors, queries = random_vectors(200, unit=unit), random_vectors(30, seed=1, unit=unit)
    vectors *= np.random.default_rng(5).uniform(0.01, 2, (200, 1)).astype(np.float32)
    found = module.find_candidates(rounded(vectors), queries, k, 16)
    exact = queries.astype(np.float64) @ vectors.T.astype(np.float64)
    best = np.argsort(-exact, axis=1)[:, :k]
    for query in range(30):
        rows = found.rows[query, : found.counts[query]]
        assert len(set(rows.tolist())) == len(rows)
        assert set(best[query].tolist()) <= set(rows.tolist())
        upper = found.upper[query, : found.counts[query]]
        assert (exact[query, rows] <= upper).all()
        assert (found.upper[query, found.counts[query] :] == -np.inf).all()
    assert (found.counts < 200).any()  # others are left out


def test_a_query_with_too_many_candidates_is_left_to_the_scan_in_float32(brute_force, tmp_path):
    vectors = np.repeat(random_vectors(1), 100, axis=0)
    vectors[70] *= 1.0001
    found = module.find_candidates(rounded(vectors), vectors[:2], 3, 16)
    assert (found.counts == -1).all()
    table = table_of(tmp_path, vectors)
    hits = ExactSearch(table, table.largest_norm(), coarse=True).search(vectors[:2], 3)
    equal(hits, brute_force(vectors, vectors[:2], 3))


def test_scores_are_the_same_compiled_and_not():
    vectors, queries = random_vectors(60), random_vectors(4, seed=1)
    of_query, scores = np.arange(60) % 4, np.empty((2, 60), np.float32)
    module._multiply.uncompiled(vectors, queries, of_query, scores[0])
    module._multiply.dispatcher(vectors, queries, of_query, scores[1])
    assert np.array_equal(scores[0], scores[1])
    exact = (vectors.astype(np.float64) * queries[of_query]).sum(axis=1)
    assert np.array_equal(scores[0], exact.astype(np.float32))


@pytest.mark.parametrize("storage", list(STORAGES))
def test_no_row_left_out_exceeds_the_bound(tmp_path, storage):
    table = table_of(tmp_path, random_vectors(200, unit=False), storage)
    queries = random_vectors(30, seed=1, unit=False)
    search = ExactSearch(table, table.largest_norm())
    rows, lowest = search._scan(queries, 10)
    exact = queries.astype(np.float64) @ table.take(np.arange(200)).T.astype(np.float64)
    np.put_along_axis(exact, rows, -np.inf, axis=1)
    assert (exact.max(axis=1) <= lowest + search._error_bound(queries)).all()


@pytest.mark.parametrize(("n_rows", "n_queries"), [(0, 3), (1, 3), (5, 0)])
def test_few_rows_and_few_queries(tmp_path, n_rows, n_queries):
    table = table_of(tmp_path, random_vectors(n_rows))
    found = ExactSearch(table, table.largest_norm()).search(random_vectors(n_queries), 2)
    assert found.rows.shape == found.scores.shape == (n_queries, 2)
    if n_queries:
        assert (found.rows >= 0).sum(axis=1).tolist() == [min(n_rows, 2)] * n_queries
        assert (found.scores[found.rows < 0] == -np.inf).all()


def test_a_coarse_scan_is_for_many_rows_on_a_processor_that_has_it(tmp_path, monkeypatch):
    table = table_of(tmp_path, random_vectors(100))
    search = ExactSearch(table, 1.0)
    for quick, many in ((True, True), (True, False), (False, True)):
        monkeypatch.setattr(module, "_has_int8_products", lambda quick=quick: quick)
        monkeypatch.setattr(module, "_COARSE_ROWS", 100 if many else 101)
        assert search._starts_coarse(16) is (quick and many)
    assert not search._starts_coarse(1)


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
    with pytest.raises(StoreError, match="belongs to other vectors"):
        GraphSearch.open(table, tmp_path)


def test_without_faiss_the_extra_is_named(tmp_path, table, monkeypatch):
    monkeypatch.setitem(sys.modules, "faiss", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'biograft\[faiss\]'"):
        GraphSearch.build(table, tmp_path)


RELATIVE_ERROR = {"float32": 0, "float16": 2**-11, "bfloat16": 2**-8}


@pytest.fixture
def vectors():
    made = np.random.default_rng(0).normal(size=(50, 12)).astype(np.float32)
    made[7] = 0
    return made


def write(folder, storage, vectors):
    table = VectorTable.create(folder, storage, *vectors.shape)
    table.write(np.arange(0, len(vectors), 2), vectors[::2])
    table.write(np.arange(1, len(vectors), 2), vectors[1::2])
    table.flush()
    return VectorTable.open(folder, storage)


@pytest.mark.parametrize("storage", list(STORAGES))
def test_vectors_come_back_as_exactly_as_they_are_kept(tmp_path, vectors, storage):
    table = write(tmp_path, storage, vectors)
    everything = table.take(np.arange(50))
    if storage == "int8":
        step = np.abs(vectors).max(axis=1, keepdims=True) / 127
        assert (np.abs(everything - vectors) <= step / 2 * 1.0001).all()
    else:
        allowed = RELATIVE_ERROR[storage] * np.abs(vectors)
        assert (np.abs(everything - vectors) <= allowed).all()
    np.testing.assert_array_equal(table.chunk(10, 30), everything[10:30])
    np.testing.assert_array_equal(table.take(np.array([40, 3, 3])), everything[[40, 3, 3]])
    assert not everything[7].any()
    assert table.largest_norm() == pytest.approx(np.linalg.norm(everything, axis=1).max())


@pytest.mark.parametrize("storage", list(STORAGES))
def test_rows_are_copied_bit_for_bit(tmp_path, vectors, storage):
    table = write(tmp_path, storage, vectors)
    (tmp_path / "other").mkdir()
    other = VectorTable.create(tmp_path / "other", storage, 3, 12)
    other.copy(np.array([2, 0]), table, np.array([5, 49]))
    np.testing.assert_array_equal(other.take(np.array([2, 0])), table.take(np.array([5, 49])))


def test_the_longest_vector_may_stand_in_any_chunk(tmp_path):
    vectors = np.zeros((CHUNK + 5, 2), dtype=np.float32)
    vectors[CHUNK + 3] = (3, 4)
    assert write(tmp_path, "float32", vectors).largest_norm() == 5


@pytest.mark.parametrize("storage", list(STORAGES))
def test_no_vectors_at_all(tmp_path, storage):
    table = write(tmp_path, storage, np.zeros((0, 12), dtype=np.float32))
    assert (table.n_rows, table.dim, table.largest_norm()) == (0, 12, 0.0)


def test_an_int8_table_is_a_quarter(tmp_path, vectors):
    write(tmp_path, "int8", vectors)
    assert np.load(tmp_path / VECTORS).nbytes == vectors.nbytes // 4


class TestDamage:
    @pytest.mark.parametrize("size", [0, 50, 300])
    def test_cut_off(self, tmp_path, vectors, size):
        write(tmp_path, "float32", vectors)
        path = tmp_path / VECTORS
        path.write_bytes(path.read_bytes()[:size])
        with pytest.raises(StoreError, match=r"damaged \(vectors.npy: .*run `biograft index`"):
            VectorTable.open(tmp_path, "float32")

    def test_missing(self, tmp_path):
        with pytest.raises(StoreError, match=r"damaged \(vectors.npy: "):
            VectorTable.open(tmp_path, "float32")

    def test_of_another_kind(self, tmp_path, vectors):
        write(tmp_path, "float16", vectors)
        with pytest.raises(StoreError, match="expected 2 axes of float32, found 2 of float16"):
            VectorTable.open(tmp_path, "float32")

    def test_pickled(self, tmp_path):
        np.save(tmp_path / VECTORS, np.array([{}], dtype=object))
        with pytest.raises(StoreError, match=r"damaged \(vectors.npy: "):
            VectorTable.open(tmp_path, "float32")

    def test_too_few_scales(self, tmp_path, vectors):
        write(tmp_path, "int8", vectors)
        np.save(tmp_path / SCALES, np.zeros(49, dtype=np.float32))
        with pytest.raises(StoreError, match=r"damaged \(scales: expected 50 numbers, found 49"):
            VectorTable.open(tmp_path, "int8")
