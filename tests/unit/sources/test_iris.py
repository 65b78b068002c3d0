import pytest

from biograft.sources.obo import OBO, short_id


@pytest.mark.parametrize(
    ("iri", "short"),
    [
        (f"{OBO}DOID_0001816", "DOID:0001816"),
        (f"{OBO}NCIT_C3088", "NCIT:C3088"),
        (f"{OBO}FB_bt_00000001", "FB_bt:00000001"),
        (f"{OBO}BFO_0000050", "BFO:0000050"),
        (f"{OBO}uberon/core#part_of", "part_of"),
        (f"{OBO}chebi#has_role", "has_role"),
        (f"{OBO}GO#_x1", "GO:x1"),
        (f"{OBO}x#", f"{OBO}x#"),
        (f"{OBO}chebi/charge", f"{OBO}chebi/charge"),
        ("http://www.ebi.ac.uk/efo/EFO_0000400", "EFO:0000400"),
        ("http://www.orpha.net/ORDO/Orphanet_558", "Orphanet:558"),
        ("http://identifiers.org/hgnc/1101", "http://identifiers.org/hgnc/1101"),
        ("DOID:162", "DOID:162"),
        ("is_a", "is_a"),
        ("", ""),
    ],
)
def test_short_ids_are_those_of_obo(iri, short):
    assert short_id(iri) == short
