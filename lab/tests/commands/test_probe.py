"""``biograft probe cloze``: two tiny models on the starter store."""

import json

import pytest
import typer
from typer.testing import CliRunner

from biograft.errors import BiograftError
from biograft.kb import KnowledgeBase, build_starter
from biograft_lab.commands.probe import app as probe

FEW = ("--limit", 12, "--lengths", "1-2", "--beam", 3, "--quiet")


@pytest.fixture(scope="module")
def kb(tmp_path_factory):
    folder = tmp_path_factory.mktemp("starter") / "kb"
    build_starter(folder)
    return folder


@pytest.fixture(scope="module")
def models(kb, tmp_path_factory):
    from tiny_masked_lm import tiny_masked_lm_folder

    names = KnowledgeBase.open(kb).table("names").column("text").to_pylist()
    folder = tmp_path_factory.mktemp("models")
    return [
        tiny_masked_lm_folder(folder / name, names, seed=k, positions=64)
        for k, name in enumerate("ab")
    ]


@pytest.fixture
def call():
    app = typer.Typer()
    app.add_typer(probe, name="probe")

    def run(*arguments):
        result = CliRunner().invoke(app, ["probe", "cloze", *map(str, arguments)])
        if isinstance(result.exception, BiograftError):
            raise result.exception
        assert result.exit_code == 0, result.output
        return result.stdout

    return run


def test_two_models_answer_the_same_queries(call, kb, models, tmp_path):
    results = json.loads(call(*models, "--kb", kb, *FEW, "--examples", tmp_path / "e", "--json"))
    assert (results["n_queries"], results["beam"], results["lengths"]) == (12, 3, [1, 2])
    assert results["unit"] == "percent"
    assert [each["model"] for each in results["models"]] == [str(model) for model in models]
    for each in results["models"]:
        parts = [each[part]["n_queries"] for part in ("all", "type 1", "type 2")]
        assert parts[0] == 12 == parts[1] + parts[2]
        assert set(each["by_length"]) == {"1", "2"}
        assert sum(row["all"]["n"] for row in each["relations"]) == 12
    assert "difference" not in results["models"][0]
    difference = results["models"][1]["difference"]
    assert {"difference", "interval", "p"} == set(difference["all"])
    rows = [json.loads(line) for line in (tmp_path / "e").read_text("utf-8").splitlines()]
    assert len(rows) == 12
    for row in rows:
        for best in row["models"].values():
            assert (best["single"]["masks"], best["several"]["masks"]) == (1, 2)


def test_printed_table(call, kb, models):
    lines = call(*models, "--kb", kb, *FEW, "--relations", "treats,is-a").splitlines()
    assert lines[0] == "12 queries of 2 relations"
    assert lines[2].startswith("  all ")
    assert any(line.startswith("  treats") for line in lines)
    assert any("(p " in line for line in lines)


@pytest.mark.parametrize("order", ["any", "left-to-right"])
def test_chinese_queries_and_decoding_orders(call, kb, models, order, write):
    words = write("words.tsv", "treats\t治疗\n")
    options = ("--lang", "zh", "--relations", "treats", "--order", order, "--wording", words)
    results = json.loads(call(models[0], "--kb", kb, *FEW, *options, "--json"))
    assert results["order"] == order
    assert results["models"][0]["relations"][0]["relation"] == "treats"


def test_refused_in_one_line(call, kb, models, tiny_encoder, write):
    encoder = tiny_encoder(["heart"])
    with pytest.raises(BiograftError, match="without"):
        call(models[0], encoder, "--kb", kb, *FEW)
    with pytest.raises(BiograftError, match="is given twice"):
        call(models[0], models[0], "--kb", kb, *FEW)
    for text in ("a", "1-", "-2", "2-b", "3-1", "0"):
        with pytest.raises(BiograftError, match="--lengths: expected numbers such as 1-10"):
            call(models[0], "--kb", kb, "--lengths", text)
    with pytest.raises(BiograftError, match="no triple joins two concepts with names"):
        call(models[0], "--kb", kb, "--lang", "de", "--quiet")
    there = write("e.jsonl", "mine")
    with pytest.raises(BiograftError, match="exists already"):
        call(models[0], "--kb", kb, *FEW, "--examples", there)
    assert there.read_text() == "mine"
