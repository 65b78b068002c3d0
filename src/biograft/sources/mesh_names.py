"""What a MeSH record calls its concept: terms by concept and language, notes, registry numbers."""

from __future__ import annotations

import re
from collections.abc import Iterator
from xml.etree.ElementTree import Element

from biograft.records import NameKind, NameRecord

RELATION_KINDS = {"NRW": NameKind.NARROW, "BRD": NameKind.BROAD, "REL": NameKind.RELATED}
OPPOSITE = {"NRW": "BRD", "BRD": "NRW"}
ABBREVIATIONS = ("ABB", "ACR")

_CAS = re.compile(r"\d{2,7}-\d\d-\d")
_UNII = re.compile(r"(?=.*\d)[0-9A-Z]{10}")
_ENZYME = re.compile(r"EC\s+(\d+(?:\.(?:n?\d+|-))*)")
_TAXON = re.compile(r"txid(\d+)")
_REMARK = re.compile(r"\s+\(.*\)$", re.DOTALL)
_TRANSLATED_TITLE = re.compile(r"(.+?)\s*\[(.+)\]", re.DOTALL)
_TRANSLATED_TERM = re.compile(r"[a-z]{3}\d+")


def element_text(element: Element, path: str) -> str:
    """Give the text of a descendant, blanks and line breaks squeezed; empty if it is not there."""
    return " ".join(element.findtext(path, "").split())


def names(record: Element, ui: str, title: str, language: str, line: int) -> Iterator[NameRecord]:
    """Yield the preferred name, then every other term of the record's concepts.

    Translated sets hold both languages: their terms' ids begin with a language (``fre0001``)
    where they are translated, and the title may give the English name in brackets.
    """
    preferred = _titles(title, language)
    for name_language, text in preferred.items():
        yield NameRecord(ui, text, name_language, NameKind.PREFERRED, line=line)
    terms = list(_terms(record))
    mixed = language != "en" and (
        "en" in preferred or any(_TRANSLATED_TERM.fullmatch(term_ui) for _, term_ui, *_ in terms)
    )
    for term, term_ui, kind, is_main in terms:
        english = mixed and not _TRANSLATED_TERM.fullmatch(term_ui)
        name_language = "en" if english else language
        text = element_text(term, "String")
        if not text or text == preferred.get(name_language):
            continue
        if is_main and name_language not in preferred:
            preferred[name_language] = text
            yield NameRecord(ui, text, name_language, NameKind.PREFERRED, line=line)
        else:
            yield NameRecord(ui, text, name_language, kind, line=line)


def _titles(title: str, language: str) -> dict[str, str]:
    if not title:
        return {}
    match = _TRANSLATED_TITLE.fullmatch(title) if language != "en" else None
    return {language: match[1], "en": match[2]} if match else {language: title}


def _terms(record: Element) -> Iterator[tuple[Element, str, NameKind, bool]]:
    """Give each term with its id, its kind, and whether it is the main one of the record."""
    concepts = record.findall("ConceptList/Concept")
    kinds = _kinds_of_concepts(concepts)
    for concept in concepts:
        kind = kinds[element_text(concept, "ConceptUI")]
        for term in concept.iterfind("TermList/Term"):
            short = term.get("LexicalTag") in ABBREVIATIONS
            is_main = (
                term.get("ConceptPreferredTermYN") == "Y"
                and concept.get("PreferredConceptYN") == "Y"
            )
            term_kind = NameKind.ABBREVIATION if short else kind
            yield term, element_text(term, "TermUI"), term_kind, is_main


def _kinds_of_concepts(concepts: list[Element]) -> dict[str, NameKind]:
    """Say how each concept of a record stands to the preferred one.

    In a relation the second concept is narrower (broader) than the first.
    """
    main = {
        element_text(concept, "ConceptUI")
        for concept in concepts
        if concept.get("PreferredConceptYN") == "Y"
    }
    kinds = {element_text(concept, "ConceptUI"): NameKind.RELATED for concept in concepts}
    for concept in concepts:
        for relation in concept.iterfind("ConceptRelationList/ConceptRelation"):
            name = relation.get("RelationName", "REL")
            first = element_text(relation, "Concept1UI")
            second = element_text(relation, "Concept2UI")
            if first in main:
                kinds[second] = RELATION_KINDS.get(name, NameKind.RELATED)
            elif second in main:
                name = OPPOSITE.get(name, name)
                kinds[first] = RELATION_KINDS.get(name, NameKind.RELATED)
    kinds.update(dict.fromkeys(main, NameKind.SYNONYM))
    return kinds


def scope_notes(record: Element, language: str) -> dict[str, str]:
    """Give the scope note of the preferred concept by language; translators add their own."""
    for concept in record.iterfind("ConceptList/Concept"):
        if concept.get("PreferredConceptYN") != "Y":
            continue
        note = element_text(concept, "ScopeNote")
        translated = element_text(concept, "TranslatorsScopeNote")
        if language != "en" and translated:
            english = note or element_text(concept, "TranslatorsEnglishScopeNote")
            return {language: translated, **({"en": english} if english else {})}
        return {language: note} if note else {}
    return {}


def registry_id(text: str) -> str:
    """Turn a registry number into an id, with its registry where the form tells it.

    >>> [registry_id(text) for text in ("52665-69-7 (Calcimycin)", "37H9VM9WZL", "EC 1.1.1.1")]
    ['CAS:52665-69-7', 'UNII:37H9VM9WZL', 'EC:1.1.1.1']
    """
    number = _REMARK.sub("", text.strip())
    if number in ("", "0"):
        return ""
    if _CAS.fullmatch(number):
        return f"CAS:{number}"
    if _UNII.fullmatch(number):
        return f"UNII:{number}"
    if match := _ENZYME.fullmatch(number):
        return f"EC:{match[1]}"
    if match := _TAXON.fullmatch(number):
        return f"NCBITaxon:{match[1]}"
    return number
