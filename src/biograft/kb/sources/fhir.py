"""FHIR reader: CodeSystem, ValueSet and ConceptMap in JSON; bundles, folders and NPM packages.

A code has the id ``PREFIX:code``: the prefix is that of the vocabulary where its URI is known
(``http://loinc.org`` is LOINC), else the id of the code system. A value set gives the codes that it
lists, each with the value set as a type; a concept map gives cross-references.
"""

from __future__ import annotations

import json
import re
import tarfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from biograft.errors import FormatError
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
from biograft.kb.sources.files import max_value, open_tar, read_head
from biograft.kb.sources.format import Format, Item, Probe, SourceConfig
from biograft.kb.sources.json_files import JsonStream
from biograft.kb.sources.log import ReadLog
from biograft.kb.vocabularies import canonical_id, vocabulary_of_system

KINDS = ("CodeSystem", "ValueSet", "ConceptMap")
_TYPE = re.compile(rf'"resourceType"\s*:\s*"({"|".join((*KINDS, "Bundle"))})"')
_LARGE = ("concept", "compose", "expansion", "group", "entry", "text", "contained")
"""Members of a resource that are not held in memory whole, or not read."""
_EQUAL = ("equal", "equivalent")
_RETIRED = ("retired", "deprecated", "inactive")
_PARENT, _CHILD = ("parent", "subsumedBy"), "child"
_NOT_RELATIONS = ("status", "kind", "inactive", "notSelectable")
_PREFERRED_USES = ("preferredForLanguage", "display")

Json = Mapping[str, Any]


def recognise(probe: Probe) -> bool:
    """A resource of one of the kinds, or a folder or an NPM package that holds some."""
    if probe.members:
        return "package" in probe.members or any(
            name.startswith(tuple(f"{kind}-" for kind in KINDS)) and name.endswith(".json")
            for name in probe.members
        )
    if probe.text.lstrip().startswith("{") and _TYPE.search(probe.text):
        return True
    return probe.head[257:262] == b"ustar" and probe.head.startswith(b"package/")


@dataclass(slots=True)
class _Resource:
    """A resource: its small members, and where its large ones are."""

    head: dict[str, Any]
    path: Path
    members: Iterator[tuple[str, int, Any]]
    """The elements of its large members: the key, the line, the value."""


def read(config: SourceConfig, log: ReadLog) -> Iterator[Item]:
    """Yield the facts of every resource."""
    codes = _Codes(config, log)
    for resource in _resources(config, log):
        kind = resource.head.get("resourceType")
        if kind == "CodeSystem":
            yield from codes.code_system(resource)
        elif kind == "ValueSet":
            yield from codes.value_set(resource)
        elif kind == "ConceptMap":
            yield from codes.concept_map(resource)
    yield from codes.finish()


def _resources(config: SourceConfig, log: ReadLog) -> Iterator[_Resource]:
    path = config.path
    if path.is_dir():
        files = [
            each
            for each in sorted(path.rglob("*.json"))
            if _TYPE.search(Probe(each, read_head(each)).text)
        ]
        if not files:
            raise FormatError(
                "holds no resource of FHIR in JSON", path=path, remedy="name the right folder"
            )
        for each in files:
            yield from _in_file(each, config, log)
    elif read_head(path)[257:262] == b"ustar":
        yield from _in_package(path, log)
    else:
        yield from _in_file(path, config, log)


def _in_file(path: Path, config: SourceConfig, log: ReadLog) -> Iterator[_Resource]:
    """Read the small members of a file, then walk the large ones, which may follow each other."""
    log.opened(path)
    head: dict[str, Any] = {}
    with JsonStream(path, config.encoding, log) as stream:
        for key in stream.members():
            if key in _LARGE:
                stream.skip()
            else:
                head[key] = stream.value()
        stream.finish()
    if head.get("resourceType") == "Bundle":
        with JsonStream(path, config.encoding, log) as stream:
            for key in stream.members():
                if key != "entry":
                    stream.skip()
                    continue
                for line in stream.elements():
                    entry = stream.value()
                    resource = entry.get("resource") if isinstance(entry, dict) else None
                    if isinstance(resource, dict) and resource.get("resourceType") in KINDS:
                        yield _Resource(resource, path, _members(resource, line))
    elif head.get("resourceType") in KINDS:
        yield _Resource(head, path, _walk(path, config, log))
    else:
        log.filter("resource of another kind")


def _walk(path: Path, config: SourceConfig, log: ReadLog) -> Iterator[tuple[str, int, Any]]:
    with JsonStream(path, config.encoding, log) as stream:
        for key in stream.members():
            if key in ("concept", "group"):
                for line in stream.elements():
                    yield key, line, stream.value()
            elif key in ("compose", "expansion"):
                yield key, stream.line, stream.value()
            else:
                stream.skip()


def _members(resource: Json, line: int) -> Iterator[tuple[str, int, Any]]:
    for key in ("concept", "group"):
        for value in _objects(resource.get(key)):
            yield key, line, value
    for key in ("compose", "expansion"):
        if key in resource:
            yield key, line, resource[key]


def _in_package(path: Path, log: ReadLog) -> Iterator[_Resource]:
    """Read the resources of an NPM package, which lie in its folder ``package``."""
    log.opened(path)
    with open_tar(path) as tar:
        for member in tar:
            if not (member.isfile() and member.name.endswith(".json")):
                continue
            resource = _unpacked(tar, member, path)
            if resource.get("resourceType") in KINDS:
                yield _Resource(dict(resource), path / member.name, _members(resource, 0))


def _unpacked(tar: tarfile.TarFile, member: tarfile.TarInfo, path: Path) -> Json:
    file = tar.extractfile(member)
    limit = max_value()
    data = file.read(limit + 1) if file else b""
    if len(data) > limit:
        raise FormatError(
            f"{member.name} is over {limit >> 20} MiB", path=path, remedy="unpack the package first"
        )
    try:
        value = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise FormatError(
            f"{member.name} is not JSON ({error})", path=path, remedy="fetch it again"
        ) from error
    return value if isinstance(value, dict) else {}


def _objects(values: Any) -> Iterator[Json]:
    for value in values if isinstance(values, list) else ():
        if isinstance(value, dict):
            yield value


def _string(holder: Json, key: str) -> str:
    value = holder.get(key)
    return value.strip() if isinstance(value, str) else ""


class _Codes:
    """The prefixes and the codes of all resources that were read."""

    def __init__(self, config: SourceConfig, log: ReadLog) -> None:
        self._config, self._log = config, log
        self._prefixes: dict[str, str] = {}
        self._systems: dict[str, str] = {}
        self._defined: set[str] = set()
        self._relations: list[RelationRecord] = []
        """Properties that may be relations: they are if their value is a code of the system."""

    def _id(self, system: str, code: str, name: str = "") -> str:
        """Return the id of a code; two systems with one name are kept apart by their URIs."""
        if known := vocabulary_of_system(system):
            return canonical_id(code if ":" in code else f"{known}:{code}")
        if system not in self._prefixes:
            prefix = re.sub(r"[^\w.-]", "", name) or system.rstrip("/").rpartition("/")[2] or system
            owner = self._systems.setdefault(prefix, system)
            self._prefixes[system] = f"{prefix}:" if owner == system else f"{system}#"
            if owner != system:
                self._log.doubt(f"the prefix {prefix} is of {owner}; ids have the URI", 0, system)
        return f"{self._prefixes[system]}{code}"

    def _language(self, resource: Json) -> str:
        return language_code(_string(resource, "language") or self._config.language or "en")

    def code_system(self, resource: _Resource) -> Iterator[Record]:
        """Yield the concepts of a code system with their hierarchy and properties."""
        head = resource.head
        name = _string(head, "id") or _string(head, "name")
        system = _string(head, "supplements").partition("|")[0] or _string(head, "url")
        if version := _string(head, "version"):
            self._log.note(f"data version: {version}")
        if licence := _string(head, "copyright"):
            self._log.note(f"licence: {licence}")
        if head.get("content") == "not-present":
            self._log.note(f"{system} is a code system whose codes are not in the file")
        language = self._language(head)
        for key, line, value in resource.members:
            if key == "concept":
                yield from self._concept(value, system, name, language, "", line)

    def _concept(
        self, value: Any, system: str, name: str, language: str, parent: str, line: int
    ) -> Iterator[Record]:
        self._log.read()
        if not isinstance(value, dict) or not (code := _string(value, "code")):
            self._log.reject("concept without a code", line, json.dumps(value, ensure_ascii=False))
            return
        concept = self._id(system, code, name)
        properties = list(_objects(value.get("property")))
        below = list(_objects(value.get("concept")))
        if _is_retired(properties) and not self._config.keep_suppressed:
            self._log.filter("retired")
            self._log.leave_out((concept,))
            concept = ""
        else:
            yield ConceptRecord(concept, line)
            yield from self._default_type(concept, line)
            yield from self._names(value, concept, language, line)
            if parent:
                yield RelationRecord(concept, IS_A, parent, line=line)
            self._properties(properties, concept, system, name, line)
        for each in below:  # a concept below a retired one lies below its parent
            yield from self._concept(each, system, name, language, concept or parent, line)

    def _default_type(self, concept: str, line: int) -> Iterator[Record]:
        if self._config.default_type and concept not in self._defined:
            yield TypeRecord(concept, self._config.default_type, line=line)

    def _names(self, value: Json, concept: str, language: str, line: int) -> Iterator[Record]:
        is_new = concept not in self._defined
        self._defined.add(concept)
        display = _string(value, "display")
        if display or (is_new and not value.get("designation")):
            kind = NameKind.PREFERRED if is_new else NameKind.SYNONYM
            name = display or _string(value, "code")
            yield NameRecord(concept, name, language, kind, line=line)
        for each in _objects(value.get("designation")):
            if not (text := _string(each, "value")):
                self._log.reject("designation without a value", line, concept)
                continue
            tag = language_code(_string(each, "language") or language)
            use = each.get("use")
            code = _string(use, "code") if isinstance(use, dict) else ""
            preferred = code in _PREFERRED_USES or (code == "" and tag != language)
            kind = NameKind.PREFERRED if preferred else NameKind.SYNONYM
            yield NameRecord(concept, text, tag, kind, line=line)
        if text := _string(value, "definition"):
            yield DefinitionRecord(concept, text, language, line=line)

    def _properties(
        self, properties: list[Json], concept: str, system: str, name: str, line: int
    ) -> None:
        for each in properties:
            code, value = _string(each, "code"), _string(each, "valueCode")
            coding = each.get("valueCoding")
            if isinstance(coding, dict) and (other := _string(coding, "code")):
                tail = self._id(_string(coding, "system") or system, other)
                self._relations.append(RelationRecord(concept, code, tail, line=line))
            elif not value or code in _NOT_RELATIONS:
                self._log.filter("property that is no relation")
            elif code == _CHILD:
                child = self._id(system, value, name)
                self._relations.append(RelationRecord(child, IS_A, concept, line=line))
            else:
                tail = self._id(system, value, name)
                relation = IS_A if code in _PARENT else code
                self._relations.append(RelationRecord(concept, relation, tail, line=line))

    def finish(self) -> Iterator[Record]:
        """Yield the relations between codes that were read; other values are no codes."""
        for relation in self._relations:
            if relation.relation == IS_A or relation.tail in self._defined:
                yield relation
            else:
                self._log.filter("property that is no relation")

    def value_set(self, resource: _Resource) -> Iterator[Record]:
        """Yield the codes that a value set lists."""
        head, language = resource.head, self._language(resource.head)
        label = _string(head, "title") or _string(head, "name") or _string(head, "id")
        for key, line, value in resource.members:
            if not isinstance(value, dict):
                continue
            listed = list(_objects(value.get("contains")))
            if key == "compose":
                for include in _objects(value.get("include")):
                    system = _string(include, "system")
                    concepts = [
                        {**each, "system": system} for each in _objects(include.get("concept"))
                    ]
                    listed += concepts
                    if not concepts:
                        self._log.note(
                            f"the value set {label} includes codes by a rule ({system}), which is "
                            "not read; expand it first"
                        )
            while listed:
                each = listed.pop(0)
                listed += _objects(each.get("contains"))
                system, code = _string(each, "system"), _string(each, "code")
                if not system or not code:
                    continue  # a heading within an expansion
                self._log.read()
                concept = self._id(system, code)
                yield ConceptRecord(concept, line)
                yield from self._names(each, concept, language, line)
                yield TypeRecord(concept, label, label, line=line)

    def concept_map(self, resource: _Resource) -> Iterator[Record]:
        """Yield the equivalent targets of a concept map as cross-references."""
        language = self._language(resource.head)
        for _, line, group in resource.members:
            if not isinstance(group, dict):
                continue
            source, target = (_string(group, key).partition("|")[0] for key in ("source", "target"))
            for element in _objects(group.get("element")):
                code = _string(element, "code")
                concept = self._id(source, code)
                for each in _objects(element.get("target")):
                    self._log.read()
                    how = _string(each, "equivalence") or _string(each, "relationship")
                    if how not in _EQUAL:
                        self._log.filter(f"mapping that is not equivalent ({how or 'no relation'})")
                    elif code and _string(each, "code"):
                        other = self._id(target, _string(each, "code"))
                        yield from self._default_type(concept, line)
                        yield from self._names(element, concept, language, line)
                        yield IdRecord(concept, other, IdKind.XREF, line)
                    else:
                        self._log.reject("mapping without a code", line, f"{source} {target}")


def _is_retired(properties: list[Json]) -> bool:
    for each in properties:
        code = _string(each, "code")
        if code == "status" and _string(each, "valueCode").lower() in _RETIRED:
            return True
        if code == "inactive" and each.get("valueBoolean") is True:
            return True
    return False


FORMAT = Format(recognise, read)
