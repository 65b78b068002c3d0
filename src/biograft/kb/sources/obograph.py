"""OBO Graphs JSON reader; gives the same facts and ids as the OBO file of the same ontology.

IRIs become the short ids of OBO (``DOID:162``). A relation has the name of the OBO export: the
shorthand that its property declares (``part_of``), else its short id (``BFO:0000050``).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from biograft.errors import FormatError
from biograft.kb.iris import short_id
from biograft.kb.records import IS_A, Facts, IdKind, IdRecord, NameKind, Record
from biograft.kb.sources.format import Format, Item, Probe, SourceConfig
from biograft.kb.sources.json_files import JsonStream
from biograft.kb.sources.log import ReadLog
from biograft.kb.sources.obo import CONDITIONAL, is_abbreviation

SCOPES = {
    "hasExactSynonym": NameKind.SYNONYM,
    "hasBroadSynonym": NameKind.BROAD,
    "hasNarrowSynonym": NameKind.NARROW,
    "hasRelatedSynonym": NameKind.RELATED,
}
SUBCLASS = ("is_a", "http://www.w3.org/2000/01/rdf-schema#subClassOf")
SUCCESSORS = {"IAO_0100001": IdKind.REPLACED, "consider": IdKind.CONSIDER}
"""Properties of a retired node that name what takes its place, by the end of their IRIs."""
NO_RELATIONS = ("subPropertyOf", "inverseOf", "type")
"""Edges that are no relations of concepts: between properties, and of individuals."""

DEFINED = {
    "logicalDefinitionAxioms": "definedClassId",
    "equivalentNodesSets": "representativeNodeId",
}
"""Axioms, of which only the subject is read."""

_GRAPHS = re.compile(r'\{.{0,2000}?"graphs"\s*:\s*\[', re.DOTALL)
_LICENCE = re.compile(r"licen[cs]e", re.IGNORECASE)


def recognise(probe: Probe) -> bool:
    """A JSON object with ``"graphs": [`` near the start, and then nodes or edges."""
    match = _GRAPHS.match(probe.text.lstrip())
    return bool(match) and any(
        f'"{key}"' in probe.text for key in ("nodes", "edges", "meta", "logicalDefinitionAxioms")
    )


def read(config: SourceConfig, log: ReadLog) -> Iterator[Item]:
    """Yield the facts of the nodes of every graph, then their edges."""
    log.opened(config.path)
    content = False
    with JsonStream(config.path, config.encoding, log) as stream:
        graphs = _Graphs(stream, config, log)
        for key in stream.members():
            if key == "graphs":
                content = True
                for _ in stream.elements():
                    yield from graphs.read()
                yield from graphs.read_subjects()
            else:
                stream.skip()
        stream.finish()
    if not content:
        raise FormatError(
            'holds no "graphs"', path=config.path, line=1, remedy="check that it is OBO Graphs JSON"
        )


class _Graphs:
    """Converts the graphs of one document into records."""

    def __init__(self, stream: JsonStream, config: SourceConfig, log: ReadLog) -> None:
        self._stream, self._log, self._id_of = stream, log, log.iris.id_of
        self._keep_suppressed = config.keep_suppressed
        self._language = config.language or "en"
        self._default_type = config.default_type
        self._named: dict[str, bool] = {}
        self._filtered: dict[str, str] = {}
        """Nodes that are no concepts, with the reason."""
        self._shorthands: dict[str, str] = {}
        self._pending_edges: list[tuple[Any, int]] = []
        self._has_nodes = False
        self._subjects: dict[str, int] = {}
        """Subjects of edges and of axioms: concepts, which have no node if they have no name."""

    def read(self) -> Iterator[Record]:
        """Read one graph."""
        self._has_nodes = False
        for key in self._stream.members():
            if key == "nodes":
                for line in self._stream.elements():
                    yield from self._node(self._stream.value(), line)
                self._has_nodes = True
            elif key == "edges":
                for line in self._stream.elements():
                    edge = self._stream.value()
                    if self._has_nodes:
                        yield from self._edge(edge, line)
                    else:  # until it is known which nodes are filtered
                        self._pending_edges.append((edge, line))
            elif key in DEFINED:
                for line in self._stream.elements():
                    if iri := self._text(self._stream.value(), DEFINED[key], line):
                        self._subjects[iri] = line
                    self._log.filter("logical axiom")
            elif key == "meta":
                self._note(self._stream.value())
            else:
                self._stream.skip()
        for edge, line in self._pending_edges:
            yield from self._edge(edge, line)
        self._pending_edges.clear()

    def read_subjects(self) -> Iterator[Record]:
        """Yield the subjects without a node."""
        for iri, line in self._subjects.items():
            if iri not in self._filtered and self._id_of(iri) not in self._named:
                yield Facts(self._id_of(iri), line).exists()

    def _note(self, meta: Any) -> None:
        if isinstance(meta, dict):
            if isinstance(meta.get("version"), str):
                self._log.note(f"data version: {meta['version']}")
            for value in self._objects(meta, "basicPropertyValues", self._stream.line):
                if _LICENCE.search(str(value.get("pred"))):
                    self._log.note(f"licence: {value.get('val')}")

    def _node(self, node: Any, line: int) -> Iterator[Record]:
        if not (iri := self._text(node, "id", line)):
            return
        meta = node.get("meta") or {}
        if not isinstance(meta, dict):
            self._log.reject("meta is no object", line, iri)
            meta = {}
        if node.get("type") == "PROPERTY":
            self._filtered[iri] = "relation of a property"
            for value in self._objects(meta, "basicPropertyValues", line):
                if str(value.get("pred")).endswith("#shorthand"):
                    self._shorthands[iri] = self._text(value, "val", line)
            return
        self._log.read(fraction=self._stream.fraction)
        reason = ""
        if node.get("type") == "INDIVIDUAL":
            reason = "instance"
        elif not self._keep_suppressed and str(meta.get("deprecated")).lower() == "true":
            reason = "obsolete"
        elif not node.get("type") and not node.get("lbl"):
            # only referred to by an annotation of another node
            reason = "node without type and label"
        if reason:
            self._filtered[iri] = reason
            self._log.filter(reason)
            if reason == "obsolete":
                self._log.leave_out((self._id_of(iri),))
                yield from self._successors(Facts(self._id_of(iri), line), meta)
            return
        yield from self._concept(Facts(self._id_of(iri), line, self._language), node, meta)

    def _concept(
        self, facts: Facts, node: dict[str, Any], meta: dict[str, Any]
    ) -> Iterator[Record]:
        line = facts.line
        if facts.concept in self._named:
            self._log.doubt("id defined twice", line, facts.concept)
        named = self._named.setdefault(facts.concept, False)
        yield facts.exists()
        if node.get("lbl") is not None and (label := self._text(node, "lbl", line)):
            self._named[facts.concept] = True
            yield from facts.names([label], is_new=not named)
        for definition in self._objects(meta, "definition", line):
            if text := self._text(definition, "val", line):
                yield facts.definition(text)
        for synonym in self._objects(meta, "synonyms", line):
            if text := self._text(synonym, "val", line):
                yield from self._synonym(facts, text, synonym)
        for xref in self._objects(meta, "xrefs", line):
            if text := self._text(xref, "val", line):
                yield facts.id(text, IdKind.XREF)
        yield from self._properties(facts, meta)

    def _synonym(self, facts: Facts, text: str, synonym: dict[str, Any]) -> Iterator[Record]:
        predicate = str(synonym.get("pred") or "hasRelatedSynonym").rpartition("#")[2]
        if predicate not in SCOPES:
            self._log.reject("synonym with an unknown scope", facts.line, f"{predicate}: {text}")
            return
        abbreviation = is_abbreviation(str(synonym.get("synonymType") or ""))
        yield facts.name(text, NameKind.ABBREVIATION if abbreviation else SCOPES[predicate])

    def _properties(self, facts: Facts, meta: dict[str, Any]) -> Iterator[Record]:
        typed = False
        for value in self._objects(meta, "basicPropertyValues", facts.line):
            name = str(value.get("pred")).rpartition("#")[2]
            if name not in ("hasAlternativeId", "hasOBONamespace", "exactMatch"):
                continue
            if not (text := self._text(value, "val", facts.line)):
                continue
            if name == "hasOBONamespace":
                typed = True
                yield facts.type(text)
            else:
                kind = IdKind.XREF if name == "exactMatch" else IdKind.ALTERNATE
                yield facts.id(self._id_of(text), kind)
        if self._default_type and not typed:
            yield facts.type(self._default_type)
        yield from self._successors(facts, meta)

    def _successors(self, facts: Facts, meta: dict[str, Any]) -> Iterator[Record]:
        """Yield the concepts that a retired one names in its place."""
        for value in self._objects(meta, "basicPropertyValues", facts.line):
            kind = SUCCESSORS.get(re.split(r"[/#]", str(value.get("pred")))[-1])
            if kind is not None and (text := self._text(value, "val", facts.line)):
                yield IdRecord(self._id_of(text), facts.concept, kind, facts.line)

    def _edge(self, edge: Any, line: int) -> Iterator[Record]:
        ends = [self._text(edge, key, line) for key in ("sub", "pred", "obj")]
        if not all(ends):
            return
        head, relation, tail = ends
        if relation in NO_RELATIONS:
            self._log.filter(f"edge {relation}")
        elif head in self._filtered:
            self._log.filter(self._filtered[head])
        else:
            name = self._shorthands.get(relation) or short_id(relation)
            name = IS_A if relation in SUBCLASS else name
            self._subjects.setdefault(head, line)
            if "gci_" in str(edge.get("meta")):
                self._log.filter(CONDITIONAL)
            else:
                yield Facts(self._id_of(head), line).relation(name, self._id_of(tail))

    def _objects(self, holder: dict[str, Any], key: str, line: int) -> Iterator[dict[str, Any]]:
        """Yield the objects under a key: one, or a list of them."""
        content = holder.get(key)
        for value in content if isinstance(content, list) else [content]:
            if isinstance(value, dict):
                yield value
            elif value is not None:
                self._log.reject(f"{key} holds what is no object", line, str(value))

    def _text(self, holder: Any, key: str, line: int) -> str:
        """Return a required text; if it is missing or not valid Unicode, reject it."""
        value = holder.get(key) if isinstance(holder, dict) else None
        if isinstance(value, str) and value.strip():
            if value.isascii() or not any("\ud800" <= character <= "\udfff" for character in value):
                return value.strip()
            self._log.reject("text with half a character (lone surrogate)", line, ascii(value))
        else:
            self._log.reject(f"no {key}", line, ascii(holder))
        return ""


FORMAT = Format(recognise, read, languages_inside=False)
