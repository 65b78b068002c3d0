"""``biograft probe attention``: pictures and numbers of tiny encoders."""

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

    def run(*arguments, n_encoders=1):
        own = [part for folder in encoders[:n_encoders] for part in ("--encoder", folder)]
        command = ["probe", "attention", *map(str, (*arguments, *own, "--quiet"))]
        result = CliRunner().invoke(app, command)
        if isinstance(result.exception, BiograftError):
            raise result.exception
        assert result.exit_code == 0, result.output
        return result

    return run


def test_curves_of_two_encoders(call, encoders, tmp_path):
    picture = ("--png", tmp_path / "a.png")
    results = json.loads(call(TEXT, *NAMES, *picture, "--json", n_encoders=2).stdout)
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
    away = json.loads(call(TEXT, *NAMES, "--direction", "from", "--head", 2, "--json").stdout)
    assert (away["direction"], away["head"]) == ("from", 2)
    assert away["models"][0]["curves"] != results["models"][0]["curves"]


def test_a_heat_map_with_and_without_a_sentence(call, encoders, tmp_path):
    inside = ("--entity", "heart attack", "--layer", 2, "--json")
    results = json.loads(call(TEXT, *inside, "--png", tmp_path / "h.png").stdout)
    assert (tmp_path / "h.png").read_bytes().startswith(b"\x89PNG")
    reader = AttentionReader.from_pretrained(encoders[0])
    expected = look_inside(reader, TEXT, (4, 16), AttentionConfig(layer=2))
    assert results["models"][0]["weights"] == expected.to_json()["weights"]
    alone = json.loads(call(*inside).stdout)
    assert (alone["text"], alone["start"]) == ("heart attack", 0)
    assert alone["models"][0]["weights"] != results["models"][0]["weights"]


def test_printed_tables(call):
    lines = call(TEXT, *NAMES).stdout.splitlines()
    assert lines[0].endswith("layer 1 of 2")
    assert [line.split()[0] for line in lines[1:]] == ["The", "hurts", "synonym:", "random:"]
    inside = call("患者发热头痛", "--entity", "发热头痛", "--head", 1).stdout.splitlines()
    assert inside[0].endswith("layer 1 of 2")
    assert [line.split()[0] for line in inside[1:]] == [*"发热头痛", "others:"]


def test_names_sampled_from_a_store(call, kb):
    options = ("--entity", "fever", "--replace", "--kb", kb, "--json")
    results = json.loads(call("He has fever now", *options).stdout)
    assert results["synonym"].casefold() != "fever"
    assert results["synonym"].isascii()
    others = {
        json.loads(call("He has fever now", *options, "--seed", seed).stdout)["random"]
        for seed in range(4)
    }
    assert len(others) > 1
    chinese = json.loads(
        call("患者发热头痛", "--entity", "发热", "--replace", "--kb", kb, "--json").stdout
    )
    assert not chinese["synonym"].isascii()


def test_a_file_of_documents(call, kb, write):
    rows = [
        {"id": "1", "text": "He has fever now", "mentions": [{"start": 7, "end": 12}]},
        {"id": "2", "text": "He has headache now", "mentions": [{"start": 7, "end": 15}]},
        {"id": "3", "text": "He has nothing", "mentions": [{"start": 7, "end": 14}]},
        {"id": "4", "text": 5},
    ]
    file = write("s.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
    options = ("--replace", "--file", file, "--kb", kb)
    done = call(*options, "--json", n_encoders=2)
    results = json.loads(done.stdout)
    assert f"warning: {file}: 1 rows left out" in done.stderr
    assert (results["n_sentences"], len(results["models"])) == (2, 2)
    assert results["left_out"] == {"the knowledge base does not know the entity": 1}
    assert [row["entity"] for row in results["sentences"]] == ["fever", "headache"]
    assert results["models"][0]["synonym"]["deviation"] > 0
    assert "  the synonym is closer in " in call(*options).stdout


REFUSED = [
    (("--entity", "fever"), "found it 0 times"),
    ((), "entity: expected"),
    (("--entity", "t"), "found it 4 times"),
    (("--entity", "heart", "--replace", "--synonym", "x"), "--replace needs --synonym"),
    (("--file", "x", *NAMES), "--file: takes the place of TEXT"),
    (("--entity", "heart", "--synonym", "x"), "need --replace"),
    ((*NAMES, "--layer", 3), "layer: expected 1 to 2"),
    ((*NAMES, "--head", 3), "head: expected 1 to 2"),
    ((*NAMES, "--direction", "up"), "direction: expected one of to, from"),
    ((*NAMES, "--encoder", "./nowhere"), "no such folder"),
    (("--entity", "hurts"), "the entity is a single token"),
]


@pytest.mark.parametrize(("options", "message"), REFUSED)
def test_refused_in_one_line(call, tmp_path, options, message):
    with pytest.raises(BiograftError, match=message) as caught:
        call(TEXT, *options, "--png", tmp_path / "x.png")
    assert "\n" not in str(caught.value)
    assert list(tmp_path.iterdir()) == []  # nothing is half written


def test_encoders_are_named_once(call, encoders):
    with pytest.raises(ConfigError, match="is given twice"):
        call(TEXT, *NAMES, "--encoder", encoders[0])
    app = typer.Typer()
    app.add_typer(probe, name="probe")
    bare = CliRunner().invoke(app, ["probe", "attention", TEXT, "--entity", "heart attack"])
    assert "--encoder: expected" in str(bare.exception)
