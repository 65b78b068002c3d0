"""OWL ontologies and SKOS thesauri in RDF/XML, Turtle or N-Triples, read as a stream of triples.

Ids are shortened as OBO does it (:func:`biograft.sources.iris.short_id`): ``DOID:162`` for
``http://purl.obolibrary.org/obo/DOID_162``, ``Orphanet:558`` for an IRI that ends in
``/Orphanet_558``; other IRIs are kept whole. *A subclass of (property some B)* is the relation
``property`` to B. The property is called as the OBO export of the ontology calls it: by its
shorthand (``part_of``), else by its short id (``RO:0002160``); one with neither by its label.

One pass: the triples of a subject are gathered while they stand near each other, as all usual
tools write them, and only what is known of each class (its languages, that it is withdrawn)
stays in memory, with the restrictions that have not been used yet and the subjects that are not
known to be classes yet.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from typing import Any

from biograft.errors import FormatError
from biograft.records import Record, RelationRecord
from biograft.sources.files import read_head
from biograft.sources.format import Format, Item, Probe, SourceConfig
from biograft.sources.iris import short_id
from biograft.sources.limits import Held
from biograft.sources.log import ReadLog
from biograft.sources.owl_entity import Entity, EntityReader
from biograft.sources.owl_terms import (
    AXIOM,
    CONCEPT_TYPES,
    INDIVIDUAL,
    LICENCES,
    NAMESPACES,
    ON_PROPERTY,
    ONTOLOGY_TYPES,
    PROPERTY_TYPES,
    RDF_TYPE,
    RDFS_LABEL,
    SHORTHAND,
    SOME_VALUES_FROM,
    SYNONYM_TYPE,
    VERSION,
)
from biograft.sources.rdf import Triples, rdf_syntax

OPEN_SUBJECTS = 256
"""How many subjects are gathered at once: RDF/XML may describe one within another."""
KEPT_RESTRICTIONS = 500_000
"""How many restrictions may wait for the class that uses them; the oldest are forgotten."""


def recognise(probe: Probe) -> bool:
    """An RDF file that names one of the namespaces of OWL, SKOS or RDF Schema near its start."""
    return bool(rdf_syntax(probe.text)) and any(name in probe.text for name in NAMESPACES)


def read(config: SourceConfig, log: ReadLog) -> Iterator[Item]:
    """Yield what each class or concept states, in the order of the file."""
    log.opened(config.path)
    syntax = rdf_syntax(Probe(config.path, read_head(config.path)).text)
    if not syntax:
        raise FormatError(
            "is neither RDF/XML nor Turtle nor N-Triples",
            path=config.path,
            line=1,
            remedy="convert it to one of them (for OWL: robot convert)",
        )
    ontology = _Ontology(config, log)
    yield from ontology.read(Triples(config.path, syntax))
    if not log.n_read:
        raise FormatError(
            "holds no owl:Class and no skos:Concept",
            path=config.path,
            remedy="check that it is an ontology or thesaurus, and complete",
        )


class _Ontology:
    """Turns the triples of one file into records."""

    def __init__(self, config: SourceConfig, log: ReadLog) -> None:
        self._log, self._path = log, config.path
        self._entities = EntityReader(config, log)
        self._open: OrderedDict[str, Entity] = OrderedDict()
        self._waiting: dict[str, Entity] = {}
        """Subjects that have told something, but not yet that they are a class or concept."""
        self._properties: dict[str, str] = {}
        self._restrictions: OrderedDict[str, dict[str, str]] = OrderedDict()
        self._users: dict[str, list[str]] = {}
        """Restrictions not met yet -> the classes below them."""
        self._deferred: list[tuple[str, str, str]] = []
        """Relations whose property is not declared yet."""

    def read(self, triples: Triples) -> Iterator[Record]:
        """Gather the triples of each subject, then yield what it states."""
        entity = self._entity("")
        for triple in triples:
            subject = triple.subject
            if not hasattr(subject, "value"):
                continue  # a statement about a statement
            name, predicate = subject.value, triple.predicate.value
            if str(subject)[:2] == "_:":
                yield from self._blank(name, predicate, triple.object, entity)
                continue
            if name != entity.iri:
                entity = self._gather(name)
                if len(self._open) > OPEN_SUBJECTS:
                    _, oldest = self._open.popitem(last=False)
                    yield from self._flush(oldest, triples.fraction)
            entity.add(predicate, triple.object)
        for entity in self._open.values():
            yield from self._flush(entity, 1.0)
        yield from self._finish()

    def _entity(self, iri: str) -> Entity:
        return Entity(iri, Held("what is said of one subject", self._path))

    def _gather(self, iri: str) -> Entity:
        """Open a subject, or go on with one that is open."""
        if iri not in self._open:
            self._open[iri] = self._entity(iri)
        self._open.move_to_end(iri)
        return self._open[iri]

    def _blank(self, node: str, predicate: str, value: Any, entity: Entity) -> Iterator[Record]:
        """Keep what matters of a blank node: restrictions, and remarks on synonyms."""
        if predicate in AXIOM or predicate == SYNONYM_TYPE:
            entity.remark(node, predicate, value)
        elif predicate in (ON_PROPERTY, SOME_VALUES_FROM) and str(value)[:1] == "<":
            restriction = self._restrictions.setdefault(node, {})
            restriction[predicate] = value.value
            if len(restriction) == 2 and node in self._users:
                for head in self._users.pop(node):
                    yield from self._restricted(head, node)
                del self._restrictions[node]
            elif len(self._restrictions) > KEPT_RESTRICTIONS:
                self._restrictions.popitem(last=False)

    def _flush(self, entity: Entity, fraction: float) -> Iterator[Record]:
        """Yield what a subject states once its triples are gathered."""
        types = entity.iris(RDF_TYPE)
        if types & CONCEPT_TYPES or self._entities.knows(entity.iri):
            if earlier := self._waiting.pop(entity.iri, None):
                entity.merge(earlier)
            yield from self._entities.read(entity, fraction)
            if not self._entities.is_left(entity.iri):
                for node in entity.parents_without_name():
                    yield from self._below(entity.iri, node)
        elif types & PROPERTY_TYPES or entity.has(SHORTHAND):
            self._properties[entity.iri] = self._property_name(entity)
        elif types & ONTOLOGY_TYPES:
            self._notes(entity)
        elif entity.is_told():
            if entity.iri not in self._waiting:
                self._waiting[entity.iri] = self._entity(entity.iri)
            self._waiting[entity.iri].merge(entity)
        else:
            self._log.filter(_why_left(types))

    def _property_name(self, entity: Entity) -> str:
        if shorthand := entity.texts(SHORTHAND):
            return shorthand[0]
        short = short_id(entity.iri)
        if short == entity.iri and (labels := entity.texts(RDFS_LABEL)):
            return "_".join(labels[0].split())
        return short

    def _notes(self, entity: Entity) -> None:
        for value in entity.texts(*VERSION):
            self._log.note(f"data version: {value}")
        for value in entity.texts(*LICENCES):
            self._log.note(f"licence: {value}")

    def _below(self, head: str, node: str) -> Iterator[Record]:
        """Yield the relation that a class's restriction states, once that is known."""
        if len(self._restrictions.get(node, {})) == 2:
            yield from self._restricted(head, node)
            del self._restrictions[node]
        else:
            self._users.setdefault(node, []).append(head)

    def _restricted(self, head: str, node: str) -> Iterator[Record]:
        restriction = self._restrictions[node]
        relation, tail = restriction[ON_PROPERTY], restriction[SOME_VALUES_FROM]
        if relation in self._properties:
            yield self._relation(head, relation, tail)
        else:
            self._deferred.append((head, relation, tail))

    def _relation(self, head: str, relation: str, tail: str) -> Record:
        name = self._properties.get(relation) or short_id(relation)
        return RelationRecord(short_id(head), name, short_id(tail))

    def _finish(self) -> Iterator[Record]:
        """Yield what had to wait for the end, and count what came to nothing."""
        for head, relation, tail in self._deferred:
            yield self._relation(head, relation, tail)
        self._log.filter("logical axiom", sum(map(len, self._users.values())))
        for entity in self._waiting.values():
            self._log.filter(_why_left(entity.iris(RDF_TYPE)))


def _why_left(types: set[str]) -> str:
    """Say why a subject is neither class nor concept."""
    if INDIVIDUAL in types:
        return "instance"
    return "neither class nor concept" if types else "subject without a type"


FORMAT = Format(recognise, read)
