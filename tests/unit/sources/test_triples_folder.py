"""Triples in a folder of parts: recognised, what is held out read first, and kept held out."""

from collections import Counter

import pytest

from biograft.errors import InputError
from biograft.graph.triples import SPLITS, read_triples
from biograft.kb import BuildConfig, KnowledgeBase, build_store
from biograft.records import RelationRecord
from biograft.sources import Probe, SourceConfig
from biograft.sources.reader import sniff
from biograft.sources.triples import recognise

LINES = {
    "train": "a\tr\tb\nb\tr\tc\nc\tr\ta\na\tr\tc\n",
    "valid": "b\tr\ta\nc\tr\tc\nb\tr\tb\n",
    "test": "a\tr\ta\na\tr\tc\nc\tr\tb\n",
}


@pytest.fixture
def folder(write, tmp_path):
    for name, lines in LINES.items():
        write(f"graph/{name}.txt", lines)
    return tmp_path / "graph"


def test_a_folder_of_parts_is_recognised(folder):
    assert sniff(folder) == "triples"


@pytest.mark.parametrize("names", [("train.txt",), ("notes.txt", "test.csv"), ()])
def test_other_folders_are_not(names, write, tmp_path):
    for name in names:
        write(f"graph/{name}", LINES["train"])
    assert not recognise(Probe(tmp_path / "graph", b"", frozenset(names)))


def test_each_entity_is_told_once_and_lines_count_in_each_file(folder, reading):
    result = reading(folder, format="triples")
    relations = result.of(RelationRecord)
    assert [relation.line for relation in relations] == [1, 2, 3, 1, 2, 3, 1, 2, 3, 4]
    assert result.counts["names"] == 3


def test_a_triple_in_two_parts_stays_held_out(folder, tmp_path):
    """One that is to be predicted was learned from, had train come first."""
    build_store(BuildConfig(sources=(SourceConfig(path=folder),)), tmp_path / "kb")
    base = KnowledgeBase.open(tmp_path / "kb")
    triples = read_triples(base)
    assert Counter(SPLITS[k] for k in triples.splits) == {"test": 3, "valid": 3, "train": 3}
    test = triples.of_split("test")
    pairs = {(base.id_at(h), base.id_at(t)) for h, t in zip(test.heads, test.tails, strict=True)}
    assert ("a", "c") in pairs
    assert base.manifest["merged"]["relations"] == 1


def test_a_broken_line_is_told_with_its_file(folder, reading):
    (folder / "valid.txt").write_text(LINES["valid"] + "x\ty\n")
    result = reading(folder, format="triples")
    [(_, told)] = result.log.rejected.to_json().items()
    assert told["examples"] == [{"file": str(folder / "valid.txt"), "line": 4, "text": "x\ty"}]


def test_a_folder_without_parts_is_refused(tmp_path, reading):
    with pytest.raises(InputError, match="its files are to be called train, valid and test"):
        reading(tmp_path, format="triples")
