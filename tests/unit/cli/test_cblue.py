"""CBLUE whole: each task is trained by its recipe, predicted, written, read again and scored."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cblue_files import RECORDS, texts, without_answers, write_records
from command_runs import runner_of
from tiny_models import tiny_encoder_folder

from biograft.cli import app
from biograft.evaluation import CBLUE, score_submission
from biograft.recipe import Recipe

QUICK = (
    "config.training.learning_rate=0.01",
    "config.training.precision=fp32",
    "config.training.epochs=30",
    "config.training.batch_size=2",
    "encoder.max_length=48",
    "search.seeds=[1]",
)
TRAINED = [name for name in CBLUE if name != "CHIP-CDN"]


@pytest.fixture(scope="module")
def run() -> Callable[..., Any]:
    return runner_of(app)


@pytest.fixture(scope="module")
def encoder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_encoder_folder(tmp_path_factory.mktemp("cblue") / "encoder", texts(), layers=1)


def test_all_tasks_of_the_benchmark_are_declared_with_a_recipe():
    assert set(CBLUE) == set(RECORDS)
    for task in CBLUE.values():
        assert Recipe.load(task.recipe).data.format == task.format


@pytest.mark.parametrize("name", TRAINED)
def test_a_task_is_trained_predicted_written_and_scored(run, encoder, tmp_path, name):
    task = CBLUE[name]
    suffix = Path(task.file).suffix
    train = write_records(tmp_path / f"{name}_train{suffix}", RECORDS[name])
    given = write_records(tmp_path / f"given{suffix}", without_answers(name))
    own = ("config.overlap=8",) if Recipe.load(task.recipe).task == "ner" else ()
    changes = [word for change in (*QUICK, *own) for word in ("--set", change)]
    run("finetune", task.recipe, "--train", train, "--dev", train, "--encoder", encoder, *changes,
        "-o", tmp_path / "run", "--quiet")  # fmt: skip
    out = tmp_path / task.file
    run("cblue", "predict", name, given, "--model", tmp_path / "run", "-o", out)
    found = json.loads(run("cblue", "score", name, train, out, "--json").stdout)
    assert found["task"] == name
    assert found["score"] > (0.15 if task.metric == "rouge" else 0.6)
    run("cblue", "pack", out, "-o", tmp_path / "submission.zip")
    with zipfile.ZipFile(tmp_path / "submission.zip") as archive:
        assert archive.namelist() == [task.file]
        assert archive.read(task.file) == out.read_bytes()


def test_standard_names_are_predicted_with_a_knowledge_base(run, tmp_path):
    table = tmp_path / "names.tsv"
    table.write_text("code\tname\nM17\t膝关节炎\nI10\t高血压\nE14\t糖尿病\n", "utf-8")
    run("kb", "build", table, "--columns", "id=code,name=name", "-o", tmp_path / "kb")
    gold = write_records(tmp_path / "dev.json", RECORDS["CHIP-CDN"])
    given = write_records(tmp_path / "given.json", without_answers("CHIP-CDN"))
    out = tmp_path / "CHIP-CDN_test.json"
    run("cblue", "predict", "CHIP-CDN", given, "--kb", tmp_path / "kb", "-o", out)
    written = json.loads(out.read_text("utf-8"))
    assert [row["text"] for row in written] == [row["text"] for row in RECORDS["CHIP-CDN"]]
    assert set(written[1]["normalized_result"].split("##")) == {"高血压", "糖尿病"}
    assert score_submission("CHIP-CDN", gold, out)["score"] == 1
