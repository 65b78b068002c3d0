"""Answers grouped by question, and graded searches."""

from __future__ import annotations

from biograft.text import Answer, RankingExample, TaskConfig, read_task


def read(path, form=""):
    return read_task(TaskConfig(path=path, format=form))


def test_answers_are_grouped_in_the_order_of_the_file(write):
    lines = '0\tq1\t"say ""no"""\n1\tq2\tx\n1\tq1\ty\n0\tq1\t"open\n2a\tq1\tz\n0\tq2\t \n'
    result = read(write("a.txt", lines), "cmedqa")
    assert result.examples == (
        RankingExample("q1", (Answer('say "no"'), Answer("y", 1))),
        RankingExample("q2", (Answer("x", 1),)),
    )
    assert {r: e[0].line for r, e in result.log.rejected.examples.items()} == {
        "quotes that are not those of CSV": 4,
        "relevance is not a whole number such as 0 or 1": 5,
        "answer is empty": 6,
    }
    assert result.log.n_read == 6


def test_questions_are_distinguished_by_their_ids(write):
    lines = "7\t1\t内科\tq\ta\n7\t0\t内科\tq\tb\n8\t1\t外科\tq\tc\n"
    result = read(write("a.txt", lines), "webmedqa")
    assert result.examples == (
        RankingExample("q", (Answer("a", 1), Answer("b")), "7"),
        RankingExample("q", (Answer("c", 1),), "8"),
    )


def test_searches_keep_grades_and_addresses(write):
    lines = (
        '{"query": "q", "documents": [{"url": "u", "label": "2", "title": "t"},'
        ' {"url": "v", "label": 0, "title": "s"}]}\n'
        '{"query": "q", "documents": []}\n'
        '{"query": "q", "documents": [{"label": "1"}]}\n'
        '{"query": "q"}\n'
        "{broken\n[1]\n"
    )
    result = read(write("a.json", lines))
    assert result.format == "cmedir"
    assert result.examples == (RankingExample("q", (Answer("t", 2, "u"), Answer("s", 0, "v"))),)
    assert dict(result.log.rejected.counts) == {
        "answer is empty": 1,
        "a query without candidates": 1,
        "the key 'documents' is missing": 1,
        "not JSON": 1,
        "not a JSON object": 1,
    }
