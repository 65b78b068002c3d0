"""Code systems that a request brings (``tx-resource``), beside those of the store.

Their codes get numbers after those of the store, in the order of the resource; what is known of a
code is then asked for by its number, wherever it is from.
"""

from __future__ import annotations

import bisect
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from biograft.kb import Name
from biograft.kb.hierarchy import Hierarchy
from biograft.kb.records import NameKind
from biograft.serve.fhir.code_systems import CodeSystem, CodeSystems, Entries
from biograft.serve.fhir.errors import TerminologyError
from biograft.serve.fhir.parameters import Resource, list_in, text_in
from biograft.serve.fhir.work import counted, spend

MAX_CONCEPTS = 100_000
"""Concepts of the code systems of one request."""
_MAX_DEPTH = 200
STANDARDS_STATUS = "http://hl7.org/fhir/StructureDefinition/structuredefinition-standards-status"
_PROPERTIES = "http://hl7.org/fhir/concept-properties#"
_OUT_OF_USE = ("inactive", "retired", "withdrawn")
_COMPLETE = ("complete", "fragment")
_FIRST_NUMBER = 1 << 14
"""Numbers of supplied systems; those of the store are smaller."""


@dataclass
class SuppliedConcept:
    """A concept of a supplied code system."""

    code: str
    display: str | None = None
    definition: str | None = None
    designations: list[Resource] = field(default_factory=list)
    properties: list[tuple[str, Any, str]] = field(default_factory=list)
    """Code, value, and the name that FHIR gives to the type of the value."""
    extensions: list[Resource] = field(default_factory=list)
    parents: list[int] = field(default_factory=list)
    children: list[int] = field(default_factory=list)

    def values(self, name: str) -> list[str]:
        """Return the values of a property as texts."""
        return [_as_text(value) for code, value, _ in self.properties if code == name]


@dataclass(frozen=True, eq=False, kw_only=True)
class SuppliedSystem(CodeSystem):
    """A code system of a request: its concepts have the numbers from ``first`` on."""

    first: int
    content: str
    case_sensitive: bool
    language: str | None
    concepts: list[SuppliedConcept]
    by_code: Mapping[str, int]
    status_names: frozenset[str]
    """Properties that say whether a concept is in use."""
    known_properties: frozenset[str]
    resource: Resource

    def concept(self, entry: int) -> SuppliedConcept:
        """Return the concept with a number."""
        return self.concepts[entry - self.first]

    def find(self, code: str) -> int | None:
        """Return the number of a code."""
        position = self.by_code.get(code if self.case_sensitive else code.casefold())
        return None if position is None else self.first + position

    def status_of(self, concept: SuppliedConcept) -> str | None:
        """Return why a concept is not in use, or that it is deprecated; None without a status."""
        for name in self.status_names:
            for value in concept.values(name):
                if value not in ("true", "false"):
                    return value
                if value == "true":
                    return "inactive"
        return standards_status(concept.extensions)

    def is_active(self, entry: int) -> bool:
        """Return whether a concept is in use."""
        return self.status_of(self.concept(entry)) not in _OUT_OF_USE

    def is_abstract(self, entry: int) -> bool:
        """Return whether a concept is only there to group others."""
        return "true" in self.concept(entry).values("notSelectable")


def standards_status(extensions: Sequence[Resource]) -> str | None:
    """Return the status that an extension gives a concept or a name."""
    for each in extensions:
        if each.get("url") == STANDARDS_STATUS and isinstance(each.get("valueCode"), str):
            return str(each["valueCode"])
    return None


def read_system(resource: Resource, number: int, first: int, *, room: int) -> SuppliedSystem:
    """Read a CodeSystem; its concepts may be nested, or name their parents as a property."""
    url = text_in(resource, "url", "CodeSystem")
    if url is None:
        raise TerminologyError("required", "CodeSystem.url: missing")
    concepts: list[SuppliedConcept] = []
    _read_concepts(list_in(resource, "concept", "CodeSystem"), None, concepts, room=room)
    case_sensitive = resource.get("caseSensitive") is not False
    by_code: dict[str, int] = {}
    for position, each in enumerate(concepts):
        by_code.setdefault(each.code if case_sensitive else each.code.casefold(), position)
    declared = {
        text_in(each, "code", "CodeSystem.property") or "": text_in(
            each, "uri", "CodeSystem.property"
        )
        for each in list_in(resource, "property", "CodeSystem")
    }
    filters = {
        text_in(each, "code", "CodeSystem.filter") or ""
        for each in list_in(resource, "filter", "CodeSystem")
    }
    _add_parents(concepts, by_code, case_sensitive)
    status = {
        name
        for name, uri in declared.items()
        if uri in (f"{_PROPERTIES}status", f"{_PROPERTIES}inactive")
    }
    return SuppliedSystem(
        number=number,
        name=text_in(resource, "name", "CodeSystem") or url,
        url=url,
        version=text_in(resource, "version", "CodeSystem"),
        first=first,
        content=text_in(resource, "content", "CodeSystem") or "complete",
        case_sensitive=case_sensitive,
        language=text_in(resource, "language", "CodeSystem"),
        concepts=concepts,
        by_code=by_code,
        status_names=frozenset(status | {"status", "inactive"}),
        known_properties=frozenset(declared).union(
            filters, (name for each in concepts for name, _, _ in each.properties)
        ),
        resource=resource,
    )  # fmt: skip


def _read_concepts(
    listed: list[Any],
    parent: int | None,
    concepts: list[SuppliedConcept],
    depth: int = 0,
    *,
    room: int,
) -> None:
    place = "CodeSystem.concept"
    if depth > _MAX_DEPTH:
        raise TerminologyError("too-costly", f"{place}: nested more than {_MAX_DEPTH} deep")
    for each in listed:
        code = text_in(each, "code", place)
        if code is None:
            raise TerminologyError("required", f"{place}.code: missing")
        if len(concepts) >= room:
            raise TerminologyError("too-costly", f"{place}: at most {MAX_CONCEPTS} in a request")
        own = len(concepts)
        names, properties = (list_in(each, key, place) for key in ("designation", "property"))
        spend(1 + len(names) + len(properties))
        concept = SuppliedConcept(
            code,
            text_in(each, "display", place),
            text_in(each, "definition", place),
            [d for d in names if text_in(d, "value", place)],
            [_read_property(p) for p in properties],
            [e for e in list_in(each, "extension", place) if isinstance(e, dict)],
        )
        concepts.append(concept)
        if parent is not None:
            concept.parents.append(parent)
            concepts[parent].children.append(own)
        _read_concepts(list_in(each, "concept", place), own, concepts, depth + 1, room=room)


def _read_property(given: Any) -> tuple[str, Any, str]:
    place = "CodeSystem.concept.property"
    name = text_in(given, "code", place)
    kinds = [key for key in given if key.startswith("value")]
    if name is None or len(kinds) != 1:
        raise TerminologyError("invalid", f"{place}: expected a code and one value")
    return name, given[kinds[0]], kinds[0].removeprefix("value")


def _add_parents(concepts: list[SuppliedConcept], by_code: Mapping[str, int], exact: bool) -> None:
    """Add the parents and children that are given as properties."""
    known = {(upper, lower) for upper, each in enumerate(concepts) for lower in each.children}
    for own, concept in enumerate(concepts):
        for name, value, _ in concept.properties:
            other = by_code.get(str(value) if exact else str(value).casefold())
            if other is None or name not in ("parent", "child"):
                continue
            upper, lower = (other, own) if name == "parent" else (own, other)
            if (upper, lower) not in known:
                known.add((upper, lower))
                concepts[upper].children.append(lower)
                concepts[lower].parents.append(upper)


def _as_text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value.get("code")) if isinstance(value, dict) else str(value)


class RequestCodes:
    """The code systems of a store, and those of a request; asked as :class:`CodeSystems` is."""

    def __init__(
        self,
        store: CodeSystems,
        resources: Sequence[Resource],
        versions: Mapping[str, str] | None = None,
        forced: Mapping[str, str] | None = None,
    ) -> None:
        self.store, self._limit = store, store.n_entries
        self._versions, self._forced = versions or {}, forced or {}
        self.supplied: list[SuppliedSystem] = []
        first, supplements = self._limit, []
        for resource in resources:
            if resource.get("content") == "supplement":
                supplements.append(resource)
                continue
            room = MAX_CONCEPTS - (first - self._limit)
            number = _FIRST_NUMBER + len(self.supplied)
            system = read_system(resource, number, first, room=room)
            self.supplied.append(system)
            first += len(system.concepts)
        self._starts = [each.first for each in self.supplied]
        self.hierarchy = _BothHierarchies(store.hierarchy, self)
        self.supplements = [self._supplement(each) for each in supplements]

    def _supplement(self, resource: Resource) -> str:
        """Add the names and properties of a supplement to its code system; return its URL."""
        url = text_in(resource, "url", "CodeSystem") or ""
        target = text_in(resource, "supplements", "CodeSystem") or ""
        system = self.find(target)
        if not isinstance(system, SuppliedSystem):
            raise TerminologyError(
                "not-supported", f"{url}: supplements {target}, not in the request"
            )
        added = read_system(resource, 0, 0, room=MAX_CONCEPTS)
        for each in added.concepts:
            entry = system.find(each.code)
            if entry is not None:
                concept = system.concept(entry)
                concept.designations += each.designations
                concept.properties += each.properties
                if each.display and added.language:
                    concept.designations.append({"language": added.language, "value": each.display})
        version = text_in(resource, "version", "CodeSystem")
        return f"{url}|{version}" if version else url

    def _owner(self, entry: int) -> SuppliedSystem | None:
        return None if entry < self._limit else self.owner(entry)

    def owner(self, entry: int) -> SuppliedSystem:
        """Return the supplied system of a code that is from one."""
        return self.supplied[bisect.bisect_right(self._starts, entry) - 1]

    # ---- systems

    def __iter__(self) -> Iterator[CodeSystem]:
        return iter([*self.store, *self.supplied])

    def versions_of(self, url: str) -> list[str]:
        """Return the versions of a system that are known, the newest last."""
        found = [each.version for each in self.supplied if each.url == url and each.version]
        return sorted(found, key=_version_key)

    def find(self, url: str, version: str | None = None) -> CodeSystem | None:
        """Return a system: in this version, else as the request says, else the newest."""
        url, _, after = url.partition("|")
        version = self._forced.get(url) or version or after or self._versions.get(url)
        spend(len(self.supplied))
        own = [each for each in self.supplied if each.url == url]
        if not own:
            return self.store.find(url)
        if version:
            fitting = [each for each in own if _fits(each.version, version)]
            own = fitting
        return max(own, key=lambda each: _version_key(each.version or ""), default=None)

    # ---- codes

    def row(self, entry: int) -> int:
        """Return the row of the concept of a code; that of a supplied one is its number."""
        return self.store.row(entry) if entry < self._limit else entry

    def system(self, entry: int) -> CodeSystem | None:
        """Return the system of a code."""
        return self._owner(entry) or self.store.system(entry)

    def known_system(self, entry: int) -> CodeSystem:
        """Return the system of a code that is known to have one."""
        return self._owner(entry) or self.store.known_system(entry)

    def code(self, entry: int) -> str:
        """Return the code."""
        owner = self._owner(entry)
        return self.store.code(entry) if owner is None else owner.concept(entry).code

    def is_active(self, entry: int) -> bool:
        """Return whether the code is in use."""
        owner = self._owner(entry)
        return self.store.is_active(entry) if owner is None else owner.is_active(entry)

    def is_primary(self, entry: int) -> bool:
        """Return whether the code is the primary id of its concept."""
        return entry >= self._limit or self.store.is_primary(entry)

    def resolve(self, system: CodeSystem, code: str) -> list[int]:
        """Return the codes that are meant by a text."""
        if not isinstance(system, SuppliedSystem):
            return self.store.resolve(system, code)
        found = system.find(code)
        return [] if found is None else [found]

    def codes_at(self, row: int, system: CodeSystem) -> list[int]:
        """Return the codes in use of a concept in a system."""
        if row >= self._limit or isinstance(system, SuppliedSystem):
            return [row] if self._owner(row) is system else []
        return self.store.codes_at(row, system)

    def members(self, system: CodeSystem) -> Entries:
        """Return all codes of a system."""
        if not isinstance(system, SuppliedSystem):
            return self.store.members(system)
        return np.arange(system.first, system.first + len(system.concepts), dtype=np.int64)

    def of_rows(self, system: CodeSystem, rows: Sequence[int] | npt.NDArray[Any]) -> Entries:
        """Return the codes in a system of some concepts, in the order of the concepts."""
        if not isinstance(system, SuppliedSystem):
            return self.store.of_rows(system, rows)
        return np.array([row for row in rows if self._owner(int(row)) is system], np.int64)

    def names(self, row: int) -> list[Name]:
        """Return the names of a concept."""
        owner = self._owner(row)
        if owner is None:
            return self.store.names(row)
        concept, url = owner.concept(row), owner.url
        names = []
        if concept.display:
            names.append(Name(concept.display, owner.language or "", NameKind.PREFERRED, url))
        for each in concept.designations:
            language = each.get("language")
            text = str(each["value"])
            kind = NameKind.SYNONYM
            names.append(Name(text, language if isinstance(language, str) else "", kind, url))
        return names

    def name(self, row: int) -> str:
        """Return the usual name of a concept."""
        owner = self._owner(row)
        if owner is None:
            return self.store.name(row)
        return owner.concept(row).display or ""


class _BothHierarchies:
    """The is-a relations of the store and of supplied systems, by row."""

    def __init__(self, store: Hierarchy, codes: RequestCodes) -> None:
        self._store, self._codes = store, codes

    def _steps(self, row: int, *, up: bool) -> list[int]:
        system = self._codes.owner(row)
        concept = system.concept(row)
        return [system.first + each for each in (concept.parents if up else concept.children)]

    def _reach(self, row: int, *, up: bool) -> list[int]:
        seen, queue = {row}, [row]
        for current in queue:
            for each in self._steps(current, up=up):
                if each not in seen:
                    seen.add(each)
                    queue.append(each)
        return counted(queue[1:])

    def _is_stored(self, row: int) -> bool:
        return row < self._codes.store.n_entries

    def parents(self, row: int) -> Sequence[int]:
        """Return the direct parents."""
        return self._store.parents(row) if self._is_stored(row) else self._steps(row, up=True)

    def children(self, row: int) -> Sequence[int]:
        """Return the direct children."""
        return self._store.children(row) if self._is_stored(row) else self._steps(row, up=False)

    def ancestors(self, row: int) -> list[int]:
        """Return all ancestors."""
        return self._store.ancestors(row) if self._is_stored(row) else self._reach(row, up=True)

    def descendants(self, row: int) -> list[int]:
        """Return all descendants."""
        return self._store.descendants(row) if self._is_stored(row) else self._reach(row, up=False)

    def is_a(self, row: int, goal: int) -> bool:
        """Return whether a concept is another one, or below it."""
        if self._is_stored(row) != self._is_stored(goal):
            return False
        if self._is_stored(row):
            return self._store.is_a(row, goal)
        return row == goal or goal in self._reach(row, up=True)


def _version_key(version: str) -> tuple[tuple[int, int | str], ...]:
    """Order versions: numbers in them by their value."""
    parts = version.replace("-", ".").split(".")
    return tuple((1, int(p)) if p.isdecimal() and len(p) < 20 else (0, p) for p in parts)


def _fits(version: str | None, wanted: str) -> bool:
    """Whether a version is one that is asked for: ``1.x`` and ``1`` are any that begin so."""
    if version is None:
        return False
    start = wanted.removesuffix(".x").removesuffix(".*")
    return version == wanted or version.startswith(f"{start}.")


Codes = CodeSystems | RequestCodes
"""Codes of a request: those of the store, or with code systems of the request."""
