"""Options that commands share: parsing, warnings, and that none is declared twice."""

from __future__ import annotations

from pathlib import Path

import pytest


def test_an_input_is_not_overwritten(run_main, write, tmp_path):
    """A review with all its history became three lines of text."""
    names, terms = write("names.csv", "id,name\n1,cold\n"), write("t.csv", "term\ncold\n")
    kb, index, review = tmp_path / "KB", tmp_path / "I", tmp_path / "r.db"
    run_main("kb", "build", names, "-o", kb)
    run_main("index", kb, "-o", index, "--encoder", "none")
    run_main("map", terms, "--column", "term", "--kb", kb, "-o", tmp_path / "m.csv")
    run_main("review", "import", tmp_path / "m.csv", "--review", review)
    for arguments in (
        ("map", terms, "--column", "term", "--kb", kb, "-o", terms),
        ("link", terms, "--column", "term", "--kb", kb, "--to", "csv", "-o", terms),
        ("learn", review, "--kb", kb, "--index", index, "-o", review),
        ("review", "export", "--review", review, "-o", review),
    ):
        before = Path(arguments[-1]).read_bytes()
        done = run_main(*arguments, "--overwrite")
        assert (done.code, "is an input, too" in done.err) == (2, True), arguments
        assert Path(arguments[-1]).read_bytes() == before


@pytest.mark.parametrize("arguments", [("link", "cold"), ("corpus", "annotate")])
def test_a_large_store_without_an_index_is_noted(run_main, write, tmp_path, monkeypatch, arguments):
    """A store of 4 million names was indexed for a minute without a word."""
    names, text = write("names.csv", "id,name\n1,cold\n"), write("a.txt", "cold\n")
    kb = tmp_path / "KB"
    run_main("kb", "build", names, "-o", kb)
    index = tmp_path / "I"
    run_main("index", kb, "-o", index, "--encoder", "none")
    cases = [(2, ()), (1, ()), (1, ("-q",)), (1, ("--index", index))]
    if arguments[0] == "link":
        arguments = (*arguments, "--kb", kb)
    else:
        arguments = (*arguments, kb, text, "--workers", "1")
    for number, (limit, more) in enumerate(cases):
        monkeypatch.setattr("biograft.cli.options._MANY_NAMES", limit)
        done = run_main(*arguments, *more, "-o", tmp_path / f"out{number}")
        assert done.code == 0
        noted = "1 names are being indexed in memory" in done.err
        assert noted == (limit == 1 and not more)
