"""``biograft finetune genbioel-finetune-ncbi-cpu``: from gold to a linker that generates names."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from command_runs import runner_of

from biograft.cli import app
from biograft.errors import ConfigError

RECIPE = "genbioel-finetune-ncbi-cpu"
SMALL = (
    "config.new.width=16",
    "config.new.layers=1",
    "config.new.heads=2",
    "config.new.feed_forward=32",
    "config.new.n_tokens=600",
    "config.new.max_length=96",
    "config.training.steps=3",
    "config.training.batch_size=4",
    "config.training.save_every=1",
    "config.training.precision=fp32",
)
TEXT = "She has had a heart attack."


@pytest.fixture(scope="module")
def inputs(starter: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The starter store; nothing here is written to by tests."""
    folder = tmp_path_factory.mktemp("generative")
    (folder / "kb").symlink_to(starter)
    return folder


@pytest.fixture(scope="module")
def run() -> Callable[..., Any]:
    return runner_of(app)


@pytest.fixture(scope="module")
def train(inputs: Path, run: Callable[..., Any]) -> Callable[..., Any]:
    """Finetune on the starter's sample: ``train(out, "--json", changes=[...])``."""

    def of(out: Path, *arguments: object, changes: tuple[str, ...] = ()) -> Any:
        gold = ("--train", "starter", "--format", "sample")
        sets = [part for change in (*SMALL, *changes) for part in ("--set", change)]
        return run("finetune", RECIPE, "--kb", inputs / "kb", *gold, "-o", out, *sets, *arguments)

    return of


@pytest.fixture(scope="module")
def linker(train: Callable[..., Any], tmp_path_factory: Any) -> tuple[Path, Any]:
    out = tmp_path_factory.mktemp("linker") / "run"
    return out, json.loads(train(out, "--json").stdout)


def test_it_links_without_an_index(linker, inputs, run):
    whole = ("--kb", inputs / "kb", "--model", linker[0] / "model")
    (mention,) = json.loads(run("link", TEXT, *whole, "--json", "-k", 3).stdout)["mentions"]
    assert (mention["start"], mention["end"]) == (14, 26)
    scores = [candidate["score"] for candidate in mention["candidates"]]
    assert 0 < len(scores) <= 3
    assert scores == sorted(scores, reverse=True)
    assert all(0 < score < 1 for score in scores)
    evidence = mention["candidates"][0]["evidence"][0]
    assert (evidence["generator"], evidence["rank"]) == ("generative", 1)
    assert "generative #1" in run("link", TEXT, *whole).stdout


def test_it_is_evaluated_and_calibrated(linker, inputs, run, tmp_path):
    whole = ("--kb", inputs / "kb", "--model", linker[0] / "model", "--json", "--limit", 20)
    gold, file = ("--gold", "starter", "--format", "sample"), tmp_path / "c.json"
    said = json.loads(run("evaluate", "link", *whole, *gold, "--fit-calibration", file).stdout)
    assert said["n"] == 20
    assert said["acc@5"] >= said["acc@1"] >= 0
    assert said["acc@10"] == said["acc@5"]  # five beams
    assert json.loads(file.read_text())["search"] == "generative"
    again = run("evaluate", "link", *whole, *gold, "--calibration", file)
    assert "ece" in json.loads(again.stdout)


def test_a_run_goes_on_where_its_time_was_over(train, tmp_path, linker):
    out, stop = tmp_path / "run", ("config.training.max_minutes=1e-9",)
    done = train(out, changes=stop)
    assert "continue with: biograft finetune ... --resume" in done.stdout
    train(out, "--resume", changes=stop)
    said = json.loads(train(out, "--resume", "--json").stdout)
    assert said["finished"]
    files = [run / "model" / "model" / "model.safetensors" for run in (out, linker[0])]
    assert files[0].read_bytes() == files[1].read_bytes()


def test_generation_is_mixed_with_an_index(inputs, run, train, tmp_path):
    run("index", inputs / "kb", "-o", tmp_path / "index")
    given = ("--index", tmp_path / "index", "--dev", "starter", "--json")
    said = json.loads(train(tmp_path / "run", *given, changes=("config.fit_weight=true",)).stdout)
    weight = said["report"]["weight"]
    # three steps teach nothing, lexical search finds much
    assert weight["searched"] > weight["generative"]
    assert 0 <= weight["generation_weight"] < 1
    assert said["report"]["held_out"]["recall@5"] >= said["report"]["held_out"]["recall@1"] > 0
    whole = (
        "--kb",
        inputs / "kb",
        "--index",
        tmp_path / "index",
        "--model",
        tmp_path / "run" / "model",
        "--json",
    )
    (mention,) = json.loads(run("link", TEXT, *whole).stdout)["mentions"]
    assert mention["concept"] == "D009203"


def test_a_pre_trained_model_is_taken_over(linker, inputs, run, train, tmp_path):
    model = linker[0] / "model" / "model"
    train(tmp_path / "run", "--encoder", model, changes=("config.training.steps=1",))
    manifest = json.loads((tmp_path / "run" / "model" / "manifest.json").read_text())
    assert manifest["config"]["model"] == str(model)
    # a pre-trained model links without further training
    linked = run("link", TEXT, "--kb", inputs / "kb", "--model", model, "--json")
    assert json.loads(linked.stdout)["mentions"][0]["candidates"]


def test_mentions_with_offsets_are_read_in_their_texts(inputs, run, tmp_path):
    gold, text = tmp_path / "1.concept", tmp_path / "text.txt"
    gold.write_text("1||4|6||T||heart attack||D009203\n2||0|3||T||flu||D007251\n", "utf-8")
    text.write_text("1|t|Had MI.\n1|a|\n\n", "utf-8")
    sets = [part for change in SMALL for part in ("--set", change)]
    data = ("--kb", inputs / "kb", "--train", gold, "--format", "biosyn", *sets)
    with pytest.raises(ConfigError, match=r"none of the 2 has a text.*--text"):
        run("finetune", RECIPE, *data, "-o", tmp_path / "run")
    done = run("finetune", RECIPE, *data, "--text", text, "-o", tmp_path / "run", "--json")
    counts = json.loads(done.stdout)["report"]["mentions"]
    assert (counts["used"], counts["without_text"]) == (2, 1)
    assert "1 of 2 mentions are not in the documents of --text" in done.stderr
    judged = ("--kb", inputs / "kb", "--model", tmp_path / "run" / "model", "--gold", gold)
    with pytest.raises(ConfigError, match="queries: none of the 2 has a text"):
        run("evaluate", "link", *judged, "--format", "biosyn")
    for option in (("--text", text), ("--no-context",)):
        said = run("evaluate", "link", *judged, "--format", "biosyn", *option, "--json").stdout
        assert json.loads(said)["n"] == 2
