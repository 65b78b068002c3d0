"""From IRIs to the short identifiers that OBO files use for the same things."""

from __future__ import annotations

import re

OBO = "http://purl.obolibrary.org/obo/"

_LAST_PART = re.compile(r"[/#]([A-Za-z][\w.-]*?)_([A-Z]*\d[\w.-]*)$")
_SCHEMES = ("http://", "https://")


def short_id(iri: str) -> str:
    """Shorten an IRI as the OBO standard does; what is no such IRI stays as it is.

    >>> short_id("http://purl.obolibrary.org/obo/DOID_0001816")
    'DOID:0001816'
    >>> short_id("http://purl.obolibrary.org/obo/uberon/core#part_of")
    'part_of'
    >>> short_id("http://purl.obolibrary.org/obo/GO#_x1")
    'GO:x1'
    >>> short_id("http://www.orpha.net/ORDO/Orphanet_558")
    'Orphanet:558'
    >>> short_id("http://identifiers.org/hgnc/1101")
    'http://identifiers.org/hgnc/1101'
    """
    if not iri.startswith(_SCHEMES):
        return iri
    if iri.startswith(OBO) and "#" in iri:
        ontology, _, fragment = iri[len(OBO) :].partition("#")
        if fragment.startswith("_") and len(fragment) > 1:
            return f"{ontology}:{fragment[1:]}"
        return fragment or iri
    match = _LAST_PART.search(iri)
    return f"{match[1]}:{match[2]}" if match else iri
