"""``biograft link``: texts, files, standard input; a table, JSON lines, a page."""

from __future__ import annotations

import gzip
import json

import pytest
from generative_store import store_in
from typer.testing import CliRunner

from biograft.cli import app
from biograft.errors import (
    ConfigError,
    EncodingError,
    InputError,
    StoreError,
)

LINES = [
    {"id": "D1", "names": {"en": ["Influenza", "flu"], "zh": ["流感"]}},
    {"id": "D2", "name": "Fever"},
]
PUBTATOR = (
    "7|t|Flu season\n7|a|High fevr.\n7\t0\t3\tFlu\tDisease\tD1\n7\t16\t20\tfevr\tDisease\tD2\n\n"
)


@pytest.fixture
def store(tmp_path):
    return store_in(tmp_path, LINES, "KB").folder


@pytest.fixture
def run(store):
    def link(*arguments, stdin=None):
        line = ["link", *map(str, arguments), "--kb", str(store)]
        return CliRunner().invoke(app, line, input=stdin)

    return link


def documents(done):
    assert done.exit_code == 0, done.output
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_files_keep_their_line_ends(run, write):
    path = write("note.txt", "\ufeffone\r\nflu\r\n".encode())
    (document,) = documents(run(path, "--json"))
    assert document["text"] == "one\r\nflu\r\n"
    assert document["mentions"][0]["start"] == 5
    zipped = write("note.txt.gz", gzip.compress(b"flu"))
    assert documents(run(zipped, "--json"))[0]["text"] == "flu"


def test_a_mention_is_looked_up_by_the_name_it_stands_beside(run, write):
    text = "7|t|Flu (Q7)\n7|a|\n7\t0\t3\tFlu\tDisease\tD1\n7\t5\t7\tQ7\tDisease\tD1\n\n"
    path = write("b.pubtator", text)
    forms = [
        [mention["form"] for mention in documents(run(path, "--json", *options))[0]["mentions"]]
        for options in ((), ("--no-appositions",))
    ]
    assert forms == [["Flu", "Flu"], ["Flu", "Q7"]]


def test_a_trained_detector_finds_the_mentions(run, write, word_detector):
    """Every word is a mention of the detector, also in a file with mentions of its own."""
    path = write("a.pubtator", PUBTATOR)
    (document,) = documents(run(path, "--json", "--ner", word_detector))
    assert [m["text"] for m in document["mentions"]] == ["Flu", "season", "High", "fevr", "."]
    refused = run("flu", "--terms", "--ner", word_detector).exception
    assert isinstance(refused, ConfigError)
    assert "--terms" in str(refused)
    refused = run(path, "--mentions", "given", "--ner", word_detector).exception
    assert "leave the detector out" in str(refused)
    both = run(path, "--json", "--mentions", "both", "--ner", word_detector)
    assert len(documents(both)[0]["mentions"]) == 5


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (["flu", "--format", "brut"], ConfigError, "did you mean 'brat'"),
        (["flu", "--threshold", "nan"], ConfigError, "threshold: expected a number"),
        (["flu", "--calibration", "none"], StoreError, "none: "),
        (["flu", "--terms", "--mentions", "find"], ConfigError, "--terms: "),
        (["flu", "--to", "parquet"], ConfigError, "--to parquet: is no text; name the file"),
        (["flu", "--json", "--to", "csv"], ConfigError, "--json: is the same as --to jsonl"),
        (["flu", "--prefer", ":"], ConfigError, "prefer: expected names of vocabularies"),
        (["flu", "--llm-url", "http://127.0.0.1:1"], ConfigError, "--llm-url: needs the name"),
        (
            ["flu", "--llm-url", "http://x.org", "--llm-model", "m"],
            ConfigError,
            "x.org is another machine",
        ),
    ],
)
def test_refused_in_one_line(run, arguments, error, message):
    done = run(*arguments)
    assert isinstance(done.exception, error)
    assert message in str(done.exception)
    assert "\n" not in str(done.exception)


def test_wrong_encodings_and_folders_are_refused(run, write, tmp_path):
    path = write("latin.txt", "fièvre".encode("latin-1"))
    assert isinstance(run(path).exception, EncodingError)
    assert isinstance(run("-", stdin=b"\xff\xfe").exception, EncodingError)
    (tmp_path / "none").mkdir()
    assert isinstance(run(tmp_path / "none").exception, InputError)


def test_the_advised_encoding_works(run, write):
    """An encoding was advised, and no option took it."""
    path = write("note.txt", "流感。否认发热。".encode("gb18030"))
    assert "--encoding gb18030" in str(run(path).exception)
    (document,) = documents(run(path, "--json", "--encoding", "gb18030"))
    assert document["mentions"][0]["concept"] == "D1"


def test_tables(run, write):
    path = write("notes.csv", "pid,note\n1,flu\n2,fever\n")
    assert "--column" in str(run(path).exception)
    on_text = str(run("a text", "--column", "note").exception)  # formerly ignored
    assert "--column: is for tables, and a text was given" in on_text
    done = documents(run(path, "--json", "--column", "note", "--id-column", "pid"))
    assert [(d["id"], d["mentions"][0]["concept"]) for d in done] == [("1", "D1"), ("2", "D2")]
    terms = write("terms.tsv", "code\tterm\nA\tinfluensa\n")
    (term,) = documents(run(terms, "--json", "--terms", "--column", "term"))
    assert (term["text"], term["mentions"][0]["concept"]) == ("influensa", "D1")
    refused = run(write("a.txt", PUBTATOR), "--terms").exception
    assert "recognised as pubtator" in str(refused)


def test_a_folder_with_a_broken_file(run, write):
    folder = write("in/a.txt", "flu").parent
    broken = write("in/b.txt", b"caf\xe9")
    write("in/c.pubtator", PUBTATOR + "nonsense\n")
    assert str(broken) in str(run(folder).exception)
    done = run(folder, "--json", "--skip-errors")
    assert done.exit_code == 1
    assert [json.loads(line)["id"] for line in done.stdout.splitlines()] == [
        str(folder / "a.txt"),
        "7",
    ]
    assert f"skipped: {broken}:1" in done.stderr
    assert "warning: 1 records left out: belongs to another document" in done.stderr


def test_a_very_long_text_is_not_a_path(run):
    (document,) = documents(run("the flu " * 5000, "--json"))
    assert len(document["mentions"]) == 5000


def test_a_language_model_that_does_not_answer_changes_nothing(run):
    asked = run("fevr", "--terms", "--llm-url", "http://127.0.0.1:1/v1", "--llm-model", "m")
    plain = run("fevr", "--terms")
    assert asked.stdout == plain.stdout
    assert "llm         1 mentions asked about: 1 no connection" in asked.stderr
