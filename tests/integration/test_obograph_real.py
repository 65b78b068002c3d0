"""The real OBO Graphs file, held against the OBO export of the same ontology."""

from collections import Counter
from dataclasses import replace

import pytest

from biograft.records import ConceptRecord
from biograft.sources import Probe, obograph, read_head

JSON = "ontologies/obograph_json/DO_cancer_slim.json.gz"
OBO = "ontologies/obo/DO_cancer_slim.obo"


def test_exact_counts(shared_data, reading):
    path = shared_data(JSON)
    assert obograph.recognise(Probe(path, read_head(path)))
    result = reading(path, format="obograph")
    # of the 749 nodes that data/README.md counts, 19 are properties, and one term is obsolete
    assert len(result.of(ConceptRecord)) == 729
    assert result.counts == {
        "concepts": 729,
        "names": 1_993,
        "definitions": 581,
        "ids": 3_223,  # one replaces an obsolete term
        "types": 729,
        "relations": 657,
    }
    assert (result.log.n_read, result.log.filtered) == (730, {"obsolete": 1})
    assert result.log.rejected.counts == {}
    assert len(result.log.notes) == 1


@pytest.mark.parametrize("keep_suppressed", [False, True])
def test_the_facts_are_those_of_the_obo_file(shared_data, reading, keep_suppressed):
    facts = []
    for name, form in ((JSON, "obograph"), (OBO, "obo")):
        result = reading(shared_data(name), format=form, keep_suppressed=keep_suppressed)
        facts.append(Counter(replace(record, line=0) for record in result.records))
    assert facts[0] == facts[1]
