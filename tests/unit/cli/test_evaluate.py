"""``biograft evaluate link``: one JSON object, warnings on stderr, a report."""

from __future__ import annotations

import json

import pytest
import typer
from typer.testing import CliRunner

import biograft.linking
from biograft.cli import evaluate
from biograft.errors import BiograftError, ConfigError
from biograft.kb import BuildConfig, build_store
from biograft.linking.candidates import Candidate
from biograft.sources import SourceConfig

GOLD = "1||0|3||Disease||flu||D1\n1||5|9||Disease||cold||D9\n2||0|4||Finding||fever||D2\n"


@pytest.fixture
def app():
    """A command line with the commands of this noun alone."""
    whole = typer.Typer()
    whole.add_typer(evaluate.app, name="evaluate")
    return whole


@pytest.fixture
def place(write, tmp_path, monkeypatch):
    """A store, a gold file, and a linker that finds exact names."""
    lines = [{"id": "D1", "name": "Influenza", "names": ["flu"]}, {"id": "D2", "name": "Fever"}]
    source = write("a.jsonl", "".join(json.dumps(line) + "\n" for line in lines))
    build_store(BuildConfig(sources=(SourceConfig(path=source),)), tmp_path / "KB")
    write("gold.concept", GOLD)

    class Exact:
        def __init__(self, base):
            self.base = base

        def rank(self, queries, k):
            return [
                [
                    [Candidate(m.concept, "", m.name, 1.0) for m in self.base.find(p)]
                    for p in q.parts
                ]
                for q in queries
            ]

    def open_exact(base, index=None, model=None):
        return Exact(base)

    monkeypatch.setattr(biograft.linking, "open_ranker", open_exact, raising=False)
    return tmp_path


def run(app, place, *options):
    arguments = ["--kb", place / "KB", "--gold", place / "gold.concept", "--format", "biosyn"]
    line = ["evaluate", "link", *arguments, *options]
    return CliRunner().invoke(app, list(map(str, line)))


def test_one_json_object_in_percent(app, place):
    done = run(app, place, "--json", "-k", 7)
    assert done.exit_code == 0, done.output
    values = json.loads(done.stdout)
    assert values["acc@1"] == values["acc@5"] == values["recall@7"] == pytest.approx(66.6667)
    assert (values["n"], values["scorer"], values["format"]) == (3, "lenient", "biosyn")
    assert len(values["intervals"]["mrr"]) == 2
    assert "does not know 1 gold ids (such as D9)" in done.stderr


def test_text_for_a_person(app, place):
    done = run(app, place, "--train", place / "gold.concept")
    assert "3 queries, lenient scorer" in done.stdout
    assert "recall@30" in done.stdout
    assert "unseen mention" in done.stdout


def test_types_and_limit(app, place):
    done = run(app, place, "--json", "--types", "Disease", "--limit", 1, "--scorer", "strict")
    values = json.loads(done.stdout)
    assert (values["n"], values["acc@1"]) == (1, 100)
    assert values["left_out"] == {"of another type": 1}


def test_a_report_is_written(app, place):
    pytest.importorskip("matplotlib")
    done = run(app, place, "--report", place / "R", "--train", place / "gold.concept")
    assert done.exit_code == 0, done.output
    assert "unseen mention" in (place / "R" / "report.html").read_text(encoding="utf-8")


def test_mistakes_of_the_user_are_of_the_error_tree(app, place):
    assert isinstance(run(app, place, "--scorer", "loose").exception, ConfigError)
    assert isinstance(run(app, place, "--train", place / "none").exception, BiograftError)
