from __future__ import annotations

import random

import numpy as np
import polars as pl
import pytest

from biograft.kb import NameRules
from biograft.kb.assembly import (
    apply_text_rules,
    bit_width,
    order_names,
    run_starts,
    shared_names,
    sort_rows,
)
from biograft.kb.tables import NAME_KINDS

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
    assert bit_width(n) == bits


def test_the_first_of_each_run_is_marked():
    rng = np.random.default_rng(1)
    a, b = rng.integers(0, 2, 300), rng.integers(0, 2, 300)
    rows = list(zip(a.tolist(), b.tolist(), strict=True))
    expected = [k == 0 or row != rows[k - 1] for k, row in enumerate(rows)]
    assert run_starts(a, b).tolist() == expected
    assert run_starts(a[:0], b[:0]).tolist() == []


def apply_rules(texts, **rules):
    return apply_text_rules(pl.DataFrame({"text": texts}), NameRules(**rules))["text"].to_list()


@pytest.mark.parametrize(
    ("rules", "expected"),
    [
        ({}, " Crohn's  DISEASE (acute), type-2 "),
        ({"lowercase": True}, " crohn's  disease (acute), type-2 "),
        ({"strip_symbols": True}, "Crohn s DISEASE acute type 2"),
        ({"lowercase": True, "strip_symbols": True}, "crohn s disease acute type 2"),
    ],
)
def test_texts_change_only_by_the_rules(rules, expected):
    assert apply_rules([" Crohn's  DISEASE (acute), type-2 "], **rules) == [expected]


@pytest.mark.parametrize("symbol", ",.;{}[]()+-_*/?!\\\"'`=%<>")
def test_every_symbol_becomes_a_space(symbol):
    assert apply_rules([f"a{symbol}b", f"{symbol} a {symbol}", symbol], strip_symbols=True) == [
        "a b",
        "a",
        "",
    ]


def test_other_characters_stay():
    texts = ["α:β", "2型糖尿病（成人）", "x#1 & y", "naïve"]
    assert apply_rules(texts, strip_symbols=True, lowercase=True) == texts


LANGUAGES = ["en", "de", "zh"]


def plain_order(rows, main):
    """Preferred names first, then by language, then as read; without duplicates."""

    def rank(row):
        kind, language = row[2], row[3]
        position = main.index(language) if language in main else len(main)
        return (row[0], kind != 0, position)

    ordered, seen = [], set()
    for row in sorted(rows, key=rank):
        key = (row[0], row[1], row[3])
        if key not in seen:
            seen.add(key)
            ordered.append(row)
    return ordered


@pytest.mark.parametrize("main", [[], [0], [1], [2, 0], [0, 1, 2]])
@pytest.mark.parametrize("n", [0, 1, 40, 2000])
def test_names_are_ordered_and_deduplicated_as_by_plain_loops(main, n):
    rng = random.Random(n)
    kinds, texts = range(len(NAME_KINDS)), [f"name {k}" for k in range(max(1, n // 20))]
    rows = [
        (rng.randrange(1 + n // 10), rng.choice(texts), rng.choice(kinds), rng.randrange(3), k % 2)
        for k in range(n)
    ]
    schema = {"row": pl.UInt32, "text": pl.String, "kind": pl.UInt8}
    schema |= {"language": pl.UInt16, "source": pl.UInt16}
    frame = pl.DataFrame(rows, schema, orient="row")
    assert order_names(frame, main).rows() == plain_order(rows, main)


def plain_drop(rows, keys):
    """Which names GenBioEL's rule drops, by plain loops."""
    sizes = {row: len({k for r, k in zip(rows, keys, strict=True) if r == row}) for row in rows}
    owner = {}
    for row in sorted(set(rows), key=lambda row: (sizes[row], row)):
        for r, key in zip(rows, keys, strict=True):
            if r == row:
                owner.setdefault(key, row)
    drop = [owner[key] != row for row, key in zip(rows, keys, strict=True)]
    for row in set(rows):
        positions = [k for k, r in enumerate(rows) if r == row]
        if all(drop[k] for k in positions):
            drop[positions[0]] = False
    return drop


def dropped_names(rows, keys):
    return shared_names(np.array(rows, np.uint32), np.array(keys, np.uint64)).tolist()


@pytest.mark.parametrize("seed", range(30))
def test_shared_names_are_dropped_as_by_plain_loops(seed):
    rng = random.Random(seed)
    n_names, n_concepts, n_keys = rng.choice([(5, 2, 2), (40, 10, 12), (100, 8, 60), (60, 50, 9)])
    rows = sorted(rng.randrange(n_concepts) for _ in range(n_names))
    keys = [rng.randrange(n_keys) << 40 for _ in rows]
    drop = dropped_names(rows, keys)
    assert drop == plain_drop(rows, keys)
    assert {row for row, is_dropped in zip(rows, drop, strict=True) if not is_dropped} == set(rows)


@pytest.mark.parametrize(
    ("rows", "keys", "drop"),
    [
        ([], [], []),
        ([0, 0, 1], [7, 8, 7], [True, False, False]),
        ([0, 1], [7, 7], [False, False]),
        ([0, 0, 1, 1], [7, 7, 7, 8], [False, False, True, False]),
        ([5, 5, 9, 9], [7, 8, 7, 8], [False, False, False, True]),
    ],
    ids=["none", "fewest names keep", "the last stays", "duplicates count once", "the first stays"],
)
def test_a_shared_name_stays_where_it_should(rows, keys, drop):
    assert dropped_names(rows, keys) == drop
