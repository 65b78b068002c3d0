"""``biograft evaluate``: link and text; ``task`` is tested with ``finetune``."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from generative_store import store_in
from typer.testing import CliRunner

from biograft.cli import app
from biograft.errors import (
    BiograftError,
    ConfigError,
    OutputError,
    StoreError,
)
from biograft.kb import KnowledgeBase
from biograft.linking import Calibration, build_index, fit_calibration

CONCEPTS = [
    {"id": "D1", "name": "Influenza", "names": ["flu"]},
    {"id": "D2", "name": "Fever"},
    {"id": "D3", "names": {"zh": ["流感"]}},
]
MENTIONS = "1||0|3||Disease||flu||D1\n1||5|9||Disease||cold||D9\n2||0|4||Finding||fever||D2\n"
MENTIONS_WITH_NIL = "1||0|3||Disease||flu||D1\n3||0|4||Disease||flus||CUI-less\n"
TEXTS = """\
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
def folder(write, tmp_path):
    """A folder with a store and two gold files."""
    store_in(tmp_path, CONCEPTS, "KB")
    write("gold.concept", MENTIONS)
    write("gold.pubtator", TEXTS)
    return tmp_path


def values_of(done):
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)


# ---- link


@pytest.fixture
def link(folder):
    def run(*options):
        arguments = ["--kb", folder / "KB", "--gold", folder / "gold.concept", "--format", "biosyn"]
        return CliRunner().invoke(app, list(map(str, ["evaluate", "link", *arguments, *options])))

    return run


def test_link_writes_a_report(link, folder):
    pytest.importorskip("matplotlib")
    done = link("--report", folder / "R", "--train", folder / "gold.concept")
    assert done.exit_code == 0, done.output
    again = values_of(link("--json", "--against", folder / "R"))
    assert again["against"]["mrr"]["difference"] == 0
    assert "unseen mention" in (folder / "R" / "report.html").read_text(encoding="utf-8")


def test_link_leaves_out_what_papers_leave_out(link):
    done = link("--json", "--drop", "overlapping,unknown-ids")
    values = values_of(done)
    assert (values["n"], values["acc@1"]) == (2, 100)
    assert values["left_out"] == {"with an id that the knowledge base does not have": 1}
    assert "1 queries left out: with an id that the knowledge base does not have" in done.stderr


def test_link_joins_texts_to_offsets(link, folder):
    (folder / "gold.concept").write_text("1||11|13||T||IF||D1\n9||0|1||T||flu||D1\n", "utf-8")
    plain = link("--json")
    assert values_of(plain)["n_without_text"] == 2
    assert "--text" not in plain.stderr
    done = link("--json", "--text", folder / "gold.pubtator")
    values = values_of(done)
    assert (values["n_without_text"], values["acc@1"]) == (1, 100)
    assert "1 of 2 mentions are not in the documents of --text" in done.stderr
    # the text explains an abbreviation, unless it is not to be read
    assert (
        values_of(link("--json", "--text", folder / "gold.pubtator", "--no-context"))["acc@1"] == 50
    )


def test_link_compares_with_the_answers_of_another_run(link, folder):
    """The first run reads no text, so that it does not know the abbreviation."""
    (folder / "gold.concept").write_text("1||11|13||T||IF||D1\n1||0|9||T||flu||D1\n", "utf-8")
    assert link("--save-answers", folder / "a.json").exit_code == 0
    more = ("--text", folder / "gold.pubtator", "--against", folder / "a.json")
    against = values_of(link("--json", *more))["against"]
    assert against["file"] == str(folder / "a.json")
    assert against["acc@1"]["difference"] == 50
    assert against["acc@1"]["interval"] == [50, 50]  # one document
    assert against["acc@1"]["mcnemar_p"] == 1
    assert {"recall@30", "mrr"} < against.keys()
    lines = link(*more).stdout.splitlines()
    (first,) = [line.split() for line in lines if "McNemar" in line and "acc@1" in line]
    assert first[1] == "+50.00"


def test_link_compares_only_runs_on_the_same_queries(link, folder):
    file = folder / "a.json"
    assert link("--save-answers", file).exit_code == 0
    assert isinstance(link("--save-answers", file).exception, OutputError)
    saved = json.loads(file.read_text("utf-8"))
    assert [query["mention"] for query in saved["queries"]] == ["flu", "cold", "fever"]
    assert saved["queries"][0]["answers"][0][0]["concept"] == "D1"
    assert saved["queries"][1]["metrics"]["acc@1"] == 0
    for options, word in (
        (("--limit", 2), "2 queries"),
        (("--scorer", "strict"), "strict"),
        (("--types", "Finding", "--limit", 1), "1 queries"),
    ):
        error = link("--against", file, *options).exception
        assert isinstance(error, ConfigError)
        assert word in str(error)
    (folder / "gold.concept").write_text(MENTIONS.replace("flu", "flus"), encoding="utf-8")
    assert "'flus'" in str(link("--against", file).exception)
    file.write_text('{"format": "biograft-answers", "version": 1, "scorer": "lenient"}', "utf-8")
    assert isinstance(link("--against", file).exception, StoreError)


@pytest.mark.parametrize(
    ("options", "error", "option"),
    [
        (("--train", "none"), BiograftError, "none"),
        (("--aim", "f1"), ConfigError, "--aim"),
        (("--fit-calibration", "c", "--nil-below", "0.5"), ConfigError, "--nil-below"),
    ],
)
def test_link_refuses(link, options, error, option):
    done = link(*options)
    assert isinstance(done.exception, error)
    assert option in str(done.exception)


@pytest.fixture
def save_calibration(folder):
    """Save a calibration that doubts inexact names; the gold has such a mention, with NIL."""
    (folder / "gold.concept").write_text(MENTIONS_WITH_NIL, encoding="utf-8")

    def save(name="c.json", search="lexical*1", threshold=0.5):
        fitted = fit_calibration([1.0, 1.0, 0.5, 0.5], [1, 1, 0, 0], search=search)
        replace(fitted, threshold=threshold).save(folder / name)
        return folder / name

    return save


@pytest.fixture
def index(folder, save_calibration):
    """An index whose calibration takes every answer for NIL."""
    build_index(KnowledgeBase.open(folder / "KB"), folder / "I")
    save_calibration("I/calibration.json", threshold=1.1)
    return folder / "I"


def test_the_threshold_of_a_calibration_decides_nil(link, save_calibration):
    bare = values_of(link("--json", "--nil"))
    assert (bare["nil_f1"], bare["acc@1"], bare["nil_below"]) == (0, 50, None)
    assert "ece" not in bare
    options = ("--nil", "--calibration", save_calibration())
    values = values_of(link("--json", *options))
    assert (values["nil_f1"], values["acc@1"], values["nil_below"]) == (100, 100, 0.5)
    assert values["ece"] == pytest.approx(0)
    assert "NIL below 0.5000" in link(*options).stdout
    named = values_of(link("--json", *options, "--nil-below", 0.0))
    assert (named["nil_f1"], named["nil_below"]) == (0, 0)


def test_the_calibration_of_an_index_decides_nil_only_with_nil(link, index):
    options = ("--json", "--index", index)
    assert values_of(link(*options))["acc@1"] == 100
    values = values_of(link(*options, "--nil"))
    assert (values["nil_recall"], values["acc@1"], values["nil_below"]) == (100, 50, 1.1)


def test_an_unfit_calibration_is_refused(link, folder, save_calibration):
    other = link("--calibration", save_calibration(search="dense*1")).exception
    assert isinstance(other, StoreError)
    assert "dense*1" in str(other)
    file = save_calibration("d.json")
    both = link("--calibration", file, "--fit-calibration", folder / "e.json").exception
    assert isinstance(both, ConfigError)
    assert "--calibration" in str(both)


def test_a_calibration_of_another_knowledge_base_is_refused(link, folder):
    """It was accepted without a word: the calibration error was 8.1 % in place of 3.9 %."""
    file = folder / "n.json"
    assert link("--nil", "--fit-calibration", file).exit_code == 0
    assert link("--calibration", file).exit_code == 0
    store_in(folder, [{"id": "D9", "name": "Fever"}], "OTHER")
    error = link("--calibration", file, "--kb", folder / "OTHER").exception
    assert isinstance(error, StoreError)
    assert "fitted with another knowledge base" in str(error)
    assert "`biograft evaluate link --fit-calibration`" in str(error)
    assert "\n" not in str(error)


def test_a_calibration_that_names_no_knowledge_base_is_refused(link, save_calibration):
    file = save_calibration()
    content = json.loads(file.read_text())
    earlier = {key: value for key, value in content.items() if key not in ("store", "checksum")}
    file.write_text(json.dumps(earlier))
    error = link("--calibration", file).exception
    assert isinstance(error, StoreError)
    assert "without its knowledge base" in str(error)
    assert "`biograft evaluate link --fit-calibration`" in str(error)


def test_a_fit_ignores_the_threshold_of_the_index(link, folder, index):
    """Answers below the old threshold are right or wrong as they are."""
    done = link("--index", index, "--nil", "--fit-calibration", folder / "n.json", "--json")
    assert values_of(done)["calibration"]["file"] == str(folder / "n.json")
    assert Calibration.load(folder / "n.json")(1.0) == 1


# ---- text


@pytest.fixture
def text(folder):
    def run(*options):
        paths = {"--kb": "KB", "--gold": "gold.pubtator"}
        line = ["evaluate", "text", "--format", "pubtator"]
        line += [part for name, file in paths.items() for part in (name, str(folder / file))]
        return CliRunner().invoke(app, [*line, *map(str, options)])

    return run


def counts(score):
    return score["right"], score["wrong"], score["missed"]


def test_text_options(text):
    assert counts(values_of(text("--json", "--types", "Finding"))["mentions"]) == (1, 4, 0)
    assert counts(values_of(text("--json", "--limit", 1))["mentions"]) == (4, 0, 0)
    assert counts(values_of(text("--json", "--no-abbreviations"))["spans"]) == (3, 0, 3)
    assert counts(values_of(text("--json", "--lang", "zh"))["mentions"]) == (0, 0, 5)
    nil = values_of(text("--json", "--threshold", 1))
    assert (counts(nil["spans"]), counts(nil["mentions"])) == ((5, 0, 1), (4, 1, 1))
    assert "from 0 to 1, found 2.0" in str(text("--threshold", 2).exception)


def test_text_applies_the_threshold_of_a_calibration(text, folder):
    fitted = replace(fit_calibration([0.0, 1.0], [0, 0.5], search="lexical*1"), threshold=0.6)
    fitted.save(folder / "c.json")
    options = ("--json", "--calibration", folder / "c.json")
    assert counts(values_of(text(*options))["mentions"])[1] == 0
    assert counts(values_of(text(*options, "--threshold", 0.4))["mentions"]) == (4, 1, 1)
    replace(fitted, search="dense*1").save(folder / "d.json")
    other = text("--calibration", folder / "d.json").exception
    assert isinstance(other, StoreError)
    assert "dense*1" in str(other)
