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
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeAlias

from biograft.errors import FormatError
from biograft.kb.names import language_code
from biograft.kb.records import IS_A, Facts, IdKind, NameKind, Record, RelationRecord
from biograft.kb.sources.files import max_value, open_bytes, open_tar, read_head
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

Json: TypeAlias = Mapping[str, Any]


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


Members: TypeAlias = Iterator[tuple[str, int, Any]]
"""The elements of the large members of a resource: the key, the line, the value."""
Resource: TypeAlias = tuple[Json, Members]
"""The small members of a resource, and the large ones."""


def read(config: SourceConfig, log: ReadLog) -> Iterator[Item]:
    """Yield the facts of every resource."""
    codes = _Codes(config, log)
    steps = dict(zip(KINDS, (codes.code_system, codes.value_set, codes.concept_map), strict=True))
    for head, members in _resources(config, log):
        yield from steps[head["resourceType"]](head, members)
    yield from codes.finish()


def _resources(config: SourceConfig, log: ReadLog) -> Iterator[Resource]:
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


def _in_file(path: Path, config: SourceConfig, log: ReadLog) -> Iterator[Resource]:
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
                        yield resource, _members(resource, line)
    elif head.get("resourceType") in KINDS:
        yield head, _walk(path, config, log)
    else:
        log.filter("resource of another kind")


def _walk(path: Path, config: SourceConfig, log: ReadLog) -> Members:
    with JsonStream(path, config.encoding, log) as stream:
        for key in stream.members():
            if key in ("concept", "group"):
                for line in stream.elements():
                    yield key, line, stream.value()
            elif key in ("compose", "expansion"):
                yield key, stream.line, stream.value()
            else:
                stream.skip()


def _members(resource: Json, line: int) -> Members:
    for key in ("concept", "group"):
        for value in _objects(resource.get(key)):
            yield key, line, value
    for key in ("compose", "expansion"):
        if key in resource:
            yield key, line, resource[key]


def is_fhir(path: Path) -> bool:
    """Return True for a folder, a package, or a file that begins as JSON.

    Args:
        path: The file.
    """
    if path.is_dir():
        return True
    head = read_head(path)
    return head[257:262] == b"ustar" or head.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"{")


def read_resources(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the name and the content of each resource of a file, a folder or an NPM package.

    Of a package, only what lies in its folder ``package`` is read, not the examples below it.

    Args:
        path: The file.

    Raises:
        FormatError: It is damaged, or holds no resource of the kinds.
    """
    found = False
    for name, value in _values(path):
        entries = value.get("entry") if value.get("resourceType") == "Bundle" else None
        listed = [each.get("resource") for each in _objects(entries)] if entries else [value]
        for each in listed:
            if isinstance(each, dict) and each.get("resourceType") in KINDS:
                found = True
                yield name, each
    if not found:
        raise FormatError(
            "holds no CodeSystem, ValueSet or ConceptMap of FHIR in JSON",
            path=path,
            remedy="name the right file",
        )


def _values(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    if path.is_dir():
        for each in sorted(path.glob("*.json")):
            yield from _values(each)
    elif read_head(path)[257:262] != b"ustar":
        with open_bytes(path) as file:
            yield path.name, _parsed(file.read(max_value() + 1), path.name, path)
    else:
        names = set()
        with open_tar(path) as tar:
            for member in tar:
                names.add(member.name.removeprefix("./"))
                if member.isfile() and re.fullmatch(r"(\./)?package/[^/]+\.json", member.name):
                    yield member.name, _unpacked(tar, member, path)
        if "package/package.json" not in names:
            raise FormatError(
                "is no FHIR package: it has no package/package.json",
                path=path,
                remedy="fetch the package as the registry has it",
            )


def _in_package(path: Path, log: ReadLog) -> Iterator[Resource]:
    """Read the resources of an NPM package, which lie in its folder ``package``."""
    with open_tar(path) as tar:
        for member in tar:
            if not (member.isfile() and member.name.endswith(".json")):
                continue
            resource = _unpacked(tar, member, path)
            if resource.get("resourceType") in KINDS:
                yield resource, _members(resource, 0)


def _unpacked(tar: tarfile.TarFile, member: tarfile.TarInfo, path: Path) -> dict[str, Any]:
    file = tar.extractfile(member)
    return _parsed(file.read(max_value() + 1) if file else b"", member.name, path)


def _parsed(data: bytes, name: str, path: Path) -> dict[str, Any]:
    if len(data) > (limit := max_value()):
        raise FormatError(
            f"{name} is over {limit >> 20} MiB", path=path, remedy="unpack the package first"
        )
    try:
        value = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise FormatError(
            f"{name} is not JSON ({error})", path=path, remedy="fetch it again"
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

    def code_system(self, head: Json, members: Members) -> Iterator[Record]:
        """Yield the concepts of a code system with their hierarchy and properties.

        Args:
            head: Its small members.
            members: Its concepts.
        """
        name = _string(head, "id") or _string(head, "name")
        system = _string(head, "supplements").partition("|")[0] or _string(head, "url")
        if version := _string(head, "version"):
            self._log.note(f"data version: {version}")
        if licence := _string(head, "copyright"):
            self._log.note(f"licence: {licence}")
        if head.get("content") == "not-present":
            self._log.note(f"{system} is a code system whose codes are not in the file")
        language = self._language(head)
        for key, line, value in members:
            if key == "concept":
                yield from self._concept(value, system, name, Facts("", line, language))

    def _concept(self, value: Any, system: str, name: str, parent: Facts) -> Iterator[Record]:
        """Yield a concept and those below it; one at the top has a parent without an id."""
        self._log.read()
        if not isinstance(value, dict) or not (code := _string(value, "code")):
            text = json.dumps(value, ensure_ascii=False)
            self._log.reject("concept without a code", parent.line, text)
            return
        facts = replace(parent, concept=self._id(system, code, name))
        properties = list(_objects(value.get("property")))
        if _is_retired(properties) and not self._config.keep_suppressed:
            self._log.filter("retired")
            self._log.leave_out((facts.concept,))
            facts = parent  # a concept below a retired one lies below its parent
        else:
            yield facts.exists()
            yield from self._default_type(facts)
            yield from self._names(value, facts)
            if parent.concept:
                yield facts.relation(IS_A, parent.concept)
            self._properties(properties, facts, system, name)
        for each in _objects(value.get("concept")):
            yield from self._concept(each, system, name, facts)

    def _default_type(self, facts: Facts) -> Iterator[Record]:
        if self._config.default_type and facts.concept not in self._defined:
            yield facts.type(self._config.default_type)

    def _names(self, value: Json, facts: Facts) -> Iterator[Record]:
        is_new = facts.concept not in self._defined
        self._defined.add(facts.concept)
        display = _string(value, "display")
        if display or (is_new and not value.get("designation")):
            yield from facts.names([display or _string(value, "code")], is_new=is_new)
        for each in _objects(value.get("designation")):
            if not (text := _string(each, "value")):
                self._log.reject("designation without a value", facts.line, facts.concept)
                continue
            tag = language_code(_string(each, "language")) or facts.language
            use = each.get("use")
            code = _string(use, "code") if isinstance(use, dict) else ""
            preferred = code in _PREFERRED_USES or (code == "" and tag != facts.language)
            yield facts.name(text, NameKind.PREFERRED if preferred else NameKind.SYNONYM, tag)
        if text := _string(value, "definition"):
            yield facts.definition(text)

    def _properties(self, properties: list[Json], facts: Facts, system: str, name: str) -> None:
        for each in properties:
            code, value = _string(each, "code"), _string(each, "valueCode")
            coding = each.get("valueCoding")
            if isinstance(coding, dict) and (other := _string(coding, "code")):
                tail = self._id(_string(coding, "system") or system, other)
                self._relations.append(facts.relation(code, tail))
            elif not value or code in _NOT_RELATIONS:
                self._log.filter("property that is no relation")
            elif code == _CHILD:
                child = replace(facts, concept=self._id(system, value, name))
                self._relations.append(child.relation(IS_A, facts.concept))
            else:
                relation = IS_A if code in _PARENT else code
                tail = self._id(system, value, name)
                self._relations.append(facts.relation(relation, tail))

    def finish(self) -> Iterator[Record]:
        """Yield the relations between codes that were read; other values are no codes."""
        for relation in self._relations:
            if relation.relation == IS_A or relation.tail in self._defined:
                yield relation
            else:
                self._log.filter("property that is no relation")

    def value_set(self, head: Json, members: Members) -> Iterator[Record]:
        """Yield the codes that a value set lists.

        Args:
            head: Its small members.
            members: What it includes, and its expansion.
        """
        language = self._language(head)
        label = _string(head, "title") or _string(head, "name") or _string(head, "id")
        for key, line, value in members:
            if not isinstance(value, dict):
                continue
            listed = list(_objects(value.get("contains")))
            for include in _objects(value.get("include")) if key == "compose" else ():
                system = _string(include, "system")
                concepts = [{**each, "system": system} for each in _objects(include.get("concept"))]
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
                facts = Facts(self._id(system, code), line, language)
                yield facts.exists()
                yield from self._names(each, facts)
                yield facts.type(label, label)

    def concept_map(self, head: Json, members: Members) -> Iterator[Record]:
        """Yield the equivalent targets of a concept map as cross-references.

        Args:
            head: Its small members.
            members: Its groups.
        """
        language = self._language(head)
        for _, line, group in members:
            if not isinstance(group, dict):
                continue
            source, target = (_string(group, key).partition("|")[0] for key in ("source", "target"))
            for element in _objects(group.get("element")):
                code = _string(element, "code")
                facts = Facts(self._id(source, code), line, language)
                for each in _objects(element.get("target")):
                    self._log.read()
                    how = _string(each, "equivalence") or _string(each, "relationship")
                    if how not in _EQUAL:
                        self._log.filter(f"mapping that is not equivalent ({how or 'no relation'})")
                    elif code and (other := _string(each, "code")):
                        yield from self._default_type(facts)
                        yield from self._names(element, facts)
                        yield facts.id(self._id(target, other), IdKind.XREF)
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
