"""Runs of pair, class and ranking tasks: the main metric, chance, comparisons."""

from __future__ import annotations

import json

import pytest

from biograft.errors import ConfigError, InputError
from biograft.models.tasks import TASKS, TaskDataConfig, open_task
from biograft.text import Answer, ClassExample, PairExample, RankingExample, write_examples
from biograft.training.tasks import TaskRecipe, TaskTrainingData, finetune_task

TRAINING = {"epochs": 3, "batch_size": 4, "learning_rate": 5e-3, "precision": "fp32"}
WORDS = ("aspirin", "fever", "lung", "cold")
PAIRS = [PairExample(word, other, str(int(word < other))) for word in WORDS for other in WORDS]
TEXTS = [ClassExample(f"{word} and {other}", (other,)) for word in WORDS for other in WORDS[:2]]
QUESTIONS = [
    RankingExample(f"no {word}", tuple(Answer(other, int(other == "lung")) for other in WORDS))
    for word in WORDS
]
EXAMPLES = {
    "matching": PAIRS,
    "inference": PAIRS,
    "classification": TEXTS,
    "ranking": [*QUESTIONS, RankingExample("cold", (Answer("no"), Answer("fever")))],
}


@pytest.fixture
def train(encoder_folder, tmp_path):
    """Run a kind of task on its examples: ``train("ranking", "run", seeds=[1])``."""

    def run(kind, name, resume=False, config=None, **search):
        file = tmp_path / f"{kind}.jsonl"
        write_examples(EXAMPLES[kind], file, overwrite=True)
        values = {
            "task": kind,
            "encoder": {"name": str(encoder_folder), "max_length": 32},
            "config": {"training": TRAINING, **(config or {})},
            "search": search,
        }
        read = TASKS.load(kind).read
        splits = {
            split: read([str(file)], split, TaskDataConfig()) for split in ("train", "dev", "test")
        }
        data = TaskTrainingData(**splits, out=tmp_path / name, resume=resume)
        return finetune_task(TaskRecipe.from_values("mine", values), data)

    return run


@pytest.mark.parametrize("kind", ["matching", "ranking"])
def test_a_run_reports_its_metrics_and_chance(kind, train, tmp_path):
    result = train(kind, "run", seeds=[1, 2])
    found = json.loads((result.run / "results.json").read_text())
    metrics = TASKS.load(kind).metrics
    main = metrics[0]
    assert found["metric"] == main == ("acc@1" if kind == "ranking" else "f1")
    assert list(found["test"]) == list(found["dev"]) == list(metrics)
    assert main in found["chance"]["test"]
    # dev chose the seed and the epoch by that metric
    folder = result.run / "runs" / f"seed-{found['best_seed']}"
    result_of_seed = json.loads((folder / "result.json").read_text())
    assert result_of_seed["dev"][main] == max(found["dev"][main]["values"])
    assert result_of_seed["dev"][main] == max(epoch[main] for epoch in result_of_seed["epochs"])
    assert result_of_seed["test"]["chance"] == found["chance"]["test"]
    # the saved model makes the predictions on disk
    model = open_task(result.run)
    model.write(EXAMPLES[kind], model.predict(EXAMPLES[kind]), tmp_path / "again.jsonl")
    assert (tmp_path / "again.jsonl").read_text() == (folder / "predictions-test.jsonl").read_text()


@pytest.mark.parametrize(
    ("kind", "examples", "message"),
    [
        ("matching", TEXTS, "holds examples of the kind class, not pair"),
        ("ranking", PAIRS, "holds examples of the kind pair, not ranking"),
        ("inference", [PairExample("a", "b")], "holds examples without a label"),
        ("classification", [ClassExample("a")], "holds examples without a label"),
        ("ranking", [RankingExample("a", (Answer("b"),))], "no question with a correct answer"),
    ],
)
def test_files_that_do_not_fit_are_refused(kind, examples, message, tmp_path):
    write_examples(examples, tmp_path / "file.jsonl")
    with pytest.raises(InputError, match=message) as caught:
        TASKS.load(kind).read([str(tmp_path / "file.jsonl")], "train", TaskDataConfig())
    assert "\n" not in str(caught.value)


def test_options_that_mean_nothing_to_a_format_are_refused(tmp_path):
    write_examples(PAIRS, tmp_path / "file.jsonl")
    with pytest.raises(ConfigError, match="grouped: "):
        TASKS.load("matching").read(
            [str(tmp_path / "file.jsonl")], "train", TaskDataConfig(grouped=True)
        )
