"""Pairs, classes and their broken rows, as the published files write them."""

from __future__ import annotations

import gzip

import pytest

from biograft.corpus.tasks import ClassExample, PairExample, TaskConfig, read_task
from biograft.errors import ConfigError, FormatError, UnrecognisedError


def read(path, form="", **options):
    return read_task(TaskConfig(path=path, format=form, **options))


def rejected(found):
    return {
        reason: [(e.line, e.text) for e in found.log.rejected.examples[reason]]
        for reason in found.log.rejected.counts
    }


def test_pairs_keep_their_text_and_quotes(write):
    found = read(write("a.txt", '1\t"flu"?\twhat is flu\n0\ta\tb\r\n\n'), "cmedqq")
    assert found.examples == (
        PairExample('"flu"?', "what is flu", "1"),
        PairExample("a", "b", "0"),
    )
    assert (found.kind, found.log.n_read, rejected(found)) == ("pair", 2, {})


def test_broken_pairs_are_told_and_the_rest_is_read(write):
    found = read(write("a.txt", "1\ta\n1\ta\tb\n\tx\ty\n0\tc\td\te\n"), "cmedqq")
    assert found.examples == (PairExample("a", "b", "1"),)
    assert rejected(found) == {
        "2 cells, expected 3 (label, text, text)": [(1, "1\ta")],
        "label or text is blank": [(3, "\tx\ty")],
        "4 cells, expected 3 (label, text, text)": [(4, "0\tc\td\te")],
    }
    assert found.log.n_read == 4


def test_gz_is_read_plain(write):
    path = write("a.txt.gz", gzip.compress("1\t甲\t乙\n".encode()))
    assert read(path, "cmedqq").examples == (PairExample("甲", "乙", "1"),)


def test_a_file_without_examples_is_refused(write):
    with pytest.raises(FormatError, match=r"no example .* left of 1 rows \(1 1 cells"):
        read(write("a.txt", "nothing\n"), "cmedqq")


def test_classes_with_carriage_returns(write):
    found = read(write("a.txt", "Age\t 2)年龄&gt; 70\r\n\tx\r\n"), "cmedtc")
    assert found.examples == (ClassExample(" 2)年龄&gt; 70", ("Age",)),)
    assert rejected(found) == {"class or text is blank": [(2, "\tx")]}


HOC = "labels\tsentence\tindex\n0_1,1_0,2_1\tTumours grow .\t11_s0\n0_0,1_0,2_0\tNo .\t11_s1\n"


def test_hallmarks_are_several_or_none(write):
    found = read(write("a.tsv", HOC + "0-1\tx\t1\n"))
    assert found.format == "hoc"
    assert found.examples == (
        ClassExample("Tumours grow .", ("0", "2"), multi=True, id="11_s0"),
        ClassExample("No .", (), multi=True, id="11_s1"),
    )
    assert (found.log.n_read, rejected(found)) == (
        3,
        {"labels are not of the form 0_1,1_0,...": [(4, "0-1\tx\t1")]},
    )


def test_questions_with_yes_or_no(write):
    path = write("a.tsv", "b1\tIs it?\tIt is.\tyes\nb2\tIs it?\t\tno\nb3\tIs it?\tx\tmaybe\n")
    found = read(path, "bioasq")
    assert found.examples == (
        ClassExample("Is it?", ("yes",), "It is.", id="b1"),
        ClassExample("Is it?", ("no",), id="b2"),
    )
    assert list(rejected(found)) == ["the answer is neither yes nor no"]
    recognised = read(write("b.tsv", "b1\tIs it?\tIt is.\tyes\n"))
    assert recognised.format == "bioasq"


def test_what_could_be_two_formats_is_not_guessed(write):
    with pytest.raises(UnrecognisedError, match="name the format, one of cmedqq, cmedqa"):
        read(write("a.txt", "1\ta\tb\n"))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"part": "test"}, "part: means nothing to the task format 'cmedqq'"),
        ({"grouped": True}, "grouped: means nothing"),
        ({"columns": {"first": "#1"}}, "columns: means nothing"),
        ({"part": "validation"}, "part: 'validation' is not one of train, dev, test"),
    ],
)
def test_options_of_other_formats_are_refused(write, options, message):
    with pytest.raises(ConfigError, match=message):
        read(write("a.txt", "1\ta\tb\n"), "cmedqq", **options)
