"""Two knowledge bases matched: names, numbers, rivals, hierarchy and cross-references."""

from __future__ import annotations

import pytest
from generative_store import store_in

from biograft.linking.lexical.index import LexicalIndex
from biograft.mapping import MappingSet, find_conflicts
from biograft.mapping.config import MatchConfig
from biograft.mapping.matching import as_set, match_stores

FIRST = [
    {"id": "DOID:1", "name": "disease", "names": []},
    {
        "id": "DOID:2",
        "name": "diabetes mellitus",
        "names": ["sugar disease"],
        "relations": {"is-a": ["DOID:1"]},
    },
    {
        "id": "DOID:3",
        "name": "type 1 diabetes mellitus",
        "names": [],
        "relations": {"is-a": ["DOID:2"]},
    },
    {
        "id": "DOID:4",
        "name": "type 2 diabetes mellitus",
        "names": ["NIDDM"],
        "relations": {"is-a": ["DOID:2"]},
    },
    {
        "id": "DOID:5",
        "name": "heart attack",
        "names": ["myocardial infarction"],
        "relations": {"is-a": ["DOID:1"]},
    },
    {
        "id": "DOID:6",
        "name": "zebra stripe syndrome",
        "names": [],
        "relations": {"is-a": ["DOID:2"]},
    },
    {
        "id": "DOID:7",
        "name": "grippe",
        "names": [],
        "ids": [{"id": "MESH:D007251", "kind": "xref"}],
    },
]
SECOND = [
    {"id": "D003920", "name": "Diabetes Mellitus", "names": ["Diabetes"]},
    {"id": "D003922", "name": "Diabetes Mellitus, Type 1", "names": ["Type I Diabetes Mellitus"]},
    {
        "id": "D003924",
        "name": "Diabetes Mellitus, Type 2",
        "names": ["NIDDM", "Type II Diabetes Mellitus"],
    },
    {"id": "D009203", "name": "Myocardial Infarction", "names": ["Cardiac infarct"]},
    {"id": "D007251", "name": "Influenza, Human", "names": []},
]


@pytest.fixture
def stores(tmp_path):
    return store_in(tmp_path, FIRST, "A"), store_in(tmp_path, SECOND, "B")


def matched(stores, **settings):
    first, second = stores
    config = MatchConfig(**settings)
    found = match_stores(first, second, LexicalIndex.build(second), config)
    return {first.id_at(each.subject): (second.id_at(each.target), each.relation) for each in found}


def test_names_numbers_and_cross_references_decide(stores):
    assert matched(stores) == {
        "DOID:2": ("D003920", "exact"),
        "DOID:3": ("D003922", "exact"),
        "DOID:4": ("D003924", "exact"),
        "DOID:5": ("D009203", "exact"),
        "DOID:6": ("D003920", "broad"),
        "DOID:7": ("D007251", "exact"),
    }
    without = matched(stores, xrefs=False, broader=False)
    assert without.keys() == {"DOID:2", "DOID:3", "DOID:4", "DOID:5"}


@pytest.mark.parametrize("turned", [False, True])
def test_the_parent_decides_between_concepts_of_one_name(tmp_path, turned):
    def family(prefix, *parents):
        return [
            {"id": f"{prefix}:{n}", "name": parent, "names": []} for n, parent in enumerate(parents)
        ]

    first = [
        *family("A", "diseases of the heart"),
        {"id": "A:9", "name": "failure", "names": [], "relations": {"is-a": ["A:0"]}},
    ]
    below = [
        {"id": f"B:{9 - n}", "name": "failure", "names": [], "relations": {"is-a": [f"B:{n}"]}}
        for n in range(2)
    ]
    parents = ["diseases of the kidney", "diseases of the heart"]
    if turned:
        parents = parents[::-1]
    stores = store_in(tmp_path, first, "A"), store_in(tmp_path, family("B", *parents) + below, "B")
    right = "B:9" if turned else "B:8"
    assert matched(stores) == {
        "A:0": (f"B:{parents.index('diseases of the heart')}", "exact"),
        "A:9": (right, "exact"),
    }


@pytest.mark.parametrize("turned", [False, True])
def test_the_children_decide_between_concepts_of_one_name(tmp_path, turned):
    first = [
        {"id": "A:0", "name": "failure", "names": []},
        {"id": "A:1", "name": "cardiac asthma", "names": [], "relations": {"is-a": ["A:0"]}},
    ]
    second = [{"id": f"B:{n}", "name": "failure", "names": []} for n in range(2)]
    second += [
        {"id": "B:2", "name": "all", "names": []},
        *(
            {"id": f"B:{n + 3}", "name": name, "names": [], "relations": {"is-a": [f"B:{n}"]}}
            for n, name in enumerate(["cardiac asthma", "uraemia"][:: -1 if turned else 1])
        ),
    ]
    for each in second[:2]:
        each["relations"] = {"is-a": ["B:2"]}
    stores = store_in(tmp_path, first, "A"), store_in(tmp_path, second, "B")
    assert matched(stores)["A:0"] == ("B:1" if turned else "B:0", "exact")


def test_one_to_one_keeps_the_surest(tmp_path):
    first = store_in(
        tmp_path,
        [
            {"id": "DOID:5", "name": "myocardial infarction", "names": ["heart attack"]},
            {"id": "DOID:8", "name": "cardiac infarct", "names": []},
        ],
        "A",
    )
    stores = first, store_in(tmp_path, SECOND, "B")
    assert {found for found, _ in matched(stores).values()} == {"D009203"}
    assert matched(stores, one_to_one=True) == {"DOID:5": ("D009203", "exact")}


def test_the_order_of_concepts_does_not_matter(tmp_path):
    forward = matched((store_in(tmp_path, FIRST, "A"), store_in(tmp_path, SECOND, "B")))
    turned = store_in(tmp_path, FIRST[::-1], "C"), store_in(tmp_path, SECOND[::-1], "D")
    assert matched(turned) == forward


def test_the_command_writes_a_set_that_a_review_takes(stores, tmp_path, run_main, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = run_main("match", "A", "B", "-o", "ab.sssom.tsv", "--json", "-q")
    assert (done.code, '"n_exact":5' in done.out.replace(" ", "")) == (0, True)
    written = MappingSet.read("ab.sssom.tsv")
    assert not find_conflicts(written, stores[1])
    by_subject = {row.subject_id: row for row in written.rows}
    assert by_subject["DOID:7"].mapping_justification == "semapv:DatabaseCrossReference"
    assert by_subject["DOID:5"].object_id == "MESH:D009203"
    assert (by_subject["DOID:6"].relation, by_subject["DOID:6"].is_decided) == ("broad", False)
    assert 0.5 <= by_subject["DOID:5"].confidence <= 1
    imported = run_main("review", "import", "ab.sssom.tsv", "--review", "r.db", "--reviewer", "ann")
    assert (imported.code, imported.err) == (0, "")
    refused = run_main("match", "A", "B", "-o", "ab.sssom.tsv", "-q")
    assert refused.code == 2


def test_a_set_is_that_of_its_matches(stores):
    first, second = stores
    matches = match_stores(first, second, LexicalIndex.build(second))
    rows = as_set(matches, first, second).rows
    assert [row.confidence for row in rows if row.relation == "exact"] == sorted(
        (row.confidence for row in rows if row.relation == "exact"), reverse=True
    )
    assert {row.object_source for row in rows} == {"source:B"}
    assert all(len(row.subject_source_version) == 16 for row in rows)
