"""``biograft finetune`` and ``evaluate task``: tasks from files to results, and refusals."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from command_runs import runner_of
from tiny_models import tiny_encoder_folder

from biograft.cli import app
from biograft.errors import ConfigError, OutputError

NAMES = ("heart attack", "fever", "lung cancer", "cold")
FRAMES = ("we saw {} today", "no {} here", "{} was treated")
QUICK = (
    "config.training.learning_rate=0.01",
    "config.training.precision=fp32",
    "config.training.epochs=25",
    "config.training.batch_size=4",
    "config.training.patience=0",
    "encoder.max_length=32",
)


def conll() -> str:
    """Write every name in every frame."""
    lines = []
    for frame in FRAMES:
        for name in NAMES:
            for word in frame.split():
                words = name.split() if word == "{}" else [word]
                tags = ["B-Disease", "I-Disease"] if word == "{}" else ["O"]
                lines += [f"{w}\t{t}" for w, t in zip(words, tags, strict=False)]
            lines.append("")
    return "\n".join(lines) + "\n"


def gad() -> str:
    rows = ["index\tsentence\tlabel"]
    for number in range(24):
        verb, label = ("causes", "1") if number % 3 else ("ignores", "0")
        rows.append(f"{number}\t@GENE$ {verb} @DISEASE$ in {NAMES[number % 4]}\t{label}")
    return "\n".join(rows) + "\n"


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tasks")
    (folder / "ner.tsv").write_text(conll())
    (folder / "gad.tsv").write_text(gad())
    tiny_encoder_folder(folder / "encoder", [conll(), gad()], hidden=16, layers=1)
    return folder


@pytest.fixture(scope="module")
def run() -> Callable[..., Any]:
    return runner_of(app)


@pytest.fixture(scope="module")
def train(inputs: Path, run: Callable[..., Any]) -> Callable[..., Any]:
    """Train on a file, which is dev and test too: ``train("ner-cpu", "ner.tsv", out)``."""

    def of(
        recipe: str, file: str, out: Path, *arguments: object, extra: tuple[str, ...] = ()
    ) -> Any:
        parts = [x for part in ("train", "dev", "test") for x in (f"--{part}", inputs / file)]
        sets = [x for change in (*QUICK, *extra) for x in ("--set", change)]
        encoder = ("--encoder", inputs / "encoder")
        return run("finetune", recipe, *parts, *sets, *encoder, "-o", out, *arguments)

    return of


@pytest.fixture(scope="module")
def entities(train: Callable[..., Any], tmp_path_factory: Any) -> tuple[Path, Any]:
    """Entities learned with two seeds."""
    out = tmp_path_factory.mktemp("ner") / "run"
    overlap = ("config.overlap=4",)
    done = train("ner-cpu", "ner.tsv", out, "--seeds", "1,2", "--json", extra=overlap)
    return out, json.loads(done.stdout)


def test_entities_are_learned_and_measured(entities, run, inputs, tmp_path):
    out, said = entities
    assert (said["task"], said["seeds"]) == ("ner", [1, 2])
    assert said["test"]["f1"]["mean"] == 1.0
    assert said["n_examples"] == {"train": 12, "dev": 12, "test": 12}
    answers = tmp_path / "answers.jsonl"
    asked = ("--data", inputs / "ner.tsv", "-o", answers, "--json")
    found = json.loads(run("evaluate", "task", out, *asked).stdout)["data"]
    assert (found["n"], found["f1"], found["classes"]["Disease"]["right"]) == (12, 1.0, 12)
    assert len(answers.read_text().splitlines()) == 12
    shown = run("evaluate", "task", out / "model", "--data", inputs / "ner.tsv").stdout
    assert "Disease" in shown
    assert "f1 1.0000" in shown


def test_a_run_is_replaced_only_if_it_is_one(train, tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "letter.txt").write_text("dear")
    with pytest.raises(OutputError, match="is no run of biograft"):
        train("relation-cpu", "gad.tsv", tmp_path / "mine", "--overwrite")
    with pytest.raises(OutputError, match="exists already"):
        train("relation-cpu", "gad.tsv", tmp_path / "mine")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("ner-cpu", "--kb", "KB"), "--kb: a recipe of 'ner' does not use it"),
        (("ner-cpu", "--types", "Disease"), "--types: a recipe of 'ner' does not use it"),
        (("ner-cpu", "--seeds", "one"), "--seeds: expected numbers, found one"),
        (("ner-cpu",), "--train: name a file"),
        (("linker-ranker",), "--kb: a recipe of 'ranker' needs a knowledge base"),
        (("ner-gpu",), "no recipe is called 'ner-gpu'; did you mean 'ner-cpu'"),
    ],
)
def test_what_cannot_be_meant_is_refused(run, tmp_path, arguments, message):
    with pytest.raises(ConfigError, match=message):
        run("finetune", *arguments, "-o", tmp_path / "run")


def test_nothing_to_measure_is_said(entities, run):
    with pytest.raises(ConfigError, match="--data, --against or --published"):
        run("evaluate", "task", entities[0])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("-o", "answers.jsonl"), "--out: needs a file"),
        (("--format", "gad", "--split", "dev"), "--format: needs a file"),
        (("--grouped", "--published", "0.5"), "--grouped: needs a file"),
    ],
)
def test_what_is_said_of_a_file_needs_one(run, tmp_path, options, message):
    with pytest.raises(ConfigError, match=message):
        run("evaluate", "task", tmp_path, *options)


PAIRS = "".join(
    f"{int(first == second)}\tno {first}\t{second}\n" for first in NAMES for second in NAMES
)
ANSWERS = "".join(
    f"{int(answer == 'fever')}\twe saw {name}\t{answer}\n" for name in NAMES for answer in NAMES
)


FILES = {
    "matching": ("cmedqq", PAIRS),
    "ranking": ("cmedqa", ANSWERS),
}


@pytest.mark.parametrize("kind", list(FILES))
def test_texts_pairs_and_answers(kind, inputs, train, run, tmp_path):
    form, content = FILES[kind]
    (inputs / f"{kind}.txt").write_text(content)
    main = "acc@1" if kind == "ranking" else "f1"
    few = ("config.training.epochs=4", "search.learning_rates=[0.01, 0.001]")
    asked = ("--format", form, "--seeds", "1,2")
    shown = train(f"{kind}-cpu", f"{kind}.txt", tmp_path / "run", *asked, extra=few).stdout
    assert f"learning rate 0.001: {main} " in shown
    assert f"test  {main} " in shown
    assert f"chance on test: {main} " in shown
    data, answers = ("--data", inputs / f"{kind}.txt", "--format", form), tmp_path / "answers.jsonl"
    shown = run("evaluate", "task", tmp_path / "run", *data, "-o", answers).stdout
    assert f"all                  {main} " in shown
    assert f"chance               {main} " in shown
    assert len(answers.read_text().splitlines()) > 3
    found = run("evaluate", "task", tmp_path / "run", *data, "--json").stdout
    assert json.loads(found)["data"]["metrics"][0] == main
    assert f"  {main} " in run("evaluate", "task", tmp_path / "run", "--published", "0.5").stdout
