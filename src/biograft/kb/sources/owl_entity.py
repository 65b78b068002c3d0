"""OWL classes and SKOS concepts as records: the predicates of OWL, SKOS and the OBO ontologies."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from biograft.kb.names import language_code
from biograft.kb.records import (
    IS_A,
    ConceptRecord,
    DefinitionRecord,
    IdKind,
    IdRecord,
    NameKind,
    NameRecord,
    Record,
    RelationRecord,
    TypeRecord,
)
from biograft.kb.sources.format import SourceConfig
from biograft.kb.sources.iris import short_id
from biograft.kb.sources.limits import BufferLimit
from biograft.kb.sources.log import ReadLog
from biograft.kb.sources.obo import is_abbreviation

_RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
_RDFS = "http://www.w3.org/2000/01/rdf-schema#"
_OWL = "http://www.w3.org/2002/07/owl#"
_SKOS = "http://www.w3.org/2004/02/skos/core#"
_OBO = "http://purl.obolibrary.org/obo/"
_OIO = "http://www.geneontology.org/formats/oboInOwl#"
_DCT = "http://purl.org/dc/terms/"
_DC = "http://purl.org/dc/elements/1.1/"

NAMESPACES = (_RDFS, _OWL, _SKOS)

RDF_TYPE = _RDF + "type"
CONCEPT = _SKOS + "Concept"
CONCEPT_TYPES = frozenset({_OWL + "Class", _RDFS + "Class", CONCEPT})
PROPERTY_TYPES = frozenset(
    {
        _RDF + "Property",
        *(_OWL + f"{kind}Property" for kind in ("Object", "Annotation", "Datatype")),
    }
)
ONTOLOGY_TYPES = frozenset({_OWL + "Ontology", _SKOS + "ConceptScheme"})
INDIVIDUAL = _OWL + "NamedIndividual"
THING = _OWL + "Thing"

RDFS_LABEL = _RDFS + "label"
PREF_LABEL = _SKOS + "prefLabel"
SYNONYMS = {
    _OIO + "hasExactSynonym": NameKind.SYNONYM,
    _OIO + "hasBroadSynonym": NameKind.BROAD,
    _OIO + "hasNarrowSynonym": NameKind.NARROW,
    _OIO + "hasRelatedSynonym": NameKind.RELATED,
    _OBO + "IAO_0000118": NameKind.SYNONYM,  # alternative term
    _SKOS + "altLabel": NameKind.SYNONYM,
    _SKOS + "hiddenLabel": NameKind.SYNONYM,  # for searching: misspellings and the like
}
DEFINITIONS = (_OBO + "IAO_0000115", _SKOS + "definition")
SCOPE_NOTE = _SKOS + "scopeNote"

XREFS = (_OIO + "hasDbXref", _SKOS + "exactMatch")
LOOSE_MATCHES = tuple(_SKOS + f"{kind}Match" for kind in ("close", "broad", "narrow", "related"))
ALTERNATIVE_ID = _OIO + "hasAlternativeId"
NAMESPACE = _OIO + "hasOBONamespace"
DEPRECATED = _OWL + "deprecated"
SUCCESSORS = {
    _OBO + "IAO_0100001": IdKind.REPLACED,  # term replaced by
    _DCT + "isReplacedBy": IdKind.REPLACED,
    _OIO + "consider": IdKind.CONSIDER,
}

SUBCLASS = _RDFS + "subClassOf"
EQUIVALENT = _OWL + "equivalentClass"
ON_PROPERTY = _OWL + "onProperty"
SOME_VALUES_FROM = _OWL + "someValuesFrom"
BROADER = _SKOS + "broader"
NARROWER = _SKOS + "narrower"
RELATED = _SKOS + "related"

ANNOTATED_SOURCE = _OWL + "annotatedSource"
ANNOTATED_PROPERTY = _OWL + "annotatedProperty"
ANNOTATED_TARGET = _OWL + "annotatedTarget"
AXIOM = (ANNOTATED_SOURCE, ANNOTATED_PROPERTY, ANNOTATED_TARGET)
SYNONYM_TYPE = _OIO + "hasSynonymType"

FACT_PREDICATES = frozenset(
    {
        *(RDFS_LABEL, PREF_LABEL, *SYNONYMS, *DEFINITIONS, SCOPE_NOTE, *XREFS, ALTERNATIVE_ID),
        *(NAMESPACE, DEPRECATED, *SUCCESSORS, SUBCLASS, BROADER, NARROWER, RELATED),
    }
)
"""Predicates that state a fact about a class or concept."""

SHORTHAND = _OIO + "shorthand"
VERSION = (_OWL + "versionIRI", _OWL + "versionInfo")
LICENCES = (_DCT + "license", _DCT + "rights", _DC + "license", _DC + "rights")


def _is_iri(value: Any) -> bool:
    return str(value)[:1] == "<" and hasattr(value, "value")


def _is_blank(value: Any) -> bool:
    return str(value)[:2] == "_:"


def _is_text(value: Any) -> bool:
    return str(value)[:1] == '"'


@dataclass(slots=True)
class OwlEntity:
    """The triples of one subject."""

    iri: str
    limit: BufferLimit
    """Bounds the memory of the triples."""
    values: dict[str, list[Any]] = field(default_factory=dict)
    annotations: dict[str, dict[str, Any]] = field(default_factory=dict)
    """Annotations of this subject's statements, by blank node."""

    def add(self, predicate: str, value: Any) -> None:
        """Add a triple."""
        self.values.setdefault(predicate, []).append(value)
        self._check_size(value)

    def annotate(self, node: str, predicate: str, value: Any) -> None:
        """Add a triple of an annotation of a statement."""
        self.annotations.setdefault(node, {})[predicate] = value
        self._check_size(value)

    def _check_size(self, value: Any) -> None:
        self.limit.add(getattr(value, "value", ""))

    def merge(self, other: OwlEntity) -> None:
        """Add the triples of another entity of the same subject."""
        for predicate, values in other.values.items():
            for value in values:
                self.add(predicate, value)
        self.annotations.update(other.annotations)

    def has_facts(self) -> bool:
        """Whether any triple states a fact about a class or concept."""
        return not FACT_PREDICATES.isdisjoint(self.values)

    def has(self, predicate: str) -> bool:
        """Whether there is a triple with this predicate."""
        return predicate in self.values

    def iris(self, predicate: str) -> set[str]:
        """Return the IRIs that are objects of a predicate."""
        return {value.value for value in self.values.get(predicate, ()) if _is_iri(value)}

    def texts(self, *predicates: str) -> list[str]:
        """Return the texts and IRIs that are objects of predicates."""
        return [
            value.value.strip()
            for predicate in predicates
            for value in self.values.get(predicate, ())
            if (_is_iri(value) or _is_text(value)) and value.value.strip()
        ]

    def blank_parents(self) -> list[str]:
        """Return the blank nodes that this is a subclass of."""
        return [value.value for value in self.values.get(SUBCLASS, ()) if _is_blank(value)]

    def abbreviations(self) -> set[tuple[str, str]]:
        """Return predicate and text of the synonyms that are annotated as abbreviations."""
        return {
            (annotate[ANNOTATED_PROPERTY].value, annotate[ANNOTATED_TARGET].value)
            for annotate in self.annotations.values()
            if SYNONYM_TYPE in annotate
            and is_abbreviation(str(getattr(annotate[SYNONYM_TYPE], "value", "")))
            and all(hasattr(annotate.get(part), "value") for part in AXIOM)
            and annotate[ANNOTATED_SOURCE].value == self.iri
        }


class OwlEntityReader:
    """Converts classes and concepts into records; keeps little of each in memory."""

    def __init__(self, config: SourceConfig, log: ReadLog) -> None:
        self._log, self._id_of = log, log.iris.id_of
        self._language = language_code(config.language or "en")
        self._default_type = config.default_type
        self._keep_suppressed = config.keep_suppressed
        self._named: dict[str, frozenset[str]] = {}
        """Class -> the languages of its preferred names so far."""
        self._shared: dict[frozenset[str], frozenset[str]] = {}
        self._filtered: set[str] = set()

    def knows(self, iri: str) -> bool:
        """Whether this has been read as a class or concept."""
        return iri in self._named or iri in self._filtered

    def is_filtered(self, iri: str) -> bool:
        """Whether this is filtered as deprecated."""
        return iri in self._filtered

    def read(self, entity: OwlEntity, fraction: float) -> Iterator[Record]:
        """Yield the facts of a class or concept."""
        iri = entity.iri
        if iri not in self._named and iri not in self._filtered:
            self._log.read(fraction=fraction)
        concept, is_new = self._id_of(iri), iri not in self._named
        if self._withdraw(entity) or iri in self._filtered:
            yield from self._successors(concept, entity)
            return
        if is_new:
            self._named[iri] = frozenset()
            yield ConceptRecord(concept)
        yield from self._labels(concept, entity)
        yield from self._synonyms(concept, entity)
        yield from self._definitions(concept, entity)
        yield from self._ids(concept, entity)
        yield from self._relations(concept, entity)
        namespaces = entity.texts(NAMESPACE)
        if not namespaces and is_new and self._default_type:
            namespaces = [self._default_type]
        yield from (TypeRecord(concept, namespace) for namespace in namespaces)
        yield from self._successors(concept, entity)

    def _successors(self, concept: str, entity: OwlEntity) -> Iterator[Record]:
        """Yield the concepts that a retired one names in its place."""
        for predicate, kind in SUCCESSORS.items():
            for text in sorted(entity.texts(predicate)):
                yield IdRecord(self._id_of(text), concept, kind)

    def _withdraw(self, entity: OwlEntity) -> bool:
        """Filter a deprecated entity; one that was read already stays, as doubtful."""
        if self._keep_suppressed or not {"true", "1"} & set(
            map(str.lower, entity.texts(DEPRECATED))
        ):
            return False
        if entity.iri in self._named:
            self._log.doubt("marked as deprecated apart from its other triples", 0, entity.iri)
            return False
        self._filtered.add(entity.iri)
        self._log.filter("obsolete")
        self._log.leave_out((self._id_of(entity.iri),))
        return True

    def _texts(self, entity: OwlEntity, predicate: str) -> Iterator[tuple[str, str]]:
        """Yield texts with their languages; other values are rejected."""
        for value in entity.values.get(predicate, ()):
            text = " ".join(value.value.split()) if _is_text(value) else ""
            if text:
                yield text, language_code(value.language or "") or self._language
            else:
                name = short_id(predicate).rpartition("#")[2]
                self._log.reject(f"{name} that is no text", 0, f"{entity.iri} {value}")

    def _labels(self, concept: str, entity: OwlEntity) -> Iterator[Record]:
        """Yield the labels: the first of each language is preferred, others are synonyms."""
        predicates = [RDFS_LABEL, PREF_LABEL]
        if CONCEPT in entity.iris(RDF_TYPE):
            predicates.reverse()
        seen = set[tuple[str, str]]()
        languages = set(self._named[entity.iri])
        for predicate in predicates:
            for text, language in self._texts(entity, predicate):
                if (text, language) in seen:
                    continue
                seen.add((text, language))
                kind = NameKind.SYNONYM if language in languages else NameKind.PREFERRED
                languages.add(language)
                yield NameRecord(concept, text, language, kind)
        known = frozenset(languages)
        self._named[entity.iri] = self._shared.setdefault(known, known)

    def _synonyms(self, concept: str, entity: OwlEntity) -> Iterator[Record]:
        short = entity.abbreviations()
        for predicate, kind in SYNONYMS.items():
            for text, language in self._texts(entity, predicate):
                name_kind = NameKind.ABBREVIATION if (predicate, text) in short else kind
                yield NameRecord(concept, text, language, name_kind)

    def _definitions(self, concept: str, entity: OwlEntity) -> Iterator[Record]:
        """Yield the definitions; a scope note is used for a language without one."""
        seen = dict[tuple[str, str], None]()
        for predicate in DEFINITIONS:
            seen |= dict.fromkeys(self._texts(entity, predicate))
        defined = {language for _, language in seen}
        for text, language in self._texts(entity, SCOPE_NOTE):
            if language not in defined:
                seen[text, language] = None
        yield from (DefinitionRecord(concept, text, language) for text, language in seen)

    def _ids(self, concept: str, entity: OwlEntity) -> Iterator[Record]:
        for text in dict.fromkeys(map(self._id_of, entity.texts(*XREFS))):
            yield IdRecord(concept, text, IdKind.XREF)
        for text in entity.texts(ALTERNATIVE_ID):
            yield IdRecord(concept, self._id_of(text), IdKind.ALTERNATE)
        loose = sum(len(entity.values.get(predicate, ())) for predicate in LOOSE_MATCHES)
        self._log.filter("mapping to something close, broader, narrower or related", loose)

    def _relations(self, concept: str, entity: OwlEntity) -> Iterator[Record]:
        for predicate in (SUBCLASS, BROADER):
            for parent in sorted(entity.iris(predicate) - {THING}):
                yield RelationRecord(concept, IS_A, self._id_of(parent))
        for child in sorted(entity.iris(NARROWER)):
            yield RelationRecord(self._id_of(child), IS_A, concept)
        for other in sorted(entity.iris(RELATED)):
            yield RelationRecord(concept, "related", self._id_of(other))
        equivalents = entity.values.get(EQUIVALENT, ())
        self._log.filter("logical axiom", sum(map(_is_blank, equivalents)))
