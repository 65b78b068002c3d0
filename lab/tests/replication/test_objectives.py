"""The text of the experiments on objectives, and their table."""

from __future__ import annotations

import numpy as np
import pytest

from biograft.errors import ConfigError
from biograft.training.run_folder import start_run
from biograft_lab.replication import Experiment, ExperimentJob, english_graph
from biograft_lab.replication.objectives import (
    PretrainingSettings,
    PretrainingVariant,
    pretrain_variant,
    split_text,
    variant_recipe,
)
from biograft_lab.replication.runner import parse_settings
from biograft_lab.replication.tables import learned_objectives


def test_no_held_out_document_is_in_training_in_other_words(tmp_path):
    """Splits are disjoint, and a near-duplicate of a held-out document is in none of them."""
    rng, letters = np.random.default_rng(0), list("abcdefghijklmnopqrstuvwxyz")
    lines = [" ".join("".join(rng.choice(letters, 6)) for _ in range(40)) for _ in range(400)]
    lines += [f"Again: {line}" for line in lines]
    (tmp_path / "text.txt").write_text("\n".join([*lines, "short"]), encoding="utf-8")
    sizes = {"train": 150, "held_out": 60, "characters": 100}
    split_text(tmp_path / "text.txt", tmp_path / "split", **sizes)
    parts = {
        name: (tmp_path / "split" / f"{name}.txt").read_text("utf-8").splitlines()
        for name in ("train", "dev", "test")
    }
    assert len(parts["train"]) == 150
    assert len(parts["test"]) == 60
    plain = {name: {line.removeprefix("Again: ") for line in of} for name, of in parts.items()}
    assert not plain["test"] & (plain["train"] | plain["dev"])
    assert not plain["dev"] & plain["train"]


def test_the_table_says_how_far_above_chance():
    found = {"accuracy": 0.7, "chance": 0.5, "error": 0.02, "n": 1200.0}
    held_out = {f"sentence_order.{name}": value for name, value in found.items()}
    row = {"config": "SMedBERT", "pretraining_seed": 1, "held_out": held_out}
    table = learned_objectives("learnable-order", {"rows": [row]})
    last = "| SMedBERT | 1 | sentence order | 1,200 | 70.0 ± 2.0 | 50.0 | +10.0 |"
    assert table.splitlines()[-1] == last


def test_an_encoder_of_another_recipe_is_refused(tmp_path):
    experiment = Experiment.load("learnable-order")
    for name in experiment.inputs:
        (tmp_path / name).mkdir()
    job = ExperimentJob(
        experiment=experiment, work=tmp_path, data=tmp_path, out=tmp_path / "out.json"
    )
    settings = parse_settings(experiment, PretrainingSettings)
    recipe = variant_recipe(PretrainingVariant(), settings, job.input)
    folder = tmp_path / "seed-1" / "pretrained" / "MLM"
    folder.mkdir(parents=True)
    start_run(folder, {**recipe.to_json(), "name": "another"}, {})
    (folder / "done").touch()
    with pytest.raises(ConfigError, match="another"):
        pretrain_variant(job, "MLM", PretrainingVariant(), 1)


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
