"""The real OBO Graphs file, held against the OBO export of the same ontology."""

from collections import Counter
from dataclasses import replace

import pytest

JSON = "ontologies/obograph_json/DO_cancer_slim.json.gz"
OBO = "ontologies/obo/DO_cancer_slim.obo"


@pytest.mark.parametrize("keep_suppressed", [False, True])
def test_the_facts_are_those_of_the_obo_file(shared_data, reading, keep_suppressed):
    facts = []
    for name, form in ((JSON, "obograph"), (OBO, "obo")):
        result = reading(shared_data(name), format=form, keep_suppressed=keep_suppressed)
        facts.append(Counter(replace(record, line=0) for record in result.records))
    assert facts[0] == facts[1]
