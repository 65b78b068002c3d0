"""MeSH XML reader: descriptor and supplementary records, also of translated editions."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TypeAlias
from xml.etree.ElementTree import Element

from biograft.errors import FormatError
from biograft.kb.names import language_code
from biograft.kb.records import IS_A, Facts, IdKind, NameKind, NameRecord, Record, RelationRecord
from biograft.kb.sources.format import Format, Item, SourceConfig
from biograft.kb.sources.log import ReadLog
from biograft.kb.sources.xml_records import XmlRecord, read_xml_records, root_name

RELATION_KINDS = {"NRW": NameKind.NARROW, "BRD": NameKind.BROAD, "REL": NameKind.RELATED}
OPPOSITE = {"NRW": "BRD", "BRD": "NRW"}
ABBREVIATIONS = ("ABB", "ACR")

_REGISTRIES = {
    "CAS": re.compile(r"(\d{2,7}-\d\d-\d)"),
    "UNII": re.compile(r"((?=.*\d)[0-9A-Z]{10})"),
    "EC": re.compile(r"EC\s+(\d+(?:\.(?:n?\d+|-))*)"),
    "NCBITaxon": re.compile(r"txid(\d+)"),
}
"""Prefix of the ids of a registry -> a registry number, and what of it is the id."""
_COMMENT = re.compile(r"\s+\(.*\)$", re.DOTALL)
_TRANSLATED_TITLE = re.compile(r"(.+?)\s*\[(.+)\]", re.DOTALL)
_TRANSLATED_TERM = re.compile(r"[a-z]{3}\d+")


def element_text(element: Element, path: str) -> str:
    """Return the text of a descendant with whitespace collapsed; empty if there is none.

    Args:
        element: The element.
        path: Path of the descendant, as ElementTree writes it.
    """
    return " ".join(element.findtext(path, "").split())


def _names(record: Element, facts: Facts, title: str) -> Iterator[NameRecord]:
    """Yield the preferred name, then all other terms of the record's concepts.

    Translated editions hold two languages: the ids of translated terms begin with a language
    (``fre0001``), and the title may have the English name in brackets.

    Args:
        record: Element of a descriptor or supplementary record.
        facts: Its id, its line, and the language of the edition.
        title: Its preferred name.
    """
    language = facts.language
    match = _TRANSLATED_TITLE.fullmatch(title) if language != "en" else None
    preferred = {language: match[1], "en": match[2]} if match else {language: title}
    if not title:
        preferred = {}
    for name_language, text in preferred.items():
        yield facts.name(text, NameKind.PREFERRED, name_language)
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
            yield facts.name(text, NameKind.PREFERRED, name_language)
        else:
            yield facts.name(text, kind, name_language)


def _terms(record: Element) -> Iterator[tuple[Element, str, NameKind, bool]]:
    """Yield each term with its id, its kind, and whether it is the preferred term of the record."""
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
    """Return the kind of each concept of a record, by its relation to the preferred concept.

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
    """Return the scope notes of the preferred concept by language.

    Args:
        record: Element of a record.
        language: Language of the edition.
    """
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
    """Convert a registry number into an id, with the prefix of its registry if recognised.

    >>> [registry_id(text) for text in ("52665-69-7 (Calcimycin)", "37H9VM9WZL", "EC 1.1.1.1")]
    ['CAS:52665-69-7', 'UNII:37H9VM9WZL', 'EC:1.1.1.1']
    """
    number = _COMMENT.sub("", text.strip())
    if number in ("", "0"):
        return ""
    for prefix, pattern in _REGISTRIES.items():
        if match := pattern.fullmatch(number):
            return f"{prefix}:{match[1]}"
    return number


ROOTS = {"DescriptorRecordSet": "Descriptor", "SupplementalRecordSet": "SupplementalRecord"}
"""Root element -> the prefix of the element names of a record."""
RECORDS = ("DescriptorRecord", "SupplementalRecord")

CATEGORIES = dict(
    line.split(maxsplit=1)
    for line in """\
A Anatomy
B Organisms
C Diseases
D Chemicals and Drugs
E Analytical, Diagnostic and Therapeutic Techniques, and Equipment
F Psychiatry and Psychology
G Phenomena and Processes
H Disciplines and Occupations
I Anthropology, Education, Sociology, and Social Phenomena
J Technology, Industry, and Agriculture
K Humanities
L Information Science
M Named Groups
N Health Care
V Publication Characteristics
Z Geographicals""".splitlines()
)

CLASSES = {
    "1": ("Supplementary Chemicals", "D"),
    "2": ("Supplementary Protocols", "E"),
    "3": ("Supplementary Diseases", "C"),
    "4": ("Supplementary Organisms", "B"),
    "5": ("Supplementary Population Groups", "M"),
    "6": ("Supplementary Anatomy", "A"),
}
"""Class of a supplementary record -> its label and its category."""
SUBSTANCES = ("1", "2")
"""Classes whose note is no definition."""

REFERENCES = {
    "SeeRelatedDescriptor": "see-also",
    "PharmacologicalAction": "pharmacological-action",
    "HeadingMappedTo": "mapped-to",
}
"""Element that refers to a descriptor -> the relation."""

_TREE_NUMBER = re.compile(r"([A-Z])\d\d(?:\.[0-9A-Z]+)*")

Trees: TypeAlias = dict[str, tuple[str, int]]
"""Tree number -> the record that has it, and its line."""


def read(config: SourceConfig, log: ReadLog) -> Iterator[Item]:
    """Yield the facts of each record, then the hierarchy."""
    trees = Trees()
    for record in read_xml_records(config.path, ROOTS, RECORDS):
        log.read(fraction=record.fraction)
        prefix = ROOTS[record.root.tag]
        ui = element_text(record.element, f"{prefix}UI")
        if not ui:
            log.reject(f"record without {prefix}UI", record.line, record.element.tag)
            continue
        log.define(ui, record.line)
        # translated editions declare their language
        language = language_code(record.root.get("LanguageCode") or config.language or "en")
        facts = Facts(ui, record.line, language)
        yield from _facts(record, facts, log)
        yield from _types(record, facts, trees, log)
    if not log.n_read:
        raise FormatError(
            f"holds no element {' or '.join(RECORDS)}",
            path=config.path,
            remedy="check that it is MeSH XML and complete",
        )
    for number, (ui, line) in trees.items():  # C14.280 lies below C14
        above = number.rpartition(".")[0]
        if above in trees:
            yield RelationRecord(ui, IS_A, trees[above][0], line=line)
        elif above:
            log.reject("tree number whose parent is in no record", line, f"{ui} {number}")


def _facts(record: XmlRecord, facts: Facts, log: ReadLog) -> Iterator[Record]:
    element, ui, line = record.element, facts.concept, record.line
    prefix = ROOTS[record.root.tag]
    title = element_text(element, f"{prefix}Name/String")
    if not title:
        log.reject(f"record without {prefix}Name", line, ui)
    yield from _names(element, facts, title)
    definitions = scope_notes(element, facts.language)
    if not definitions and element.get("SCRClass", "1") not in SUBSTANCES:
        definitions = {facts.language: element_text(element, "Note")}
    for note_language, text in definitions.items():
        if text:
            yield facts.definition(text, note_language)
    for tag in ("RegistryNumber", "RelatedRegistryNumber"):
        for number in element.iter(tag):
            if xref := registry_id(number.text or ""):
                yield facts.id(xref, IdKind.XREF)
    for umls in element.iter("ConceptUMLSUI"):
        if umls.text and umls.text.strip():
            yield facts.id(f"UMLS:{umls.text.strip()}", IdKind.XREF)
    for tag, relation in REFERENCES.items():
        for reference in element.iter(tag):
            tail = element_text(reference, "DescriptorReferredTo/DescriptorUI").lstrip("*")
            if tail:
                yield facts.relation(relation, tail)
            else:
                log.reject(f"{tag} without DescriptorUI", line, ui)


def _types(record: XmlRecord, facts: Facts, trees: Trees, log: ReadLog) -> Iterator[Record]:
    """Yield the categories of a record, and keep its tree numbers for the hierarchy."""
    ui = facts.concept
    types = dict[str, str]()
    for element in record.element.iterfind("TreeNumberList/TreeNumber"):
        number = (element.text or "").strip()
        match = _TREE_NUMBER.fullmatch(number)
        if not match or match[1] not in CATEGORIES:
            log.reject("not a tree number", record.line, f"{ui} {number}")
            continue
        if trees.setdefault(number, (ui, record.line))[0] != ui:
            log.reject("tree number given twice", record.line, f"{ui} {number}")
            continue
        types[number[:3]] = CATEGORIES[match[1]]
    for category, label in types.items():
        yield facts.type(category, label, category)
    record_class = record.element.get("SCRClass", "").strip()
    if record_class in CLASSES:
        label, tree = CLASSES[record_class]
        yield facts.type(f"SCR{record_class}", label, tree)
    elif record_class:
        log.reject("unknown SCRClass", record.line, f"{ui} {record_class}")


FORMAT = Format(lambda probe: root_name(probe.text) in ROOTS, read)
