"""Lines for a terminal: columns under one another, whatever the script."""

from __future__ import annotations

import pytest

from biograft.documents import Document, Mention
from biograft.linking import Linker
from biograft.linking.output import align, candidates_table, cut, table, width


@pytest.mark.parametrize(
    ("text", "columns"),
    [("flu", 3), ("流感", 4), ("e\u0301", 1), ("😀", 2), ("Ｔ", 2), ("", 0), ("a\u200db", 2)],
)
def test_width(text, columns):
    assert width(text) == columns


def test_columns_stand_under_one_another():
    assert align([("流感", "a"), ("flu", "b"), ("x", "")]) == ["流感  a", "flu   b", "x"]
    assert align([]) == []


def test_a_text_is_cut_to_columns_not_characters():
    assert cut("abcdef", 6) == "abcdef"
    assert cut("abcdefg", 6) == "abc..."
    assert cut("流感流感", 7) == "流感..."


def test_a_document_and_its_answers(kb):
    lines = table(Linker.open(kb)("2型糖尿病 cold; heart attack (HA)"))
    assert [line.split()[0] for line in lines] == ["span", "0-5", "6-10", "12-24", "26-28"]
    assert "HA (heart attack)" in lines[4]
    assert lines[3].endswith("lexical #1: heart attack")
    assert table(Linker.open(kb)("")) == ["no mention"]


def test_candidates_and_nil(kb):
    linker = Linker.open(kb, threshold=0.9)
    asked = [Document(str(n), m, (Mention(0, len(m), m),)) for n, m in enumerate(["cold", "hart"])]
    lines = candidates_table(linker.pipe(asked), 2)
    assert [line.split()[0] for line in lines] == ["span", "0", "D7", "1"]
    assert "NIL" in lines[3]
    assert "nearest: Myocardial Infarction" in lines[3]


def test_a_text_cannot_command_the_terminal(kb):
    document = Document("1", "a\x1b[31m\nb", (Mention(0, 8, "a\x1b[31m\nb"),))
    lines = table(Linker.open(kb)(document))
    assert len(lines) == 2
    assert "\x1b" not in lines[1]
