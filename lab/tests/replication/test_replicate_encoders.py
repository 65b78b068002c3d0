"""Experiments with encoders and probes: rows are identified by all settings, runs are checked."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from biograft.errors import ConfigError, InputError
from biograft.training.run_folder import start_run
from biograft_lab.replication import (
    Experiment,
    ExperimentJob,
    encoders,
    english_graph,
    run_experiment,
)
from biograft_lab.replication.encoders import TASK_SETS

HEADER = 'about = "A."\n'
TASKS = """kind = "encoder_tasks"
sets = ["ncbi"]
seeds = [4]
[inputs]
one = "a folder"
[settings]
task_changes = {changes}
[variants.One]
encoder = "one"
"""


@pytest.fixture
def job(write, tmp_path):
    def make(text, **changes):
        experiment = Experiment.load(write("x.toml", HEADER + text))
        out = tmp_path / "out.json"
        return ExperimentJob(
            experiment=experiment, work=tmp_path, data=tmp_path, out=out, **changes
        )

    return make


def test_a_row_with_changes_differs_from_one_without(job, tmp_path, monkeypatch):
    (tmp_path / "one").mkdir()
    measured = []

    def measure(self):
        measured.append(list(self.settings.task_changes))
        return {"encoders": {"One": {"test": {"mean": 1.0}}}}

    monkeypatch.setattr(encoders.FineTuning, "measure", measure)
    counts = []
    for changes in (["config.head=crf"], [], ["config.head=crf"]):
        made = job(TASKS.format(changes=changes))
        run_experiment(made)
        counts.append(len(json.loads(made.out.read_text("utf-8"))["rows"]))
    assert counts == [1, 2, 2]
    assert measured == [["config.head=crf"], []]


def test_seeds_and_epochs_of_a_row_override_changes(job):
    made = job(TASKS.format(changes=["config.training.epochs=5"]))
    settings = encoders.parse_settings(made.experiment, encoders.EncoderTaskSettings, "ncbi")
    recipe = encoders.FineTuning("ncbi", made, settings, {}, {}).recipe()
    assert (recipe.search.seeds, recipe.config.training.epochs) == ((4,), 3)


def test_an_encoder_of_another_recipe_is_refused(job, tmp_path):
    experiment = Experiment.load("embert-seeds")
    for name in experiment.inputs:
        (tmp_path / name).mkdir()
    made = ExperimentJob(
        experiment=experiment, work=tmp_path, data=tmp_path, out=tmp_path / "out.json"
    )
    settings = encoders.parse_settings(experiment, encoders.EncoderTaskSettings)
    paths = {name: tmp_path / name for name in experiment.inputs}
    recipe = encoders.variant_recipe(encoders.EncoderVariant(), settings, paths)
    folder = tmp_path / "pretrained" / "EMBERT"
    folder.mkdir(parents=True)
    start_run(folder, {**recipe.to_json(), "name": "another"}, {})
    (folder / "done").touch()
    with pytest.raises(ConfigError, match="another"):
        encoders.pretrain_variant("EMBERT", encoders.EncoderVariant(), made, {})


def test_a_missing_file_of_a_task_is_named():
    with pytest.raises(InputError, match=r"train\.tsv.*BIOGRAFT_DATA"):
        TASK_SETS["ncbi"].path("train", Path("nowhere"))


def test_concepts_of_mesh_have_the_parents_and_types_of_all_positions():
    positions = [
        {"mesh_id": "D1", "mesh_name": "Acids", "mesh_tree_number": "D02"},
        {"mesh_id": "D2", "mesh_name": "Aspirin", "mesh_tree_number": "D02.455"},
        {"mesh_id": "D2", "mesh_name": "Aspirin", "mesh_tree_number": "D27.100"},
    ]
    chemicals = [
        {"mesh_id": "D2", "name": "Aspirin"},
        {"mesh_id": "D2", "name": "acetylsalicylic acid"},
        {"mesh_id": "D2", "name": "a|b"},
        {"mesh_id": "C9", "name": "bevonium"},
    ]
    rows = {row["id"]: row for row in english_graph.mesh_rows(positions, chemicals)}
    assert list(rows) == ["C9", "D1", "D2"]
    assert rows["D2"] == {
        "id": "D2",
        "name": "Aspirin",
        "synonyms": "acetylsalicylic acid",
        "parents": "D1",
        "type": "D02|D27",
    }
    assert rows["C9"]["name"] == "bevonium"
    assert rows["D1"]["parents"] == ""
