"""The reader of Arrow files, against pyarrow."""

from __future__ import annotations

import random
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings, strategies as st

from biograft.kb.arrow_file import TEXT, open_arrow

KINDS = ("uint8", "uint16", "uint32", "uint64", "int64", TEXT)
BATCHES = st.lists(st.lists(st.text(max_size=5), min_size=1, max_size=20), max_size=4)


def write(path, batches, schema, **options):
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, schema, **options) as writer:
        for batch in batches:
            writer.write_batch(pa.record_batch(batch, schema=schema))


def table_of(columns):
    return pa.schema([(name, pa.type_for_alias(kind)) for name, kind in columns.items()])


@settings(max_examples=40, deadline=None)
@given(parts=BATCHES)
def test_columns_are_those_of_pyarrow(tmp_path_factory, parts):
    path = tmp_path_factory.mktemp("arrow") / "a.arrow"
    columns = {f"{kind} column": kind for kind in KINDS}
    batches = [
        [pa.array(texts if kind == TEXT else range(len(texts)), kind) for kind in columns.values()]
        for texts in parts
    ]
    write(path, batches, table_of(columns))
    file, expected = open_arrow(path), pa.ipc.open_file(path).read_all()
    assert file.types == columns
    assert file.n_rows == expected.num_rows
    for name, kind in columns.items():
        chunks, values = file.chunks[name], expected.column(name).to_pylist()
        if kind != TEXT:
            assert np.concatenate([[], *chunks]).tolist() == values
            continue
        found = [
            str(data[start:end], "utf-8")
            for offsets, data in chunks
            for start, end in pairwise(offsets)
        ]
        assert found == values


def test_what_stores_do_not_have_is_refused(tmp_path):
    path, schema = tmp_path / "a.arrow", pa.schema([("n", pa.int64())])
    write(path, [[pa.array([1, None])]], schema)
    with pytest.raises(ValueError, match="1 missing"):
        open_arrow(path)
    compressed = pa.ipc.IpcWriteOptions(compression="zstd")
    write(path, [[pa.array([1, 2])]], schema, options=compressed)
    with pytest.raises(ValueError, match="compressed"):
        open_arrow(path)
    write(path, [[pa.array([1.5])]], pa.schema([("x", pa.float64())]))
    assert open_arrow(path).types == {"x": ""}


def test_a_damaged_file_is_a_value_error_or_reads_within_it(tmp_path):
    path, schema = tmp_path / "a.arrow", table_of({"n": "uint32", "text": TEXT})
    write(path, [[pa.array([1, 2], pa.uint32()), pa.array(["a", "bc"], TEXT)]], schema)
    content, rng = path.read_bytes(), random.Random(1)
    for _ in range(3000):
        changed = bytearray(content)
        changed[rng.randrange(len(content))] = rng.randrange(256)
        path.write_bytes(changed)
        try:
            file = open_arrow(path)
        except ValueError:
            continue
        assert all(len(chunk) <= len(content) for of in file.chunks.values() for chunk in of)
