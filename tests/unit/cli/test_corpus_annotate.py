"""``biograft corpus annotate``: what it says, what it writes, and its exit status."""

import json

import pytest
from typer.testing import CliRunner

from biograft.cli import app
from biograft.corpus.shards import Shards
from biograft.errors import InputError
from biograft.kb import BuildConfig, build_store
from biograft.sources import SourceConfig


@pytest.fixture
def run(write, tmp_path):
    source = write("kb.txt", "D1||fever\nD2||included\n")
    config = BuildConfig(sources=(SourceConfig(path=source, format="biosyn"),))
    build_store(config, tmp_path / "KB")

    def annotate(*arguments):
        line = ["corpus", "annotate", tmp_path / "KB", *arguments, "--workers", "1"]
        return CliRunner().invoke(app, list(map(str, line)))

    return annotate


def found(folder):
    return [[(s.start, s.concept) for s in document.spans] for document in Shards.open(folder)]


def test_what_was_found_is_told_and_written(run, write, tmp_path):
    text = write("a.txt", "Fever was included.\nNothing.\n")
    done = run(text, "-o", tmp_path / "out")
    assert done.exit_code == 0, done.output
    assert "spans       2 (1.00 a document)" in done.stdout
    assert found(tmp_path / "out") == [[(0, "D1"), (10, "D2")], []]


def test_stop_words_are_looked_for_no_more(run, write, tmp_path):
    text, stop = write("a.txt", "Fever was included.\n"), write("stop.txt", "\nIncluded\n")
    done = run(text, "-o", tmp_path / "out", "--stop-file", stop, "--json")
    assert json.loads(done.stdout)["n_spans"] == 1
    assert found(tmp_path / "out") == [[(0, "D1")]]
    made_of = Shards.open(tmp_path / "out").manifest["made_of"]
    assert made_of["settings"]["stop_words"] == ["Included"]
    again = ("-o", tmp_path / "out", "--stop-file", stop, "--resume")
    assert run(text, *again).exit_code == 0
    stop.write_text("fever\n")
    assert "was begun with another settings" in str(run(text, *again).exception)
    done = run(text, "-o", tmp_path / "other", "--stop-file", tmp_path / "none")
    assert isinstance(done.exception, InputError)
    assert not (tmp_path / "other").exists()


def test_a_broken_record_is_told_and_the_rest_is_annotated(run, write, tmp_path):
    text = write("a.jsonl", '{"text": "fever"}\n{"no": 1}\n{"text": "a fever"}\n')
    done = run(text, "-o", tmp_path / "out", "--json")
    assert done.exit_code == 1
    assert json.loads(done.stdout)["n_rejected"] == 1
    assert "a.jsonl:2" in done.stderr
    assert found(tmp_path / "out") == [[(0, "D1")], [(2, "D1")]]
