"""Nested and re-worded mentions of a linker."""

from __future__ import annotations

import gzip
import importlib.util
import json
from itertools import pairwise

import pytest

from biograft.errors import ConfigError
from biograft.kb import BuildConfig, KnowledgeBase, build_store
from biograft.kb.sources import SourceConfig
from biograft.linking import OUTPUTS, Linker, write_linked
from biograft.linking.overlaps import INSIDE
from biograft.text.documents import Document

EYE = [
    {"id": "E1", "name": "Cataract", "names": ["lens opacity"]},
    {"id": "E2", "name": "Posterior cataract", "relations": {"is-a": ["E1"]}},
    {"id": "E3", "name": "Posterior"},
    {"id": "E4", "name": "Abnormality of the retina", "names": ["retinal abnormality"]},
    {"id": "E5", "name": "Abnormality of the macula", "names": ["macular abnormality"]},
]
TEXT = "No posterior cataract. Anomalies of the retina; macular and retinal abnormalities."


def spans(linked):
    return [(each.text, each.concept) for each in linked.mentions]


def test_of_names_inside_a_longer_one_broader_concepts_are_found(store_of):
    kb = store_of(EYE)
    assert spans(Linker.open(kb)("A posterior cataract.")) == [("posterior cataract", "E2")]
    linked = Linker.open(kb, overlaps="all")("A posterior cataract.")
    assert spans(linked) == [("posterior cataract", "E2"), ("cataract", "E1")]
    assert [(mention.text, why) for mention, why in linked.dropped] == [("posterior", INSIDE)]


def test_without_a_hierarchy_all_names_are_found(store_of):
    kb = store_of([{k: v for k, v in each.items() if k != "relations"} for each in EYE])
    linked = Linker.open(kb, overlaps="all")("A posterior cataract.")
    assert [text for text, _ in spans(linked)] == ["posterior cataract", "posterior", "cataract"]


def test_reworded_mentions_have_the_name_as_form_and_a_score_below_1(store_of):
    kb = store_of(EYE)
    assert spans(Linker.open(kb)("Anomalies of the retina.")) == []
    linker = Linker.open(kb, reworded=True, explain=True)
    (mention,) = linker("Anomalies of the retina.").mentions
    assert (mention.form, mention.concept) == ("Abnormality of the retina", "E4")
    assert 0.55 < mention.candidates[0].score < 1
    assert mention.explanation.form_from == "re-worded name"


def test_short_forms_of_reworded_names_are_found(store_of):
    """The short form stood for nothing, as its long form is no name word for word."""
    kb = store_of([{"id": "B1", "name": "Type C brachydactyly"}])
    text = "Brachydactyly type C (BDC) and no BDC."
    found = [(m.text, m.concept, m.status) for m in Linker.open(kb, reworded=True)(text).mentions]
    assert found == [
        ("Brachydactyly type C", "B1", "present"),
        ("BDC", "B1", "present"),
        ("BDC", "B1", "absent"),
    ]


def test_a_clinical_word_does_not_take_the_place_of_a_reworded_name_around_it(store_of):
    """*Nervous system tumors* was read as *nervous system cancer*, and the longer name was lost."""
    kb = store_of(
        [
            {"id": "T1", "name": "Tumors of the central nervous system"},
            {"id": "T2", "name": "Nervous system cancer"},
        ]
    )
    linked = Linker.open(kb, reworded=True)("Many central nervous system tumors.")
    assert spans(linked) == [("central nervous system tumors", "T1")]


def test_every_nested_mention_has_its_status(store_of):
    linked = Linker.open(store_of(EYE), reworded=True, overlaps="all")(TEXT)
    assert [(m.text, m.concept, m.status) for m in linked.mentions] == [
        ("posterior cataract", "E2", "absent"),
        ("cataract", "E1", "absent"),
        ("Anomalies of the retina", "E4", "present"),
        ("macular and retinal abnormalities", "E5", "present"),
        ("retinal abnormalities", "E4", "present"),
    ]


def test_of_overlapping_reworded_names_the_longest_stays(store_of):
    linked = Linker.open(store_of(EYE), reworded=True)(TEXT)
    found = dict.fromkeys((mention.start, mention.end) for mention in linked.mentions)
    assert all(a[1] <= b[0] for a, b in pairwise(found))


@pytest.mark.parametrize("to", list(OUTPUTS))
def test_outputs_hold_nested_mentions(store_of, tmp_path, to):
    if to == "parquet" and importlib.util.find_spec("pyarrow") is None:
        pytest.skip("pyarrow is not installed")
    kb = store_of(EYE)
    linked = [*Linker.open(kb, reworded=True, overlaps="all").pipe([Document("a", TEXT)])]
    write_linked(linked, tmp_path / "out", to, kb)
    if to == "jsonl":
        content = json.loads((tmp_path / "out").read_text())
        assert len(content["mentions"]) == 5


def test_spacy_holds_all_in_spans_and_the_longest_in_ents(store_of):
    spacy = pytest.importorskip("spacy")
    importlib.import_module("biograft.linking.spacy")
    nlp = spacy.blank("en")
    kb = str(store_of(EYE).folder)
    nlp.add_pipe("biograft", config={"kb": kb, "settings": {"overlaps": "all"}})
    doc = nlp("A posterior cataract.")
    assert [span.text for span in doc.spans["biograft"]] == ["posterior cataract", "cataract"]
    assert [ent.text for ent in doc.ents] == ["posterior cataract"]


def test_too_many_names_are_refused(store_of, monkeypatch):
    monkeypatch.setattr("biograft.linking.overlaps.MAX_NAMES", 3)
    with pytest.raises(ConfigError, match="reworded: the knowledge base has 8 names"):
        Linker.open(store_of(EYE), reworded=True)("text")


def test_phenotypes_of_gsc_plus(shared_data, tmp_path):
    """F1 of spans with their concepts on 60 abstracts: 65.7 by names as written."""
    source = tmp_path / "hp.obo"
    with gzip.open(shared_data("ontologies/obo/hp_2025-01-16.obo.gz")) as file:
        source.write_bytes(file.read())
    build_store(BuildConfig(sources=(SourceConfig(path=source),)), tmp_path / "kb")
    kb = KnowledgeBase.open(tmp_path / "kb")
    below = set(kb.descendants("HP:0000118"))
    chosen = set(shared_data("phenotypes/gsc_plus/choose_on.txt").read_text().split())
    blocks = shared_data("phenotypes/gsc_plus/GSCplus_test_gold.tsv").read_text().split("\n\n")
    lines = [block.strip("\n").split("\n") for block in blocks if block.strip()]
    lines = [of for of in lines if of[0] in chosen]
    linker = Linker.open(kb, k=1, reworded=True, overlaps="all")
    linked = linker.pipe([Document(of[0], of[1]) for of in lines])
    right = n_gold = n_found = 0
    for of, document in zip(lines, linked, strict=True):
        rows = [line.split("\t") for line in of[2:] if line.strip()]
        gold = {(int(a), int(b), c) for a, b, _, i in rows for c in kb.ids_of([i]) if c in below}
        found = {(m.start, m.end, m.concept) for m in document.mentions if m.concept in below}
        right, n_gold, n_found = right + len(gold & found), n_gold + len(gold), n_found + len(found)
    precision, recall = right / n_found, right / n_gold
    assert precision >= 0.835
    assert 2 * precision * recall / (precision + recall) >= 0.765
