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


def coding(identifier: str, vocabulary: str) -> dict[str, str]:
    """Return the Coding of an id; one of an unknown vocabulary has a code only.

    >>> coding("OMIM:125853", "OMIM")
    {'system': 'http://www.omim.org', 'code': '125853'}
    """
    whole = " ".join(identifier.split())
    if vocabulary in _WITH_PREFIX:
        return {"system": _WITH_PREFIX[vocabulary], "code": whole}
    if vocabulary in _SYSTEMS:
        return {"system": _SYSTEMS[vocabulary], "code": whole.rpartition(":")[2]}
    return {"code": whole}
