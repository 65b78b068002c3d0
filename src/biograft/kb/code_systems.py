"""The code systems of a store: which vocabularies its ids are from, and the codes in each.

An *entry* is one code. It is numbered as in the store: the row of a concept for its primary id,
and the number of concepts plus a row of the table of ids for a further id.

Code systems that a request brings (``tx-resource``), beside those of the store.

Their codes get numbers after those of the store, in the order of the resource; what is known of a
code is then asked for by its number, wherever it is from.
"""

from __future__ import annotations

import bisect
import copy
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from biograft.arrays import Array, Flags, Int16s, Ints
from biograft.errors import ConfigError
from biograft.kb.fhir import (
    Resource,
    TerminologyError,
    counted,
    list_in,
    required_in,
    spend,
    text_in,
)
from biograft.kb.hierarchy import Hierarchy, Rows
from biograft.kb.keys import hash_shapes
from biograft.kb.records import RETIRED, IdKind, NameKind
from biograft.kb.store import KnowledgeBase, Name
from biograft.kb.tables import ID_KINDS, TextColumn
from biograft.kb.vocabularies import (
    canonical_id,
    code_of,
    system_of,
    vocabulary_name,
    vocabulary_of,
)

MAX_CONCEPTS = 100_000
"""Concepts of the code systems of one request."""
LOCAL = "urn:biograft:kb"
"""URI of the ids of a store that are from no vocabulary with a URI of its own."""
_ALTERNATE = ID_KINDS.index(IdKind.ALTERNATE)
_RETIRED = tuple(map(ID_KINDS.index, RETIRED))
_NONE = -1
_IDS_AT_ONCE = 1 << 18
_FEW = 200
_DIGITS = str.maketrans("123456789", "0" * 9)
Entries = Ints


@dataclass(frozen=True)
class CodeSystem:
    """A vocabulary of a store, as FHIR knows it."""

    number: int
    name: str
    """Name of the vocabulary, such as MESH."""
    url: str
    prefixes: tuple[str, ...] = ()
    """Prefixes of its ids in the store, as they are written there."""
    known: bool = True
    """Whether FHIR lists its URI, and with it the form of its codes."""
    version: str | None = None

    @property
    def id(self) -> str:
        """The id of the resource."""
        return re.sub(r"[^a-z0-9.-]+", "-", self.name.lower()).strip("-")[:64] or "kb"

    def code(self, identifier: str) -> str:
        """Return the code of an id; ids of a URI that was given lose their prefix.

        Args:
            identifier: Id in the store.
        """
        if self.known:
            return code_of(identifier, self.name)
        prefix, colon, code = identifier.partition(":")
        whole = identifier if not colon or prefix not in self.prefixes else code
        return " ".join(whole.split())

    def identifier(self, code: str) -> str:
        """Return the id that a code has in a store, as it is written most.

        Args:
            code: The code.
        """
        return canonical_id(next(iter(_spellings(self, code))))


class CodeSystems:
    """The code systems of a store, and those that a request brings.

    ``urls`` has URIs by the prefix of ids, or by a source.

    Args:
        kb: Knowledge base of the concepts.
        urls: URIs by the prefix of ids, or by a source, beside those known.
    """

    supplements: Sequence[str] = ()
    """Supplements of the request, by URL."""
    versions: Mapping[str, str] = {}
    """Versions of systems where the request names none."""
    forced: Mapping[str, str] = {}
    """Versions of systems, whatever the request names."""
    hints: Mapping[str, str] = {}
    """Versions of systems that are taken where several would do."""

    def __init__(self, kb: KnowledgeBase, urls: Mapping[str, str] | None = None) -> None:
        self._kb, self._n = kb, len(kb)
        self.supplied: list[SuppliedSystem] = []
        """Systems served beside the knowledge base, then those of the request, in its order."""
        self.known_supplements: dict[str, Resource] = {}
        """Supplements, used or not, by URL and version."""
        self._urls = {vocabulary_name(name): url for name, url in (urls or {}).items()}
        self._given = dict(urls or {})
        self._systems: dict[str, CodeSystem] = {}
        self._concept = kb.numbers("ids", "concept")
        self._kind = kb.numbers("ids", "kind")
        self._further = kb.texts("ids", "id")
        self._ends = kb.numbers("concepts", "ids_end")
        primary = self._number(kb.texts("concepts", "id"), own=True)
        further = self._number(self._further, own=False)
        self._of_entry = np.concatenate([self._by_source(primary), further])
        self._n_entries = len(self._of_entry)
        self._by_number = sorted(self._systems.values(), key=lambda each: each.number)
        self._by_url = {each.url: each for each in self._by_number}
        self._members: dict[int, Entries] = {}

    def with_supplied(
        self,
        resources: Iterable[Resource],
        versions: Mapping[str, str],
        forced: Mapping[str, str],
        wanted: Iterable[str] = (),
        max_concepts: int = MAX_CONCEPTS,
    ) -> CodeSystems:
        """Return these code systems with those of a request, which replace earlier ones.

        Args:
            resources: CodeSystem resources, supplements among them.
            versions: Versions of systems where the request names none.
            forced: Versions of systems, whatever the request names.
            wanted: URLs of the supplements to use.
            max_concepts: Maximum number of concepts.

        Raises:
            TerminologyError: A resource is damaged, has too many concepts, or is missing.
        """
        both = copy.copy(self)
        both.supplied, both.versions, both.forced = list(self.supplied), versions, forced
        both.known_supplements = dict(self.known_supplements)
        start = first = self._n_entries + sum(len(each.concepts) for each in self.supplied)
        for resource in resources:
            if resource.get("content") == "supplement":
                url, version = (text_in(resource, key, "CodeSystem") for key in ("url", "version"))
                both.known_supplements[canonical(url or "", version)] = resource
                continue
            room = max_concepts - (first - start)
            number = _FIRST_NUMBER + len(both.supplied)
            both.supplied.append(read_system(resource, number, first, room=room))
            first += len(both.supplied[-1].concepts)
        both.supplements = [
            both._supplement(_supplement_of(url, list(both.known_supplements.values())))
            for url in dict.fromkeys(wanted)
        ]
        return both

    def _supplement(self, resource: Resource) -> str:
        """Add the names and properties of a supplement to its code system; return its URL."""
        url = text_in(resource, "url", "CodeSystem") or ""
        target = text_in(resource, "supplements", "CodeSystem") or ""
        system = self.find(target)
        if not isinstance(system, SuppliedSystem):
            raise TerminologyError(
                "not-supported", f"{url}: supplements {target}, not in the request"
            )
        system = replace(system, concepts=list(system.concepts))  # it may be served to others
        self.supplied[system.number - _FIRST_NUMBER] = system
        added = read_system(resource, 0, 0, room=MAX_CONCEPTS)
        for each in added.concepts:
            entry = system.find(each.code)
            if entry is not None:
                concept = copy.deepcopy(system.concept(entry))
                system.concepts[entry - system.first] = concept
                named = list(each.designations)
                if each.display and added.language:
                    named.append({"language": added.language, "value": each.display})
                concept.designations += named
                concept.properties += each.properties
                concept.extensions += each.extensions
                of = canonical(url, added.version)
                concept.sources |= {str(designation["value"]): of for designation in named}
        system.property_uris.update(added.property_uris)
        return canonical(url, added.version)

    def supplement_of(self, url: str) -> str | None:
        """Return a known supplement with its version; None if there is none.

        Args:
            url: Its URL.
        """
        return next((e for e in self.known_supplements if e.partition("|")[0] == url), None)

    # ---- systems

    def __iter__(self) -> Iterator[CodeSystem]:
        """Go through the systems that have codes of concepts, by URI, then those of the request."""
        counts = np.bincount(self._of_entry[self._is_code] + 1, minlength=len(self._by_number) + 1)
        stored = [each for each in self._by_number if counts[each.number + 1]]
        return iter([*sorted(stored, key=lambda each: each.url), *self.supplied])

    def find(self, url: str, version: str | None = None) -> CodeSystem | None:
        """Return a system: in this version, else as the request says, else the newest.

        The store has one version of a system, and any is taken for it.

        Args:
            url: URI of the system, which may have a version after a bar.
            version: Version that is wanted.
        """
        url, _, after = url.partition("|")
        wanted = self.forced.get(url) or version or after or self.versions.get(url)
        spend(len(self.supplied))
        own = [each for each in reversed(self.supplied) if each.url == url]
        if not own:
            return self._by_url.get(url)
        fitting = [each for each in own if not wanted or fits(each.version, wanted)]
        hinted = (each for each in fitting if each.version == self.hints.get(url, ""))
        return next(hinted, None) or max(
            fitting, key=lambda each: _version_key(each.version or ""), default=None
        )

    def known(self, url: str, version: str | None = None) -> CodeSystem:
        """Return a system that has codes.

        Args:
            url: URI of the system.
            version: Version that is wanted.

        Raises:
            TerminologyError: There is none.
        """
        system = self.find(url, version)
        if system is None:
            url, _, after = url.partition("|")
            what = "the value set cannot be expanded"
            raise TerminologyError("not-found", self.why_unknown(url, version or after, what))
        if isinstance(system, SuppliedSystem) and not system.has_codes:
            raise TerminologyError(
                "not-found",
                f"{url}: the code system has no codes (content {system.content})",
            )
        return system

    def known_versions(self, url: str) -> list[str]:
        """Return the versions of a system of the request; the newest last.

        Args:
            url: URI of the system.
        """
        found = [each.version for each in self.supplied if each.url == url and each.version]
        return sorted(found, key=_version_key)

    def why_unknown(self, url: str, version: str | None, what: str) -> str:
        """Return the message for a code system, or a version of it, that is not known.

        Args:
            url: URI of the system.
            version: Version that is wanted.
            what: What cannot be done without it.
        """
        named = f"'{url}'" + (f" version '{version}'" if version else "")
        text = f"A definition for CodeSystem {named} could not be found, so {what}"
        if not version:
            return text
        known = " or ".join(self.known_versions(url))
        return f"{text}. " + (
            f"Valid versions: {known}" if known else "No versions of this code system are known"
        )

    # ---- is-a, by row

    def _related(self, way: Callable[[Hierarchy, int], Sequence[int]], row: int) -> Sequence[int]:
        owner = self.owner(row)
        if owner is None:
            return way(self._kb.hierarchy, row)
        return counted([owner.first + each for each in way(owner.hierarchy, row - owner.first)])

    def parents(self, row: int) -> Sequence[int]:
        """Return the direct parents.

        Args:
            row: Row of the concept.
        """
        return self._related(Hierarchy.parents, row)

    def children(self, row: int) -> Sequence[int]:
        """Return the direct children.

        Args:
            row: Row of the concept.
        """
        return self._related(Hierarchy.children, row)

    def ancestors(self, row: int) -> Sequence[int]:
        """Return all ancestors.

        Args:
            row: Row of the concept.
        """
        return self._related(Hierarchy.ancestors, row)

    def descendants(self, row: int) -> Sequence[int]:
        """Return all descendants.

        Args:
            row: Row of the concept.
        """
        return self._related(Hierarchy.descendants, row)

    def is_a(self, row: int, goal: int) -> bool:
        """Return whether a concept is another one, or below it.

        Args:
            row: Row of the concept.
            goal: Row of the other concept.
        """
        if self.owner(row) is None:
            return self._kb.hierarchy.is_a(row, goal)
        return row == goal or goal in self.ancestors(row)

    # ---- entries

    def owner(self, entry: int) -> SuppliedSystem | None:
        """Return the system of the request that a code is from; None for one of the store.

        Args:
            entry: Number of the code.
        """
        if entry < self._n_entries:
            return None
        return self.supplied[bisect.bisect_right(self.supplied, entry, key=_first) - 1]

    def row(self, entry: int) -> int:
        """Return the row of the concept of a code; that of a code of the request is its number.

        Args:
            entry: Number of the code.
        """
        is_further = self._n <= entry < self._n_entries
        return int(self._concept[entry - self._n] if is_further else entry)

    def identifier(self, entry: int) -> str:
        """Return the id in the store.

        Args:
            entry: Number of the code.
        """
        if entry < self._n:
            return self._kb.id_at(entry)
        return self._further[entry - self._n]

    def system(self, entry: int) -> CodeSystem | None:
        """Return the system of a code; None for a vocabulary without one.

        Args:
            entry: Number of the code.
        """
        owner = self.owner(entry)
        return (
            None if owner is None and self._of_entry[entry] == _NONE else self.known_system(entry)
        )

    def known_system(self, entry: int) -> CodeSystem:
        """Return the system of a code that is known to have one.

        Args:
            entry: Number of the code.
        """
        return self.owner(entry) or self._by_number[int(self._of_entry[entry])]

    def code(self, entry: int) -> str:
        """Return the code.

        Args:
            entry: Number of the code.
        """
        if (owner := self.owner(entry)) is not None:
            return owner.concept(entry).code
        system, identifier = self.system(entry), self.identifier(entry)
        return " ".join(identifier.split()) if system is None else system.code(identifier)

    def is_primary(self, entry: int) -> bool:
        """Return whether the code is the primary id of its concept.

        Args:
            entry: Number of the code.
        """
        return not self._n <= entry < self._n_entries

    def is_active(self, entry: int) -> bool:
        """Return whether the code is in use: not an old id beside one of the same vocabulary.

        Args:
            entry: Number of the code.
        """
        if (owner := self.owner(entry)) is not None:
            return owner.is_active(entry)
        return bool(entry < self._n or self._of_entry[self.row(entry)] != self._of_entry[entry])

    def is_xref(self, entry: int) -> bool:
        """Return whether the id is a cross-reference, not one of the concept itself.

        Args:
            entry: Number of the code.
        """
        return bool(entry >= self._n and self._kind[entry - self._n] != _ALTERNATE)

    def resolve(self, system: CodeSystem, code: str) -> list[int]:
        """Return the entries of a code, given with or without prefix; the primary one first.

        Args:
            system: The code system.
            code: The code.
        """
        if isinstance(system, SuppliedSystem):
            found = system.find(code)
            return [] if found is None else [found]
        for spelling in _spellings(system, code):
            canonical = canonical_id(spelling)
            entries = [
                entry
                for row in self._kb.rows_of([spelling])
                for entry in self.entries_at(row)
                if not self.is_xref(entry)
                and self._of_entry[entry] == system.number
                and canonical_id(self.identifier(entry)) == canonical
            ]
            if entries:
                return sorted(entries)
        return []

    def entry(self, system: CodeSystem, code: str) -> int:
        """Return the first entry of a code.

        Args:
            system: System of the code.
            code: The code.

        Raises:
            TerminologyError: There is none.
        """
        found = self.resolve(system, code)
        if not found:
            raise TerminologyError("not-found", f"{system.url} has no code {code!r}")
        return found[0]

    def referring(self, system: CodeSystem, code: str) -> list[int]:
        """Return the rows of the concepts that have a code as cross-reference.

        Args:
            system: The code system.
            code: The code.
        """
        return [
            self._kb.row(concept.id)
            for spelling in _spellings(system, code)
            for concept in self._kb.by_xref(spelling)
        ]

    def entries_at(self, row: int) -> list[int]:
        """Return the ids of a concept, the primary one first; none of a retired concept.

        Args:
            row: Row of the concept.
        """
        first = int(self._ends[row - 1]) if row else 0
        further = range(first, int(self._ends[row]))
        return [row, *(self._n + k for k in further if self._kind[k] not in _RETIRED)]

    def codes_at(self, row: int, system: CodeSystem) -> list[int]:
        """Return the codes in use of a concept in a system of the store.

        Args:
            row: Row of the concept.
            system: The code system.
        """
        return [
            entry
            for entry in self.entries_at(row)
            if self._of_entry[entry] == system.number
            and not self.is_xref(entry)
            and self.is_active(entry)
        ]

    def members(self, system: CodeSystem) -> Entries:
        """Return all codes in use of a system, in the order of the store.

        Args:
            system: The code system.
        """
        if isinstance(system, SuppliedSystem):
            return np.arange(system.first, system.first + len(system.concepts), dtype=np.int64)
        if system.number not in self._members:
            found = np.flatnonzero((self._of_entry == system.number) & self._is_code)
            self._members[system.number] = self.distinct(found)
        return self._members[system.number]

    def of_rows(self, system: CodeSystem, rows: Sequence[int] | Array) -> Entries:
        """Return the codes in a system of some concepts, in the order of the concepts.

        Args:
            system: The code system.
            rows: Rows of the concepts.
        """
        if isinstance(system, SuppliedSystem):
            return np.array([row for row in rows if self.owner(int(row)) is system], np.int64)
        wanted = np.asarray(rows, np.int64)
        if len(wanted) <= _FEW:  # no array of the size of the store
            found = (e for row in wanted.tolist() for e in self.codes_at(row, system))
            return self.distinct(np.fromiter(found, np.int64))
        rank = np.full(self._n, _NONE, np.int64)
        rank[wanted] = np.arange(len(wanted))
        own = wanted[self._of_entry[wanted] == system.number]
        further = np.zeros(0, np.int64)
        if len(self._concept):
            chosen = (self._of_entry[self._n :] == system.number) & self._is_code[self._n :]
            positions = np.flatnonzero(chosen)
            further = positions[rank[self._concept[positions]] != _NONE] + self._n
        entries = np.concatenate([own, further])
        return self.distinct(entries[np.argsort(rank[self._rows(entries)], kind="stable")])

    def names(self, row: int) -> Sequence[Name]:
        """Return the names of a concept.

        Args:
            row: Row of the concept.
        """
        if (owner := self.owner(row)) is not None:
            return owner.names(row)
        return self._kb.names_at(row)

    def name(self, row: int) -> str:
        """Return the usual name of a concept.

        Args:
            row: Row of the concept.
        """
        if (owner := self.owner(row)) is not None:
            return owner.concept(row).display or ""
        return self._kb.name_at(row)

    def systems_of(self, rows: Rows) -> list[CodeSystem]:
        """Return the systems of the primary ids of some concepts of the store.

        Args:
            rows: Rows of the concepts.
        """
        return [self._by_number[number] for number in np.unique(self._of_entry[rows]).tolist()]

    def mark(self, entries: Entries) -> Flags:
        """Mark the concepts of codes of the store.

        Args:
            entries: Numbers of the codes.
        """
        marked = np.zeros(self._n, bool)
        marked[self._rows(entries[entries < self._n_entries])] = True
        return marked

    def distinct(self, entries: Entries) -> Entries:
        """Return the entries without those whose code came before (of another concept).

        Args:
            entries: Numbers of the codes.
        """
        keys = entries.astype(np.int64)
        further = keys >= self._n
        if further.any():
            keys[further] = self._same_text[keys[further] - self._n] + self._n
        first = np.unique(keys, return_index=True)[1]
        return entries[np.sort(first)]

    @cached_property
    def _same_text(self) -> Ints:
        """A number for each text in the table of ids."""
        numbers: dict[str, int] = {}
        found = (numbers.setdefault(text, len(numbers)) for text in self._further)
        return np.fromiter(found, np.int64, len(self._further))

    @cached_property
    def _is_code(self) -> Flags:
        """Whether each entry is a code in use: no cross-reference, no old id."""
        alternate = np.asarray(self._kind) == _ALTERNATE
        old = self._of_entry[self._n :] == self._of_entry[: self._n][np.asarray(self._concept)]
        return np.concatenate([np.ones(self._n, bool), alternate & ~old])

    def _rows(self, entries: Entries) -> Entries:
        rows = entries.astype(np.int64)
        further = rows >= self._n
        if further.any():
            rows[further] = self._concept[rows[further] - self._n]
        return rows

    # ---- which system an id is from

    def _number(self, ids: TextColumn, *, own: bool) -> Int16s:
        """Return the number of the system of each id; ids of one shape have the same."""
        numbers: dict[str, int] = {}
        systems = [np.zeros(0, np.int16)]
        for offsets, data in ids.chunks:
            for start in range(0, len(offsets) - 1, _IDS_AT_ONCE):
                ends = offsets[start : start + _IDS_AT_ONCE + 1]
                text = data[int(ends[0]) : int(ends[-1])]
                ends = ends - ends[0]
                _, examples, shapes = np.unique(
                    hash_shapes(np.frombuffer(text, np.uint8), ends),
                    return_index=True,
                    return_inverse=True,
                )
                found = np.empty(len(examples), np.int16)
                for number in np.argsort(examples).tolist():  # systems are numbered as they come
                    k = examples[number]
                    identifier = str(text[ends[k] : ends[k + 1]], "utf-8")
                    prefix, colon, _ = identifier.partition(":")
                    shape = prefix + colon if colon else identifier.translate(_DIGITS)
                    if shape not in numbers:
                        numbers[shape] = self._number_of(shape, own)
                    found[number] = numbers[shape]
                systems.append(found[shapes])
        return np.concatenate(systems)

    def _number_of(self, shape: str, own: bool) -> int:
        vocabulary = vocabulary_of(shape)
        listed = system_of(vocabulary)
        url = (self._urls.get(vocabulary) if vocabulary else None) or listed
        if url is None:
            return self._add("", LOCAL, (), known=False) if own else _NONE
        known = listed is not None
        prefix, colon, _ = shape.partition(":")
        return self._add(vocabulary, url, (prefix,) if colon else (), known=known)

    def _add(self, name: str, url: str, prefixes: tuple[str, ...], *, known: bool) -> int:
        before = self._systems.get(name)
        number = len(self._systems) if before is None else before.number
        together = tuple(dict.fromkeys([*(before.prefixes if before else ()), *prefixes]))
        self._systems[name] = CodeSystem(number, name, url, together, known)
        return number

    def _by_source(self, numbers: Int16s) -> Int16s:
        """Give ids of no vocabulary the system of the source of their first name."""
        local = self._systems.get("")
        if local is None or not self._given or not self._n:
            return numbers
        ends = np.asarray(self._kb.numbers("concepts", "names_end")).astype(np.int64)
        first = np.concatenate([[0], ends[:-1]])
        named = (first < ends) & (numbers == local.number)
        sources = np.asarray(self._kb.numbers("names", "source"))[first[named]]
        changed = numbers[named]
        for number, source in enumerate(self._kb.sources):
            url = self._given.get(source)
            if url is not None and (sources == number).any():
                changed[sources == number] = self._add(source, url, (), known=False)
        numbers[named] = changed
        return numbers


def _spellings(system: CodeSystem, code: str) -> Iterable[str]:
    """Give the ids that a code may have in a store."""
    code = code.strip()
    if not system.prefixes or vocabulary_of(code) == system.name:
        yield code
    for prefix in system.prefixes:
        yield f"{prefix}:{code}"


def parse_systems(given: Sequence[str]) -> dict[str, str]:
    """Read options ``NAME=URI``, where NAME is a prefix of ids, or a source of names.

    Args:
        given: The options.

    >>> parse_systems(["LAB=http://example.org/lab"])
    {'LAB': 'http://example.org/lab'}
    """
    urls: dict[str, str] = {}
    for each in given:
        name, equals, url = (part.strip() for part in each.partition("="))
        if not name or not equals or not re.fullmatch(r"[A-Za-z][A-Za-z0-9+.-]*:[^\s|?]+", url):
            raise ConfigError(
                f"--system {each}: expected NAME=URI, such as LAB=http://example.org/lab"
            )
        if name in urls or url in urls.values():
            raise ConfigError(f"--system {each}: {name} or its URI is given twice")
        urls[name] = url
    return urls


_MAX_DEPTH = 200
STANDARDS_STATUS = "http://hl7.org/fhir/StructureDefinition/structuredefinition-standards-status"
_PROPERTIES = "http://hl7.org/fhir/concept-properties#"
_OUT_OF_USE = ("inactive", "retired", "withdrawn")
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
    sources: dict[str, str] = field(default_factory=dict)
    """The supplement that a designation is from, by its text."""

    def values(self, name: str) -> list[str]:
        """Return the values of a property as texts.

        Args:
            name: Name of the property.
        """
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
    property_uris: dict[str, str]
    """URIs of the properties, as they are declared."""
    hierarchy: Hierarchy
    """The is-a relations of its concepts, by their positions."""
    resource: Resource

    @property
    def has_codes(self) -> bool:
        """Whether the resource has the codes of the system, or some of them."""
        return self.content not in ("not-present", "example")

    def names(self, entry: int) -> list[Name]:
        """Return the names of a concept.

        Args:
            entry: Number of the code.
        """
        concept = self.concept(entry)
        named = [(concept.display, self.language, NameKind.PREFERRED)] if concept.display else []
        for each in concept.designations:
            language = each.get("language")
            said = language if isinstance(language, str) else None
            named.append((str(each["value"]), said, NameKind.SYNONYM))
        return [Name(text, language or "", kind, self.url) for text, language, kind in named]

    def concept(self, entry: int) -> SuppliedConcept:
        """Return the concept with a number.

        Args:
            entry: Number of the code.
        """
        return self.concepts[entry - self.first]

    def find(self, code: str) -> int | None:
        """Return the number of a code.

        Args:
            code: The code.
        """
        position = self.by_code.get(code if self.case_sensitive else code.casefold())
        return None if position is None else self.first + position

    def status_of(self, concept: SuppliedConcept) -> str | None:
        """Return why a concept is not in use, or that it is deprecated; None without a status.

        Args:
            concept: The concept.
        """
        for name in self.status_names:
            for value in concept.values(name):
                if value not in ("true", "false"):
                    return value
                if value == "true":
                    return "inactive"
        return standards_status(concept.extensions)

    def is_active(self, entry: int) -> bool:
        """Return whether a concept is in use.

        Args:
            entry: Number of the code.
        """
        return self.status_of(self.concept(entry)) not in _OUT_OF_USE

    def is_abstract(self, entry: int) -> bool:
        """Return whether a concept is only there to group others.

        Args:
            entry: Number of the code.
        """
        concept = self.concept(entry)
        return any("true" in concept.values(name) for name in self._grouping)

    @cached_property
    def _grouping(self) -> list[str]:
        """The properties that say that a concept only groups others."""
        uri = f"{_PROPERTIES}notSelectable"
        return [name for name, own in self.property_uris.items() if own == uri] or ["notSelectable"]


def standards_status(extensions: Sequence[Resource]) -> str | None:
    """Return the status that an extension gives a concept or a name.

    Args:
        extensions: Extensions of the concept.
    """
    for each in extensions:
        if each.get("url") == STANDARDS_STATUS and isinstance(each.get("valueCode"), str):
            return str(each["valueCode"])
    return None


def read_system(resource: Resource, number: int, first: int, *, room: int) -> SuppliedSystem:
    """Read a CodeSystem; its concepts may be nested, or name their parents as a property.

    Args:
        resource: The resource.
        number: Number of the system.
        first: Number of its first code.
        room: Maximum number of concepts.
    """
    url = required_in(resource, "url", "CodeSystem")
    concepts: list[SuppliedConcept] = []
    edges: dict[tuple[int, int], None] = {}
    listed = list_in(resource, "concept", "CodeSystem")
    _read_concepts(listed, None, concepts, edges, room=room)
    case_sensitive = resource.get("caseSensitive") is not False
    by_code: dict[str, int] = {}
    for position, each in enumerate(concepts):
        by_code.setdefault(each.code if case_sensitive else each.code.casefold(), position)
    declared = {
        text_in(each, "code", "CodeSystem.property") or "": text_in(
            each, "uri", "CodeSystem.property"
        )
        or ""
        for each in list_in(resource, "property", "CodeSystem")
    }
    filters = {
        text_in(each, "code", "CodeSystem.filter") or ""
        for each in list_in(resource, "filter", "CodeSystem")
    }
    _add_parents(concepts, by_code, case_sensitive, edges)
    uppers, lowers = np.array([*edges], np.uint32).reshape(-1, 2).T
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
        property_uris=declared,
        hierarchy=Hierarchy(lowers, uppers, len(concepts)),
        resource=resource,
    )


def _read_concepts(
    listed: list[Any],
    parent: int | None,
    concepts: list[SuppliedConcept],
    edges: dict[tuple[int, int], None],
    depth: int = 0,
    *,
    room: int,
) -> None:
    place = "CodeSystem.concept"
    if depth > _MAX_DEPTH:
        raise TerminologyError("too-costly", f"{place}: nested more than {_MAX_DEPTH} deep")
    for each in listed:
        code = required_in(each, "code", place)
        if len(concepts) >= room:
            raise TerminologyError("too-costly", f"{place}: over {MAX_CONCEPTS} of a request")
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
            edges[parent, own] = None
        inner = list_in(each, "concept", place)
        _read_concepts(inner, own, concepts, edges, depth + 1, room=room)


def _read_property(given: Any) -> tuple[str, Any, str]:
    place = "CodeSystem.concept.property"
    name = text_in(given, "code", place)
    kinds = [key for key in given if key.startswith("value")]
    if name is None or len(kinds) != 1:
        raise TerminologyError("invalid", f"{place}: expected a code and one value")
    return name, given[kinds[0]], kinds[0].removeprefix("value")


def _add_parents(
    concepts: list[SuppliedConcept],
    by_code: Mapping[str, int],
    exact: bool,
    edges: dict[tuple[int, int], None],
) -> None:
    """Add the parents and children that are given as properties."""
    for own, concept in enumerate(concepts):
        for name, value, _ in concept.properties:
            other = by_code.get(str(value) if exact else str(value).casefold())
            if other is not None and name in ("parent", "child"):
                edges[(other, own) if name == "parent" else (own, other)] = None


def _as_text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value.get("code")) if isinstance(value, dict) else str(value)


def _first(system: SuppliedSystem) -> int:
    return system.first


def canonical(url: str, version: str | None) -> str:
    """Return the URL of a resource with its version, where it has one.

    Args:
        url: The URL.
        version: The version.
    """
    return f"{url}|{version}" if version else url


def _version_key(version: str) -> tuple[tuple[int, int | str], ...]:
    """Order versions: numbers in them by their value."""
    parts = version.replace("-", ".").split(".")
    return tuple((1, int(p)) if p.isdecimal() and len(p) < 20 else (0, p) for p in parts)


def fits(version: str | None, wanted: str) -> bool:
    """Return whether a version is one that is asked for: ``1.x`` is any that begins with ``1.``.

    Args:
        version: Version of a resource.
        wanted: Version that is asked for; ``x`` and ``*`` stand for any part of it.
    """
    if version is None or version == wanted:
        return version is not None
    parts, patterns = version.split("."), wanted.split(".")
    if patterns[-1] not in _ANY or len(patterns) > len(parts):
        return False
    return all(p in _ANY or p == part for p, part in zip(patterns, parts, strict=False))


_ANY = ("x", "X", "*")


def _supplement_of(url: str, supplements: Sequence[Resource]) -> Resource:
    """Return the supplement with a URL, which may have a version after a bar."""
    base, bar, version = url.partition("|")
    for each in supplements:
        if each.get("url") == base and (not bar or each.get("version") == version):
            return each
    raise TerminologyError("not-found", f"Required supplement not found: {url}")
