"""One encoder for several sets: what it is trained on, averaged, and how its weight is chosen."""

from __future__ import annotations

import json

import pytest
import torch
from safetensors.torch import load_file
from tiny_models import tiny_encoder_folder
from toy_files import TOY_MENTIONS, TOY_NAMES, write_biosyn

from biograft.errors import ConfigError
from biograft.linking.dense.encoders import load_encoder
from biograft.linking.static import StaticEncoder
from biograft_lab.replication.linking_dictionaries import procedures_with_terms

SETS = ("ncbi_disease", "bc5cdr")
TEXTS = [name for group in TOY_NAMES.values() for name in group]
TEXTS += [text for mentions in TOY_MENTIONS.values() for text, _ in mentions]
JOINT = """about = "A."
kind = "joint_linking"
sets = ["ncbi-disease", "bc5cdr-disease"]
seeds = [0, 1]
[inputs]
encoder = "a folder"
[settings]
system = "Tiny"
changes = ["config.training.steps=2", "config.training.precision=fp32", "config.reach=2"]
protocols = ["ontology", "published"]
"""


@pytest.fixture
def run(tmp_path, measure):
    """Run the experiment on two toy sets; return its rows and the folder of its work."""
    for folder in ("ncbi_disease/biosyn", "bc5cdr/biosyn_disease"):
        write_biosyn(tmp_path / "data/entity_linking" / folder)
    encoder = tiny_encoder_folder(tmp_path / "tiny", TEXTS)

    def measured(text=JOINT):
        return measure(text, encoder)

    measured.said = measure.said
    return measured


def test_the_average_is_measured_with_the_weight_of_dev(run):
    rows, work = run()
    found = {(r["set"], r["protocol"], r["split"], r["config"]): r for r in rows}
    assert len(found) == len(rows) == 2 * 2 * 2 * 2
    for (name, protocol, split, config), row in found.items():
        assert row["seeds"] == [0, 1]
        assert row["trained_on"] == ["ncbi-disease", "bc5cdr-disease"]
        assert ("lexical_weight" in row) == (config == "Tiny + lexical")
        if split == "test" and config == "Tiny + lexical":
            dev = found[name, protocol, "dev", config]
            assert row["lexical_weight"] == dev["lexical_weight"]
    for split in ("dev", "test"):
        folder = work / f"for-{split}"
        parts = [load_file(folder / f"seed-{s}/encoder/model.safetensors") for s in (0, 1)]
        mean = load_file(folder / "average/model.safetensors")
        assert all(
            torch.allclose(mean[key], (parts[0][key] + parts[1][key]) / 2, atol=1e-6)
            for key in mean
        )
        assert any(not torch.equal(parts[0][key], parts[1][key]) for key in mean)
    counts = {
        split: json.loads((work / f"for-{split}/seed-0/metrics.jsonl").read_text().splitlines()[0])
        for split in ("dev", "test")
    }
    assert counts["test"]["rows"] >= counts["dev"]["rows"]
    assert run()[0] == rows
    assert len(run.said) == len(rows)  # nothing was measured again
    with pytest.raises(ConfigError, match="protocols"):
        run(JOINT.replace('"ontology", ', '"other", '))


def test_each_set_may_have_encoders_of_its_own(run):
    rows, work = run(f"{JOINT}together = false\nrefit = false\n".replace("[0, 1]", "[0]"))
    assert len(rows) == 2 * 2 * 2 * 2
    assert all(row["trained_on"] == [row["set"]] for row in rows)
    folders = [
        work / name / "for-dev/seed-0/encoder" for name in ("ncbi-disease", "bc5cdr-disease")
    ]
    assert all(folder.is_dir() for folder in folders)
    assert not (work / "for-dev").exists()


def test_a_student_of_the_average_is_measured_beside_it(run):
    student = (
        'student = "Small"\nstudent_changes = ["config.width=8", "config.training.epochs=1"]\n'
    )
    rows, work = run(f"{JOINT}{student}".replace("[0, 1]", "[0]"))
    assert {row["config"] for row in rows} == {
        "Tiny",
        "Tiny + lexical",
        "Small",
        "Small + lexical",
    }
    assert len(rows) == 2 * 2 * 2 * 4
    assert isinstance(load_encoder(work / "for-test/student/encoder"), StaticEncoder)
    assert not {row["lexical_weight"] for row in rows if row["config"] == "Small + lexical"} - {
        row["lexical_weight"] for row in rows if row["split"] == "dev" and "lexical_weight" in row
    }


def test_procedures_have_the_terms_of_earlier_splits(tmp_path):
    folder = tmp_path / "zh/term_normalisation"
    folder.mkdir(parents=True)
    (folder / "procedure_codes.tsv").write_text("1\t甲\n2\t乙\n3\t乙\n", encoding="utf-8")
    for split, rows in {"train": "a\t甲\nb\t乙\nc\t甲##乙\n", "dev": "d\t甲\n"}.items():
        text = f"原始词\t标准词\n{rows}"
        (folder / f"procedures_{split}.tsv").write_text(text, encoding="utf-8")
    source = procedures_with_terms(lambda split: f"zh/term_normalisation/procedures_{split}.tsv")
    lines = {}
    for split in ("train", "dev", "test"):
        (tmp_path / split).mkdir()
        made = source(tmp_path, split, tmp_path / split)
        assert made.language == "zh"
        lines[split] = made.path.read_text("utf-8").split()
    codes = ["1||甲", "2||乙", "3||乙"]
    assert lines["train"] == codes
    assert lines["dev"] == [*codes, "1||a", "2||b"]
    assert lines["test"] == [*codes, "1||a", "2||b", "1||d"]
