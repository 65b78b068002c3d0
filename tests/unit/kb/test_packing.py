import numpy as np
import pytest

from biograft.kb.assembly import bits_for, first_of_runs, sort_rows

SIZES = {
    "one column": [50],
    "fits easily": [7, 300, 2],
    "a column of one value": [1, 9, 1],
    "exactly 64 bits": [1 << 31, 1 << 31, 4],
    "one column of 64 bits": [1 << 64],
    "65 bits": [1 << 32, 1 << 32, 2],
    "far too wide": [1 << 60, 1 << 60, 1 << 60],
}


def columns_of(sizes, n=400):
    rng = np.random.default_rng(len(sizes))
    columns = []
    for size in sizes:
        values = rng.integers(0, size - 1, 5, np.uint64, endpoint=True)
        edges = np.array([0, size - 1], np.uint64)
        columns.append(rng.choice(np.concatenate([values, edges]), n))
    return columns


@pytest.mark.parametrize("sizes", SIZES.values(), ids=SIZES)
def test_rows_come_in_the_order_of_lexsort(sizes):
    columns = columns_of(sizes)
    order = np.lexsort(columns[::-1])
    for sorted_column, column in zip(sort_rows(columns, sizes), columns, strict=True):
        assert np.array_equal(sorted_column, column[order])


def test_column_types_and_the_columns_given_stay_as_they_were():
    columns = [np.array([2, 0, 1], kind) for kind in (np.uint8, np.uint32, np.int64, np.uint16)]
    result = sort_rows(columns, [3, 3, 3, 3])
    assert [column.dtype for column in result] == [column.dtype for column in columns]
    assert all(column.tolist() == [2, 0, 1] for column in columns)


@pytest.mark.parametrize("sizes", [[5, 5], [1 << 40, 1 << 40]])
def test_no_rows_sort_to_no_rows(sizes):
    assert [len(column) for column in sort_rows([np.zeros(0, np.uint32)] * 2, sizes)] == [0, 0]


@pytest.mark.parametrize(
    ("n", "bits"), [(0, 0), (1, 0), (2, 1), (3, 2), (4, 2), (5, 3), (1 << 32, 32), (1 << 64, 64)]
)
def test_bits_hold_every_number_below(n, bits):
    assert bits_for(n) == bits


def test_the_first_of_each_run_is_marked():
    rng = np.random.default_rng(1)
    a, b = rng.integers(0, 2, 300), rng.integers(0, 2, 300)
    rows = list(zip(a.tolist(), b.tolist(), strict=True))
    expected = [k == 0 or row != rows[k - 1] for k, row in enumerate(rows)]
    assert first_of_runs(a, b).tolist() == expected
    assert first_of_runs(a[:0], b[:0]).tolist() == []
