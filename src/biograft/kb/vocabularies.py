"""Vocabularies: one spelling of their ids, their URIs in FHIR, their CURIEs.

All that is known of a vocabulary stands in one table, ``vocabularies.toml``. MeSH and UMLS
identifiers are unambiguous without a prefix, so theirs are dropped; other prefixes get one
spelling. Ids without a prefix stay as they are.

    >>> [canonical_id(i) for i in ("MSH:D003924", "UMLS_CUI:C0011849", "MIM:125853", "HP:1")]
    ['D003924', 'C0011849', 'OMIM:125853', 'HP:1']
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from biograft.config import from_mapping

OBO = "http://purl.obolibrary.org/obo/"


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownVocabulary:
    """Facts of a vocabulary: a row of ``vocabularies.toml``, which describes the fields."""

    name: str
    spellings: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    bare: bool = False
    shape: str = ""
    uri: str | None = None
    whole: bool | None = None
    iri: str = ""
    obo: bool = False
    format: str = ""
    qualifiers: tuple[str, ...] = ()

    @property
    def system(self) -> str:
        """URI of the code system in FHIR; empty if there is none."""
        return f"{OBO}{self.name.lower()}.owl" if self.uri is None and self.obo else self.uri or ""

    @property
    def has_whole_codes(self) -> bool:
        """Whether the codes in FHIR are ids with their prefix."""
        return self.obo if self.whole is None else self.whole

    @property
    def namespace(self) -> str:
        """Namespace of its CURIEs; empty if there is none."""
        return self.iri or (f"{OBO}{self.name}_" if self.obo else "")


def _read_table() -> dict[str, KnownVocabulary]:
    table = tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))
    return {
        name: from_mapping(KnownVocabulary, {"name": name, **row}) for name, row in table.items()
    }


VOCABULARIES = _read_table()
_SPELLINGS = {spelling: each for each in VOCABULARIES.values() for spelling in each.spellings}
_NAMES = {name: each for each in VOCABULARIES.values() for name in each.names} | _SPELLINGS
_BY_NAME = {each.name.upper(): each for each in VOCABULARIES.values()}
_SHAPES = tuple((each.name, re.compile(each.shape)) for each in VOCABULARIES.values() if each.shape)
_RELEASE = re.compile(r"_(us_)?\d{4}_\d{1,2}_\d{1,2}$|_us$")


_CACHED = 4096
"""Prefixes that are kept; a file has few."""


def canonical_id(identifier: str) -> str:
    """Return the spelling of an identifier under which the store finds it."""
    prefix, colon, local = identifier.partition(":")
    if not colon:
        return identifier
    return _canonical_prefix(prefix) + local.strip()


@lru_cache(_CACHED)
def _canonical_prefix(prefix: str) -> str:
    """Return what an id begins with, given its prefix: nothing for bare ids."""
    found = _SPELLINGS.get(_RELEASE.sub("", prefix.strip().lower()))
    if found is not None and found.bare:
        return ""
    return f"{prefix if found is None else found.name}:"


@lru_cache(_CACHED)
def vocabulary_name(name: str) -> str:
    """Return the one name of a vocabulary, given its prefix of ids or its UMLS abbreviation.

    >>> [vocabulary_name(name) for name in ("MSH", "SNOMEDCT_US", "HPO")]
    ['MESH', 'SNOMEDCT', 'HP']
    """
    key = _RELEASE.sub("", name.strip().lower())
    return _NAMES[key].name if key in _NAMES else key.upper()


def vocabulary_of(identifier: str) -> str:
    """Return the vocabulary of an id, by its prefix or shape; empty if it has neither.

    >>> [vocabulary_of(i) for i in ("MSH:D003924", "D003924", "C0011860", "HP:1", "E11")]
    ['MESH', 'MESH', 'UMLS', 'HP', '']
    """
    prefix, colon, _ = identifier.partition(":")
    if colon:
        return vocabulary_name(prefix)
    return next((name for name, shape in _SHAPES if shape.fullmatch(identifier)), "")


def vocabulary_of_format(name: str) -> str:
    """Return the vocabulary of ids without a prefix in a store built from one format.

    Args:
        name: Name of the format, such as ``snomed``; others have none.
    """
    return next((each.name for each in VOCABULARIES.values() if name and each.format == name), "")


_NUMBERED = re.compile(r"([A-Za-z]*).*?(\d{0,15})$")


def numbered(identifier: str) -> tuple[str, int]:
    """Return the series of numbers that an id is from, and its number there; 0: it has none.

    Args:
        identifier: A CURIE or a bare id.

    >>> numbered("HP:0034440"), numbered("D003924")
    (('HP:', 34440), ('MESH:D', 3924))
    """
    prefix, colon, local = identifier.partition(":")
    name = vocabulary_name(prefix) if colon else vocabulary_of(identifier)
    match = _NUMBERED.match(local if colon else identifier)
    letters, digits = match.groups() if match else ("", "")
    return f"{name}:{letters}", int(digits or 0)


def last_numbers(ids: Iterable[str]) -> dict[str, int]:
    """Return the series of numbers that some ids are from, and the highest number in each.

    Args:
        ids: Ids of concepts.

    >>> last_numbers(["HP:0000118", "HP:0034440", "D003924"])
    {'HP:': 34440, 'MESH:D': 3924}
    """
    found: dict[str, int] = {}
    for series, number in map(numbered, ids):
        if number > found.get(series, -1):
            found[series] = number
    return found


def system_of(vocabulary: str) -> str | None:
    """Return the URI of a vocabulary in FHIR, or None.

    >>> system_of("HP")
    'http://human-phenotype-ontology.org'
    """
    known = _BY_NAME.get(vocabulary)
    return known.system or None if known is not None else None


def vocabulary_of_system(uri: str) -> str:
    """Return the name of the vocabulary with a URI in FHIR; empty if it is not known.

    Args:
        uri: URI of a code system.

    >>> vocabulary_of_system("http://loinc.org")
    'LOINC'
    """
    return next((each.name for each in VOCABULARIES.values() if uri and each.system == uri), "")


def code_of(identifier: str, vocabulary: str) -> str:
    """Return the code of an id: a whole id has one space where it has several, and none around.

    Args:
        identifier: Id of a concept.
        vocabulary: Name of its vocabulary.

    >>> code_of("OMIM:125853", "OMIM"), code_of("HP:0001250", "HP")
    ('125853', 'HP:0001250')
    """
    whole, known = " ".join(identifier.split()), _BY_NAME.get(vocabulary)
    if known is None or not known.system or known.has_whole_codes:
        return whole
    return whole.rpartition(":")[2]


def coding(identifier: str, vocabulary: str) -> dict[str, str]:
    """Return the Coding of an id; one of an unknown vocabulary has a code only.

    Args:
        identifier: Id of a concept.
        vocabulary: Name of its vocabulary.

    >>> coding("OMIM:125853", "OMIM")
    {'system': 'http://www.omim.org', 'code': '125853'}
    """
    code, system = code_of(identifier, vocabulary), system_of(vocabulary)
    return {"code": code} if system is None else {"system": system, "code": code}
