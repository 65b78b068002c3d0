"""Value sets: the codes of a system, those below one, those of a list; and unions of such sets.

A value set is asked whether it has a code without being written out; its codes are written out as
numbers of entries (:class:`~biograft.serve.fhir.CodeSystems`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple
from urllib.parse import unquote

import numpy as np

from biograft.kb import KnowledgeBase
from biograft.serve.fhir.code_systems import CodeSystem, CodeSystems, Entries
from biograft.serve.fhir.errors import TerminologyError
from biograft.serve.fhir.parameters import Resource, list_in, text_in

_IMPLICIT = "fhir_vs"
_MAX_PARTS = 1000
_PLACE = "valueSet.compose"
_CODE = ("code", "concept")


class Condition(NamedTuple):
    """What the concepts of a value set have in common."""

    rows: Callable[[], Sequence[int]]
    holds: Callable[[int], bool]


@dataclass(frozen=True)
class CodeSet:
    """Codes of one system: those listed, else all, that meet every condition."""

    system: CodeSystem
    conditions: tuple[Condition, ...] = ()
    listed: tuple[int, ...] | None = None
    within: tuple[ValueSet, ...] = ()
    """Value sets that must have the code, too."""

    def entries(self, systems: CodeSystems) -> Entries:
        """Return the codes."""
        rest = self.conditions
        if self.listed is not None:
            found = np.array(self.listed, np.int64)
        elif self.conditions:
            found = systems.of_rows(self.system, self.conditions[0].rows())
            rest = self.conditions[1:]
        else:
            found = systems.members(self.system)
        for condition in rest:
            kept = [condition.holds(systems.row(entry)) for entry in found.tolist()]
            found = found[np.array(kept, bool)]
        for other in self.within:
            found = found[np.isin(found, other.entries(systems))]
        return found

    def has(self, entry: int, systems: CodeSystems) -> bool:
        """Return whether a code is one of these."""
        if systems.system(entry) != self.system:
            return False
        if self.listed is not None and entry not in self.listed:
            return False
        row = systems.row(entry)
        return all(each.holds(row) for each in self.conditions) and all(
            each.has(entry, systems) for each in self.within
        )


@dataclass(frozen=True)
class ValueSet:
    """The codes of any of some sets, without those of others."""

    url: str | None
    included: tuple[CodeSet, ...]
    excluded: tuple[CodeSet, ...] = ()
    displays: dict[int, str] = field(default_factory=dict)
    """How the value set itself calls a code."""

    @property
    def systems(self) -> list[CodeSystem]:
        """The systems that its codes may be from."""
        return list(dict.fromkeys(each.system for each in self.included))

    def entries(self, systems: CodeSystems) -> Entries:
        """Return the codes, each once, in the order of the sets."""
        found = [each.entries(systems) for each in self.included]
        whole = np.concatenate(found) if found else np.zeros(0, np.int64)
        if len(found) > 1:
            whole = whole[np.sort(np.unique(whole, return_index=True)[1])]
        for each in self.excluded:
            whole = whole[~np.isin(whole, each.entries(systems))]
        return whole

    def has(self, entry: int, systems: CodeSystems) -> bool:
        """Return whether a code is one of these."""
        return any(each.has(entry, systems) for each in self.included) and not any(
            each.has(entry, systems) for each in self.excluded
        )


class ValueSetReader:
    """Reads value sets: by the URL of an implicit one, or from a resource."""

    def __init__(self, kb: KnowledgeBase, systems: CodeSystems) -> None:
        self._kb, self._systems = kb, systems

    # ---- implicit

    def of_url(self, url: str) -> ValueSet:
        """Return an implicit value set: ``SYSTEM?fhir_vs`` or ``SYSTEM?fhir_vs=isa/CODE``."""
        base, mark, query = url.partition("?")
        key, equals, wanted = query.partition("|")[0].partition("=")
        system = self._systems.find(base)
        if not mark or key != _IMPLICIT or system is None:
            raise TerminologyError(
                "not-found", f"no value set {url!r}; known are SYSTEM?fhir_vs of the code systems"
            )
        if not equals:
            return ValueSet(url, (CodeSet(system),))
        kind, _, code = unquote(wanted).partition("/")
        if kind != "isa" or not code:
            raise TerminologyError(
                "not-supported",
                f"fhir_vs={wanted}: only fhir_vs and fhir_vs=isa/CODE are supported",
            )
        return ValueSet(url, (CodeSet(system, (self._below(system, code, own=True),)),))

    # ---- resources

    def of_resource(self, resource: Resource) -> ValueSet:
        """Return the value set of a resource, by its ``compose``."""
        compose = resource.get("compose")
        included = list_in(compose, "include", _PLACE)
        excluded = list_in(compose, "exclude", _PLACE)
        if not included:
            raise TerminologyError("required", f"{_PLACE}.include: missing")
        if len(included) + len(excluded) > _MAX_PARTS:
            raise TerminologyError("too-costly", f"{_PLACE}: at most {_MAX_PARTS} parts")
        displays: dict[int, str] = {}
        return ValueSet(
            text_in(resource, "url", "valueSet"),
            tuple(part for each in included for part in self._parts(each, displays, "include")),
            tuple(part for each in excluded for part in self._parts(each, {}, "exclude")),
            displays,
        )

    def _parts(self, given: Any, displays: dict[int, str], what: str) -> list[CodeSet]:
        place = f"{_PLACE}.{what}"
        urls = list_in(given, "valueSet", place)
        if not all(isinstance(url, str) for url in urls) or len(urls) > _MAX_PARTS:
            raise TerminologyError("invalid", f"{place}.valueSet: expected a list of URLs")
        within = tuple(self.of_url(url) for url in urls)
        url = text_in(given, "system", place)
        concepts, filters = (list_in(given, key, place) for key in ("concept", "filter"))
        if url is None:
            if not within or concepts or filters:
                raise TerminologyError("required", f"{place}.system: missing")
            return [CodeSet(each, within=within) for each in within[0].systems]
        system = self._systems.find(url)
        if system is None:
            raise TerminologyError("not-found", f"{place}.system: no code system {url!r}")
        if concepts and filters:
            raise TerminologyError("invalid", f"{place}: give either concept or filter")
        if concepts:
            listed = self._listed(system, concepts, displays, f"{place}.concept")
            return [CodeSet(system, listed=listed, within=within)]
        if len(filters) > _MAX_PARTS:
            raise TerminologyError("too-costly", f"{place}: at most {_MAX_PARTS} filters")
        return [CodeSet(system, tuple(self._filter(system, f) for f in filters), within=within)]

    def _listed(
        self, system: CodeSystem, concepts: list[Any], displays: dict[int, str], place: str
    ) -> tuple[int, ...]:
        """Return the codes that are listed; those that the system has not are in no value set."""
        listed: dict[int, None] = {}
        for each in concepts:
            code = text_in(each, "code", place)
            if code is None:
                raise TerminologyError("required", f"{place}.code: missing")
            for entry in self._systems.resolve(system, code)[:1]:
                listed[entry] = None
                display = text_in(each, "display", place)
                if display is not None:
                    displays[entry] = display
        return tuple(listed)

    def _filter(self, system: CodeSystem, given: Any) -> Condition:
        place = f"{_PLACE}.filter"
        name, operator, value = (text_in(given, key, place) for key in ("property", "op", "value"))
        if name is None or operator is None or value is None:
            raise TerminologyError("required", f"{place}: expected property, op and value")
        hierarchy = self._kb.hierarchy
        if name in _CODE and operator in ("is-a", "descendent-of"):
            return self._below(system, value, own=operator == "is-a")
        if operator == "=":
            if name in _CODE:
                return _those([self._row(system, value)])
            if name == "parent":
                return _those(hierarchy.children(self._row(system, value)))
            if name == "child":
                return _those(hierarchy.parents(self._row(system, value)))
            if name == "type":
                return self._of_type(value)
        if name in _CODE and operator == "in":
            return _those([self._row(system, code.strip()) for code in value.split(",")])
        if name in _CODE and operator == "generalizes":
            row = self._row(system, value)
            return _those([row, *hierarchy.ancestors(row)])
        raise TerminologyError(
            "not-supported",
            f"{place}: {name} {operator} is not supported; known are concept is-a, descendent-of, "
            "generalizes, in and =, and parent, child and type =",
        )

    def _below(self, system: CodeSystem, code: str, *, own: bool) -> Condition:
        goal, hierarchy = self._row(system, code), self._kb.hierarchy

        def rows() -> Sequence[int]:
            below = hierarchy.descendants(goal)
            return [goal, *below] if own else below

        def holds(row: int) -> bool:
            return (own or row != goal) and hierarchy.is_a(row, goal)

        return Condition(rows, holds)

    def _of_type(self, code: str) -> Condition:
        numbers = [i for i, each in enumerate(self._kb.types) if each.code == code]
        if not numbers:
            raise TerminologyError("not-found", f"no semantic type {code!r}")
        marked = np.flatnonzero(np.asarray(self._kb.numbers("types", "type")) == numbers[0])
        ends = np.asarray(self._kb.numbers("concepts", "types_end"))
        return _those(np.searchsorted(ends, marked, side="right").tolist())

    def _row(self, system: CodeSystem, code: str) -> int:
        found = self._systems.resolve(system, code)
        if not found:
            raise TerminologyError("not-found", f"{system.url} has no code {code!r}")
        return self._systems.row(found[0])


def _those(rows: Sequence[int]) -> Condition:
    known = dict.fromkeys(rows)
    return Condition(lambda: list(known), known.__contains__)
