"""OMOP: the rows of note_nlp have the columns, types and lengths of the data model."""

from __future__ import annotations

import csv
import io
import re

import pytest

from biograft.linking import Linker, link_chunks
from biograft.text.documents import Document

FIELDS = {
    "note_nlp_id": r"[1-9]\d{0,9}",
    "note_id": r"[1-9]\d{0,9}",
    "section_concept_id": r"\d{0,10}",
    "snippet": r"(?s).{0,250}",
    "offset": r".{0,50}",
    "lexical_variant": r"(?s).{1,250}",
    "note_nlp_concept_id": r"\d{0,10}",
    "note_nlp_source_concept_id": r"\d{0,10}",
    "nlp_system": r".{0,250}",
    "nlp_date": r"\d{4}-\d\d-\d\d",
    "nlp_datetime": r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d",
    "term_exists": r"[YN]?",
    "term_temporal": r"(past|present)?",
    "term_modifiers": r".{0,2000}",
}
"""The fields of NOTE_NLP in CDM 5.4, and what their values look like."""
STORE = [
    {"id": "OMOP:201826", "name": "Diabetes"},
    {"id": "D003139", "name": "Cold", "ids": [{"id": "OMOP:260427", "kind": "xref"}]},
    {"id": "44054006", "name": "Fever"},
]


@pytest.fixture
def base(store_of):
    return store_of(STORE, "OMOP")


def rows_of(base, *documents, **settings):
    linked = Linker.open(base).pipe(documents)
    text = "".join(link_chunks(linked, "omop", base, **settings))
    rows = list(csv.DictReader(io.StringIO(text)))
    for row in rows:
        assert tuple(row) == tuple(FIELDS)
        for name, value in row.items():
            assert re.fullmatch(FIELDS[name], value), (name, value)
    return rows


def test_a_value_is_a_modifier(base):
    (row,) = rows_of(base, Document("7", "Fever 39.1 °C, resting"))
    assert ",measurement=39.1 °C" in row["term_modifiers"]


@pytest.mark.parametrize(
    ("text", "exists", "temporal", "modifiers"),
    [
        ("The cold has resolved.", "Y", "past", ",course=resolved"),
        ("Recurrent cold.", "Y", "present", ",course=recurrent"),
        ("History of a cold.", "Y", "past", ",historical=yes"),
        ("A cold is unlikely.", "N", "present", ",uncertain=yes,"),
        ("A cold is unlikely.", "N", "present", ",unlikely=yes"),
        ("A cold is planned.", "N", "", ",planned=yes"),
        ("Return if cold.", "N", "", ",hypothetical=yes"),
        ("The donor had a cold.", "N", "present", "subject=donor"),
        ("No cold.", "N", "present", "negated=yes"),
    ],
)
def test_what_the_text_says(base, text, exists, temporal, modifiers):
    (row,) = rows_of(base, Document("7", text))
    assert (row["term_exists"], row["term_temporal"]) == (exists, temporal)
    assert modifiers in row["term_modifiers"]


def test_only_ids_of_omop_are_concept_ids(base):
    rows = rows_of(base, Document("7", "Diabetes, cold, fever"))
    assert [row["note_nlp_concept_id"] for row in rows] == ["201826", "0", "0"]
    assert [row["note_nlp_source_concept_id"] for row in rows] == ["201826", "0", "0"]
    assert "concept=MESH:D003139,name=Cold" in rows[1]["term_modifiers"]
    assert "concept=44054006" in rows[2]["term_modifiers"]
    rows = rows_of(base, Document("7", "cold"), prefer=["OMOP"])
    assert rows[0]["note_nlp_concept_id"] == "260427"


def test_note_ids_never_collide(base):
    names = ["7", "a note", "2", "2000000002", "0", "99999999999"]
    rows = rows_of(base, *(Document(name, "cold") for name in names))
    ids = [int(row["note_id"]) for row in rows]
    assert ids == [7, 2000000002, 2, 2000000004, 2000000005, 2000000006]
    assert "document=a note" in rows[1]["term_modifiers"]
    assert "document" not in rows[0]["term_modifiers"]


def test_the_text_around_a_finding_only_on_request(base):
    text = f"Mr Smith, =1+1\nhas a cold.{'x' * 400}"
    (row,) = rows_of(base, Document("7", text))
    assert row["snippet"] == ""
    assert "Smith" not in str(row)
    (row,) = rows_of(base, Document("7", text), include_text=True)
    assert "has a cold" in row["snippet"]
    assert row["snippet"].startswith("Mr Smith")
