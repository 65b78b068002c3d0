"""The code systems of a store: which vocabularies its ids are from, and the codes in each.

An *entry* is one code. It is numbered as in the store: the row of a concept for its primary id,
and the number of concepts plus a row of the table of ids for a further id.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from biograft.errors import ConfigError
from biograft.kb import KnowledgeBase, Name
from biograft.kb.hierarchy import Hierarchy
from biograft.kb.records import RETIRED, IdKind
from biograft.kb.tables import ID_KINDS
from biograft.kb.vocabularies import (
    canonical_id,
    code_of,
    system_of,
    vocabulary_name,
    vocabulary_of,
)

LOCAL = "urn:biograft:kb"
"""URI of the ids of a store that are from no vocabulary with a URI of its own."""
_ALTERNATE = ID_KINDS.index(IdKind.ALTERNATE)
_RETIRED = tuple(map(ID_KINDS.index, RETIRED))
_NONE = -1
_DIGITS = str.maketrans("123456789", "0" * 9)
Entries = npt.NDArray[np.int64]


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
        """Return the code of an id; ids of a URI that was given lose their prefix."""
        if self.known:
            return code_of(identifier, self.name)
        prefix, colon, code = identifier.partition(":")
        whole = identifier if not colon or prefix not in self.prefixes else code
        return " ".join(whole.split())


class CodeSystems:
    """The code systems of a store; ``urls`` has URIs by the prefix of ids, or by a source."""

    def __init__(self, kb: KnowledgeBase, urls: Mapping[str, str] | None = None) -> None:
        self._kb, self._n = kb, len(kb)
        self._urls = {vocabulary_name(name): url for name, url in (urls or {}).items()}
        self._given = dict(urls or {})
        self._systems: dict[str, CodeSystem] = {}
        self._concept = kb.numbers("ids", "concept")
        self._kind = kb.numbers("ids", "kind")
        self._further = kb.texts("ids", "id")
        self._ends = kb.numbers("concepts", "ids_end")
        self._names_end = kb.numbers("concepts", "names_end")
        primary = self._number(kb.texts("concepts", "id"), own=True)
        further = self._number(self._further, own=False)
        self._of_entry = np.concatenate([self._by_source(primary), further])
        self._by_number = sorted(self._systems.values(), key=lambda each: each.number)
        self._by_url = {each.url: each for each in self._by_number}
        self._members: dict[int, Entries] = {}

    # ---- systems

    def __iter__(self) -> Iterator[CodeSystem]:
        """Go through the systems that have codes of concepts, by URI."""
        counts = np.bincount(self._of_entry[self._is_code] + 1, minlength=len(self._by_number) + 1)
        return iter(
            sorted((s for s in self._by_number if counts[s.number + 1]), key=lambda s: s.url)
        )

    def find(self, url: str, version: str | None = None) -> CodeSystem | None:
        """Return the system with a URI; the store has one version, and any is taken for it."""
        return self._by_url.get(url.partition("|")[0])

    @property
    def n_entries(self) -> int:
        """The number of codes, and of ids that are none."""
        return self._n + len(self._concept)

    @property
    def hierarchy(self) -> Hierarchy:
        """The is-a relations, by row."""
        return self._kb.hierarchy

    def size(self, system: CodeSystem) -> int:
        """Count the codes of a system."""
        return len(self.members(system))

    # ---- entries

    def row(self, entry: int) -> int:
        """Return the row of the concept of a code."""
        return int(entry if entry < self._n else self._concept[entry - self._n])

    def identifier(self, entry: int) -> str:
        """Return the id in the store."""
        if entry < self._n:
            return self._kb.id_at(entry)
        return self._further[entry - self._n]

    def system(self, entry: int) -> CodeSystem | None:
        """Return the system of a code; None for a vocabulary without one."""
        number = int(self._of_entry[entry])
        return None if number == _NONE else self._by_number[number]

    def known_system(self, entry: int) -> CodeSystem:
        """Return the system of a code that is known to have one."""
        return self._by_number[int(self._of_entry[entry])]

    def code(self, entry: int) -> str:
        """Return the code."""
        system = self.system(entry)
        identifier = self.identifier(entry)
        return " ".join(identifier.split()) if system is None else system.code(identifier)

    def is_primary(self, entry: int) -> bool:
        """Return whether the code is the primary id of its concept."""
        return entry < self._n

    def is_active(self, entry: int) -> bool:
        """Return whether the code is in use: not an old id beside one of the same vocabulary."""
        return bool(entry < self._n or self._of_entry[self.row(entry)] != self._of_entry[entry])

    def is_xref(self, entry: int) -> bool:
        """Return whether the id is a cross-reference, not one of the concept itself."""
        return bool(entry >= self._n and self._kind[entry - self._n] != _ALTERNATE)

    def resolve(self, system: CodeSystem, code: str) -> list[int]:
        """Return the entries of a code, given with or without prefix; the primary one first."""
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

    def referring(self, system: CodeSystem, code: str) -> list[int]:
        """Return the rows of the concepts that have a code as cross-reference."""
        return [
            self._kb.row(concept.id)
            for spelling in _spellings(system, code)
            for concept in self._kb.by_xref(spelling)
        ]

    def entries_at(self, row: int) -> list[int]:
        """Return the ids of a concept, the primary one first; none of a retired concept."""
        first = int(self._ends[row - 1]) if row else 0
        further = range(first, int(self._ends[row]))
        return [row, *(self._n + k for k in further if self._kind[k] not in _RETIRED)]

    def codes_at(self, row: int, system: CodeSystem) -> list[int]:
        """Return the codes in use of a concept in a system."""
        return [
            entry
            for entry in self.entries_at(row)
            if self._of_entry[entry] == system.number
            and not self.is_xref(entry)
            and self.is_active(entry)
        ]

    def members(self, system: CodeSystem) -> Entries:
        """Return all codes in use of a system, in the order of the store."""
        if system.number not in self._members:
            found = np.flatnonzero((self._of_entry == system.number) & self._is_code)
            self._members[system.number] = self.distinct(found)
        return self._members[system.number]

    def of_rows(self, system: CodeSystem, rows: Sequence[int] | npt.NDArray[Any]) -> Entries:
        """Return the codes in a system of some concepts, in the order of the concepts."""
        wanted = np.asarray(rows, np.int64)
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

    def names(self, row: int) -> list[Name]:
        """Return the names of a concept."""
        first = int(self._names_end[row - 1]) if row else 0
        return [self._kb.name(position) for position in range(first, int(self._names_end[row]))]

    def name(self, row: int) -> str:
        """Return the usual name of a concept."""
        return self._kb.name_at(row)

    def distinct(self, entries: Entries) -> Entries:
        """Return the entries without those whose code came before (of another concept)."""
        keys = entries.astype(np.int64)
        further = keys >= self._n
        if further.any():
            keys[further] = self._same_text[keys[further] - self._n] + self._n
        first = np.unique(keys, return_index=True)[1]
        return entries[np.sort(first)]

    @cached_property
    def _same_text(self) -> npt.NDArray[np.int64]:
        """A number for each text in the table of ids."""
        numbers: dict[str, int] = {}
        found = (numbers.setdefault(text, len(numbers)) for text in self._further)
        return np.fromiter(found, np.int64, len(self._further))

    @cached_property
    def _is_code(self) -> npt.NDArray[np.bool_]:
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

    def _number(self, ids: Any, *, own: bool) -> npt.NDArray[np.int16]:
        """Return the number of the system of each id; ids of one shape have the same."""
        numbers: dict[str, int] = {}
        systems = np.empty(len(ids), np.int16)
        for row, identifier in enumerate(ids):
            prefix, colon, _ = identifier.partition(":")
            shape = prefix + colon if colon else identifier.translate(_DIGITS)
            if shape not in numbers:
                numbers[shape] = self._number_of(shape, own)
            systems[row] = numbers[shape]
        return systems

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

    def _by_source(self, numbers: npt.NDArray[np.int16]) -> npt.NDArray[np.int16]:
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
