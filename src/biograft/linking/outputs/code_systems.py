"""Code systems: the URI of a vocabulary in FHIR, and the code of an id in it.

The URIs are those that FHIR R4 lists. Vocabularies of the UMLS that it does not list follow its
rule for them, ``http://www.nlm.nih.gov/research/umls/`` and the abbreviation in lower case.
"""

from __future__ import annotations

from collections.abc import Mapping

_UMLS = "http://www.nlm.nih.gov/research/umls"
_SYSTEMS: Mapping[str, str] = {
    "SNOMEDCT": "http://snomed.info/sct",
    "LOINC": "http://loinc.org",
    "RXNORM": f"{_UMLS}/rxnorm",
    "ICD10": "http://hl7.org/fhir/sid/icd-10",
    "ICD10CM": "http://hl7.org/fhir/sid/icd-10-cm",
    "ICD9CM": "http://hl7.org/fhir/sid/icd-9-cm",
    "ATC": "http://www.whocc.no/atc",
    "CPT": "http://www.ama-assn.org/go/cpt",
    "CVX": "http://hl7.org/fhir/sid/cvx",
    "NDC": "http://hl7.org/fhir/sid/ndc",
    "UNII": "http://fdasis.nlm.nih.gov",
    "NCIT": "http://ncicb.nci.nih.gov/xml/owl/EVS/Thesaurus.owl",
    "OMIM": "http://www.omim.org",
    "ORPHA": "http://www.orpha.net",
    "UMLS": _UMLS,
    "MESH": f"{_UMLS}/msh",
    "MEDDRA": f"{_UMLS}/mdr",
}
"""Systems whose codes are ids without the prefix."""
_WITH_PREFIX: Mapping[str, str] = {
    "HP": "http://human-phenotype-ontology.org",
    "HGNC": "http://www.genenames.org",
    **{
        name: f"http://purl.obolibrary.org/obo/{name.lower()}.owl"
        for name in (
            "MONDO",
            "DOID",
            "GO",
            "CHEBI",
            "UBERON",
            "CL",
            "NCBITAXON",
            "PATO",
            "MP",
            "SO",
        )
    },
}
"""Systems whose codes are whole ids, such as HP:0001250."""


def system_of(vocabulary: str) -> str | None:
    """Return the URI of a vocabulary, or None.

    >>> system_of("HP")
    'http://human-phenotype-ontology.org'
    """
    return _WITH_PREFIX.get(vocabulary) or _SYSTEMS.get(vocabulary)


def code_of(identifier: str, vocabulary: str) -> str:
    """Return the code of an id: a whole id has one space where it has several, and none around.

    >>> code_of("OMIM:125853", "OMIM"), code_of("HP:0001250", "HP")
    ('125853', 'HP:0001250')
    """
    whole = " ".join(identifier.split())
    return whole.rpartition(":")[2] if vocabulary in _SYSTEMS else whole


def coding(identifier: str, vocabulary: str) -> dict[str, str]:
    """Return the Coding of an id; one of an unknown vocabulary has a code only.

    >>> coding("OMIM:125853", "OMIM")
    {'system': 'http://www.omim.org', 'code': '125853'}
    """
    code, system = code_of(identifier, vocabulary), system_of(vocabulary)
    return {"code": code} if system is None else {"system": system, "code": code}
