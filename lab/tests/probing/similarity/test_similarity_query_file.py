"""Similarity queries round trip; damage is reported by line."""

import io
import json

import pytest

from biograft.errors import BiograftError
from biograft_lab.probing.similarity import SimilarityQuery, read_queries, write_queries

QUERIES = [
    SimilarityQuery("发热", "发烧", ("头痛", "腹痛"), ("D1", "D1"), True, (3, 0)),
    SimilarityQuery("a\tb", 'c"d', ("e", "f"), ("D1", "D2")),
]


def test_queries_round_trip(write):
    file = io.BytesIO()
    write_queries(file, QUERIES, {"n_pairs": 7})
    path = write("q.jsonl", file.getvalue())
    assert read_queries(path) == (QUERIES, {"n_pairs": 7})
    again = io.BytesIO()
    write_queries(again, QUERIES, {"n_pairs": 7})
    assert again.getvalue() == file.getvalue()
    assert "发热" in file.getvalue().decode()


HEAD = {"format": "biograft-similarity-queries", "version": 1}
ROW = {"query": "a", "positive": "b", "negatives": ["c"], "concepts": ["D", "D"]}


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([{"query": "a"}], r"q.jsonl:1: holds no queries of .* option -o"),
        ([[1]], "q.jsonl:1: holds no queries"),
        ([HEAD | {"version": 2}], "q.jsonl:1: queries of version 2"),
        ([HEAD], "holds no queries"),
        ([HEAD, {"query": "a"}], "q.jsonl:2: positive is missing"),
        ([HEAD, ROW | {"negatives": []}], "q.jsonl:2: expected some negatives as above, found 0"),
        ([HEAD, ROW, ROW | {"negatives": ["c", "d"]}], "q.jsonl:3: expected 1 negatives"),
        ([HEAD, ROW | {"concepts": ["D"]}], "q.jsonl:2: expected two concepts"),
        ([HEAD, ROW | {"frequencies": [1]}], "two frequencies or none"),
        ([HEAD, ROW | {"frequencies": ["1", 2]}], "frequencies holds what is no whole number"),
    ],
)
def test_damage_is_reported_by_line(write, rows, message):
    path = write("q.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
    with pytest.raises(BiograftError, match=message):
        read_queries(path)


def test_invalid_json_is_refused(write):
    with pytest.raises(BiograftError, match=r"q.jsonl:2: is not JSON"):
        read_queries(write("q.jsonl", json.dumps(HEAD) + "\n{"))
