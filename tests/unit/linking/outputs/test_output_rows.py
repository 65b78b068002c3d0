"""CSV, TSV and Parquet: one row a finding, readable by other tools, harmless in a spreadsheet."""

from __future__ import annotations

import csv
import io

import polars as pl
import pyarrow.parquet as pq
import pytest
from hypothesis import given, strategies as st

from biograft.linking import (
    COLUMNS,
    Candidate,
    LinkedDocument,
    LinkedMention,
    Linker,
    link_chunks,
    write_linked,
)
from biograft.linking.outputs.findings import cell, cut, delimited_rows, neutral, plain
from biograft.text.documents import Document, Mention

TEXT = 'PMH: ovarian cancer.\nNo "heart attack", but cold; mother had breast cancer. zzz'


@pytest.fixture
def linked(kb):
    mention = Mention(TEXT.index("zzz"), len(TEXT), "zzz")
    linker = Linker.open(kb, threshold=0.9)
    found = linker(Document("a,b", TEXT))
    nil = linker(Document("a,b", TEXT, (mention,)))
    return LinkedDocument(found.document, (*found.mentions, *nil.mentions))


@pytest.mark.parametrize(("to", "delimiter"), [("csv", ","), ("tsv", "\t")])
def test_rows_read_back(kb, linked, to, delimiter):
    text = "".join(link_chunks([linked, linked], to, kb))
    rows = list(csv.DictReader(io.StringIO(text), delimiter=delimiter))
    assert tuple(rows[0]) == tuple(COLUMNS)
    assert rows[: len(rows) // 2] == rows[len(rows) // 2 :]
    for row, mention in zip(rows, linked.mentions, strict=False):
        assert row["document"] == "a,b"
        assert TEXT[int(row["start"]) : int(row["end"])] == row["text"] == mention.text
        assert row["concept"] == (mention.concept or "")
        assert row["name"] == (mention.name or "")
        assert row["status"] == mention.status
        assert row["negated"] == str(mention.negated).lower()
    by_text = {row["text"]: row for row in rows}
    assert by_text["heart attack"]["status"] == "absent"
    assert by_text["breast cancer"]["family"] == "true"
    assert by_text["ovarian cancer"]["section"]
    assert by_text["cold"]["types"] == "disease"
    assert by_text["heart attack"]["found_by"] == "lexical #1: heart attack"
    assert by_text["zzz"]["concept"] == ""


def test_parquet_has_types_and_lists(kb, linked, tmp_path):
    write_linked([linked, linked], tmp_path / "a.parquet", "parquet", kb, all_ids=True)
    frame = pl.read_parquet(tmp_path / "a.parquet")
    assert tuple(frame.columns) == tuple(COLUMNS)
    assert frame.height == 2 * len(linked.mentions)
    row = frame.filter(pl.col("text") == "breast cancer").row(0, named=True)
    assert (row["concept"], row["types"], row["ids"]) == ("D2", ["disease"], ["D2"])
    assert (row["family"], row["score"], row["probability"]) == (True, 1.0, None)
    assert frame.schema["start"] == pl.Int64
    assert frame.filter(pl.col("text") == "zzz")["concept"].to_list() == [None, None]


def test_parquet_without_findings_and_in_groups(kb, linked, tmp_path, monkeypatch):
    monkeypatch.setattr("biograft.linking.outputs.findings._ROWS", 2)
    write_linked([], tmp_path / "none.parquet", "parquet", kb)
    assert pl.read_parquet(tmp_path / "none.parquet").columns == list(COLUMNS)
    write_linked([linked] * 3, tmp_path / "some.parquet", "parquet", kb)
    assert pq.ParquetFile(tmp_path / "some.parquet").num_row_groups >= 3
    assert pl.read_parquet(tmp_path / "some.parquet").height == 3 * len(linked.mentions)


@pytest.mark.parametrize("start", list("=+-@\t\r"))
def test_a_cell_is_never_a_formula(kb, start):
    text = f'{start}HYPERLINK("http://x","y")'
    candidate = Candidate(text, text, text, -0.5, tied=(text,), types=(text,))
    mention = LinkedMention(0, len(text), text, text, (candidate,), text)
    for to, delimiter in (("csv", ","), ("tsv", "\t"), ("omop", ",")):
        output = "".join(link_chunks([LinkedDocument(Document(text, text), (mention,))], to, kb))
        reader = csv.DictReader(io.StringIO(output, newline=""), delimiter=delimiter)
        cells = [value for row in reader for value in row.values()]
        assert [value for value in cells if value.startswith(start) and value != "-0.5"] == []
    assert cell(-0.5) == "-0.5"


_CELL = st.builds("{}{}".format, st.text("'=+-@\t\r", max_size=3), st.text(max_size=6))
"""Texts, many of which begin like a formula, or like a cell that was quoted against one."""


@given(_CELL, _CELL)
def test_cells_read_back(one, other):
    """The quote against formulas stayed, or one of the text was taken away for it."""
    row = (one, other)
    lines = delimited_rows([row, row[::-1]])
    read = list(csv.reader(io.StringIO(lines, newline="")))
    assert [tuple(map(plain, cells)) for cells in read] == [row, row[::-1]]
    assert not any(value.startswith(tuple("=+-@\t\r")) for value in read[0])


@given(_CELL, st.integers(2, 6))
def test_the_quote_counts_where_a_column_is_limited(text, length):
    assert len(neutral(cut(text, length))) <= length
    assert text.startswith(cut(text, length))
