"""CURIEs of SSSOM files: ids of concepts and of source terms, with the IRIs of their prefixes."""

from __future__ import annotations

import re
from urllib.parse import quote, unquote

from biograft.vocabularies import canonical_id, namespace_of, vocabulary_of

PLACEHOLDER = "https://example.org/"
"""Namespace of what has no IRI of its own: local vocabularies and knowledge bases."""
CODE, TERM, CONCEPT = "code", "term", "concept"
"""Prefixes of the codes of source terms, of terms without a code, and of ids without a prefix."""
SOURCE, KB, ORCID, EXTENSION = "source", "kb", "orcid", "ext"
"""Prefixes of vocabularies of terms, of knowledge bases, of people, and of columns of our own."""
_OWN = frozenset({CODE, TERM, CONCEPT, SOURCE, KB, ORCID, EXTENSION, "sssom", "semapv", "skos"})
NO_TERM_FOUND = "sssom:NoTermFound"
_PREFIX = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*")
_LOCAL = "()*+,/;=@!$'"
"""Characters that the second part of a CURIE may have beside letters, digits and ``-._~``."""
_ORCID = re.compile(r"orcid:\d{4}-\d{4}-\d{4}-\d{3}[\dX]", re.IGNORECASE)


def concept_curie(identifier: str) -> str:
    """Return the CURIE of a concept; none means that there is no concept.

    >>> concept_curie("D003924"), concept_curie("HP:0001250"), concept_curie("E11 9")
    ('MESH:D003924', 'HP:0001250', 'concept:E11%209')
    """
    if not identifier:
        return NO_TERM_FOUND
    prefix, colon, local = identifier.partition(":")
    if not colon:
        prefix, local = vocabulary_of(identifier) or CONCEPT, identifier
    curie = f"{prefix}:{_quoted(local)}"
    if (
        _PREFIX.fullmatch(prefix)
        and prefix not in _OWN
        and local
        and concept_of(curie) == identifier
    ):
        return curie
    return f"{CONCEPT}:{_quoted(identifier)}"


def concept_of(curie: str) -> str:
    """Return the id of a concept; empty means that there is no concept.

    >>> concept_of("MESH:D003924"), concept_of("concept:E11%209"), concept_of(NO_TERM_FOUND)
    ('D003924', 'E11 9', '')
    """
    if curie == NO_TERM_FOUND:
        return ""
    prefix, _, local = curie.partition(":")
    return unquote(local) if prefix == CONCEPT else canonical_id(unquote(curie))


def subject_curie(term: str, code: str) -> str:
    """Return the CURIE of a source term: of its code where it has one.

    >>> subject_curie("hart atack", ""), subject_curie("hart atack", "I21")
    ('term:hart%20atack', 'code:I21')
    """
    return f"{CODE}:{_quoted(code)}" if code else f"{TERM}:{_quoted(term)}"


def subject_of(curie: str) -> tuple[str, str]:
    """Return the term and the code of a CURIE; one of them is empty.

    >>> subject_of("term:hart%20atack"), subject_of("HP:0001250")
    (('hart atack', ''), ('', 'HP:0001250'))
    """
    prefix, _, local = curie.partition(":")
    if prefix == TERM:
        return unquote(local), ""
    return "", unquote(local) if prefix == CODE else curie


def prefix_iri(prefix: str) -> str:
    """Return the IRI of the prefix of a concept id, a placeholder for one that is not known."""
    return namespace_of(prefix) or f"{PLACEHOLDER}vocabulary/{prefix}/"


def is_orcid(person: str) -> bool:
    """Whether a person is named by an ORCID, such as ``orcid:0000-0002-1825-0097``."""
    return _ORCID.fullmatch(person) is not None


def split_iri(iri: str) -> tuple[str, str]:
    """Return the namespace of an IRI, and the name in it; a plain name gets a placeholder.

    >>> split_iri("https://lab.example/tests"), split_iri("lab tests")
    (('https://lab.example/', 'tests'), ('https://example.org/', 'lab%20tests'))
    """
    found = re.fullmatch(r"(\w+:.*[/#:])([^/#:]+)[/#]?", iri)
    return (found[1], found[2]) if found else (PLACEHOLDER, _quoted(iri))


def _quoted(text: str) -> str:
    return quote(text, safe=_LOCAL, errors="replace")
