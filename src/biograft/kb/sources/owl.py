"""OWL classes and SKOS concepts as records: the predicates of OWL, SKOS and the OBO ontologies.

OWL and SKOS reader: RDF/XML, Turtle and N-Triples as a stream of triples, then records.
"""

from __future__ import annotations

import codecs
import re
from collections import OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any
from xml.parsers import expat

from biograft.errors import EncodingError, FormatError, MissingExtraError
from biograft.kb.iris import short_id
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
from biograft.kb.sources.files import BufferLimit, open_bytes
from biograft.kb.sources.format import Format, Item, Probe, SourceConfig, look_at
from biograft.kb.sources.log import ReadLog
from biograft.kb.sources.obo import SKOS, is_abbreviation
from biograft.kb.sources.xml_records import XmlGuard, root_name

if TYPE_CHECKING:
    from types import ModuleType

_RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
_RDFS = "http://www.w3.org/2000/01/rdf-schema#"
_OWL = "http://www.w3.org/2002/07/owl#"
_OBO = "http://purl.obolibrary.org/obo/"
_OIO = "http://www.geneontology.org/formats/oboInOwl#"
_DCT = "http://purl.org/dc/terms/"
_DC = "http://purl.org/dc/elements/1.1/"

NAMESPACES = (_RDFS, _OWL, SKOS)

RDF_TYPE = _RDF + "type"
CONCEPT = SKOS + "Concept"
CONCEPT_TYPES = frozenset({_OWL + "Class", _RDFS + "Class", CONCEPT})
PROPERTY_TYPES = frozenset(
    {
        _RDF + "Property",
        *(_OWL + f"{kind}Property" for kind in ("Object", "Annotation", "Datatype")),
    }
)
ONTOLOGY_TYPES = frozenset({_OWL + "Ontology", SKOS + "ConceptScheme"})
INDIVIDUAL = _OWL + "NamedIndividual"
THING = _OWL + "Thing"

RDFS_LABEL = _RDFS + "label"
PREF_LABEL = SKOS + "prefLabel"
SYNONYMS = {
    _OIO + "hasExactSynonym": NameKind.SYNONYM,
    _OIO + "hasBroadSynonym": NameKind.BROAD,
    _OIO + "hasNarrowSynonym": NameKind.NARROW,
    _OIO + "hasRelatedSynonym": NameKind.RELATED,
    _OBO + "IAO_0000118": NameKind.SYNONYM,  # alternative term
    SKOS + "altLabel": NameKind.SYNONYM,
    SKOS + "hiddenLabel": NameKind.SYNONYM,  # for searching: misspellings and the like
}
DEFINITIONS = (_OBO + "IAO_0000115", SKOS + "definition")
SCOPE_NOTE = SKOS + "scopeNote"

XREFS = (_OIO + "hasDbXref", SKOS + "exactMatch")
LOOSE_MATCHES = tuple(SKOS + f"{kind}Match" for kind in ("close", "broad", "narrow", "related"))
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
BROADER = SKOS + "broader"
NARROWER = SKOS + "narrower"
RELATED = SKOS + "related"

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
        """Add a triple.

        Args:
            predicate: IRI of the predicate.
            value: Object of the triple.
        """
        self.values.setdefault(predicate, []).append(value)
        self.limit.add(getattr(value, "value", ""))

    def annotate(self, node: str, predicate: str, value: Any) -> None:
        """Add a triple of an annotation of a statement.

        Args:
            node: Node of the annotation.
            predicate: IRI of the predicate.
            value: Object of the triple.
        """
        self.annotations.setdefault(node, {})[predicate] = value
        self.limit.add(getattr(value, "value", ""))

    def merge(self, other: OwlEntity) -> None:
        """Add the triples of another entity of the same subject."""
        for predicate, values in other.values.items():
            for value in values:
                self.add(predicate, value)
        self.annotations.update(other.annotations)

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
    """Converts classes and concepts into records; keeps little of each in memory.

    Args:
        config: File, and options of ``kb build``.
        log: Counts records read, and what is rejected, doubtful or filtered.
    """

    def __init__(self, config: SourceConfig, log: ReadLog) -> None:
        self._log, self._id_of = log, log.iris.id_of
        self._language = language_code(config.language or "en")
        self._default_type = config.default_type
        self._keep_suppressed = config.keep_suppressed
        self._named: dict[str, frozenset[str]] = {}
        """Class -> the languages of its preferred names so far."""
        self._shared: dict[frozenset[str], frozenset[str]] = {}
        self.filtered: set[str] = set()
        """Classes and concepts that are left out as deprecated."""

    def knows(self, iri: str) -> bool:
        """Whether this has been read as a class or concept."""
        return iri in self._named or iri in self.filtered

    def read(self, entity: OwlEntity, fraction: float) -> Iterator[Record]:
        """Yield the facts of a class or concept.

        Args:
            entity: Triples of a class or concept.
            fraction: Fraction of the file that has been read.
        """
        iri = entity.iri
        if iri not in self._named and iri not in self.filtered:
            self._log.read(fraction=fraction)
        concept, is_new = self._id_of(iri), iri not in self._named
        if self._withdraw(entity) or iri in self.filtered:
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
        self.filtered.add(entity.iri)
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


RDF_XML, TURTLE, N_TRIPLES = "RDF/XML", "Turtle", "N-Triples"

_TURTLE = re.compile(r"(?:@prefix|PREFIX)\s+[\w.-]*:\s*<|(?:@base|BASE)\s+<", re.IGNORECASE)
_N_TRIPLE = re.compile(r"(?:<[^<>\s]*>|_:\S+)\s+<[^<>\s]*>\s+[<_\"].*\.\s*(?:#.*)?$")
_CLOSED = re.compile(rb"</(?:[\w.-]+:)?RDF\s*>|<(?:[\w.-]+:)?RDF\s[^<>]*/>")
_TAIL_BYTES = 1 << 16
_BASE = "file:///"
"""The base of relative IRIs in a file that declares none."""


def rdf_syntax(text: str) -> str:
    """Return the RDF syntax of a text by its beginning; empty if it is not RDF."""
    if root_name(text).rpartition(":")[2] == "RDF":
        return RDF_XML
    for line in text.splitlines():
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        if _TURTLE.match(line.lstrip()):
            return TURTLE
        return N_TRIPLES if _N_TRIPLE.match(line.lstrip()) else ""
    return ""


class _TailFile:
    """A file that keeps the last bytes read, and the fraction of it that has been read."""

    def __init__(self, path: Path, guard: XmlGuard | None) -> None:
        self._file, self._size = open_bytes(path), max(path.stat().st_size, 1)
        self._guard, self.tail = guard, b""
        self._is_begun = False

    def read(self, size: int = -1) -> bytes:
        data = self._file.read(size)
        if not self._is_begun:  # a byte-order mark is no part of Turtle or N-Triples
            data, self._is_begun = data.removeprefix(codecs.BOM_UTF8), True
        if data:
            if self._guard is not None:
                self._guard.feed(data)
            self.tail = (self.tail + data)[-_TAIL_BYTES:] if len(data) < _TAIL_BYTES else data
        return data

    @property
    def fraction(self) -> float:
        return min(self._file.tell() / self._size, 1.0)

    def close(self) -> None:
        self._file.close()


class RdfTriples:
    """The triples of one file (subject, predicate, object), in the order of the file.

    Args:
        path: The file.
        syntax: Its syntax: RDF/XML, Turtle or N-Triples.
        declare: Called with each prefix that the file declares, and its namespace.
    """

    def __init__(
        self, path: Path, syntax: str, declare: Callable[[str, str], object] = lambda *_: None
    ) -> None:
        self._path, self._syntax, self._declare = path, syntax, declare
        self._oxigraph = import_oxigraph()
        self._file = _TailFile(path, XmlGuard(path) if syntax == RDF_XML else None)

    @property
    def fraction(self) -> float:
        """The fraction of the file that has been read."""
        return self._file.fraction

    def __iter__(self) -> Iterator[Any]:
        """Read the file once; damage is reported with its line."""
        rdf_format = getattr(
            self._oxigraph.RdfFormat, self._syntax.replace("/", "_").replace("-", "_").upper()
        )
        try:
            # lenient, since published ontologies hold many invalid IRIs
            triples = self._oxigraph.parse(
                input=self._file, format=rdf_format, base_iri=_BASE, lenient=True
            )
            for first in triples:
                for prefix, namespace in triples.prefixes.items():
                    self._declare(prefix, namespace)
                yield first
                break
            yield from triples
            if self._syntax == RDF_XML and not _CLOSED.search(self._file.tail):
                raise SyntaxError("it ends before its root element does")
        except (SyntaxError, ValueError) as error:
            raise self._damage(error) from error
        except MemoryError as error:  # the parser's own limit, of one name, text or statement
            message = " ".join(str(error).split())
            raise FormatError(
                f"a name or text in the {self._syntax} is too large ({message})",
                path=self._path,
                remedy="check that the file is valid and complete",
            ) from error
        finally:
            self._file.close()

    def _damage(self, error: Exception) -> FormatError | EncodingError:
        line = getattr(error, "lineno", None)
        message = " ".join(str(getattr(error, "msg", "") or error).split())
        if self._syntax == RDF_XML and line is None:
            line, message = _xml_damage(self._path) or (None, message)
        kind = EncodingError if "UTF-8" in message else FormatError
        return kind(
            f"the {self._syntax} is damaged or cut short ({message})",
            path=self._path,
            line=line,
            remedy="convert it to UTF-8" if kind is EncodingError else "fetch the file again",
        )


def import_oxigraph() -> ModuleType:
    """Import the RDF parser, or say how to install it."""
    try:
        import pyoxigraph
    except ImportError as error:
        raise MissingExtraError("owl", "reading OWL and SKOS") from error
    return pyoxigraph  # type: ignore[no-any-return,unused-ignore]


def _xml_damage(path: Path) -> tuple[int, str] | None:
    """Return the line and message of an XML error, which the RDF parser does not report."""
    parser = expat.ParserCreate()
    try:
        with open_bytes(path) as file:
            while data := file.read(1 << 20):
                parser.Parse(data, False)
        parser.Parse(b"", True)
    except expat.ExpatError as error:
        return error.lineno, expat.errors.messages[error.code]
    except (ValueError, LookupError):
        return None
    return None


OPEN_SUBJECTS = 256
"""Maximum subjects collected at once: RDF/XML may nest the description of one in another."""
KEPT_RESTRICTIONS = 500_000
"""Maximum restrictions that wait for the class that uses them; the oldest are dropped."""


def recognise(probe: Probe) -> bool:
    """An RDF file with a namespace of OWL, SKOS or RDF Schema near its start."""
    return bool(rdf_syntax(probe.text)) and any(name in probe.text for name in NAMESPACES)


def read(config: SourceConfig, log: ReadLog) -> Iterator[Item]:
    """Yield the facts of each class or concept, in the order of the file."""
    log.opened(config.path)
    syntax = rdf_syntax(look_at(config.path).text)
    if not syntax:
        raise FormatError(
            "is neither RDF/XML nor Turtle nor N-Triples",
            path=config.path,
            line=1,
            remedy="convert it to one of them (for OWL: robot convert)",
        )
    ontology = _Ontology(config, log)
    yield from ontology.read(RdfTriples(config.path, syntax, log.iris.declare))
    if not log.n_read:
        raise FormatError(
            "describes no owl:Class and no skos:Concept",
            path=config.path,
            remedy="check that it is an ontology or thesaurus, and complete",
        )


class _Ontology:
    """Converts the triples of one file into records."""

    def __init__(self, config: SourceConfig, log: ReadLog) -> None:
        self._log, self._path = log, config.path
        self._entities = OwlEntityReader(config, log)
        self._open: OrderedDict[str, OwlEntity] = OrderedDict()
        self._waiting: dict[str, OwlEntity] = {}
        """Subjects with facts that are not yet known to be a class or concept, and the reverse."""
        self._properties: dict[str, str] = {}
        self._restrictions: OrderedDict[str, dict[str, str]] = OrderedDict()
        self._users: dict[str, list[str]] = {}
        """Restrictions not read yet -> the classes below them."""
        self._deferred: list[tuple[str, str, str]] = []
        """Relations whose property is not declared yet."""

    def read(self, triples: RdfTriples) -> Iterator[Record]:
        """Collect the triples of each subject, then yield its facts."""
        entity = self._entity("")
        for triple in triples:
            subject = triple.subject
            if not hasattr(subject, "value"):
                continue  # a statement about a statement
            name, predicate = subject.value, triple.predicate.value
            if str(subject)[:2] == "_:":
                yield from self._add_blank(name, predicate, triple.object, entity)
                continue
            if name != entity.iri:
                if name not in self._open:
                    self._open[name] = self._entity(name)
                self._open.move_to_end(name)
                entity = self._open[name]
                if len(self._open) > OPEN_SUBJECTS:
                    _, oldest = self._open.popitem(last=False)
                    yield from self._flush(oldest, triples.fraction)
            entity.add(predicate, triple.object)
        for entity in self._open.values():
            yield from self._flush(entity, 1.0)
        yield from self._finish()

    def _entity(self, iri: str) -> OwlEntity:
        return OwlEntity(iri, BufferLimit("the description of one subject", self._path))

    def _add_blank(
        self, node: str, predicate: str, value: Any, entity: OwlEntity
    ) -> Iterator[Record]:
        """Keep restrictions, and annotations of synonyms, of a blank node."""
        if predicate in AXIOM or predicate == SYNONYM_TYPE:
            entity.annotate(node, predicate, value)
        elif predicate in (ON_PROPERTY, SOME_VALUES_FROM) and str(value)[:1] == "<":
            restriction = self._restrictions.setdefault(node, {})
            restriction[predicate] = value.value
            if len(restriction) == 2 and node in self._users:
                for head in self._users.pop(node):
                    yield from self._restricted(head, node)
                del self._restrictions[node]
            elif len(self._restrictions) > KEPT_RESTRICTIONS:
                self._restrictions.popitem(last=False)

    def _flush(self, entity: OwlEntity, fraction: float) -> Iterator[Record]:
        """Yield the facts of a subject once its triples are collected."""
        if earlier := self._waiting.pop(entity.iri, None):
            entity.merge(earlier)
        types = entity.iris(RDF_TYPE)
        is_concept = bool(types & CONCEPT_TYPES)
        is_bare = is_concept and len(entity.values) == 1
        if (is_concept and not is_bare) or self._entities.knows(entity.iri):
            yield from self._entities.read(entity, fraction)
            if entity.iri not in self._entities.filtered:
                for parent in filter(_is_blank, entity.values.get(SUBCLASS, ())):
                    yield from self._below(entity.iri, parent.value)
        elif types & PROPERTY_TYPES or SHORTHAND in entity.values:
            name = short_id(entity.iri)
            if shorthand := entity.texts(SHORTHAND):
                name = shorthand[0]
            elif name == entity.iri and (labels := entity.texts(RDFS_LABEL)):
                name = "_".join(labels[0].split())
            self._properties[entity.iri] = name
        elif types & ONTOLOGY_TYPES:
            for value in entity.texts(*VERSION):
                self._log.note(f"data version: {value}")
            for value in entity.texts(*LICENCES):
                self._log.note(f"licence: {value}")
        elif is_bare or not FACT_PREDICATES.isdisjoint(entity.values):
            self._waiting[entity.iri] = entity
        else:
            self._log.filter(_filter_reason(types))

    def _below(self, head: str, node: str) -> Iterator[Record]:
        """Yield the relation of a class's restriction, once that is complete."""
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
        return RelationRecord(self._log.iris.id_of(head), name, self._log.iris.id_of(tail))

    def _finish(self) -> Iterator[Record]:
        """Yield the deferred relations, and count what is filtered."""
        for head, relation, tail in self._deferred:
            yield self._relation(head, relation, tail)
        self._log.filter("logical axiom", sum(map(len, self._users.values())))
        for entity in self._waiting.values():
            self._log.filter(_filter_reason(entity.iris(RDF_TYPE)))


def _filter_reason(types: set[str]) -> str:
    """Return the reason why a subject is no concept."""
    if types & CONCEPT_TYPES:
        return "class that is only declared"
    if INDIVIDUAL in types:
        return "instance"
    return "neither class nor concept" if types else "subject without a type"


FORMAT = Format(recognise, read)
