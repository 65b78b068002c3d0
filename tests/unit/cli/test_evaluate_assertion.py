"""``biograft evaluate assertion``: a table, the mistakes, JSON, rules of a file."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from biograft.cli import app
from biograft.errors import ConfigError, FormatError

NOTE = {
    "id": "n1",
    "text": "No fever. Cough.",
    "mentions": [
        {"start": 3, "end": 8, "text": "fever", "status": ["negated"]},
        {"start": 10, "end": 15, "text": "Cough", "status": ["uncertain"]},
    ],
}
RULES = (
    'language = "en"\n[[rule]]\nname = "any"\nkind = "trigger"\nflags = ["uncertain"]\n'
    'scope = "sentence"\nphrases = ["no", "."]\n'
)


@pytest.fixture
def gold(write):
    return write("gold.jsonl", json.dumps(NOTE) + "\n")


def evaluate(*arguments):
    return CliRunner().invoke(app, ["evaluate", "assertion", "--gold", *map(str, arguments)])


def test_the_table_and_the_mistakes(gold):
    done = evaluate(gold, "--mistakes")
    assert done.exit_code == 0, done.output
    lines = done.stdout.splitlines()
    assert lines[0] == "1 documents, 2 mentions, 1 right (50.00 %)"
    assert lines[2].split() == ["negated", "100.00", "100.00", "100.00", "1", "0", "0"]
    assert lines[-1] == "n1, 10-15: Cough: expected uncertain, found present"


def test_json(gold):
    values = json.loads(evaluate(gold, "--json", "--mistakes").stdout)
    assert values["accuracy"] == 50
    assert values["flags"]["uncertain"]["missed"] == 1
    assert values["mistakes"][0]["expected"] == ["uncertain"]


def test_rules_of_a_file(gold, write):
    values = json.loads(evaluate(gold, "--rules", write("r.toml", RULES), "--json").stdout)
    assert values["flags"]["negated"]["missed"] == 1


def test_what_is_wrong_is_one_line(gold, write):
    broken = evaluate(gold, "--rules", write("r.toml", RULES.replace("trigger", "x")))
    assert isinstance(broken.exception, ConfigError)
    assert "rule 'any': kind" in str(broken.exception)
    assert isinstance(evaluate(write("b.jsonl", "{}\n")).exception, FormatError)
