"""Warnings about a gold standard: one line each on stderr, none where nothing is wrong."""

from __future__ import annotations

from biograft.cli.options import warn_left_out, warn_unknown


def test_what_was_left_out_is_told_with_its_reason(capsys):
    warn_left_out({"no id": 1200, "too short": 1}, "rows", "a.txt: ")
    told = capsys.readouterr()
    assert told.out == ""
    assert told.err.splitlines() == [
        "warning: a.txt: 1,200 rows left out: no id",
        "warning: a.txt: 1 rows left out: too short",
    ]


def test_the_first_unknown_ids_are_told(capsys):
    warn_unknown({"D4", "D2", "D1", "D3"}, "; they count as missed", "--dev: ")
    assert capsys.readouterr().err == (
        "warning: --dev: the knowledge base does not know 4 gold ids (such as D1, D2, D3); "
        "they count as missed\n"
    )


def test_nothing_unknown_is_nothing_told(capsys):
    warn_unknown(set(), "; they count as missed")
    assert capsys.readouterr() == ("", "")
