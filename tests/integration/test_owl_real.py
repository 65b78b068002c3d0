"""Exact counts of real OWL and SKOS files, and the same ontology read from its OBO export."""

from collections import Counter
from dataclasses import replace
from functools import partial

import pytest

from biograft.kb.records import RelationRecord

pytest.importorskip("pyoxigraph")


@pytest.fixture
def owl(reading):
    return partial(reading, format="owl")


def test_owl_and_obo_of_one_ontology_agree(shared_data, owl, reading):
    folder = "ontologies/{}/DO_infectious_disease_slim.{}"
    obo = reading(shared_data(folder.format("obo", "obo")), format="obo").records
    mine = set(owl(shared_data(folder.format("owl", "owl.gz"))).records)
    theirs = {replace(record, line=0) for record in obo}
    assert mine == theirs


def test_cell_ontology(shared_data, owl):
    result = owl(shared_data("ontologies/owl/cl_import.owl.gz"))
    assert result.log.n_read == 1056
    assert result.log.filtered == {
        "logical axiom": 699,
        "obsolete": 4,
        "class that is only declared": 550,
    }
    relations = Counter(record.relation for record in result.of(RelationRecord))
    assert relations["is-a"] == 1408
    assert relations["BFO:0000050"] == 499
    assert sum(relations.values()) == 2420
    assert not result.log.rejected.counts


def test_thesaurus_is_the_same_in_both_syntaxes(shared_data, owl):
    turtle = owl(shared_data("ontologies/skos/yso-archaeology.ttl"))
    xml = owl(shared_data("ontologies/skos/yso-archaeology.rdf"))
    assert set(turtle.records) == set(xml.records)
    assert turtle.counts == xml.counts == {"concepts": 130, "names": 488, "relations": 214}
    assert Counter(r.language for r in xml.records if hasattr(r, "text")).keys() == {
        "en",
        "fi",
        "sv",
    }
