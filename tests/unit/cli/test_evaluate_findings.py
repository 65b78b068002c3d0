"""``biograft evaluate findings`` and ``biograft demo notes``."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from biograft.cli import app


def run(*arguments: object) -> str:
    done = CliRunner().invoke(app, list(map(str, arguments)))
    assert done.exit_code == 0, done.output
    return done.output


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("demo")


@pytest.mark.parametrize(
    ("language", "finding"), [("en", "deep vein thrombosis"), ("zh", "深静脉血栓")]
)
def test_demo_notes_prints_findings_and_a_scoreboard(folder, language, finding):
    out = run("demo", "notes", "--language", language, "-o", folder)
    assert finding in out
    assert "document statuses" in out
    assert "misspelt" in out


def test_table_mistakes_and_json(folder):
    run("demo", "notes", "-o", folder)
    command = ("evaluate", "findings", "--kb", folder / "notes", "--gold", "notes-en-dev")
    assert ": expected " in run(*command, "--mistakes")
    values = json.loads(run(*command, "--json"))
    assert (values["gold"], values["n_documents"]) == ("notes-en-dev", 31)
    assert set(values["statuses"]) >= {"absent", "conditional"}


def test_unknown_parts_and_languages_are_refused(folder):
    for arguments in (("demo", "nonsense"), ("demo", "notes", "--language", "fr", "-o", folder)):
        done = CliRunner().invoke(app, list(map(str, arguments)))
        assert done.exit_code != 0
