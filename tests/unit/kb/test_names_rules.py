import random

import numpy as np
import polars as pl
import pytest

from biograft.kb import NameRules
from biograft.kb.assembly import apply_text_rules, order_names, shared_to_drop
from biograft.kb.tables import NAME_KINDS


def ruled(texts, **rules):
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
def test_texts_change_only_as_told(rules, expected):
    assert ruled([" Crohn's  DISEASE (acute), type-2 "], **rules) == [expected]


@pytest.mark.parametrize("symbol", ",.;{}[]()+-_*/?!\\\"'`=%<>")
def test_every_symbol_becomes_a_blank(symbol):
    assert ruled([f"a{symbol}b", f"{symbol} a {symbol}", symbol], strip_symbols=True) == [
        "a b",
        "a",
        "",
    ]


def test_other_signs_and_letters_stay():
    texts = ["α:β", "2型糖尿病（成人）", "x#1 & y", "naïve"]
    assert ruled(texts, strip_symbols=True, lowercase=True) == texts


LANGUAGES = ["en", "de", "zh"]


def plain_order(rows, main):
    """Own names first: preferred before others, then by language, then as read; no repeats."""

    def rank(row):
        kind, language = row[2], row[3]
        place = main.index(language) if language in main else len(main)
        return (row[0], kind != 0, place)

    kept, seen = [], set()
    for row in sorted(rows, key=rank):
        key = (row[0], row[1], row[3])
        if key not in seen:
            seen.add(key)
            kept.append(row)
    return kept


@pytest.mark.parametrize("main", [[], [0], [1], [2, 0], [0, 1, 2]])
@pytest.mark.parametrize("n", [0, 1, 40, 2000])
def test_names_are_ordered_and_repeats_dropped_as_by_plain_loops(main, n):
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
        places = [k for k, r in enumerate(rows) if r == row]
        if all(drop[k] for k in places):
            drop[places[0]] = False
    return drop


def shared(rows, keys):
    return shared_to_drop(np.array(rows, np.uint32), np.array(keys, np.uint64)).tolist()


@pytest.mark.parametrize("seed", range(30))
def test_shared_names_are_dropped_as_by_plain_loops(seed):
    rng = random.Random(seed)
    n_names, n_concepts, n_keys = rng.choice([(5, 2, 2), (40, 10, 12), (100, 8, 60), (60, 50, 9)])
    rows = sorted(rng.randrange(n_concepts) for _ in range(n_names))
    keys = [rng.randrange(n_keys) << 40 for _ in rows]
    drop = shared(rows, keys)
    assert drop == plain_drop(rows, keys)
    assert {row for row, gone in zip(rows, drop, strict=True) if not gone} == set(rows)


@pytest.mark.parametrize(
    ("rows", "keys", "drop"),
    [
        ([], [], []),
        ([0, 0, 1], [7, 8, 7], [True, False, False]),
        ([0, 1], [7, 7], [False, False]),
        ([0, 0, 1, 1], [7, 7, 7, 8], [False, False, True, False]),
        ([5, 5, 9, 9], [7, 8, 7, 8], [False, False, False, True]),
    ],
    ids=["none", "fewest names keep", "the last stays", "repeats count once", "the first stays"],
)
def test_a_shared_name_stays_where_it_should(rows, keys, drop):
    assert shared(rows, keys) == drop
