import pytest

from biograft.kb.vocabularies import canonical_id, vocabulary_of


@pytest.mark.parametrize(
    ("identifier", "canonical"),
    [
        ("D003924", "D003924"),
        ("MESH:D003924", "D003924"),
        ("mesh: D003924 ", "D003924"),
        ("UMLS_CUI:C0011849", "C0011849"),
        ("MIM:125853", "OMIM:125853"),
        ("SNOMEDCT_US_2023_03_01:73211009", "SNOMEDCT:73211009"),
        ("SCTID:73211009", "SNOMEDCT:73211009"),
        ("Orphanet:558", "ORPHA:558"),
        ("ICD9CM_2006:1", "ICD9CM_2006:1"),
        ("NCI:C3088", "NCIT:C3088"),
        ("hp:0001", "HP:0001"),
        ("http://identifiers.org/hgnc/1101", "http://identifiers.org/hgnc/1101"),
        ("MESH:", ""),
        ("", ""),
        ("heart attack", "heart attack"),
    ],
)
def test_one_identifier_has_one_spelling(identifier, canonical):
    assert canonical_id(identifier) == canonical
    assert canonical_id(canonical) == canonical


@pytest.mark.parametrize(
    ("identifier", "vocabulary"),
    [
        ("D003924", "MESH"),
        ("C000657245", "MESH"),
        ("C0011860", "UMLS"),
        ("SNOMEDCT_US_2026_03_01:44054006", "SNOMEDCT"),
        ("LNC:2345-7", "LOINC"),
        ("HP:0001250", "HP"),
        ("44054006", ""),
        ("E11.9", ""),
        ("", ""),
    ],
)
def test_vocabulary_of_an_id(identifier, vocabulary):
    assert vocabulary_of(identifier) == vocabulary
