"""Identifier normalisation: one spelling of the prefixes that sources write in many ways.

MeSH and UMLS identifiers are unambiguous without a prefix, so theirs are dropped; other prefixes
get one spelling. Ids without a prefix stay as they are.

    >>> [canonical_id(i) for i in ("MSH:D003924", "UMLS_CUI:C0011849", "MIM:125853", "HP:1")]
    ['D003924', 'C0011849', 'OMIM:125853', 'HP:1']
"""

from __future__ import annotations

import re

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
