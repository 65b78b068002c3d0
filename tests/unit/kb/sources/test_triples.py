"""Triples: entities named by themselves, types by the header, faults with their lines."""

from __future__ import annotations

from collections import Counter
from functools import partial

import pytest

from biograft.errors import InputError
from biograft.graph import SPLITS, read_triples
from biograft.kb import BuildConfig, KnowledgeBase, build_store
from biograft.kb.records import NameRecord, RelationRecord, TypeRecord
from biograft.kb.sources import SourceConfig

TYPED = "head\trelation\ttail\thead_type\ttail_type\tsource\n"


@pytest.fixture
def read(reading, write):
    def of(text, **options):
        return partial(reading, format="triples")(write("a.tsv", text), **options)

    return of


def name(text, line, language="en"):
    return NameRecord(text, text, language, "preferred", line=line)


@pytest.mark.parametrize("header", ["", "head\trelation\ttail\n"])
def test_entities_are_yielded_once_and_every_triple_each_time(read, header):
    result = read(header + "flu\tcauses\tfever\r\n\nflu\tcauses\tcough\nfever\tin\tflu\n")
    n = header.count("\n")
    assert result.records == [
        name("flu", 1 + n),
        name("fever", 1 + n),
        RelationRecord("flu", "causes", "fever", line=1 + n),
        name("cough", 3 + n),
        RelationRecord("flu", "causes", "cough", line=3 + n),
        RelationRecord("fever", "in", "flu", line=4 + n),
    ]
    assert (result.log.n_read, result.log.rejected.counts) == (3, {})


def test_the_header_may_have_type_columns(read):
    result = read(TYPED + "flu\tcauses\tfever\tDisease\tSymptom\tx\nflu\tis\tfever\tSymptom\t\t\n")
    assert result.of(TypeRecord) == [
        TypeRecord("flu", "Disease", line=2),
        TypeRecord("fever", "Symptom", line=2),
        TypeRecord("flu", "Symptom", line=3),
    ]
    assert read("a\tb\tc\tDisease\tSymptom\n").of(TypeRecord) == []


def test_without_a_language_a_name_goes_by_its_script(read):
    names = read("流感\t症状\t发热\nflu\t症状\t发热\n").of(NameRecord)
    assert [(each.text, each.language) for each in names] == [
        ("流感", "zh"),
        ("发热", "zh"),
        ("flu", "en"),
    ]


def test_same_as_makes_synonyms(read):
    text = (
        "flu\talias\tgrippe\tDisease\tDisease\ngrippe\tcauses\tfever\nflu\tcauses\tcough\n"
        "cold\talias\tcatarrh\nflu\talias\tcatarrh\ncold\talias\tflu\n"
    )
    result = read(text, same_as=("alias",))
    names = {(r.concept, r.text, r.kind) for r in result.of(NameRecord)}
    assert names == {
        ("flu", "flu", "preferred"),
        ("flu", "grippe", "synonym"),
        ("fever", "fever", "preferred"),
        ("cough", "cough", "preferred"),
        ("cold", "cold", "preferred"),
        ("catarrh", "catarrh", "preferred"),
    }
    assert [(r.head, r.relation, r.tail) for r in result.of(RelationRecord)] == [
        ("flu", "causes", "fever"),
        ("flu", "causes", "cough"),
        ("cold", "alias", "catarrh"),
        ("flu", "alias", "catarrh"),
        ("cold", "alias", "flu"),
    ]
    assert result.log.notes == [
        "2 names of several entities, or with names of their own, stay entities"
    ]


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


def test_a_triple_in_two_splits_stays_held_out(folder, tmp_path):
    """One that is to be predicted was learned from, had train come first."""
    build_store(BuildConfig(sources=(SourceConfig(path=folder),)), tmp_path / "kb")
    base = KnowledgeBase.open(tmp_path / "kb")
    triples = read_triples(base)
    assert Counter(SPLITS[k] for k in triples.splits) == {"test": 3, "valid": 3, "train": 3}
    test = triples.of_split("test")
    pairs = {(base.id_at(h), base.id_at(t)) for h, t in zip(test.heads, test.tails, strict=True)}
    assert ("a", "c") in pairs
    assert base.manifest["merged"]["relations"] == 1


def test_a_folder_without_splits_is_refused(tmp_path, reading):
    with pytest.raises(InputError, match="holds no triples"):
        reading(tmp_path, format="triples")
