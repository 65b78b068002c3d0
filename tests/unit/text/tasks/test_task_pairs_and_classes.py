"""Pairs and classes in the published file formats, with malformed rows."""

from __future__ import annotations

import pytest

from biograft.errors import ConfigError, FormatError, UnrecognisedError
from biograft.text import ClassExample, PairExample, TaskConfig, read_task


def read(path, form="", **options):
    return read_task(TaskConfig(path=path, format=form, **options))


def rejected(result):
    return {
        reason: [(e.line, e.text) for e in result.log.rejected.examples[reason]]
        for reason in result.log.rejected.counts
    }


def test_pairs_keep_their_text_and_quotes(write):
    result = read(write("a.txt", '1\t"flu"?\twhat is flu\n0\ta\tb\r\n\n'), "cmedqq")
    assert result.examples == (
        PairExample('"flu"?', "what is flu", "1"),
        PairExample("a", "b", "0"),
    )
    assert (result.kind, result.log.n_read, rejected(result)) == ("pair", 2, {})


def test_malformed_pairs_are_rejected(write):
    result = read(write("a.txt", "1\ta\n1\ta\tb\n\tx\ty\n0\tc\td\te\n"), "cmedqq")
    assert result.examples == (PairExample("a", "b", "1"),)
    assert rejected(result) == {
        "2 cells, expected 3": [(1, "1\ta")],
        "label is empty": [(3, "\tx\ty")],
        "4 cells, expected 3": [(4, "0\tc\td\te")],
    }
    assert result.log.n_read == 4


def test_a_file_without_examples_is_refused(write):
    with pytest.raises(FormatError, match=r"1 rows have no valid example .*\(1 1 cells"):
        read(write("a.txt", "nothing\n"), "cmedqq")


def test_classes_with_carriage_returns(write):
    result = read(write("a.txt", "Age\t 2)年龄&gt; 70\r\n\tx\r\n"), "cmedtc")
    assert result.examples == (ClassExample(" 2)年龄&gt; 70", ("Age",)),)
    assert rejected(result) == {"label is empty": [(2, "\tx")]}


HOC = "labels\tsentence\tindex\n0_1,1_0,2_1\tTumours grow .\t11_s0\n0_0,1_0,2_0\tNo .\t11_s1\n"


def test_hallmarks_are_multi_label(write):
    result = read(write("a.tsv", HOC + "0-1\tx\t1\n"))
    assert result.format == "hoc"
    assert result.examples == (
        ClassExample("Tumours grow .", ("0", "2"), multi=True, id="11_s0"),
        ClassExample("No .", (), multi=True, id="11_s1"),
    )
    assert (result.log.n_read, rejected(result)) == (
        3,
        {"labels are not of the form 0_1,1_0,...": [(4, "0-1\tx\t1")]},
    )


def test_questions_with_yes_or_no(write):
    path = write("a.tsv", "b1\tIs it?\tIt is.\tyes\nb2\tIs it?\t\tno\nb3\tIs it?\tx\tmaybe\n")
    result = read(path, "bioasq")
    assert result.examples == (
        ClassExample("Is it?", ("yes",), "It is.", id="b1"),
        ClassExample("Is it?", ("no",), id="b2"),
    )
    assert list(rejected(result)) == ["the label is none of yes, no"]
    recognised = read(write("b.tsv", "b1\tIs it?\tIt is.\tyes\n"))
    assert recognised.format == "bioasq"


def test_ambiguous_files_are_refused(write):
    with pytest.raises(UnrecognisedError, match="name the format, one of cmedqq, cmedqa"):
        read(write("a.txt", "1\ta\tb\n"))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"split": "test"}, "split: .*cmedqq"),
        ({"split": "validation"}, "split: 'validation'"),
    ],
)
def test_options_of_other_formats_are_refused(write, options, message):
    with pytest.raises(ConfigError, match=message):
        read(write("a.txt", "1\ta\tb\n"), "cmedqq", **options)
