"""MeSH descriptors and supplementary records in NLM's XML, of any year.

Records become concepts (``D003920``, ``C535434``). All terms of a record are its names: those of
its other concepts are narrower, broader or related, as the concept relations say. The hierarchy
comes from the tree numbers and is told at the end, since a parent may stand after its child.
Types are the 16 categories with their first number (``C14``); supplementary records have no
tree numbers, so their class takes its place among the categories.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TypeAlias
from xml.etree.ElementTree import Element

from biograft.errors import FormatError
from biograft.languages import language_code
from biograft.records import (
    IS_A,
    DefinitionRecord,
    IdKind,
    IdRecord,
    Record,
    RelationRecord,
    TypeRecord,
)
from biograft.sources.format import Format, Item, Probe, SourceConfig
from biograft.sources.log import ReadLog
from biograft.sources.mesh_names import element_text, names, registry_id, scope_notes
from biograft.sources.xml_records import XmlRecord, read_xml_records, root_name

ROOTS = {"DescriptorRecordSet": "Descriptor", "SupplementalRecordSet": "SupplementalRecord"}
"""Root element -> what the names of a record's own elements begin with."""
RECORDS = ("DescriptorRecord", "SupplementalRecord")

CATEGORIES = {
    "A": "Anatomy",
    "B": "Organisms",
    "C": "Diseases",
    "D": "Chemicals and Drugs",
    "E": "Analytical, Diagnostic and Therapeutic Techniques, and Equipment",
    "F": "Psychiatry and Psychology",
    "G": "Phenomena and Processes",
    "H": "Disciplines and Occupations",
    "I": "Anthropology, Education, Sociology, and Social Phenomena",
    "J": "Technology, Industry, and Agriculture",
    "K": "Humanities",
    "L": "Information Science",
    "M": "Named Groups",
    "N": "Health Care",
    "V": "Publication Characteristics",
    "Z": "Geographicals",
}

CLASSES = {
    "1": ("Supplementary Chemicals", "D"),
    "2": ("Supplementary Protocols", "E"),
    "3": ("Supplementary Diseases", "C"),
    "4": ("Supplementary Organisms", "B"),
    "5": ("Supplementary Population Groups", "M"),
    "6": ("Supplementary Anatomy", "A"),
}
"""Class of a supplementary record -> its label, and the category it belongs to."""
SUBSTANCES = ("1", "2")
"""Classes whose note is about sources and registry numbers, so that it defines nothing."""

REFERENCES = {
    "SeeRelatedDescriptor": "see-also",
    "PharmacologicalAction": "pharmacological-action",
    "HeadingMappedTo": "mapped-to",
}
"""Element that refers to a descriptor -> the relation."""

_TREE_NUMBER = re.compile(r"([A-Z])\d\d(?:\.[0-9A-Z]+)*")

Trees: TypeAlias = dict[str, tuple[str, int]]
"""Tree number -> the record that has it, and its line."""


def recognise(probe: Probe) -> bool:
    """The root element is that of a set of descriptors or of supplementary records."""
    return root_name(probe.text) in ROOTS


def read(config: SourceConfig, log: ReadLog) -> Iterator[Item]:
    """Yield what each record states, then the hierarchy."""
    log.opened(config.path)
    seen, trees = set[str](), Trees()
    for record in read_xml_records(config.path, ROOTS, RECORDS):
        log.read(fraction=record.fraction)
        prefix = ROOTS[record.root.tag]
        ui = element_text(record.element, f"{prefix}UI")
        if not ui:
            log.reject(f"record without {prefix}UI", record.line, record.element.tag)
            continue
        if ui in seen:
            log.doubt("id defined twice", record.line, ui)
        seen.add(ui)
        yield from _facts(record, ui, _language(record.root, config), log)
        yield from _types(record, ui, trees, log)
    if not log.n_read:
        raise FormatError(
            f"holds no element {' or '.join(RECORDS)}",
            path=config.path,
            remedy="check that it is MeSH XML and complete",
        )
    yield from _hierarchy(trees, log)


def _language(root: Element, config: SourceConfig) -> str:
    """Take the language a translated set declares, else the configured one."""
    return language_code(root.get("LanguageCode") or config.language or "en")


def _facts(record: XmlRecord, ui: str, language: str, log: ReadLog) -> Iterator[Record]:
    element, line = record.element, record.line
    prefix = ROOTS[record.root.tag]
    title = element_text(element, f"{prefix}Name/String")
    if not title:
        log.reject(f"record without {prefix}Name", line, ui)
    yield from names(element, ui, title, language, line)
    definitions = scope_notes(element, language)
    if not definitions and element.get("SCRClass", "1") not in SUBSTANCES:
        definitions = {language: element_text(element, "Note")}
    for note_language, text in definitions.items():
        if text:
            yield DefinitionRecord(ui, text, note_language, line=line)
    yield from _xrefs(element, ui, line)
    for tag, relation in REFERENCES.items():
        for reference in element.iter(tag):
            tail = element_text(reference, "DescriptorReferredTo/DescriptorUI").lstrip("*")
            if tail:
                yield RelationRecord(ui, relation, tail, line=line)
            else:
                log.reject(f"{tag} without DescriptorUI", line, ui)


def _xrefs(element: Element, ui: str, line: int) -> Iterator[Record]:
    """Yield registry numbers; ``0`` stands for none."""
    for tag in ("RegistryNumber", "RelatedRegistryNumber"):
        for number in element.iter(tag):
            if xref := registry_id(number.text or ""):
                yield IdRecord(ui, xref, IdKind.XREF, line)
    for umls in element.iter("ConceptUMLSUI"):
        if umls.text and umls.text.strip():
            yield IdRecord(ui, f"UMLS:{umls.text.strip()}", IdKind.XREF, line)


def _types(record: XmlRecord, ui: str, trees: Trees, log: ReadLog) -> Iterator[Record]:
    """Yield the categories of a record, and keep its tree numbers for the hierarchy."""
    found = dict[str, str]()
    for element in record.element.iterfind("TreeNumberList/TreeNumber"):
        number = (element.text or "").strip()
        match = _TREE_NUMBER.fullmatch(number)
        if not match or match[1] not in CATEGORIES:
            log.reject("not a tree number", record.line, f"{ui} {number}")
            continue
        if trees.setdefault(number, (ui, record.line))[0] != ui:
            log.reject("tree number given twice", record.line, f"{ui} {number}")
            continue
        found[number[:3]] = CATEGORIES[match[1]]
    for category, label in found.items():
        yield TypeRecord(ui, category, label, category, record.line)
    record_class = record.element.get("SCRClass", "").strip()
    if record_class in CLASSES:
        label, tree = CLASSES[record_class]
        yield TypeRecord(ui, f"SCR{record_class}", label, tree, record.line)
    elif record_class:
        log.reject("unknown SCRClass", record.line, f"{ui} {record_class}")


def _hierarchy(trees: Trees, log: ReadLog) -> Iterator[Record]:
    """Yield is-a by prefix: C14.280 lies below C14."""
    for number, (ui, line) in trees.items():
        above = number.rpartition(".")[0]
        if above in trees:
            yield RelationRecord(ui, IS_A, trees[above][0], line=line)
        elif above:
            log.reject("tree number whose parent is in no record", line, f"{ui} {number}")


FORMAT = Format(recognise, read)
