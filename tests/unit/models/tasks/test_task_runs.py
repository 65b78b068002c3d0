"""Task runs: seeds, resume, the saved model, comparisons."""

from __future__ import annotations

import json
import pickle
import shutil
import signal
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from huggingface_hub import ModelCard as HubCard
from manifests import changed, contents, reseal
from one_writer import held_elsewhere
from two_processes import loads_after_joining, losses, run_on_two, without_dropout

from biograft.errors import ConfigError, OutputError, StoreError
from biograft.models.tasks import TaskExamples, open_task
from biograft.progress import Progress
from biograft.text import Answer, RankingExample, read_documents
from biograft.training.tasks import (
    RESULTS,
    TaskRecipe,
    TaskTrainingData,
    compare_runs,
    compare_with_value,
    finetune_task,
)

VALUES = {
    "task": "ner",
    "config": {
        "overlap": 4,
        "types": "keep",
        "training": {"epochs": 10, "batch_size": 4, "learning_rate": 5e-3, "precision": "fp32"},
    },
}


@pytest.fixture
def recipe(encoder_folder):
    """Make a recipe: ``recipe(seeds=[1, 2])``."""

    def make(**search):
        encoder = {"name": str(encoder_folder), "max_length": 32}
        return TaskRecipe.from_values("mine", {**VALUES, "encoder": encoder, "search": search})

    return make


@pytest.fixture
def data(documents, tmp_path):
    """Learn from seven sentences, choose by all, test on three."""

    def make(name="run", **values):
        parts = {"train": documents[:7], "dev": documents, "test": documents[7:]}
        sets = {name: TaskExamples(examples) for name, examples in parts.items()}
        return TaskTrainingData(**{**sets, "out": tmp_path / name, **values})

    return make


def results(run):
    return json.loads((run / "results.json").read_text())


def tensors(model):
    return {key: value.clone() for key, value in model.network.state_dict().items()}


def test_a_run_measures_every_seed_and_keeps_the_best_on_dev(recipe, data, documents):
    result = finetune_task(recipe(seeds=[1, 2]), data())
    found, runs = results(result.run), result.run / "runs"
    assert len(found["test"]["f1"]["values"]) == len(found["seeds"]) == 2
    assert found["test"]["f1"]["mean"] == pytest.approx(sum(found["test"]["f1"]["values"]) / 2)
    # the saved model is the best on dev, and its predictions are those on disk
    best = runs / f"seed-{found['best_seed']}"
    written = list(read_documents(best / "predictions-test.jsonl"))
    assert [d.mentions for d in open_task(result.run).predict(documents[7:])] == [
        d.mentions for d in written
    ]
    result = json.loads((best / "result.json").read_text())
    assert (
        result["best_epoch"] == max(result["epochs"], key=lambda e: (e["f1"], -e["epoch"]))["epoch"]
    )
    assert set(result["dev"]["classes"]) <= {"Disease", "Drug"}
    assert not list(runs.glob("*/model")) + list(runs.glob("*/checkpoints"))


def test_finished_seeds_are_not_repeated_and_unfinished_ones_are_as_if_new(recipe, data):
    whole = finetune_task(recipe(seeds=[1, 2]), data("whole"))
    first = finetune_task(recipe(seeds=[1]), data("parts"))
    done = first.run / "runs" / "seed-1" / "result.json"
    stamp = done.stat().st_mtime_ns
    left = first.run / "runs" / "seed-2"
    left.mkdir()
    (left / "run.json").write_text("{}")  # of a training that was interrupted
    resumed = finetune_task(recipe(seeds=[1, 2]), data("parts", resume=True))
    assert done.stat().st_mtime_ns == stamp
    for split in ("dev", "test", "best_seed"):
        assert results(resumed.run)[split] == results(whole.run)[split]
    ours, theirs = tensors(open_task(resumed.run)), tensors(open_task(whole.run))
    assert all(torch.equal(ours[key], theirs[key]) for key in theirs if "pooler" not in key)


def test_resume_of_a_finished_run_changes_no_file(recipe, data):
    """Its results were dated anew."""
    finished = finetune_task(recipe(seeds=[1, 2]), data())
    before = contents(finished.run)
    finetune_task(recipe(seeds=[1, 2]), data(resume=True))
    assert changed(before, finished.run) == []


def test_resume_with_other_data_is_refused(recipe, data, documents):
    finetune_task(recipe(seeds=[1]), data())
    other = TaskExamples(documents[:6])
    with pytest.raises(ConfigError, match="train = "):
        finetune_task(recipe(seeds=[1, 2]), data(train=other, resume=True))


def test_runs_are_compared_over_their_seeds(recipe, data, documents):
    good = finetune_task(recipe(seeds=[1, 2]), data("good")).run
    bad = finetune_task(training(recipe(seeds=[2, 1]), learning_rate=1e-6), data("bad")).run
    found = compare_runs(good, bad)
    difference = results(good)["test"]["f1"]["mean"] - results(bad)["test"]["f1"]["mean"]
    assert found["difference"] == pytest.approx(difference)
    assert found["paired"]["difference"] == pytest.approx(difference)
    assert 0 <= found["welch"]["p"] <= 1
    against = compare_with_value(good, 0.5)
    assert against["difference"] == pytest.approx(results(good)["test"]["f1"]["mean"] - 0.5)
    other = finetune_task(recipe(seeds=[1, 2]), data("other", test=TaskExamples(documents[:3])))
    with pytest.raises(ConfigError, match="different examples"):
        compare_runs(good, other.run)
    with pytest.raises(StoreError, match="no such task run"):
        compare_runs(good, good / "nowhere")


def test_a_damaged_model_is_refused(recipe, data, tmp_path):
    result = finetune_task(recipe(seeds=[1]), data())
    for name, damage, message in (
        ("head", lambda m: (m / "model.safetensors").write_bytes(b"x"), "expected .* bytes"),
        ("gone", lambda m: (m / "config.json").unlink(), "no file"),
        ("task", lambda m: _change(m, task="poetry"), "poetry"),
        ("config", lambda m: _change(m, config={"head": "none"}), "head: expected one of"),
    ):
        copy = tmp_path / name
        shutil.copytree(result.model, copy)
        damage(copy)
        with pytest.raises((StoreError, ConfigError), match=message):
            open_task(copy)
    with pytest.raises(StoreError, match="no task model"):
        open_task(tmp_path)


def _change(model, **values):
    path = model / "manifest.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **values}))
    reseal(path)


def training(recipe, **values):
    """Give a recipe with another training."""
    changed = replace(recipe.config.training, **values)
    return replace(recipe, config=replace(recipe.config, training=changed))


def evaluations(folder):
    lines = map(json.loads, (folder / "metrics.jsonl").read_text().splitlines())
    return [line["evaluation"] for line in lines if "evaluation" in line]


def test_patience_ends_a_training(recipe, data):
    """What was measured last is in the log, too, and the stage has come to its end."""
    progress = Progress(enabled=False)
    patient = training(recipe(seeds=[1]), epochs=9, patience=2, learning_rate=1e-9)
    run = finetune_task(patient, data(progress=progress, test=None)).run
    folder = run / "runs" / "seed-1"
    result = json.loads((folder / "result.json").read_text())
    assert len(result["epochs"]) == result["best_epoch"] + 2
    assert evaluations(folder) == result["epochs"]
    assert "training" in progress.seconds


class _Interrupted(Progress):
    """Someone who has seen enough of the second seed."""

    def __init__(self):
        super().__init__(enabled=False)
        self.n_trainings = 0

    def start(self, stage, fraction=0.0):
        super().start(stage, fraction)
        self.n_trainings += stage == "training"

    def advance(self, rows, fraction=None):
        super().advance(rows, fraction)
        if self.n_trainings == 2:
            signal.raise_signal(signal.SIGINT)
            self.n_trainings += 1


def test_an_interrupt_says_what_resume_will_do(recipe, data):
    with pytest.raises(KeyboardInterrupt, match="seed 2 is not finished; with --resume it begins"):
        finetune_task(recipe(seeds=[1, 2]), data(progress=_Interrupted()))
    resumed = finetune_task(recipe(seeds=[1, 2]), data(resume=True))
    assert results(resumed.run)["seeds"] == [1, 2]


@pytest.mark.parametrize(
    ("task", "name", "values"),
    [
        ("ner", "types", ("keep", "ignore")),
        ("relation", "negative", (["0"], ["0", "false"])),
        ("matching", "positive", ("1", "0")),
        ("ranking", "questions", ("answered", "single")),
    ],
)
def test_runs_whose_metrics_count_different_things_are_not_compared(tmp_path, task, name, values):
    metric = "acc@1" if task == "ranking" else "f1"

    def run(folder, value):
        found = {metric: {"mean": 0.5, "deviation": 0.1, "values": [0.4, 0.6]}}
        content = {
            "task": task,
            "metric": metric,
            "counting": [name],
            "seeds": [1, 2],
            "data": {"test": "x"},
        }
        recipe = {"recipe": {"config": {name: value, "dropout": 0.1}}}
        RESULTS.write(tmp_path / folder, {**content, **recipe, "test": found})
        return tmp_path / folder

    one, other = (run(str(number), value) for number, value in enumerate(values))
    with pytest.raises(ConfigError, match=rf"count different things: config\.{name} is "):
        compare_runs(one, other)
    assert compare_runs(one, one)["difference"] == 0
    if isinstance(values[1], list):
        assert compare_runs(other, run("turned", values[1][::-1]))["difference"] == 0


TWO_PROCESSES = """
import json, sys, time
from pathlib import Path
import torch
sys.path.insert(0, sys.argv[1])
from conftest import SENTENCES, document
from biograft.training.tasks import TaskRecipe, TaskTrainingData, finetune_task, runs
from biograft.models.tasks.task import TaskExamples
from biograft.training.tasks.results import RESULTS

documents = [document(number, text) for number, text in enumerate(SENTENCES)]
recipe = TaskRecipe.from_values("mine", json.loads(sys.argv[3]))
measure = runs._Run.test

def late(run, trial):
    if not run._processes.is_main_process:
        time.sleep(2)  # so that it looks when the main process has long done so
    return measure(run, trial)

runs._Run.test = late
for number, test in enumerate((documents[7:], documents[:2])):
    sets = {"train": documents[:7], "dev": documents, "test": test}
    examples = {name: TaskExamples(examples) for name, examples in sets.items()}
    finetune_task(recipe, TaskTrainingData(**examples, out=Path(sys.argv[2]), resume=number > 0))
"""


@pytest.mark.long
def test_two_processes_agree_on_what_is_done(encoder_folder, tmp_path):
    values = {
        **VALUES,
        "encoder": {"name": str(encoder_folder), "max_length": 32},
        "search": {"seeds": [1, 2]},
    }
    here, out = Path(__file__).parent, tmp_path / "run"
    run_on_two(TWO_PROCESSES, here, out, json.dumps(values), log=tmp_path / "log")
    found = results(tmp_path / "run")
    assert found["n_examples"]["test"] == 2
    assert len(found["test"]["f1"]["values"]) == 2


AS_ONE = """
import pickle, sys
from pathlib import Path
from biograft.training.tasks import TaskRecipe, TaskTrainingData, finetune_task
from biograft.models.tasks.task import TaskExamples

values, examples = pickle.loads(Path(sys.argv[1]).read_bytes())
sets = {name: TaskExamples(examples) for name in ("train", "dev")}
recipe = TaskRecipe.from_values("mine", values)
finetune_task(recipe, TaskTrainingData(**sets, out=Path(sys.argv[2])))
"""


def questions(texts):
    return [
        RankingExample(text, tuple(Answer(texts[k], k == row % 2) for k in range(2 + row % 4)))
        for row, text in enumerate(texts)
    ]


@pytest.mark.slow
@pytest.mark.parametrize(
    "config",
    [
        {"head": "crf", "overlap": 4, "types": "keep"},
        pytest.param({"negatives": 0}, marks=pytest.mark.long),
        pytest.param({"lora": {"r": 4}, "overlap": 4}, marks=pytest.mark.long),
    ],
    ids=["ner", "ranking", "lora"],
)
def test_two_processes_are_as_one(documents, encoder_folder, tmp_path, config):
    """The loss of NER is a mean over words and that of ranking over pairs."""
    task = "ner" if "overlap" in config else "ranking"
    config = dict(config)
    lora = {"lora": config.pop("lora")} if "lora" in config else {}
    encoder = without_dropout(encoder_folder, tmp_path / "encoder")
    values = {
        "task": task,
        "encoder": {"name": str(encoder), "max_length": 32, **lora},
        "config": {
            **config,
            "dropout": 0.0,
            "training": VALUES["config"]["training"] | {"epochs": 2, "warmup_ratio": 0.0},
        },
    }
    examples = documents if task == "ner" else questions([d.text for d in documents])
    sets = {name: TaskExamples(examples) for name in ("train", "dev")}
    recipe = TaskRecipe.from_values("mine", values)
    finetune_task(recipe, TaskTrainingData(**sets, out=tmp_path / "one"))
    (tmp_path / "given").write_bytes(pickle.dumps((values, examples)))
    run_on_two(AS_ONE, tmp_path / "given", tmp_path / "two", log=tmp_path / "log")
    one, two = (losses(tmp_path / name / "runs/seed-1") for name in ("one", "two"))
    assert len(one) >= 3  # it stops when all of dev is right
    assert two == pytest.approx(one, abs=1e-5)


def test_processes_join_before_the_encoder_is_loaded(recipe, data, monkeypatch):
    with loads_after_joining(monkeypatch):
        finetune_task(recipe(), data())


def test_a_run_that_another_process_writes_is_refused_at_once(recipe, data, tmp_path):
    with held_elsewhere(tmp_path / "run"), pytest.raises(OutputError):
        finetune_task(recipe(seeds=[1]), data())
    assert not (tmp_path / "run").exists()


def test_the_model_has_a_card_that_hubs_read(recipe, data, documents, encoder_folder):
    train = TaskExamples(documents[:7], name="Toy set", language="en")
    result = finetune_task(recipe(seeds=[1, 2]), data(train=train))
    text = (result.model / "README.md").read_text()
    card = HubCard(text).data
    assert (card.library_name, card.pipeline_tag) == ("transformers", "token-classification")
    assert (card.language, card.datasets, card.license) == (["en"], ["Toy set"], None)
    assert card.base_model is None
    found = {(e.dataset_split, e.metric_type): e.metric_value for e in card.eval_results}
    row = result.results["seeds"].index(result.results["best_seed"])
    for split in ("dev", "test"):
        value = result.results[split]["f1"]["values"][row]
        assert found[split, "f1"] == pytest.approx(value, abs=1e-6)
    assert "Labels: `Disease`, `Drug`." in text
    assert "over the seeds 1, 2" in text
    folders = [str(encoder_folder), str(result.run)]
    for path in result.model.rglob("*"):
        if path.suffix in (".json", ".md"):
            assert not any(folder in path.read_text() for folder in folders), path
