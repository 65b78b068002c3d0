"""The knowledge base that ships: large enough, sound, and right about MeSH."""

from __future__ import annotations

import csv
import json
from importlib import resources

import pytest

from biograft.kb import KnowledgeBase, build_starter


@pytest.fixture(scope="module")
def report_and_base(tmp_path_factory):
    folder = tmp_path_factory.mktemp("starter") / "KB"
    return build_starter(folder), KnowledgeBase.open(folder)


@pytest.fixture(scope="module")
def base(report_and_base):
    return report_and_base[1]


@pytest.fixture(scope="module")
def sample():
    text = (resources.files("biograft") / "starter" / "sample.jsonl").read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines()]


def test_nothing_is_rejected_and_the_hierarchy_has_no_cycle(report_and_base):
    report, _ = report_and_base
    assert report.warnings == ()
    assert [source.rejected for source in report.sources] == [{}]
    assert not any(report.merged.values())


def test_every_concept_has_what_was_promised(base):
    n_with_synonyms = 0
    for concept in base:
        english = [name for name in concept.names if name.language == "en"]
        chinese = [name for name in concept.names if name.language == "zh"]
        assert english[0].kind == "preferred", concept.id
        assert chinese, concept.id
        assert chinese[0].kind == "preferred", concept.id
        assert len(concept.types) == 1, concept.id
        assert len(concept.definition.split()) >= 8, concept.id
        n_with_synonyms += len(english) > 3
    assert n_with_synonyms >= 0.9 * len(base)


def test_every_mesh_id_carries_the_name_mesh_gives_it(base, shared_data):
    with shared_data("entity_linking/mesh/mesh_descriptors_2015.tsv").open() as file:
        mesh = {row["mesh_id"]: row["mesh_name"] for row in csv.DictReader(file, delimiter="\t")}
    ours = [concept for concept in base if not concept.id.startswith("BG:")]
    assert len(ours) >= 0.9 * len(base)
    assert [(c.id, c.name) for c in ours if mesh.get(c.id) != c.name] == []
    headings = {name.lower() for name in mesh.values()}
    unnumbered = [c.name for c in base if c.id.startswith("BG:")]
    assert [name for name in unnumbered if name.lower() in headings] == []


def test_the_samples_offsets_slice_to_its_mentions_and_its_ids_exist(base, sample):
    for text in sample:
        end = 0
        for mention in text["mentions"]:
            assert mention["start"] >= end, text["id"]
            end = mention["end"]
            assert text["text"][mention["start"] : end] == mention["text"], text["id"]
            assert all(identifier in base for identifier in mention["concepts"]), text["id"]
