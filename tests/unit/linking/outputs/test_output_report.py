"""Which ids and candidates are reported."""

from __future__ import annotations

import json
from collections import Counter

import pytest

from biograft.errors import ConfigError
from biograft.kb import KnowledgeBase
from biograft.linking import ConceptIds, Linker, link_chunks

STORE = [
    {
        "id": "C0011860",
        "name": "Diabetes type 2",
        "ids": [
            {"id": "MSH:D003924", "kind": "xref"},
            {"id": "SNOMEDCT_US:44054006", "kind": "xref"},
            {"id": "OMIM:125853", "kind": "alternate"},
            {"id": "MSH:D999999", "kind": "xref"},
        ],
    },
    {"id": "C0009443", "name": "Cold", "ids": [{"id": "MSH:D003139", "kind": "xref"}]},
    {"id": "C0015967", "name": "Fever"},
]


@pytest.fixture
def base(store_of):
    return store_of(STORE, "IDS")


@pytest.mark.parametrize(
    ("prefer", "ids"),
    [
        ((), ["C0011860", "C0009443", "C0015967"]),
        (("MSH",), ["D003924", "D003139", "C0015967"]),
        (("mesh",), ["D003924", "D003139", "C0015967"]),
        (("SNOMEDCT_US", "MSH"), ["SNOMEDCT:44054006", "D003139", "C0015967"]),
        (("OMIM",), ["OMIM:125853", "C0009443", "C0015967"]),
        (("UMLS",), ["C0011860", "C0009443", "C0015967"]),
    ],
)
def test_preferred_vocabularies(base, prefer, ids):
    linked = Linker.open(base)("diabetes type 2, cold, fever")
    line = "".join(link_chunks([linked], "jsonl", base, prefer=prefer))
    mentions = json.loads(line)["mentions"]
    assert [mention["concept"] for mention in mentions] == ids
    assert [mention["candidates"][0]["concept"] for mention in mentions] == ids
    assert [m.concept for m in linked.mentions] == ["C0011860", "C0009443", "C0015967"]


def test_concepts_without_a_preferred_id_are_counted(base):
    losses = Counter()
    linked = Linker.open(base)("diabetes type 2, fever, fever")
    list(link_chunks([linked], "csv", base, losses, prefer=["MSH"]))
    assert losses == {"findings whose concept has no id of MESH: its own id is given": 2}


def test_all_ids_on_request(base):
    linked = Linker.open(base)("diabetes type 2")
    line = "".join(link_chunks([linked], "jsonl", base, all_ids=True, prefer=["MSH"]))
    (candidate,) = json.loads(line)["mentions"][0]["candidates"]
    assert candidate["ids"][0] == "C0011860"
    assert set(candidate["ids"]) == {
        "C0011860",
        "D003924",
        "SNOMEDCT:44054006",
        "OMIM:125853",
        "D999999",
    }
    without = "".join(link_chunks([linked], "jsonl", base))
    assert "ids" not in json.loads(without)["mentions"][0]["candidates"][0]


def test_tied_concepts_have_preferred_ids(store_of):
    concepts = [
        {"id": f"C000000{n}", "name": "Cold", "ids": [{"id": f"MSH:D00000{n}", "kind": "xref"}]}
        for n in (1, 2)
    ]
    base = store_of(concepts, "TIED")
    line = "".join(link_chunks([Linker.open(base)("cold")], "jsonl", base, prefer=["MSH"]))
    (mention,) = json.loads(line)["mentions"]
    assert mention["concept"] == "D000001"
    assert mention["candidates"][0]["tied"] == ["D000002"]


def test_the_page_shows_the_preferred_id_and_the_definition(kb, store_of):
    base = store_of(
        [
            {
                "id": "C0011860",
                "name": "Cold",
                "type": "T047",
                "definition": "A runny nose.",
                "ids": [{"id": "MSH:D003139", "kind": "xref"}],
            },
            {"id": "D003139", "name": "Another", "definition": "Not this."},
        ],
        "PAGE",
    )
    page = "".join(link_chunks([Linker.open(base)("cold")], "html", base, prefer=["MSH"]))
    assert "<bdi>cold</bdi>: D003139" in page
    assert "A runny nose." in page
    assert "Not this." not in page


def test_what_is_no_vocabulary_is_refused(base):
    with pytest.raises(ConfigError, match="prefer: expected names of vocabularies"):
        ConceptIds(base, ["MSH", " "])


@pytest.mark.parametrize(
    ("formats", "vocabulary"), [(["snomed"], "SNOMEDCT"), (["snomed", "table"], ""), (["obo"], "")]
)
def test_ids_without_a_prefix_are_those_of_a_store_of_one_vocabulary(base, formats, vocabulary):
    sources = [{"format": each} for each in formats]
    kb = KnowledgeBase(base.folder, {**base.manifest, "sources": sources})
    assert ConceptIds(kb).vocabulary("44054006") == vocabulary
    assert ConceptIds(kb).vocabulary("D003924") == "MESH"
