import numpy as np
import pytest

from biograft.linking.dense import search as module
from biograft.linking.dense.config import STORAGES
from biograft.linking.dense.search import ExactSearch, VectorTable


@pytest.fixture(autouse=True)
def _small_blocks(monkeypatch):
    """Let a hundred rows be many: several chunks, blocks and rounds."""
    monkeypatch.setattr(module, "CHUNK", 16)
    monkeypatch.setattr(module, "_QUERIES", 7)
    monkeypatch.setattr(module, "_RESCORED", 3)
    monkeypatch.setattr(module, "SPARE", {"coarse": 3, "fine": 2})


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
def test_what_a_coarse_scan_cannot_tell_apart(tmp_path, brute_force, coarse):
    """The best of a hundred rows that are one and the same in bfloat16."""
    centre = random_vectors(1)
    vectors = centre + 1e-5 * random_vectors(100, seed=2)
    table = table_of(tmp_path, vectors.astype(np.float32))
    queries = np.concatenate([centre, vectors[90:93], random_vectors(3, seed=3)])
    found = ExactSearch(table, table.largest_norm(), coarse=coarse).search(
        queries.astype(np.float32), 4
    )
    equal(found, brute_force(table.take(np.arange(100)), queries.astype(np.float32), 4))


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


def test_a_coarse_scan_alone_would_be_wrong(tmp_path, brute_force):
    """Shows that the tests above need the second look."""
    vectors = (random_vectors(1) + 1e-4 * random_vectors(100, seed=2)).astype(np.float32)
    table = table_of(tmp_path, vectors)
    search = ExactSearch(table, table.largest_norm(), coarse=True)
    rows, _ = search._scan(vectors[:20], 5, "coarse")
    best = brute_force(vectors, vectors[:20], 1).rows
    assert not (rows == best).any(axis=1).all()


@pytest.mark.parametrize("scan", ["coarse", "fine"])
@pytest.mark.parametrize("storage", list(STORAGES))
def test_no_row_left_out_exceeds_the_bound(tmp_path, storage, scan):
    table = table_of(tmp_path, random_vectors(200, unit=False), storage)
    queries = random_vectors(30, seed=1, unit=False)
    search = ExactSearch(table, table.largest_norm())
    rows, lowest = search._scan(queries, 10, scan)
    exact = queries.astype(np.float64) @ table.take(np.arange(200)).T.astype(np.float64)
    np.put_along_axis(exact, rows, -np.inf, axis=1)
    assert (exact.max(axis=1) <= lowest + search._error_bound(queries, lowest, scan)).all()


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
        monkeypatch.setattr(module, "processor_has_bf16", lambda quick=quick: quick)
        monkeypatch.setattr(module, "_COARSE_ROWS", 100 if many else 101)
        assert search._starts_coarse(16) is (quick and many)
    assert not search._starts_coarse(1)
