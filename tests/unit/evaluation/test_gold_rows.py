"""Gold of Python in place of files: lists, frames and data sets are read as the same queries."""

from __future__ import annotations

import pandas as pd
import polars as pl
import pytest

from biograft import evaluate
from biograft.errors import ConfigError, FormatError
from biograft.evaluation import LinkQuery, read_gold, read_queries, to_queries
from biograft.linking import Linker
from biograft.text.documents import Document, Mention

ROWS = [{"mention": "flu", "concept": "D1"}, {"mention": "cold", "concept": None}]
FLU, NIL = LinkQuery("flu", frozenset({"D1"})), LinkQuery("cold")


@pytest.mark.parametrize(
    "rows",
    [ROWS, pd.DataFrame(ROWS), pl.DataFrame(ROWS), iter(ROWS), [FLU, NIL], [("flu", "D1"), NIL]],
    ids=["list", "pandas", "polars", "iterator", "queries", "pairs"],
)
def test_rows_of_any_kind_are_the_same_queries(rows):
    assert to_queries(rows) == [FLU, NIL]


@pytest.mark.parametrize("missing", [None, float("nan"), pd.NA, "", "-", "CUI-less"])
def test_an_empty_cell_is_nil(missing):
    rows = [{"mention": "cold", "concept": missing}]
    assert to_queries(rows) == to_queries(pd.DataFrame(rows)) == [NIL]


def test_a_text_is_the_context():
    text = "No flu, no cold."
    (query,) = to_queries([{"mention": "cold", "concept": "D2", "text": text}])
    assert (query.context, text[query.start : query.end]) == (text, "cold")
    (same,) = to_queries([{"text": text, "start": 11, "end": 15, "concepts": ["D2"]}])
    assert same == query
    (alone,) = to_queries([{"text": "cold", "concept": "D2"}])
    assert (alone.mention, alone.context, alone.start) == ("cold", "", None)


def test_documents_are_the_queries_of_their_mentions():
    document = Document("7", "flu and cold", (Mention(0, 12, "flu and cold", ("A", "B")),))
    (query,) = to_queries([document])
    assert query.needed == (frozenset("A"), frozenset("B"))
    assert (query.document, query.context, query.start, query.end) == ("7", document.text, 0, 12)
    row = {"text": "no flu", "mentions": [{"start": 3, "end": 6, "concepts": ["D1"]}]}
    first, second = to_queries([row, row])
    assert (first.mention, first.gold) == ("flu", {"D1"})
    assert first.document != second.document


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("flu", "expected mention and concept, or text and mentions; found str"),
        (("flu", 3), "found tuple"),
        ({"name": "flu", "code": "D1"}, "found no mention: name, code"),
        ({"mention": "flu", "concept": 2.5}, "an id with decimals"),
        ({"mention": "flu", "text": "a cold", "concept": "D1"}, "found no mention in the text"),
        ({"text": "x", "mentions": [{"start": 0}]}, "end"),
    ],
)
def test_other_rows_are_refused_in_one_line(row, message):
    with pytest.raises(ConfigError, match=message) as caught:
        to_queries([("flu", "D1"), row], "train")
    assert str(caught.value).startswith("train: row 1: ")
    assert "\n" not in str(caught.value)


def test_a_linker_is_evaluated_on_rows(store_of):
    kb = store_of([{"id": "D4", "name": "heart attack"}, {"id": "D5", "name": "metformin"}])
    linker = Linker.open(kb)
    rows = [{"mention": "heart attack", "concept": "D4"}, {"mention": "metformin", "concept": "D1"}]
    result = evaluate(linker, pd.DataFrame(rows), config={"ks": [1]})
    assert (result["acc@1"], result.n) == (0.5, 2)
    with pytest.raises(ConfigError, match="config: unknown key 'depth'"):
        evaluate(linker, rows, config={"depth": 1})
    with pytest.raises(FormatError, match="no query"):
        evaluate(linker, [])
    read = read_queries(kb, [*rows, {"mention": "x", "concept": "D99"}])
    assert (len(read.queries), read.unknown) == (3, {"D1", "D99"})
    assert [q.mention for q in read_gold(ROWS).queries] == ["flu"]
