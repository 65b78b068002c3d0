"""Task tables with a column mapping."""

from __future__ import annotations

import time

import pytest

from biograft.errors import ConfigError
from biograft.text import Answer, ClassExample, PairExample, RankingExample, TaskConfig, read_task


def read(path, **columns):
    return read_task(TaskConfig(path=path, columns=columns))


def rejected(result):
    return {
        reason: [e.line for e in result.log.rejected.examples[reason]]
        for reason in result.log.rejected.counts
    }


def test_csv_with_cells_over_several_lines(write):
    path = write("a.csv", 'no,q1,q2,same\n1,"a, b","c\nd",yes\n2,x,y,no\n')
    result = read(path, first="q1", second="q2", label="same", id="no")
    assert result.examples == (
        PairExample("a, b", "c\nd", "yes", "1"),
        PairExample("x", "y", "no", "2"),
    )


def test_an_unclosed_quote_rejects_one_line(write):
    path = write("a.csv", 'q1,q2\na,"b\nc,d\n\ne,f,g\nh,"i" j\nk,l\n')
    result = read(path, first="q1", second="q2")
    assert result.examples == (PairExample("c", "d"), PairExample("k", "l"))
    assert rejected(result) == {
        "quotes that are not those of CSV": [2, 6],
        "3 cells, expected 2": [5],
    }


def test_an_unclosed_quote_rejects_one_line_even_if_another_follows_far_below(write):
    lines = "".join(f"a{n},b\n" for n in range(300))
    result = read(write("a.csv", f'q1,q2\nx,"y\n{lines}z,"w\n'), first="q1", second="q2")
    assert (len(result.examples), rejected(result)) == (
        300,
        {"quotes that are not those of CSV": [2, 303]},
    )


def test_thousands_of_quotes_that_open_a_cell_are_read_in_time(write):
    """Lines were looked at again with each that followed: a megabyte would have taken hours."""
    path = write("a.csv", "q1,q2\nx,y\n" + 'b","c\n' * 5000)
    start = time.process_time()
    assert len(read(path, first="q1", second="q2").examples) == 1
    assert time.process_time() - start < 10


def test_tabs_and_numbered_columns(write):
    path = write("a.tsv", 'flu\tA\t"whole"\n5" plaque\tB\tx\n\tC\tx\nshort\n')
    result = read(path, text="#1", label="#2", context="#3")
    assert result.examples == (
        ClassExample("flu", ("A",), "whole"),
        ClassExample('5" plaque', ("B",), "x"),
    )
    assert rejected(result) == {"text is empty": [3], "1 cells, expected 3": [4]}


def test_json_lines(write):
    path = write(
        "a.jsonl", '{"q": "x", "l": ["A", "B"], "n": 1}\n{"q": "y", "l": []}\n{"q": "z"}\n'
    )
    result = read(path, text="q", labels="l")
    assert [example.labels for example in result.examples] == [("A", "B"), ()]
    assert rejected(result) == {"the key 'l' is missing": [3]}


def test_answers_are_grouped_by_question(write):
    path = write("a.csv", "q,a,r\nq1,x,1\nq2,y,0\nq1,z,0\nq1,w,maybe\nq1,,1\n")
    result = read(path, query="q", answer="a", relevance="r")
    assert result.examples == (
        RankingExample("q1", (Answer("x", 1), Answer("z"))),
        RankingExample("q2", (Answer("y"),)),
    )
    assert rejected(result) == {
        "relevance is not a whole number such as 0 or 1": [5],
        "answer is empty": [6],
    }


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"one": "a"}, "no role is called 'one'"),
        ({"first": "a"}, "map first and second"),
        ({"first": "a", "second": "b", "labels": "c"}, "labels"),
    ],
)
def test_mappings_that_make_no_sense(write, columns, message):
    with pytest.raises(ConfigError, match=message):
        read(write("a.csv", "a,b,c\n1,2,3\n"), **columns)


def test_a_layout_of_your_own_is_a_format(write):
    layout = write(
        "mine.toml",
        'columns = { label = "#2", text = "#1" }\nquotes = "text"\nclasses = ["yes", "no"]\n',
    )
    path = write("a.tsv", 'Is it "flu"?\tyes\nWhat?\tmaybe\n')
    result = read_task(TaskConfig(path=path, format=str(layout)))
    assert result.examples == (ClassExample('Is it "flu"?', ("yes",)),)
    assert dict(result.log.rejected.counts) == {"the label is none of yes, no": 1}
    wrong = write("wrong.toml", 'colums = { text = "#1" }\n')
    with pytest.raises(ConfigError, match=r"wrong.toml: .*colums.*did you mean 'columns'"):
        read_task(TaskConfig(path=path, format=str(wrong)))
