import numpy as np
import pytest

from biograft.errors import StoreError
from biograft.linking.dense.config import STORAGES
from biograft.linking.dense.search import CHUNK, SCALES, VECTORS, VectorTable

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
    np.testing.assert_array_equal(table.chunk(10, 30).numpy(), everything[10:30])
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
