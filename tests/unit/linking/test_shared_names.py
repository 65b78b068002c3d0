"""Concepts that share a name: which comes first, and that an undecided choice is shown."""

from __future__ import annotations

import json

import pytest

from biograft.linking import Calibration, Linker, table
from biograft.text.documents import Document

STORE = [
    {
        "id": "HP:1",
        "name": "Inflammation of the large intestine",
        "names": [{"name": "inflammatory bowel disease", "kind": "synonym"}],
    },
    {"id": "DO:2", "name": "inflammatory bowel disease"},
    {"id": "A", "name": "Angina", "names": ["冠心病"]},
    {"id": "B", "name": "冠心病"},
    {
        "id": "N",
        "name": "Hepatocellular carcinoma",
        "names": [{"name": "liver cancer", "kind": "narrow"}],
    },
    {"id": "S", "name": "Liver Neoplasms", "names": ["liver cancer"]},
    {"id": "T1", "name": "Urinary Retention", "names": ["UR"]},
    {"id": "T2", "name": "Unit Rate", "names": ["UR"]},
    {"id": "T3", "name": "Upper Respiratory", "names": ["UR"]},
]


@pytest.fixture
def linker(store_of):
    return Linker.open(store_of(STORE), short_forms=False)


@pytest.mark.parametrize(
    ("text", "first"),
    [("inflammatory bowel disease", "DO:2"), ("冠心病", "B"), ("Liver  cancers", "S")],
)
def test_the_concept_that_prefers_the_name_comes_first(linker, text, first):
    candidates = linker.link_mentions([text])[0]
    assert candidates[0].concept == first
    assert candidates[0].tied == ()
    assert linker.link_mentions([text], k=1)[0][0].concept == first


def test_an_undecided_choice_is_shown_however_few_candidates_are_asked_for(linker):
    for k in (1, 5):
        first = linker.link_mentions(["UR"], k=k)[0][0]
        assert (first.concept, first.tied) == ("T1", ("T2", "T3"))
    (mention,) = linker("UR was seen.").mentions
    assert mention.ambiguous == ("T2", "T3")
    assert json.loads(json.dumps(mention.to_json()))["candidates"][0]["tied"] == ["T2", "T3"]
    assert "as well T2, T3" in table(linker("UR was seen."))[1]


def test_names_that_are_only_alike_are_not_tied(linker):
    assert linker.link_mentions(["inflamatory bowel diseese"])[0][0].tied == ()


def test_tied_concepts_share_the_probability(linker):
    calibration = Calibration("platt", ((10.0, 0.0),), 10)
    linker = Linker(linker.kb, linker.search, calibration=calibration, config=linker.config)
    (mention,) = linker(Document("", "UR")).mentions
    alone = float(calibration(mention.candidates[0].score))
    assert mention.candidates[0].probability == pytest.approx(alone / 3)
    assert all(c.probability <= alone / 3 for c in mention.candidates)
