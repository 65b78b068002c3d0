"""The knowledge base that ships: large enough, sound, and right about MeSH."""

from __future__ import annotations

import csv
import json
from collections import defaultdict
from importlib import resources

import pytest

from biograft.kb import BuildConfig, KnowledgeBase, build_starter, build_store
from biograft.kb.sources import SourceConfig


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


@pytest.fixture(scope="module")
def with_findings(tmp_path_factory):
    folder = tmp_path_factory.mktemp("findings") / "KB"
    sources = tuple(SourceConfig(path=name) for name in ("starter", "clinical-findings"))
    return build_store(BuildConfig(sources=sources), folder), KnowledgeBase.open(folder)


def test_every_finding_has_names_in_both_languages(with_findings, base):
    report, kb = with_findings
    assert [source.rejected for source in report.sources] == [{}, {}]
    added = [concept for concept in kb if concept.id not in base]
    assert len(added) >= 3000
    for concept in added:
        assert {name.language for name in concept.names} == {"en", "zh"}, concept.id
        assert len(concept.types) == 1, concept.id
        assert concept.types[0].code in {"disease", "symptom", "finding", "procedure"}, concept.id


def test_a_finding_shares_no_name_with_another_concept(with_findings, base):
    """Some findings of the notes share a name with a concept of the starter."""
    starter = {concept.id for concept in base}
    concepts_of = defaultdict(set)
    for concept in with_findings[1]:
        for name in concept.names:
            concepts_of[name.text.casefold()].add(concept.id)
    shared = {name for name, ids in concepts_of.items() if len(ids) > 1 and not ids <= {*starter}}
    assert shared == set(
        "静脉曲张 甲状腺肿大 椎间盘突出 转移癌 鹅口疮 消瘦 幻听 幻视 腰痛 视力下降".split()
    )


def test_frequent_words_of_chinese_patients_and_records_are_found(with_findings):
    names = {name.text for concept in with_findings[1] for name in concept.names}
    wanted = "胸闷 隐痛 酸痛 破皮 上火 口干舌燥 代谢紊乱 萎缩性胃炎 高热惊厥 重度贫血 癌变"
    assert [word for word in wanted.split() if word not in names] == []


def test_a_finding_with_a_mesh_id_has_the_name_mesh_gives_it(with_findings, shared_data):
    with shared_data("entity_linking/mesh/mesh_descriptors_2015.tsv").open() as file:
        mesh = {row["mesh_id"]: row["mesh_name"] for row in csv.DictReader(file, delimiter="\t")}
    ours = [concept for concept in with_findings[1] if not concept.id.startswith("BG:")]
    assert [(c.id, c.name) for c in ours if mesh.get(c.id) != c.name] == []
