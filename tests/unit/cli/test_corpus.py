"""``biograft corpus``: convert, formats, annotate, tasks."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from biograft.cli import app
from biograft.errors import BiograftError, ConfigError, InputError
from biograft.kb import BuildConfig, build_store
from biograft.kb.sources import SourceConfig
from biograft.text import Shards


def run(*arguments):
    return CliRunner().invoke(app, ["corpus", *map(str, arguments)])


# ---- convert, formats


# ---- annotate


@pytest.fixture
def annotate(write, tmp_path):
    source = write("kb.txt", "D1||fever\nD2||included\n")
    config = BuildConfig(sources=(SourceConfig(path=source, format="biosyn"),))
    build_store(config, tmp_path / "KB")
    return lambda *arguments: run("annotate", tmp_path / "KB", *arguments, "--workers", "1")


def spans(folder):
    return [[(s.start, s.concept) for s in document.spans] for document in Shards.open(folder)]


def test_a_threshold_without_effect_is_refused(annotate, write, tmp_path):
    text = write("text.txt", "Flu.\n")
    bare = (text, "-o", tmp_path / "out", "--no-abbreviations")
    refused = annotate(*bare, "--threshold", "0.9").exception
    assert "--threshold 0.9" in str(refused)
    assert isinstance(refused, BiograftError)
    assert not (tmp_path / "out").exists()
    assert annotate(*bare).exit_code == 0


def test_annotate_ignores_stop_words(annotate, write, tmp_path):
    text, stop = write("a.txt", "Fever was included.\n"), write("stop.txt", "\nIncluded\n")
    options = ("-o", tmp_path / "out", "--stop-file", stop)
    done = annotate(text, *options, "--json")
    assert json.loads(done.stdout)["n_spans"] == 1
    assert spans(tmp_path / "out") == [[(0, "D1")]]
    made_of = Shards.open(tmp_path / "out").manifest["made_of"]
    assert made_of["settings"]["stop_words"] == ["Included"]
    assert annotate(text, *options, "--resume").exit_code == 0
    stop.write_text("fever\n")
    assert isinstance(annotate(text, *options, "--resume").exception, BiograftError)
    done = annotate(text, "-o", tmp_path / "other", "--stop-file", tmp_path / "none")
    assert isinstance(done.exception, InputError)
    assert not (tmp_path / "other").exists()


def test_annotate_leaves_out_broken_records(annotate, write, tmp_path):
    text = write("a.jsonl", '{"text": "fever"}\n{"no": 1}\n{"text": "a fever"}\n')
    done = annotate(text, "-o", tmp_path / "out", "--json")
    assert done.exit_code == 1
    assert json.loads(done.stdout)["n_rejected"] == 1
    assert "a.jsonl:2" in done.stderr
    assert spans(tmp_path / "out") == [[(0, "D1")], [(2, "D1")]]


# ---- tasks


def test_tasks_reports_broken_rows_with_their_lines(write):
    path = write("a.txt", "1\ta\tb\nbroken\nworse\n")
    done = run("tasks", path, "--format", "cmedqq", "--json")
    assert done.exit_code == 1
    summary = json.loads(done.stdout)
    assert (summary["n_examples"], summary["n_read"]) == (1, 3)
    ((reason, rejected),) = summary["rejected"].items()
    assert rejected["n"] == 2
    assert done.stderr.splitlines() == [
        f"warning: 2 rows left out: {reason}",
        f"  {path}:2: broken",
    ]


@pytest.mark.parametrize("options", [("--split", "dev"), ("--grouped",)])
def test_tasks_refuses_options_of_other_formats(write, options):
    done = run("tasks", write("a.txt", "1\ta\tb\n"), "--format", "cmedqq", *options)
    assert isinstance(done.exception, ConfigError)


# ---- coverage


def test_mentions_of_a_task_that_the_store_and_the_entity_table_have(annotate, write, tmp_path):
    """Guards: KeBioLM's Table 1 was counted in the lab alone."""
    tagged = ["Fever\tB", "and\tO", "flu\tB", ".\tO", "", "No\tO", "included\tB", "fever\tB", ""]
    data = write("test.tsv", "".join(f"{line}\n" for line in tagged))
    entities = tmp_path / "ENCODER" / "entities.jsonl"
    entities.parent.mkdir()
    entities.write_text('{"id": "D2", "name": "included"}\n', "utf-8")
    whole = ("coverage", tmp_path / "KB", data, "--encoder", entities.parent)
    found = json.loads(run(*whole, "--json").stdout)
    assert found == {"mentions": 4, "in_kb": 3, "in_table": 1}
    assert "in_table   1 (25.0 %)" in run(*whole).stdout
    none = run("coverage", tmp_path / "KB", data, "--encoder", tmp_path).exception
    assert "has no entity table" in str(none)
    placeholders = write("gad.tsv", "0\t@GENE$ may cause @DISEASE$ .\t1\n")
    refused = run("coverage", tmp_path / "KB", placeholders, "--task", "relation").exception
    assert "replaced by @GENE$; read the original" in str(refused)
