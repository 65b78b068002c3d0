"""Exact counts of the real OBO files.

``data/README.md`` counts lines of the whole file: in Uberon, GO and PATO it includes 228 ``is_a``
and 26 synonyms of relation types (Typedef stanzas), which are no facts about terms.
"""

import pytest

from biograft.kb.records import IS_A, ConceptRecord, NameRecord, RelationRecord
from biograft.kb.sources import Probe, obo, read_head

FOLDER = "ontologies/obo/"

# file: terms, is_a, synonyms, other relations, alternative ids (with those that replace an
# obsolete term: replaced_by, consider), xrefs, definitions
WHOLE = {
    "hp.obo.gz": (10_267, 13_458, 6_454, 0, 3_357, 5_405, 6_944),
    "HumanDO_2015.obo.gz": (8_948, 6_921, 16_035, 0, 1_596, 38_900, 3_071),
    "DO_rare_slim.obo.gz": (3_460, 1_609, 8_661, 0, 481, 17_901, 3_283),
    "NCIthesaurus_DO_subset.obo.gz": (4_757, 4_780, 8_358, 0, 1_098, 23_385, 3_144),
    "DO_infectious_disease_slim.obo": (536, 498, 999, 0, 291, 2_495, 514),
    "DO_cancer_slim.obo": (730, 657, 1_265, 0, 210, 3_090, 582),
    "uberon_import.obo.gz": (7_577, 12_727, 18_121, 11_507, 0, 0, 5_181),
    "go_import.obo.gz": (3_845, 6_675, 11_262, 2_262, 70, 0, 3_809),
    "chebi_import.obo.gz": (1_583, 2_272, 6_217, 1_673, 1_130, 4_481, 1_231),
    "pato.obo": (2_661, 2_096, 867, 455, 92, 13, 1_775),
}
# file: terms that are not obsolete, names of these, types
AXIOMS = {
    "DO_rare_slim.obo.gz": {"logical axiom": 4},
    "NCIthesaurus_DO_subset.obo.gz": {"logical axiom": 1},
    "uberon_import.obo.gz": {"logical axiom": 10_513, "holds only under a condition (gci)": 87},
    "go_import.obo.gz": {"logical axiom": 3_916},
    "pato.obo": {"logical axiom": 672},
}


@pytest.mark.parametrize("name", WHOLE)
def test_everything_in_the_file_is_read(shared_data, reading, name):
    path = shared_data(FOLDER + name)
    assert obo.recognise(Probe(path, read_head(path)))
    result = reading(path, format="obo", keep_suppressed=True)
    names = result.of(NameRecord)
    relations = result.of(RelationRecord)
    is_a = [record for record in relations if record.relation == IS_A]
    n_labels = sum(record.kind == "preferred" for record in names)
    n_labels += name == "uberon_import.obo.gz"  # one term has a second name: a synonym
    n_xrefs = sum(getattr(record, "kind", "") == "xref" for record in result.records)
    assert WHOLE[name] == (
        len(result.of(ConceptRecord)),
        len(is_a),
        len(names) - n_labels,
        len(relations) - len(is_a),
        result.counts["ids"] - n_xrefs,
        n_xrefs,
        result.counts["definitions"],
    )
    assert result.log.n_read == WHOLE[name][0]
    assert result.log.rejected.counts == {}
    assert result.log.filtered == AXIOMS.get(name, {})


def test_abbreviations_are_known_though_their_type_is_not_declared(shared_data, reading):
    result = reading(shared_data(FOLDER + "DO_rare_slim.obo.gz"), format="obo")
    abbreviations = [r.text for r in result.of(NameRecord) if r.kind == "abbreviation"]
    assert (len(abbreviations), abbreviations[:2]) == (1_686, ["DIL", "DILE"])


def test_version_and_licence_are_noted(shared_data, reading):
    result = reading(shared_data(FOLDER + "HumanDO_2015.obo.gz"), format="obo")
    assert result.log.notes == [
        "data version: 14:05:2015 16:40",
        "licence: This work is licensed under a Creative Commons Attribution 3.0 Unported License "
        "http://creativecommons.org/licenses/by/3.0/.",
    ]
