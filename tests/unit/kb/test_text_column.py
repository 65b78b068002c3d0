"""Columns of texts in parts, against lists of texts."""

from __future__ import annotations

import numpy as np
from hypothesis import given, strategies as st

from biograft.kb import tables
from biograft.kb.arrow_file import TextChunk
from biograft.kb.tables import TextColumn

TEXTS = st.lists(st.text(st.characters(codec="utf-8"), max_size=4), max_size=8)


def chunk_of(texts):
    encoded = [text.encode() for text in texts]
    offsets = np.cumsum([0, *map(len, encoded)], dtype=np.int64)
    return TextChunk(offsets + 3, memoryview(b"***" + b"".join(encoded)))


def texts_of(chunk):
    return list(TextColumn([chunk]))


@given(st.lists(TEXTS, max_size=4))
def test_a_column_in_parts_is_the_list_of_its_texts(parts):
    column = TextColumn([chunk_of(part) for part in parts])
    texts = [text for part in parts for text in part]
    assert len(column) == len(texts)
    assert list(column) == texts
    assert [column[row] for row in range(len(texts))] == texts


def test_no_text_is_read_twice_however_few_are_read_at_once(monkeypatch):
    monkeypatch.setattr(tables, "_READ_ROWS", 2)
    assert texts_of(chunk_of("abcde")) == list("abcde")


@given(st.data())
def test_some_rows_are_taken_as_one_part(data):
    parts = data.draw(st.lists(TEXTS, min_size=1, max_size=4))
    texts = [text for part in parts for text in part]
    rows = [row for row in range(len(texts)) if data.draw(st.booleans())]
    if rows:
        chunk = TextColumn([chunk_of(part) for part in parts]).take(np.array(rows, np.int64))
        assert texts_of(chunk) == [texts[row] for row in rows]


def test_neighbours_in_one_part_are_not_copied():
    chunk = chunk_of(["a", "bc", "", "d"])
    taken = TextColumn([chunk]).take(np.array([1, 2]))
    assert taken.data is chunk.data
    assert texts_of(taken) == ["bc", ""]
