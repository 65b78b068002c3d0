"""Exact counts of MEDIC of July 2012, and that BioSyn's dictionaries are not taken for it."""

import pytest

from biograft.records import IdRecord, NameRecord
from biograft.sources import Probe, biosyn, medic, read_head

MEDIC = "entity_linking/medic/medic_06Jul2012.txt.gz"


def test_exact_counts(shared_data, reading):
    path = shared_data(MEDIC)
    assert medic.recognise(Probe(path, read_head(path)))
    result = reading(path, format="medic")
    names = result.of(NameRecord)
    assert (len(result.concepts), len(names)) == (11_915, 76_237)
    assert sum(record.kind == "preferred" for record in names) == 11_915
    assert len({record.concept for record in result.of(IdRecord)}) == 3_026
    assert (result.log.n_read, result.log.rejected.counts) == (11_915, {})
    # 588 lines name no MeSH id, and two name two
    omim = {concept for concept in result.concepts if concept.isdigit()}
    assert len(omim) == 588
    assert sum(not record.id.isdigit() for record in result.of(IdRecord)) == 2


@pytest.mark.parametrize("part", ["train", "dev", "test"])
@pytest.mark.parametrize("corpus", ["ncbi_disease/biosyn", "bc5cdr/biosyn_disease"])
def test_dictionaries_of_biosyn_are_left_to_their_reader(shared_data, corpus, part):
    path = shared_data(f"entity_linking/{corpus}/{part}_dictionary.txt.gz")
    probe = Probe(path, read_head(path))
    assert (medic.recognise(probe), biosyn.recognise(probe)) == (False, True)


def test_the_spelling_list_is_no_vocabulary(shared_data):
    path = shared_data("entity_linking/medic/ncbi-spell-check.txt")
    assert not medic.recognise(Probe(path, read_head(path)))
