"""``biograft evaluate text``: three levels, one JSON object, mistakes in one line."""

from __future__ import annotations

import json

import pytest
import typer
from typer.testing import CliRunner

from biograft.cli import evaluate
from biograft.errors import BiograftError, ConfigError, FormatError, NotFoundError, StoreError
from biograft.kb import BuildConfig, build_store
from biograft.linking.calibration import fit_calibration
from biograft.sources import SourceConfig

CONCEPTS = [
    {"id": "D1", "name": "Influenza", "names": ["flu"]},
    {"id": "D2", "name": "Fever"},
    {"id": "D3", "names": {"zh": ["流感"]}},
]
GOLD = """\
1|t|Influenza (IF) and fever.
1|a|IF again.
1\t0\t9\tInfluenza\tDisease\tD1
1\t11\t13\tIF\tDisease\tD1
1\t19\t24\tfever\tFinding\tD2
1\t26\t28\tIF\tDisease\tD1

2|t|Flu or a cold.
2|a|
2\t0\t3\tFlu\tDisease\t-1
2\t9\t13\tcold\tDisease\tD9
2\t9\t13\tnowhere at all\tDisease\tD9
"""


@pytest.fixture
def place(write, tmp_path):
    source = write("a.jsonl", "".join(json.dumps(line) + "\n" for line in CONCEPTS))
    build_store(BuildConfig(sources=(SourceConfig(path=source),)), tmp_path / "KB")
    write("gold.pubtator", GOLD)
    return tmp_path


@pytest.fixture
def run(place):
    app = typer.Typer()
    app.add_typer(evaluate.app, name="evaluate")

    def evaluate_text(*options):
        given = {"--kb": "KB", "--gold": "gold.pubtator"}
        line = ["evaluate", "text", "--format", "pubtator"]
        line += [part for name, file in given.items() for part in (name, str(place / file))]
        return CliRunner().invoke(app, [*line, *map(str, options)])

    return evaluate_text


def values_of(done):
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)


def triple(score):
    return score["right"], score["wrong"], score["missed"]


def test_one_json_object_in_percent(run):
    done = run("--json")
    values = values_of(done)
    assert (values["format"], values["unit"]) == ("pubtator", "percent")
    assert (values["n_documents"], values["n_mentions"], values["n_nil"]) == (2, 6, 1)
    assert triple(values["spans"]) == (5, 0, 1)
    assert triple(values["mentions"]) == (4, 1, 1)
    assert triple(values["documents"]) == (2, 1, 1)
    assert values["documents"]["f1"] == pytest.approx(66.6667)
    assert values["documents"]["intervals"]["f1"] == [0, 100]
    assert values["left_out"] == {"offsets do not fit the text": 1}
    assert "does not know 1 gold ids (such as D9)" in done.stderr
    assert "1 mentions of the gold left out: offsets do not fit" in done.stderr


def test_a_table_for_a_person(run):
    lines = run().stdout.splitlines()
    assert lines[0] == "2 documents, 6 gold mentions, 1 of them without a concept"
    assert lines[1].split() == ["precision", "recall", "F1", "right", "wrong", "missed"]
    assert [line.split()[0] for line in lines[2:]] == ["spans", "mentions", "documents"]
    assert lines[2].split()[-3:] == ["5", "0", "1"]
    assert lines[2].split()[1] == "100.00"
    assert len({len(line) for line in lines[1:]}) == 1


def test_what_is_chosen(run):
    assert triple(values_of(run("--json", "--types", "Finding"))["mentions"]) == (1, 4, 0)
    assert triple(values_of(run("--json", "--limit", 1))["mentions"]) == (4, 0, 0)
    assert triple(values_of(run("--json", "--no-abbreviations"))["spans"]) == (3, 0, 3)
    assert triple(values_of(run("--json", "--lang", "zh"))["mentions"]) == (0, 0, 5)
    silent = values_of(run("--json", "--threshold", 2))
    assert (triple(silent["spans"]), triple(silent["mentions"])) == ((5, 0, 1), (0, 0, 5))


def test_the_threshold_of_a_calibration_is_applied(run, place):
    from dataclasses import replace

    fitted = replace(fit_calibration([0.0, 1.0], [0, 0.5], search="lexical*1"), threshold=0.6)
    fitted.save(place / "c.json")
    assert triple(values_of(run("--json", "--calibration", place / "c.json"))["mentions"])[1] == 0
    kept = run("--json", "--calibration", place / "c.json", "--threshold", 0.4)
    assert triple(values_of(kept)["mentions"]) == (4, 1, 1)
    replace(fitted, search="dense*1").save(place / "d.json")
    other = run("--calibration", place / "d.json").exception
    assert isinstance(other, StoreError)
    assert "fitted to the scores of dense*1" in str(other)


def test_the_shipped_sample_can_be_asked(run):
    assert values_of(run("--json", "--gold", "starter", "--format", "sample"))["n_documents"] > 50


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        (["--format", "biosyn"], ConfigError, "'biosyn' has no texts .*: pubtator, sample"),
        (["--format", "pubtater"], NotFoundError, "did you mean 'pubtator'"),
        (["--types", "Gene"], FormatError, "no mention is left of 2 documents"),
        (["--gold", "none.txt"], BiograftError, "does not exist"),
        (["--kb", "none"], StoreError, "none"),
        (["--model", "none"], StoreError, "no trained linker"),
        (["--threshold", "nan"], ConfigError, "threshold: expected a number"),
    ],
)
def test_one_clear_line(run, options, error, message):
    done = run(*options)
    assert isinstance(done.exception, error)
    assert "\n" not in str(done.exception)
    with pytest.raises(error, match=message):
        raise done.exception
