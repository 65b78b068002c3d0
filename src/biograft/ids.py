"""Identifier normalisation: one spelling of the prefixes that sources write in many ways.

MeSH and UMLS identifiers are unambiguous without a prefix, so theirs are dropped; other prefixes
get one spelling. Ids without a prefix stay as they are.

    >>> [canonical_id(i) for i in ("MSH:D003924", "UMLS_CUI:C0011849", "MIM:125853", "HP:1")]
    ['D003924', 'C0011849', 'OMIM:125853', 'HP:1']
"""

from __future__ import annotations

import re

OBO_PREFIXES = (
    *("CHEBI", "CL", "DOID", "GO", "HP", "MONDO", "MP", "NCBITaxon", "NCIT", "PATO", "PR", "SO"),
    "UBERON",
)
"""Prefixes of the OBO Foundry's ontologies that are used most."""

_DROPPED = {"mesh", "msh", "umls", "umls_cui", "umlscui"}
_SPELLINGS = {
    "mim": "OMIM", "omim": "OMIM", "omimps": "OMIMPS", "mimps": "OMIMPS",
    "sctid": "SNOMEDCT", "sct": "SNOMEDCT", "snomedct": "SNOMEDCT", "snomed": "SNOMEDCT",
    "orphanet": "ORPHA", "ordo": "ORPHA", "orpha": "ORPHA", "ncit": "NCIT", "nci": "NCIT",
    "icd10cm": "ICD10CM", "icd10": "ICD10", "icd9cm": "ICD9CM", "icd9": "ICD9",
    "meddra": "MEDDRA", "doid": "DOID", "do": "DOID", "hp": "HP", "mondo": "MONDO",
}  # fmt: skip
_RELEASE = re.compile(r"_(us_)?\d{4}_\d{1,2}_\d{1,2}$|_us$")


def canonical_id(identifier: str) -> str:
    """Return the spelling of an identifier under which the store finds it."""
    prefix, colon, local = identifier.partition(":")
    if not colon:
        return identifier
    key = _RELEASE.sub("", prefix.strip().lower())
    if key in _DROPPED:
        return local.strip()
    return f"{_SPELLINGS.get(key, prefix)}:{local.strip()}"


_VOCABULARIES = {
    **dict.fromkeys(("mesh", "msh"), "MESH"),
    **dict.fromkeys(("umls", "umls_cui", "umlscui", "cui"), "UMLS"),
    **dict.fromkeys(("loinc", "lnc"), "LOINC"),
    **dict.fromkeys(("hpo", "hp"), "HP"),
    **dict.fromkeys(("meddra", "mdr"), "MEDDRA"),
}
"""Names of vocabularies of which several are in use, or which ids have no prefix of."""
_SHAPES = (
    ("UMLS", re.compile(r"C\d{7}")),
    ("MESH", re.compile(r"[CDQ](?:\d{6}|\d{9})")),
)


def vocabulary_name(name: str) -> str:
    """Return the one name of a vocabulary, given its prefix of ids or its UMLS abbreviation.

    >>> [vocabulary_name(name) for name in ("MSH", "SNOMEDCT_US", "HPO")]
    ['MESH', 'SNOMEDCT', 'HP']
    """
    key = _RELEASE.sub("", name.strip().lower())
    return _VOCABULARIES.get(key) or _SPELLINGS.get(key) or key.upper()


def vocabulary_of(identifier: str) -> str:
    """Return the vocabulary of an id, by its prefix or shape; empty if it has neither.

    >>> [vocabulary_of(i) for i in ("MSH:D003924", "D003924", "C0011860", "HP:1", "E11")]
    ['MESH', 'MESH', 'UMLS', 'HP', '']
    """
    prefix, colon, _ = identifier.partition(":")
    if colon:
        return vocabulary_name(prefix)
    return next((name for name, shape in _SHAPES if shape.fullmatch(identifier)), "")
