"""Babelon: translated names and definitions of an ontology, in both forms of the header."""

from __future__ import annotations

from functools import partial

import pytest

from biograft.kb.records import DefinitionRecord, NameRecord

HPO = (
    "source_language\ttranslation_language\tsubject_id\tpredicate_id\tsource_value\t"
    "translation_value\ttranslation_status\n"
)
DO = (
    "source_id\tpredicate\tsource_text\ttranslation_text\ttranslator\tsource_lang\t"
    "translation_lang\tstatus\n"
)


@pytest.fixture
def read(reading, write):
    return lambda text: partial(reading, format="babelon")(write("a.tsv", text))


def test_labels_are_the_preferred_names_of_their_language(read):
    result = read(
        HPO
        + "en\tzh-Hans\tHP:1\trdfs:label\tFever\t发热\tOFFICIAL\n"
        + "en\tes\tHP:1\trdfs:label\tFever\tFiebre\tCANDIDATE\n"
        + "en\tes\tHP:2\trdfs:label\tCough\t\tNOT_TRANSLATED\n"
        + "en\tes\tHP:3\trdfs:label\tPain\t\tOFFICIAL\n"
        + "en\tes\tHP:4\trdfs:label\n"
    )
    assert result.records == [
        NameRecord("HP:1", "发热", "zh", "preferred", line=2),
        NameRecord("HP:1", "Fiebre", "es", "preferred", line=3),
    ]
    assert result.log.filtered == {"not translated": 1}
    assert result.log.rejected.counts == {
        "concept, translation or language is empty": 1,
        "4 cells, expected 7": 1,
    }


def test_definitions_are_no_names(read):
    """The Spanish definitions of the Disease Ontology used to be names of its diseases."""
    row = "DOID:1\t{}\tx\t{}\tSomebody\ten\tes\tMANUALLY TRANSLATED\n".format
    result = read(
        DO
        + row("oboInOwl:hasExactSynonym", "gripe")
        + row("IAO:0000115", '"Una\ninfección."')
        + row("oboInOwl:hasBroadSynonym", "infección viral")
        + row("skos:note", "?")
    )
    assert result.records == [
        NameRecord("DOID:1", "gripe", "es", "synonym", line=2),
        DefinitionRecord("DOID:1", "Una\ninfección.", "es", line=3),
        NameRecord("DOID:1", "infección viral", "es", "broad", line=5),
    ]
    assert result.log.rejected.counts == {"unknown predicate 'note'": 1}
