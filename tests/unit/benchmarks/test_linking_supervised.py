"""The benchmark of everything trained together: seed by seed, taken up where it stopped."""

from __future__ import annotations

import gzip
import io
import json
import sys
import tarfile

import pytest
from tiny_models import tiny_encoder_folder

DICTIONARY = "D1||breast cancer\nD1||breast neoplasm\nD2||ovarian cancer\nD3||common cold\n"
MENTIONS = {
    "train": [("breast tumour", "D1"), ("a cold", "D3"), ("ovary cancer", "D2")],
    "dev": [("breast cancers", "D1"), ("colds", "D3"), ("cancer of ovary", "D2")],
    "test": [("breast tumours", "D1"), ("cold", "D3")],
}


@pytest.fixture
def data(tmp_path):
    """A folder of real data's shape, with one set in it."""
    place = tmp_path / "data/entity_linking/ncbi_disease/biosyn"
    place.mkdir(parents=True)
    known = [*MENTIONS["train"], *MENTIONS["dev"]]
    grown = DICTIONARY + "".join(f"{concept}||{text}\n" for text, concept in known)
    for split, lines in (("train", DICTIONARY), ("test", grown)):
        with gzip.open(place / f"{split}_dictionary.txt.gz", "wt", encoding="utf-8") as file:
            file.write(lines)
    with tarfile.open(place / "concept_files.tar.gz", "w:gz") as archive:
        for split, mentions in MENTIONS.items():
            for number, (text, concept) in enumerate(mentions):
                line = f"{number}||0|3||Disease||{text}||{concept}\n".encode()
                member = tarfile.TarInfo(f"processed_{split}/{number}.concept")
                member.size = len(line)
                archive.addfile(member, io.BytesIO(line))
    return tmp_path / "data"


@pytest.fixture
def measure(script, data, tmp_path, monkeypatch, capsys):
    texts = [line.partition("||")[2] for line in DICTIONARY.splitlines()]
    texts += [text for mentions in MENTIONS.values() for text, _ in mentions]
    encoder, out = tiny_encoder_folder(tmp_path / "tiny", texts), tmp_path / "results.json"

    def run(*options):
        places = ["--data", str(data), "--work", str(tmp_path / "work"), "--out", str(out)]
        given = ["--encoder", str(encoder), "--set", "config.training.steps=3"]
        given += ["--set", "config.training.precision=fp32", "--sets", "ncbi-disease"]
        monkeypatch.setattr(sys, "argv", ["linking_supervised.py", *places, *given, *options])
        script("linking_supervised").main()
        return json.loads(out.read_text(encoding="utf-8"))["rows"], capsys.readouterr().out

    return run


def test_each_seed_is_trained_and_asked_once(measure, tmp_path):
    rows, _ = measure("--seeds", "0")
    assert [row["config"] for row in rows] == ["dense", "both", "ranked"]
    assert {row["seed"] for row in rows} == {0}
    assert all(row["n"] == 2 and row["split"] == "test" for row in rows)
    assert rows[1]["acc@5"] == 100  # what was said in train and dev is a name there
    trained = tmp_path / "work/ncbi-disease/seed-0"
    assert (trained / "encoder/encoder/model.safetensors").exists()
    again, told = measure("--seeds", "0")
    assert (again, told) == (rows, "")
    more, _ = measure("--seeds", "0,1")
    assert more[:3] == rows
    assert [row["seed"] for row in more] == [0, 0, 0, 1, 1, 1]


def test_the_table_has_a_line_for_each_set_over_its_whole_seeds(script):
    tables = script("tables")

    def rows(name, seed, first):
        given = {"set": name, "seed": seed, "acc@5": first + 5}
        return [{**given, "config": each, "acc@1": first + n}
                for n, each in enumerate(("dense", "both", "ranked"))]  # fmt: skip

    text = tables.linking_supervised(
        {
            "rows": [
                *rows("ncbi-disease", 0, 80.0),
                *rows("ncbi-disease", 1, 82.0),
                *rows("askapatient-0", 0, 60.0),
                *rows("askapatient-1", 0, 70.0),
                *rows("askapatient-0", 1, 10.0),  # a fold alone does not count
            ]
        }
    )
    assert (
        "| ncbi-disease | 2 | 81.0 ± 1.4 / 86.0 | 82.0 ± 1.4 / 86.0 | 83.0 ± 1.4 / 86.0 |" in text
    )
    assert "| askapatient, mean of 2 folds | 1 | 65.0 / 70.0 | 66.0 / 70.0 | 67.0 / 70.0 |" in text
