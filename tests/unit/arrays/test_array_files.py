"""Arrays on disk: what is opened, and what is refused before a compiled loop could read it."""

from __future__ import annotations

import errno
import io
import os
import re
import zipfile
from pathlib import Path

import numpy as np
import pytest

import biograft
from biograft.artifacts import (
    ArraySpec,
    check_ends,
    check_length,
    check_range,
    create_array,
    open_array,
    open_arrays,
    save_array,
    save_arrays,
)
from biograft.linking import VectorTable


@pytest.mark.parametrize("shape", [0, 5])
def test_what_was_saved_is_mapped(tmp_path, shape):
    np.save(tmp_path / "a.npy", np.arange(shape, dtype=np.uint32))
    array = open_array(tmp_path / "a.npy", np.uint16, np.uint32)
    assert isinstance(array, np.memmap)
    assert array.tolist() == list(range(shape))
    assert not array.flags.writeable
    assert open_array(tmp_path / "a.npy", np.uint32, mode="c").flags.writeable


def _npy(header: str) -> bytes:
    text = header.encode() + b"\n"
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text + bytes(64)


def _zip() -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("a.npy", b"x")
    return file.getvalue()


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"x",
        b"\x93NUMPY",
        b"\x80\x04N.",
        _zip(),
        _npy(""),
        _npy("("),
        _npy("  {\n {"),
        _npy("[1]"),
        _npy("{'descr': '<u4', 'fortran_order': False, 'shape': (17,)}"),
        _npy("{'descr': '<u4', 'fortran_order': False, 'shape': (-1,)}"),
        _npy("{'descr': '<u4', 'fortran_order': False, 'shape': (1 << 70,)}"),
        _npy(f"{{'descr': '<u4', 'fortran_order': False, 'shape': ({1 << 70},)}}"),
        _npy(f"{{'descr': '<u4', 'fortran_order': False, 'shape': ({1 << 40}, {1 << 40})}}"),
        _npy("{'descr': '>u4', 'fortran_order': False, 'shape': (4,)}"),
        _npy("{'descr': '<i4', 'fortran_order': False, 'shape': (4,)}"),
        _npy("{'descr': '|O', 'fortran_order': False, 'shape': (4,)}"),
        _npy("{'descr': 7, 'fortran_order': False, 'shape': (4,)}"),
        _npy("{'descr': '<u4', 'fortran_order': False, 'shape': (2, 2)}"),
        _npy("{'descr': '<u4', 'fortran_order': False, 'shape': 4}"),
    ],
)
def test_what_is_no_such_array_is_named(tmp_path, content):
    path = tmp_path / "a.npy"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"^a\.npy: ") as caught:
        open_array(path, np.uint32)
    assert "\n" not in str(caught.value)


def test_numbers_that_do_not_lie_as_ours_are_refused(tmp_path):
    np.save(tmp_path / "f.npy", np.asfortranarray(np.zeros((3, 4), np.int64)))
    np.save(tmp_path / "a.npy", np.zeros(3, np.int64))
    content = (tmp_path / "a.npy").read_bytes()
    length = int.from_bytes(content[8:10], "little")
    shifted = (length + 1).to_bytes(2, "little") + content[10 : 9 + length] + b" \n"
    (tmp_path / "a.npy").write_bytes(content[:8] + shifted + content[10 + length :])
    assert np.load(tmp_path / "a.npy").tolist() == [0, 0, 0]
    with pytest.raises(ValueError, match=r"f\.npy"):
        open_array(tmp_path / "f.npy", np.int64, n_axes=2)
    with pytest.raises(ValueError, match=r"a\.npy"):
        open_array(tmp_path / "a.npy", np.int64)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(ValueError, match=r"a\.npy"):
        open_array(tmp_path / "a.npy", np.uint32)


@pytest.mark.parametrize(
    ("values", "fits"),
    [([], True), ([0, 3], True), ([-1, 0], False), ([4], False), ([np.nan, 1], False)],
)
def test_ranges(values, fits):
    array = np.array(values, np.float64)
    if fits:
        check_range("a", array, 0, 3)
    else:
        with pytest.raises(ValueError, match=r"^a: expected 0 to 3"):
            check_range("a", array, 0, 3)


@pytest.mark.parametrize(
    ("ends", "fits"),
    [
        ([0, 2, 2, 4], True),
        ([[0, 2], [2, 4]], True),
        ([], False),
        ([0, 3, 2, 4], False),
        ([1, 4], False),
        ([0, 5], False),
        ([0, -1, 4], False),
    ],
)
def test_ends(ends, fits):
    if fits:
        check_ends("a", np.array(ends, np.int64), 4)
    else:
        with pytest.raises(ValueError, match=r"^a: expected positions"):
            check_ends("a", np.array(ends, np.int64), 4)


def test_lengths():
    check_length("a", np.zeros((2, 3)), 2, 3)
    with pytest.raises(ValueError, match="a: expected 3 numbers, found 2"):
        check_length("a", np.zeros(2), 3)


def space_of(path):
    return path.stat().st_blocks * 512


@pytest.mark.skipif(not hasattr(os, "posix_fallocate"), reason="needs posix_fallocate")
def test_the_space_of_a_new_array_is_reserved(tmp_path):
    """Guards: files of holes were mapped, and on a full disk a write ended the process (SIGBUS)."""
    array = create_array(tmp_path / "a.npy", np.float32, (1000, 300))
    assert space_of(tmp_path / "a.npy") >= array.nbytes
    array[:] = 1
    array.flush()
    assert open_array(tmp_path / "a.npy", np.float32, n_axes=2).sum() == 300_000
    assert create_array(tmp_path / "b.npy", np.int8, (0, 3)).shape == (0, 3)
    VectorTable.create(tmp_path, "int8", 100_000, 8)
    assert space_of(tmp_path / "vectors.npy") >= 800_000
    assert space_of(tmp_path / "scales.npy") >= 400_000


def test_arrays_are_created_by_this_module_alone():
    """Guards: ``index --encoder`` and ``graph neighbours`` made their own, of holes."""
    source = Path(biograft.__file__).parent
    found = {path.name for path in source.rglob("*.py") if "open_memmap" in path.read_text()}
    assert found == {"artifacts.py"}


def test_a_saved_array_is_that_of_numpy_and_a_full_disk_has_its_number(tmp_path):
    """numpy said of a full disk "4 requested and 0 written", which reached the user."""
    for array in (np.arange(5), np.zeros((0, 3), np.float32), np.arange(9)[::2]):
        np.save(tmp_path / "a.npy", array)
        save_array(tmp_path / "b.npy", array)
        assert (tmp_path / "a.npy").read_bytes() == (tmp_path / "b.npy").read_bytes()
    if Path("/dev/full").exists():
        with pytest.raises(OSError, match="No space left") as caught:
            save_array(Path("/dev/full"), np.ones(10))
        assert caught.value.errno == errno.ENOSPC


SPECS = {
    "rows": ArraySpec("int32 int64", ("rows",), low=0, below="names", rising=True),
    "ends": ArraySpec("int64", ("rows + 1",), ends="letters"),
    "letters": ArraySpec("uint8", ("letters",), high=99),
    "table": ArraySpec("float32", ("rows", 2)),
}
GOOD = {
    "rows": np.array([0, 3], np.int32),
    "ends": np.array([0, 1, 4], np.int64),
    "letters": np.arange(4, dtype=np.uint8),
    "table": np.zeros((2, 2), np.float32),
}


def test_declared_arrays_are_opened_as_they_were_saved(tmp_path):
    save_arrays(tmp_path, GOOD)
    opened = open_arrays(tmp_path, SPECS, names=4)
    assert {name: each.tolist() for name, each in opened.items()} == {
        name: each.tolist() for name, each in GOOD.items()
    }


@pytest.mark.parametrize(
    ("name", "array", "reason"),
    [
        ("rows", np.array([0, 4], np.int32), "rows: expected 0 to 3, found 0 to 4"),
        ("rows", np.array([3, 0], np.int32), "rows: expected numbers that rise"),
        ("rows", np.array([0, 3], np.uint8), "rows.npy: expected 1 axes of int32 or int64"),
        ("ends", np.array([0, 4], np.int64), "ends: expected 3 numbers, found 2"),
        ("ends", np.array([0, 5, 4], np.int64), "ends: expected positions that never go back"),
        ("ends", np.array([0, 1, 3], np.int64), "ends: expected positions from 0 to 4"),
        ("letters", np.array([0, 1, 2, 100], np.uint8), "letters: expected -inf to 99"),
        ("table", np.zeros((2, 3), np.float32), "table: expected 2 x 2 numbers, found 2 x 3"),
    ],
)
def test_arrays_that_are_not_as_declared_are_refused(tmp_path, name, array, reason):
    save_arrays(tmp_path, {**GOOD, name: array})
    with pytest.raises(ValueError, match=re.escape(reason)):
        open_arrays(tmp_path, SPECS, names=4)
