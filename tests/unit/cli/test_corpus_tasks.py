"""``biograft corpus tasks``: what it says of a task file, and its exit status."""

from __future__ import annotations

import json

import pytest
import typer
from typer.testing import CliRunner

from biograft.cli.corpus import tasks
from biograft.errors import ConfigError

APP = typer.Typer()
APP.command()(tasks)


def run(*arguments):
    return CliRunner().invoke(APP, list(map(str, arguments)))


def test_a_summary_in_words(write):
    done = run(write("a.txt", "1\ta\tbcd\n1\tc\td\n0\te\tf\n"), "--format", "cmedqq")
    assert done.exit_code == 0, done.output
    assert done.stdout.splitlines()[0].endswith("a.txt: 3 examples (pair, format cmedqq)")
    assert done.stdout.splitlines()[1:] == [
        "labels    1 2, 0 1",
        "texts     3 characters at most, 1 on average",
        "repeated  0",
        "chance    accuracy 66.7 %, by always answering 1",
    ]
    assert done.stderr == ""


def test_broken_rows_are_told_with_their_place(write):
    path = write("a.txt", "1\ta\tb\nbroken\nworse\n")
    done = run(path, "--format", "cmedqq", "--json")
    assert done.exit_code == 1
    value = json.loads(done.stdout)
    assert (value["n_examples"], value["n_read"]) == (1, 3)
    reason = "1 cells, expected 3 (label, text, text)"
    assert value["rejected"][reason]["n"] == 2
    assert done.stderr.splitlines() == [
        f"warning: 2 rows left out: {reason}",
        f"  {path}:2: broken",
    ]


def test_what_recurs_and_what_is_written(write, tmp_path):
    train = write("train.csv", "q1,q2,same\na,b,1\nc,d,0\n")
    test = write("test.csv", "q1,q2,same\nb,a,0\na,e,1\n")
    columns = "first=q1,second=q2,label=same"
    done = run(test, "--columns", columns, "--against", train, "-o", tmp_path / "t.jsonl", "--json")
    assert done.exit_code == 0, done.output
    shared = json.loads(done.stdout)["overlap"]
    assert (shared["n_seen"], shared["n_contradicted"], shared["n_texts_seen"]) == (1, 1, 2)
    again = run(tmp_path / "t.jsonl", "--against", tmp_path / "t.jsonl")
    assert "overlap   2 of 2 examples asked there too (0 answered otherwise), 3 of 3 texts" in (
        again.stdout
    )


def test_rankings_in_words(write):
    done = run(write("a.txt", "1\tq\tx\n0\tq\ty\n"), "--format", "cmedqa")
    counts = "candidates 2, most candidates 2, without answer 0, with one answer 1, decidable 1"
    assert f"counts    {counts}" in done.stdout.splitlines()
    assert "chance    acc@1 50.0 %, mrr 75.0 %" in done.stdout


def test_a_mapping_that_is_none(write):
    done = run(write("a.csv", "a,b\n1,2\n"), "--columns", "first")
    assert isinstance(done.exception, ConfigError)
    assert "'first' is not of the form role=column" in str(done.exception)


@pytest.mark.parametrize("option", ["--part", "--grouped"])
def test_options_of_other_formats(write, option):
    value = ["dev"] if option == "--part" else []
    done = run(write("a.txt", "1\ta\tb\n"), "--format", "cmedqq", option, *value)
    assert isinstance(done.exception, ConfigError)
