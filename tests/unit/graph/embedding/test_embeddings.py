"""Safetensors files: compatible with the safetensors package."""

import json

import numpy as np
import pytest

from biograft.graph.embedding.embeddings import read_tensors, write_tensors

ARRAYS = {
    "b": np.arange(6, dtype=np.float32).reshape(2, 3),
    "empty": np.zeros((0, 4, 4), np.float32),
    "a": np.array([[2**40]], np.int64),
    "fortran": np.asfortranarray(np.arange(6.0).reshape(2, 3)),
}


def assert_same(arrays):
    assert set(arrays) == set(ARRAYS)
    for name, array in ARRAYS.items():
        np.testing.assert_array_equal(arrays[name], array)
        assert arrays[name].dtype == array.dtype


def test_the_safetensors_package_reads_and_writes_the_same(tmp_path):
    package = pytest.importorskip("safetensors.numpy")
    write_tensors(tmp_path / "a.safetensors", ARRAYS, {"format": "x"})
    assert_same(package.load_file(tmp_path / "a.safetensors"))
    contiguous = {name: np.ascontiguousarray(array) for name, array in ARRAYS.items()}
    package.save_file(contiguous, tmp_path / "b.safetensors")
    assert_same(read_tensors(tmp_path / "b.safetensors"))


def test_a_truncated_file_is_refused(tmp_path):
    path = tmp_path / "a.safetensors"
    write_tensors(path, ARRAYS)
    path.write_bytes(path.read_bytes()[:-8])
    with pytest.raises(ValueError, match="cut short"):
        read_tensors(path)


@pytest.mark.parametrize(
    "header",
    [
        {"a": 5},
        {"a": {"dtype": "F8", "shape": [1], "data_offsets": [0, 8]}},
        {"a": {"dtype": "F64", "shape": [-1], "data_offsets": [8, 0]}},
        {"a": {"dtype": "F64", "shape": [1], "data_offsets": [-8, 0]}},
    ],
)
def test_a_malformed_header_is_refused(header, tmp_path):
    text = json.dumps(header).encode()
    path = tmp_path / "a.safetensors"
    path.write_bytes(len(text).to_bytes(8, "little") + text + bytes(8))
    with pytest.raises(ValueError, match=r"header is no table|cannot be read|cut short"):
        read_tensors(path)


def test_arrays_are_mapped(tmp_path):
    path = tmp_path / "a.safetensors"
    write_tensors(path, ARRAYS)
    one, other = (read_tensors(path)["b"] for _ in range(2))
    np.testing.assert_array_equal(one, other)
    base = one
    while not isinstance(base, np.memmap):
        base = base.base
    assert base.filename == path
    assert not one.flags.writeable
