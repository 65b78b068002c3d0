"""Exact counts of MEDIC of July 2012, and that BioSyn's dictionaries are not taken for it."""

import pytest

from biograft.kb.sources import Probe, biosyn, medic, read_head

MEDIC = "entity_linking/medic/medic_06Jul2012.txt.gz"


@pytest.mark.parametrize("part", ["train", "dev", "test"])
@pytest.mark.parametrize("corpus", ["ncbi_disease/biosyn", "bc5cdr/biosyn_disease"])
def test_dictionaries_of_biosyn_are_left_to_their_reader(shared_data, corpus, part):
    path = shared_data(f"entity_linking/{corpus}/{part}_dictionary.txt.gz")
    probe = Probe(path, read_head(path))
    assert (medic.recognise(probe), biosyn.recognise(probe)) == (False, True)


def test_the_spelling_list_is_no_vocabulary(shared_data):
    path = shared_data("entity_linking/medic/ncbi-spell-check.txt")
    assert not medic.recognise(Probe(path, read_head(path)))
