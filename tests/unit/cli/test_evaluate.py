"""``biograft evaluate link``: one JSON object, warnings on stderr, a report."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
import typer
from typer.testing import CliRunner

from biograft.cli import evaluate
from biograft.errors import BiograftError, ConfigError, StoreError
from biograft.kb import BuildConfig, build_store
from biograft.linking.calibration import fit_calibration
from biograft.sources import SourceConfig

GOLD = "1||0|3||Disease||flu||D1\n1||5|9||Disease||cold||D9\n2||0|4||Finding||fever||D2\n"


@pytest.fixture
def app():
    """A command line with the commands of this noun alone."""
    whole = typer.Typer()
    whole.add_typer(evaluate.app, name="evaluate")
    return whole


@pytest.fixture
def place(write, tmp_path):
    """A store and a gold file."""
    lines = [{"id": "D1", "name": "Influenza", "names": ["flu"]}, {"id": "D2", "name": "Fever"}]
    source = write("a.jsonl", "".join(json.dumps(line) + "\n" for line in lines))
    build_store(BuildConfig(sources=(SourceConfig(path=source),)), tmp_path / "KB")
    write("gold.concept", GOLD)

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


NIL_GOLD = GOLD.splitlines(keepends=True)[0] + "3||0|4||Disease||flus||CUI-less\n"


@pytest.fixture
def calibrated(place):
    """A calibration that doubts what is not quite the name, and a gold with such a NIL."""
    (place / "gold.concept").write_text(NIL_GOLD, encoding="utf-8")

    def save(name="c.json", search="lexical*1", threshold=0.5):
        fitted = fit_calibration([1.0, 1.0, 0.5, 0.5], [1, 1, 0, 0], search=search)
        replace(fitted, threshold=threshold).save(place / name)
        return place / name

    return save


def test_nil_is_said_by_the_threshold_of_a_calibration(app, place, calibrated):
    bare = json.loads(run(app, place, "--json", "--nil").stdout)
    assert (bare["nil_f1"], bare["acc@1"], bare["nil_below"]) == (0, 50, None)
    assert "ece" not in bare
    asked = ("--nil", "--calibration", calibrated())
    values = json.loads(run(app, place, "--json", *asked).stdout)
    assert (values["nil_f1"], values["acc@1"], values["nil_below"]) == (100, 100, 0.5)
    assert values["ece"] == pytest.approx(0)
    assert "2 queries, lenient scorer; NIL below 0.5000" in run(app, place, *asked).stdout
    named = json.loads(run(app, place, "--json", *asked, "--nil-below", 0.0).stdout)
    assert (named["nil_f1"], named["nil_below"]) == (0, 0)


def test_a_calibration_without_threshold_gives_probabilities_alone(app, place, calibrated):
    asked = ("--nil", "--calibration", calibrated(threshold=None))
    values = json.loads(run(app, place, "--json", *asked).stdout)
    assert (values["nil_f1"], values["nil_below"]) == (0, None)
    assert "ece" in values


def test_the_calibration_of_an_index_says_nil_where_nil_is_asked(app, place, calibrated):
    from biograft.kb import KnowledgeBase
    from biograft.linking import build_index

    build_index(KnowledgeBase.open(place / "KB"), place / "I")
    calibrated("I/calibration.json", threshold=1.1)
    asked = ("--json", "--index", place / "I")
    assert json.loads(run(app, place, *asked).stdout)["acc@1"] == 100
    values = json.loads(run(app, place, *asked, "--nil").stdout)
    assert (values["nil_recall"], values["acc@1"], values["nil_below"]) == (100, 50, 1.1)


def test_a_calibration_of_another_search_or_beside_a_fit_is_refused(app, place, calibrated):
    other = run(app, place, "--calibration", calibrated(search="dense*1")).exception
    assert isinstance(other, StoreError)
    assert "fitted to the scores of dense*1" in str(other)
    file = calibrated("d.json")
    both = run(app, place, "--calibration", file, "--fit-calibration", place / "e.json").exception
    assert isinstance(both, ConfigError)
    assert "--calibration: --fit-calibration fits another" in str(both)


def test_what_is_fitted_is_blind_to_the_threshold_of_an_index(app, place, calibrated):
    """Answers that the old threshold takes for NIL are right or wrong as they are."""
    from biograft.kb import KnowledgeBase
    from biograft.linking import build_index
    from biograft.linking.calibration import Calibration

    build_index(KnowledgeBase.open(place / "KB"), place / "I")
    calibrated("I/calibration.json", threshold=1.1)
    done = run(app, place, "--index", place / "I", "--nil", "--fit-calibration", place / "n.json")
    assert done.exit_code == 0, done.output
    assert Calibration.load(place / "n.json")(1.0) == 1
