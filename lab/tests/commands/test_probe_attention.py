"""``biograft probe attention``: pictures, pages and numbers of tiny encoders."""

import json

import pytest
import typer
from typer.testing import CliRunner

from biograft.errors import BiograftError, ConfigError
from biograft.kb import build_starter
from biograft_lab.commands.probe import app as probe
from biograft_lab.probing.attention import (
    AttentionConfig,
    AttentionReader,
    ReplacedSentence,
    compare_names,
    look_inside,
)

TEXT = "The heart attack hurts"
NAMES = ("--entity", "heart attack", "--replace", "--synonym", "infarct", "--random", "gout")


@pytest.fixture(scope="module")
def encoders(tmp_path_factory):
    from tiny_masked_lm import tiny_masked_lm_folder

    folder = tmp_path_factory.mktemp("encoders")
    texts = [TEXT, "患者发热头痛", "infarct gout fever headache He has now ."]
    return [
        tiny_masked_lm_folder(folder / name, texts, seed=k, positions=64)
        for k, name in enumerate("ab")
    ]


@pytest.fixture(scope="module")
def kb(tmp_path_factory):
    folder = tmp_path_factory.mktemp("starter") / "kb"
    build_starter(folder)
    return folder


@pytest.fixture
def call(encoders):
    app = typer.Typer()
    app.add_typer(probe, name="probe")

    def run(*arguments, n_encoders=1, stdin=None):
        own = [part for folder in encoders[:n_encoders] for part in ("--encoder", folder)]
        command = ["probe", "attention", *map(str, (*arguments, *own, "--quiet"))]
        result = CliRunner().invoke(app, command, input=stdin)
        if isinstance(result.exception, BiograftError):
            raise result.exception
        assert result.exit_code == 0, result.output
        return result

    return run


def test_curves_of_two_encoders(call, encoders, tmp_path):
    files = ("--png", tmp_path / "a.png", "--html", tmp_path / "a.html")
    results = json.loads(call(TEXT, *NAMES, *files, "--json", n_encoders=2).stdout)
    assert (results["start"], results["end"], results["head"], results["direction"]) == (
        4,
        16,
        "all",
        "to",
    )
    sentence = ReplacedSentence(TEXT, 4, 16, "infarct", "gout")
    for folder, model in zip(encoders, results["models"], strict=True):
        reader = AttentionReader.from_pretrained(folder)
        expected = compare_names(reader, sentence, AttentionConfig()).to_json()
        assert model | {"encoder": ""} == expected | {"encoder": "", "n_layers": 2, "n_heads": 2}
        assert (model["encoder"], model["layer"]) == (str(folder), 1)  # of two: the last but one
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")
    assert "heart attack" in (tmp_path / "a.html").read_text("utf-8")
    away = json.loads(call(TEXT, *NAMES, "--direction", "from", "--head", 2, "--json").stdout)
    assert (away["direction"], away["head"]) == ("from", 2)
    assert away["models"][0]["curves"] != results["models"][0]["curves"]


def test_a_heat_map_with_and_without_a_sentence(call, encoders, tmp_path):
    inside = ("--entity", "heart attack", "--layer", 2, "--json")
    results = json.loads(call(TEXT, *inside, "--html", tmp_path / "h.html").stdout)
    reader = AttentionReader.from_pretrained(encoders[0])
    expected = look_inside(reader, TEXT, (4, 16), AttentionConfig(layer=2))
    assert results["models"][0]["weights"] == expected.to_json()["weights"]
    assert "direction" not in results
    alone = json.loads(call(*inside).stdout)
    assert (alone["text"], alone["start"]) == ("heart attack", 0)
    assert alone["models"][0]["weights"] != results["models"][0]["weights"]
    piped = json.loads(call("-", *inside, stdin=f"{TEXT}\n".encode()).stdout)
    assert piped == results


def test_printed_tables(call):
    lines = call(TEXT, *NAMES).stdout.splitlines()
    assert lines[:3] == ["entity   heart attack", "synonym  infarct", "random   gout"]
    assert lines[3].endswith("layer 1 of 2, all 2 heads, to the entity")
    assert lines[6].strip() == "..."  # behind "The"
    assert lines[-1].startswith("  mean absolute difference from the entity: synonym 0.")
    inside = call("患者发热头痛", "--entity", "发热头痛", "--head", 1).stdout.splitlines()
    assert inside[0] == "entity 发热头痛"
    assert inside[1].endswith("layer 1 of 2, head 1")
    assert len(inside) == 2 + 1 + 4 + 1


def test_names_sampled_from_a_store(call, kb):
    options = ("--entity", "fever", "--replace", "--kb", kb, "--json")
    results = json.loads(call("He has fever now", *options).stdout)
    assert results["synonym"].casefold() != "fever"
    assert results["synonym"].isascii()
    assert results["concepts"]
    others = {
        json.loads(call("He has fever now", *options, "--seed", seed).stdout)["random"]
        for seed in range(4)
    }
    assert len(others) > 1
    chinese = json.loads(
        call("患者发热头痛", "--entity", "发热", "--replace", "--kb", kb, "--json").stdout
    )
    assert not chinese["synonym"].isascii()


def test_a_file_of_sentences(call, kb, write, tmp_path):
    rows = [
        {"text": "He has fever now", "entity": "fever"},
        {"text": "He has headache now", "entity": "headache", "synonym": "gout", "random": "fever"},
        {"text": "He has nothing", "entity": "nothing"},
    ]
    file = write("s.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
    options = ("--replace", "--file", file, "--kb", kb)
    files = ("--png", tmp_path / "s.png", "--html", tmp_path / "s.html")
    results = json.loads(call(*options, *files, "--json", n_encoders=2).stdout)
    assert (results["n_sentences"], len(results["models"])) == (2, 2)
    assert results["left_out"] == {"the knowledge base does not know the entity": 1}
    assert [row["entity"] for row in results["sentences"]] == ["fever", "headache"]
    assert results["models"][0]["synonym"]["deviation"] > 0
    assert (tmp_path / "s.png").exists()
    assert "s.jsonl:2" in (tmp_path / "s.html").read_text("utf-8")
    lines = call(*options).stdout.splitlines()
    assert lines[0] == "2 sentences, attention to the entity"
    assert lines[1] == "  left out 1: the knowledge base does not know the entity"
    assert lines[-1].startswith("  the synonym is closer in ")


def test_rejected_rows_are_warned_about(call, kb, write):
    good = {"id": "1", "text": "He has fever now", "mentions": [{"start": 7, "end": 12}]}
    file = write("d.jsonl", json.dumps(good) + "\n" + '{"id": "2", "text": 5}\n')
    done = call("--replace", "--file", file, "--kb", kb, "--json")
    assert json.loads(done.stdout)["n_sentences"] == 1
    assert f"warning: {file}: 1 rows left out" in done.stderr


def test_a_missing_font_is_warned_about(call, tmp_path):
    done = call("患\U0002ceb0头痛", "--entity", "\U0002ceb0头痛", "--png", tmp_path / "x.png")
    assert done.stderr.startswith("warning: no installed font has all characters")
    assert (tmp_path / "x.png").exists()


REFUSED = [
    (("--entity", "fever"), "does not stand in the text"),
    ((), "--entity: expected the entity"),
    (("--entity", "t"), r"stands at characters 8, .*--at"),
    (("--entity", "t", "--at", 5), "does not stand at character 5; it stands at 8, 11, 12, 20"),
    (("--entity", "heart", "--replace", "--synonym", "x"), "--replace needs --synonym"),
    (("--entity", "heart", "--synonym", "x"), "--synonym: needs --replace"),
    (("--file", "x", "--replace"), "TEXT: .*--file"),
    ((*NAMES, "--layer", 3), "layer: expected 1 to 2"),
    ((*NAMES, "--head", 3), "head: expected 1 to 2"),
    ((*NAMES, "--direction", "up"), "direction: expected to or from"),
    ((*NAMES, "--random-type", "x"), "random_type: expected any or same"),
    ((*NAMES, "--encoder", "./nowhere"), "no such folder"),
    (("--entity", "hurts"), "the entity is a single token"),
    (("--entity", "heart \udcff"), "--entity: is not UTF-8"),
]


@pytest.mark.parametrize(("options", "message"), REFUSED)
def test_refused_in_one_line(call, tmp_path, options, message):
    with pytest.raises(BiograftError, match=message) as caught:
        call(TEXT, *options, "--html", tmp_path / "x.html")
    assert "\n" not in str(caught.value)
    assert list(tmp_path.iterdir()) == []  # nothing is half written


def test_refused_before_any_work(call, encoders, write, tmp_path):
    with pytest.raises(ConfigError, match="is given twice"):
        call(TEXT, *NAMES, "--encoder", encoders[0])
    there = write("there.html", "mine")
    with pytest.raises(BiograftError, match="exists already"):
        call(TEXT, *NAMES, "--html", there, "--png", tmp_path / "x.png")
    assert there.read_text() == "mine"
    assert not (tmp_path / "x.png").exists()
    call(TEXT, *NAMES, "--html", there, "--overwrite")
    assert there.read_text("utf-8").startswith("<!doctype html>")
    with pytest.raises(ConfigError, match="--png and --html: both name"):
        call(TEXT, *NAMES, "--html", tmp_path / "y", "--png", tmp_path / "y")
    app = typer.Typer()
    app.add_typer(probe, name="probe")
    bare = CliRunner().invoke(app, ["probe", "attention", TEXT, "--entity", "heart attack"])
    assert "--encoder: expected" in str(bare.exception)
