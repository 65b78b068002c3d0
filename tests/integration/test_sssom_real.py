"""Exact counts of the mappings of Mondo, in SSSOM TSV."""

from collections import Counter

import pytest

from biograft.kb.vocabularies import vocabulary_of
from biograft.mapping import read_decisions


@pytest.mark.parametrize(
    ("name", "n", "vocabulary"),
    [
        ("mondo_exactmatch_mesh.sssom.tsv", 8_181, "MESH"),
        ("mondo_exactmatch_umls.sssom.tsv.gz", 21_660, "UMLS"),
    ],
)
def test_every_mapping_is_read(shared_data, name, n, vocabulary):
    decisions = read_decisions(shared_data(f"ontologies/sssom/{name}"))
    assert len(decisions) == n
    assert {(d.verdict, d.relation) for d in decisions} == {("approved", "exact")}
    assert all(d.term and d.code.startswith("MONDO:") for d in decisions)
    found = Counter(vocabulary_of(decision.concept) for decision in decisions)
    assert found.most_common(1)[0][0] == vocabulary
    assert not any(":" in decision.concept for decision in decisions)
