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


def test_several_seeds_are_trained_and_tested_by_one_command(inputs, run, train, tmp_path):
    """Guards: a linker took one seed, and its test set had to be averaged by hand."""
    given = ("--seeds", "1,2", "--test", "starter", "--json")
    said = json.loads(train(tmp_path / "run", *given).stdout)
    assert [*said["report"]["test.recall@1"]] == ["mean", "deviation", "values"]
    for seed in (1, 2):
        manifest = tmp_path / "run" / f"seed-{seed}" / "model" / "manifest.json"
        made = json.loads(manifest.read_text())
        assert made["config"]["training"]["seed"] == seed
        recall = made["report"]["test"]["recall@5"]
        assert said["report"]["test.recall@5"]["values"][seed - 1] == recall
    again = json.loads(train(tmp_path / "run", *given, "--resume").stdout)
    assert again["report"]["test.recall@5"] == said["report"]["test.recall@5"]
    with pytest.raises(ConfigError, match="--seeds: expected numbers, found one"):
        train(tmp_path / "other", "--seeds", "one")
    for name in ("a", "b"):
        (tmp_path / name).write_text(json.dumps(said), "utf-8")
    values = ("test.recall@5.mean", "test.recall@5.deviation")
    (tmp_path / "c").write_text(json.dumps({"report": dict.fromkeys(values, 1)}), "utf-8")
    mean = json.loads(run("evaluate", "mean", *(tmp_path / n for n in "abc"), "--json").stdout)
    assert [*mean] == [f"report.{key}" for key in values]
    before = said["report"]["test.recall@5"]["mean"]
    assert mean["report.test.recall@5.mean"]["mean"] == pytest.approx((2 * before + 1) / 3)
    shown = run("evaluate", "mean", tmp_path / "a", tmp_path / "c").stdout
    assert "report.test.recall@5.mean" in shown
    assert "±" in shown
    with pytest.raises(ConfigError, match="no number is in all"):
        run("evaluate", "mean", tmp_path / "a", inputs / "kb" / "manifest.json")


def test_test_mentions_that_overlap_or_have_no_concept_are_left_out_and_counted(
    inputs, run, tmp_path
):
    """Guards: the paper leaves them out of its test sets; `given` beside `n` says how many."""
    text = "A heart attack, then flu and nothing."
    places = [("heart attack", "D009203"), ("attack", "D009203"), ("flu", "D007251")]
    mentions = [
        {"start": (at := text.index(name)), "end": at + len(name), "text": name, "concepts": [c]}
        for name, c in [*places, ("nothing", "X1")]
    ]
    line = json.dumps({"id": "1", "text": text, "mentions": mentions})
    (tmp_path / "gold.jsonl").write_text(f"{line}\n", "utf-8")
    sets = [part for change in SMALL for part in ("--set", change)]
    gold = [word for split in ("--train", "--test") for word in (split, tmp_path / "gold.jsonl")]
    done = run(
        *("finetune", RECIPE, "--kb", inputs / "kb", *gold, "--format", "sample"),
        *(*sets, "-o", tmp_path / "run", "--json"),
    )
    report = json.loads(done.stdout)["report"]
    assert (report["test"]["given"], report["test"]["n"]) == (4, 1)
    assert report["mentions"]["used"] == 1


def test_a_model_is_prompted_as_it_was_pre_trained(linker, inputs, run, tmp_path):
    """Guards: rows without fine-tuning could not be had, since every model got *mention is*."""
    whole = ("--kb", inputs / "kb", "--model", linker[0] / "model" / "model", "--json")
    gold = ("--gold", "starter", "--format", "sample", "--limit", 8)

    def answers(*prompt):
        file = tmp_path / "-".join(["answers", *prompt])
        run("evaluate", "link", *whole, *gold, *prompt, "--save-answers", file)
        return {**json.loads(file.read_text()), "made_at": "", "checksum": ""}

    mention, none, left = (answers("--prompt", each) for each in ("mention", "none", "left"))
    assert answers() == mention
    assert mention != none != left != mention
