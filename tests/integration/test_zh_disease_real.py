"""Exact counts of the real disease pages, and the graph that was made from them."""

import gzip
from collections import Counter
from functools import partial

import pytest

from biograft.kb.records import NameRecord, RelationRecord, TypeRecord

pytestmark = pytest.mark.slow


@pytest.fixture
def reading(reading):
    return partial(reading, format="zh-disease")


@pytest.fixture(scope="module")
def folder() -> str:
    return "zh/medical_kg"


def test_counts(shared_data, reading, folder):
    result = reading(shared_data(f"{folder}/diseases.jsonl.gz"))
    assert result.log.n_read == 8792
    assert result.log.rejected.counts == {"cut short in the source": 1086}
    assert result.log.doubtful.counts == {"id defined twice": 1}
    assert result.log.doubtful.examples["id defined twice"][0].text == "胎膜早破"
    assert result.counts["definitions"] == result.counts["ids"] == 8792
    assert result.counts["relations"] == 275_036
    assert len(result.of(NameRecord)) == len(result.concepts) == 24_482
    assert Counter(r.type for r in result.of(TypeRecord)) == {
        "Disease": 8799,
        "Symptom": 6164,
        "Food": 4854,
        "Check": 3342,
        "Drug": 1204,
        "Treatment": 538,
        "Department": 54,
    }


def test_relations_are_those_of_the_derived_graph(shared_data, reading, folder):
    """Only items cut short are missing, and nothing is added."""
    result = reading(shared_data(f"{folder}/diseases.jsonl.gz"))
    mine = {(r.head, r.relation, r.tail) for r in result.of(RelationRecord)}
    theirs = set()
    with gzip.open(shared_data(f"{folder}/triples_derived.tsv.gz"), "rt") as file:
        for line in file:
            head, relation, tail, *_, source = line.rstrip("\n").split("\t")
            if source == "medical":
                theirs.add((head, relation, tail))
    assert not mine - theirs
    assert all(tail.endswith(("...", "…")) for _, _, tail in theirs - mine)
