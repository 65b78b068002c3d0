"""Accuracy of linking is measured set by set, and a run that was interrupted goes on."""

from __future__ import annotations

import gzip
import io
import json
import sys
import tarfile
from typing import Any, NamedTuple

import pytest
from tiny_models import tiny_encoder_folder

from biograft.kb import BuildConfig, KnowledgeBase, build_store
from biograft.sources import SourceConfig

DICTIONARY = "D1||breast cancer\nD1||breast neoplasm\nD2|D9||ovarian cancer\nD3||common cold\n"
CONCEPTS = "1||0|3||Disease||breast cancers||D1\n1||5|9||Disease||colds||D2\n"


@pytest.fixture
def data(tmp_path):
    """A folder of real data's shape, with one set in it."""
    place = tmp_path / "data/entity_linking/ncbi_disease/biosyn"
    place.mkdir(parents=True)
    with gzip.open(place / "dev_dictionary.txt.gz", "wt", encoding="utf-8") as file:
        file.write(DICTIONARY)
    with tarfile.open(place / "concept_files.tar.gz", "w:gz") as archive:
        member = tarfile.TarInfo("processed_dev/1.concept")
        member.size = len(CONCEPTS)
        archive.addfile(member, io.BytesIO(CONCEPTS.encode()))
    return tmp_path / "data"


class Ran(NamedTuple):
    rows: list[dict[str, Any]]
    """What the file of results holds now."""
    out: str
    err: str
    status: object


@pytest.fixture
def measure(script, data, tmp_path, monkeypatch, capsys):
    """Run the script on that folder."""

    def run(*options):
        out = tmp_path / "linking.json"
        places = ["--data", str(data), "--work", str(tmp_path / "work"), "--out", str(out)]
        monkeypatch.setattr(sys, "argv", ["linking_accuracy.py", *places, *options])
        status = None
        try:
            script("linking_accuracy").main()
        except SystemExit as stopped:
            status = stopped.code
        rows = json.loads(out.read_text(encoding="utf-8"))["rows"] if out.exists() else []
        return Ran(rows, *capsys.readouterr(), status)

    return run


def test_a_set_is_measured_once(measure):
    first = measure("--sets", "ncbi-disease,zh-procedures,xlbel-en")
    (row,) = first.rows
    assert (row["set"], row["split"], row["config"]) == ("ncbi-disease", "dev", "lexical")
    # "breast cancers" is found; "colds" is, too, but the gold says otherwise
    assert (row["n"], row["acc@1"], row["coverage"]) == (2, 50.0, 100.0)
    assert row["intervals"]["acc@1"][0] <= 50 <= row["intervals"]["acc@1"][1]
    assert row["seeds"] == {"bootstrap": 0}
    assert row["command"].startswith("python benchmarks/linking_accuracy.py ")
    assert "zh-procedures: left out" in first.err
    assert "xlbel-en: left out, it has no dev part" in first.err

    again = measure("--sets", "ncbi-disease")
    assert (again.rows, again.out) == (first.rows, "")
    strict = measure("--sets", "ncbi-disease", "--scorer", "strict")
    assert strict.rows[0] == first.rows[0]
    assert [row["scorer"] for row in strict.rows] == ["lenient", "strict"]
    anew = measure("--sets", "ncbi-disease", "--again")
    assert len(anew.rows) == 2
    assert json.loads(anew.out)["scorer"] == "lenient"


def test_an_encoder_is_measured_alone_and_with_letters(measure, tmp_path):
    names = [line.partition("||")[2] for line in DICTIONARY.splitlines()]
    folder = tiny_encoder_folder(tmp_path / "encoder", names)
    options = ("--sets", "ncbi-disease", "--encoder")
    first = measure(*options, f"tiny={folder}", "--config", "dense,both")
    assert [row["config"] for row in first.rows] == ["dense:tiny", "both:tiny"]
    assert all(len(row["encoder"]["fingerprint"]) == 64 for row in first.rows)

    # a name stands for one encoder: another under the same name is refused
    other = tiny_encoder_folder(tmp_path / "other", names, seed=1)
    refused = measure(*options, f"tiny={other}", "--config", "dense", "--again")
    assert refused.rows == first.rows
    assert "another encoder" in refused.status


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (("--sets", "ncbi"), "expected some of ncbi-disease"),
        (("--config", "dense"), "need an --encoder"),
        (("--encoder", "folder"), "NAME=DIR"),
    ],
)
def test_what_cannot_be_is_refused(measure, options, told):
    ran = measure(*options)
    assert (ran.rows, ran.status) == ([], 2)
    assert told in ran.err


def test_the_dictionary_of_a_fold_holds_its_train_part(script, write, tmp_path):
    lines = "7\tFever\thot\n8\tMénière's disease\tspinning\n7\tFever\thot\n"
    lines += "7\tFever\tburning up\n\nbad\n"
    train = write("train.txt", lines.encode("cp1252"))
    script("linking_sets").write_train_dictionary(train, tmp_path / "dictionary.txt")
    written = (tmp_path / "dictionary.txt").read_text(encoding="utf-8").splitlines()
    assert written == [
        *("7||Fever", "8||Ménière's disease"),
        *("7||hot", "8||spinning", "7||burning up"),
    ]


def test_names_are_given_to_the_umls_ids_that_concepts_refer_to(script, write, tmp_path):
    terms = (
        "format-version: 1.2\n\n[Term]\nid: HP:1\nname: Fever\nxref: UMLS:C0015967\n"
        'synonym: "Pyrexia" EXACT []\n\n[Term]\nid: HP:2\nname: Cough\nxref: SNOMEDCT_US:49727002\n'
    )
    translated = write("zh.tsv", "subject\tname\nHP:1\t发热\n")
    sources = (
        SourceConfig(path=write("a.obo", terms), format="obo"),
        SourceConfig(
            path=translated,
            format="table",
            language="zh",
            columns={"id": "subject", "name": "name"},
        ),
    )
    build_store(BuildConfig(sources=sources), tmp_path / "kb")
    given = script("linking_sets").names_by_cui(KnowledgeBase.open(tmp_path / "kb"))
    names = {("Fever", "en"), ("Pyrexia", "en"), ("发热", "zh")}
    assert set(given) == {("C0015967", *name) for name in names}


def test_every_set_reads_its_real_files(script, shared_data):
    sets = script("linking_sets").SETS
    data = shared_data("entity_linking").parent
    assert {name for name, each in sets.items() if "dev" not in each.gold} == {
        *("xlbel-en", "xlbel-es", "xlbel-zh")
    }
    sizes = {
        name: len(sets[name].read_gold(data, split).queries)
        for name, split in (("bc5cdr-chemical", "dev"), ("askapatient-3", "dev"))
    }
    phrases = (data / sets["askapatient-3"].gold["dev"]).read_bytes().splitlines()
    assert sizes["askapatient-3"] == len([line for line in phrases if line.strip()])
    assert 5000 < sizes["bc5cdr-chemical"] <= 5347


def test_the_table_shows_test_parts_first_and_folds_as_one(script):
    def row(name, split, config, accuracy):
        figures = {"acc@1": accuracy, "acc@5": accuracy + 5, "n": 100, "coverage": 99.0}
        interval = {"intervals": {"acc@1": [accuracy - 1, accuracy + 1]}, "scorer": "lenient"}
        return {"set": name, "split": split, "config": config, **figures, **interval}

    rows = [
        row("ncbi-disease", "dev", "lexical", 80.0),
        row("ncbi-disease", "test", "lexical", 82.0),
        row("ncbi-disease", "test", "both:x", 90.0),
        row("bc5cdr-disease", "dev", "lexical", 70.0),
        row("askapatient-0", "test", "lexical", 60.0),
        row("askapatient-1", "test", "lexical", 64.0),
        row("ncbi-disease", "test", "lexical", 10.0) | {"scorer": "strict"},
    ]
    text = script("tables").linking({"rows": rows})
    assert "| letters | x |" in text
    assert "| ncbi-disease | test | 100 | 99 % | 82.0 (81.0–83.0) | – / 90.0 |" in text
    assert "| bc5cdr-disease | dev | 100 | 99 % | 70.0 (69.0–71.0) |  |" in text
    assert "| askapatient, mean of 2 folds | test | 200 | 99 % | 62.0 |  |" in text
    assert "80.0" not in text
    assert "10.0" not in text
