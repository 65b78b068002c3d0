"""Value sets: the codes of a system, those below one, those of a list; and unions of such sets.

A value set is asked whether it has a code without being written out; its codes are written out as
numbers of entries (:class:`~biograft.kb.CodeSystems`). It is given by the URL of an implicit one,
or as a resource with its ``compose``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple
from urllib.parse import unquote

import numpy as np

from biograft.arrays import Flags
from biograft.errors import ConfigError
from biograft.kb.code_systems import (
    MAX_CONCEPTS,
    CodeSystem,
    CodeSystems,
    Entries,
    SuppliedSystem,
    canonical,
)
from biograft.kb.expressions import Expression
from biograft.kb.fhir import (
    AT_ONCE,
    Resource,
    TerminologyError,
    counted,
    list_in,
    required_in,
    spend,
    text_in,
)
from biograft.kb.hierarchy import Rows
from biograft.kb.store import KnowledgeBase


class UnknownImportError(TerminologyError):
    """A value set includes another one that is not known."""


class Condition(NamedTuple):
    """Condition on the concepts of a value set."""

    holds: Callable[[int], bool]
    rows: Callable[[], Sequence[int] | Rows] | None = None
    """All rows that meet it, where they are known without going through the system."""


def those(rows: Iterable[int]) -> Condition:
    """Return the condition to be one of some concepts.

    Args:
        rows: Rows of the concepts.
    """
    known = dict.fromkeys(rows)
    return Condition(known.__contains__, lambda: list(known))


def not_(condition: Condition) -> Condition:
    """Return the opposite of a condition.

    Args:
        condition: The condition.
    """
    return Condition(lambda row: not condition.holds(row))


@dataclass(frozen=True)
class CodeSet:
    """Codes of one system: those listed, else all, that meet every condition."""

    system: CodeSystem
    conditions: tuple[Condition, ...] = ()
    listed: tuple[int, ...] | None = None
    within: tuple[ValueSet, ...] = ()
    """Value sets that must have the code, too."""
    stated: str | None = None
    """Version of the code system as the value set states it."""

    def entries(self, codes: CodeSystems) -> Entries:
        """Return the codes.

        Args:
            codes: The codes of the request.
        """
        rest = list(self.conditions)
        if self.listed is not None:
            found = np.array(self.listed, np.int64)
        else:
            first = next((each for each in rest if each.rows is not None), None)
            if first is not None and first.rows is not None:
                rest.remove(first)
                found = codes.of_rows(self.system, first.rows())
            else:
                found = codes.members(self.system)
        spend(1 + len(found) // AT_ONCE + len(found) * len(rest))
        for condition in rest:
            kept = [condition.holds(codes.row(entry)) for entry in found.tolist()]
            found = found[np.array(kept, bool)]
        for other in self.within:
            wanted = other.entries(codes)
            spend((len(found) + len(wanted)) // AT_ONCE)
            found = found[np.isin(found, wanted)]
        return found

    def has(self, entry: int, codes: CodeSystems) -> bool:
        """Return whether a code is one of these.

        Args:
            entry: Number of the code.
            codes: The codes of the request.
        """
        spend(1 + len(self.listed or ()) // AT_ONCE)
        if codes.system(entry) != self.system:
            return False
        if self.listed is not None and entry not in self.listed:
            return False
        row = codes.row(entry)
        return all(each.holds(row) for each in self.conditions) and all(
            each.has(entry, codes) for each in self.within
        )


@dataclass
class ValueSet:
    """The codes of any of some sets, without those of others; all for the codes of one request.

    It may be a part of many others, so what is found is kept: its codes, and the last question.
    """

    url: str | None
    included: Sequence[CodeSet] = ()
    excluded: Sequence[CodeSet] = ()
    displays: dict[int, str] = field(default_factory=dict)
    """Display names that the value set itself gives to codes."""
    designations: dict[int, list[Resource]] = field(default_factory=dict)
    """Further names that the value set itself gives a code."""
    extensions: dict[int, list[Resource]] = field(default_factory=dict)
    """Extensions that the value set itself gives a code, such as its label and order."""
    active_only: bool = False
    """Whether codes out of use are left out."""
    used: dict[str, Resource] = field(default_factory=dict)
    """Value sets that it is made from, by URL and version."""
    unknown: list[str] = field(default_factory=list)
    """Ids of the codes that it lists and their systems do not have; URIs of unknown systems."""
    missing: list[tuple[str, str | None]] = field(default_factory=list)
    """URLs and versions of the code systems that it names and that are not known."""
    resource: Resource = field(default_factory=dict)
    _entries: list[Entries] = field(default_factory=list, init=False, repr=False, compare=False)
    _last: dict[int, bool] = field(default_factory=dict, init=False, repr=False, compare=False)

    @property
    def systems(self) -> list[CodeSystem]:
        """The systems that its codes may be from."""
        return list(dict.fromkeys(each.system for each in self.included))

    @property
    def version(self) -> str | None:
        """Its version, where it has one."""
        found = self.resource.get("version")
        return found if isinstance(found, str) else None

    @property
    def canonical(self) -> str | None:
        """Its URL with its version."""
        return canonical(self.url, self.version) if self.url else None

    def entries(self, codes: CodeSystems) -> Entries:
        """Return the codes, each once, in the order of the sets.

        Args:
            codes: The codes of the request.
        """
        if not self._entries:
            self._entries.append(self._find_entries(codes))
        return self._entries[0]

    def _find_entries(self, codes: CodeSystems) -> Entries:
        found = [each.entries(codes) for each in self.included]
        whole = np.concatenate(found) if found else np.zeros(0, np.int64)
        if len(found) > 1:
            whole = whole[np.sort(np.unique(whole, return_index=True)[1])]
        for each in self.excluded:
            whole = whole[~np.isin(whole, each.entries(codes))]
        if self.active_only:
            spend(len(whole))
            whole = whole[np.array([codes.is_active(e) for e in whole.tolist()], bool)]
        return whole

    def has(self, entry: int, codes: CodeSystems) -> bool:
        """Return whether a code is one of these.

        Args:
            entry: Number of the code.
            codes: The codes of the request.
        """
        if entry not in self._last:
            answer = (
                any(each.has(entry, codes) for each in self.included)
                and not any(each.has(entry, codes) for each in self.excluded)
                and (not self.active_only or codes.is_active(entry))
            )
            self._last.clear()
            self._last[entry] = answer
        return self._last[entry]


_IMPLICIT = "fhir_vs"
_MAX_PARTS = 1000
_MAX_IMPORTS = 50
_PLACE = "valueSet.compose"
_CODE = ("code", "concept")
_PATTERN_TEXT = 1 << 16
"""Characters that a pattern is tried on at a time, and those of a value."""
CONSTRAINT = "constraint"
"""Property of a filter by an expression, as FHIR has it for SNOMED CT."""
_OPERATORS = (
    *("=", "in", "not-in", "is-a", "is-not-a", "descendent-of", "child-of", "descendent-leaf"),
    *("generalizes", "regex", "exists"),
)


class ValueSetReader:
    """Reads value sets.

    Args:
        kb: Knowledge base of the concepts.
        codes: Its code systems.
        supplied: Resources that the request brings.
        lenient: Leave out what is of code systems that are not known, and note their URIs.
        versions: Versions of value sets that are named without one.
        served: Value sets that are known beside those of the request, by URL.
    """

    def __init__(
        self,
        kb: KnowledgeBase,
        codes: CodeSystems,
        supplied: Sequence[Resource] = (),
        *,
        lenient: bool = False,
        versions: Mapping[str, str] | None = None,
        served: Mapping[str, Sequence[Resource]] | None = None,
    ) -> None:
        self._served = served or {}
        self._lenient, self._versions = lenient, versions or {}
        self._kb, self._codes, self._supplied = kb, codes, supplied
        self._reading: list[int] = []
        self._read: dict[int, ValueSet] = {}
        """Value sets by the identity of their resource: each is read once in a request."""

    # ---- by URL

    def of_url(self, url: str, contained: Sequence[Resource] = ()) -> ValueSet:
        """Return a value set of the request, or an implicit one of a code system.

        Args:
            url: URL of the resource.
            contained: Value sets that the resource contains.
        """
        resource = self._supplied_set(url, contained)
        if resource is not None:
            own = id(resource)
            if own in self._read:
                return self._read[own]
            if own in self._reading:
                raise TerminologyError("processing", f"{url}: the value set includes itself")
            if len(self._reading) >= _MAX_IMPORTS:
                raise TerminologyError("too-costly", f"{url}: value sets are nested too deeply")
            self._reading.append(own)
            try:
                return self._read.setdefault(own, self.of_resource(resource))
            finally:
                self._reading.pop()
        for each in self._codes:
            if isinstance(each, SuppliedSystem) and each.resource.get("valueSet") == url:
                return ValueSet(url, (CodeSet(each),))
        return self._implicit(url)

    def _supplied_set(self, url: str, contained: Sequence[Resource]) -> Resource | None:
        if url.startswith("#"):
            spend(1 + len(contained))
            resources = (each for each in contained if isinstance(each, dict))
            return next((each for each in resources if each.get("id") == url[1:]), None)
        base, bar, version = url.partition("|")
        if not bar and base in self._versions:
            bar, version = "|", self._versions[base]
        spend(1 + len(self._supplied))
        found = [
            each
            for each in (*self._supplied, *self._served.get(base, ()))
            if each.get("url") == base and (not bar or each.get("version") == version)
        ]
        return max(found, key=lambda each: str(each.get("version", "")), default=None)

    def _implicit(self, url: str) -> ValueSet:
        """Return an implicit value set: ``SYSTEM?fhir_vs`` or ``SYSTEM?fhir_vs=isa/CODE``."""
        base, mark, query = url.partition("?")
        key, equals, wanted = query.partition("|")[0].partition("=")
        system = self._codes.find(base)
        if not mark or key != _IMPLICIT or system is None:
            raise TerminologyError(
                "not-found", f"A definition for the value Set '{url}' could not be found"
            )
        if not equals:
            return ValueSet(url, (CodeSet(system),))
        kind, _, code = unquote(wanted).partition("/")
        if kind not in ("isa", "ecl") or not code:
            raise TerminologyError(
                "not-supported",
                f"fhir_vs={wanted}: only fhir_vs, fhir_vs=isa/CODE and fhir_vs=ecl/EXPRESSION are "
                "supported",
            )
        if kind == "ecl":
            return ValueSet(url, (CodeSet(system, (self._of_expression(system, code),)),))
        return ValueSet(url, (CodeSet(system, (self._below(system, code, own=True),)),))

    # ---- resources

    def of_resource(self, resource: Resource) -> ValueSet:
        """Return the value set of a resource, by its ``compose``, else as it was expanded.

        Args:
            resource: The resource.
        """
        compose = resource.get("compose")
        url = text_in(resource, "url", "valueSet")
        if compose is None and isinstance(resource.get("expansion"), dict):
            compose = {"include": expansion_codes(resource["expansion"])}
        included = list_in(compose, "include", _PLACE)
        excluded = list_in(compose, "exclude", _PLACE)
        if not included:
            raise TerminologyError("required", f"{_PLACE}.include: missing")
        if len(included) + len(excluded) > _MAX_PARTS:
            raise TerminologyError("too-costly", f"{_PLACE}: at most {_MAX_PARTS} parts")
        made = ValueSet(url, resource=resource)
        made.included = [part for each in included for part in self._parts(each, made, "include")]
        made.excluded = [part for each in excluded for part in self._parts(each, made, "exclude")]
        made.active_only = isinstance(compose, dict) and compose.get("inactive") is False
        return made

    def _parts(self, given: Any, made: ValueSet, what: str) -> list[CodeSet]:
        place = f"{_PLACE}.{what}"
        spend()
        urls = list_in(given, "valueSet", place)
        if not all(isinstance(url, str) for url in urls) or len(urls) > _MAX_PARTS:
            raise TerminologyError("invalid", f"{place}.valueSet: expected a list of URLs")
        contained = list_in(made.resource, "contained", "valueSet")
        within = tuple(self._imported(url, contained) for url in urls)
        for url, each in zip(urls, within, strict=True):
            spend(1 + len(each.used) + len(each.displays))
            made.unknown += each.unknown
            made.missing += each.missing
            if each.canonical and not url.startswith("#"):
                made.used[each.canonical] = each.resource
            made.used.update(each.used)
            for entry, shown in each.displays.items():
                made.displays.setdefault(entry, shown)
        url = text_in(given, "system", place)
        concepts, filters = (list_in(given, key, place) for key in ("concept", "filter"))
        if url is None:
            if not within or concepts or filters:
                raise TerminologyError("required", f"{place}.system: missing")
            stated = {each.system: each.stated for each in within[0].included}
            return [CodeSet(each, within=within, stated=stated[each]) for each in stated]
        version = text_in(given, "version", place)
        if self._lenient and self._codes.find(url, version) is None:
            made.unknown.append(url)
            made.missing.append((url, version))
            return []
        system = self._codes.known(url, version)
        if concepts and filters:
            raise TerminologyError("invalid", f"{place}: give either concept or filter")
        if concepts:
            listed = self._listed(system, concepts, made, f"{place}.concept")
            return [CodeSet(system, listed=listed, within=within, stated=version)]
        if len(filters) > _MAX_PARTS:
            raise TerminologyError("too-costly", f"{place}: at most {_MAX_PARTS} filters")
        conditions = tuple(self._filter(system, f) for f in filters)
        return [CodeSet(system, conditions, within=within, stated=version)]

    def _imported(self, url: str, contained: Sequence[Resource]) -> ValueSet:
        try:
            return self.of_url(url, contained)
        except TerminologyError as error:
            if error.code != "not-found":
                raise
            raise UnknownImportError("not-found", str(error)) from None

    def _listed(
        self, system: CodeSystem, concepts: list[Any], made: ValueSet, place: str
    ) -> tuple[int, ...]:
        """Return the codes that are listed; those that the system has not are in no value set."""
        listed: dict[int, None] = {}
        for each in concepts:
            spend()
            code = required_in(each, "code", place)
            found = self._codes.resolve(system, code)
            if not found:
                made.unknown.append(system.identifier(code))
            for entry in found[:1]:
                listed[entry] = None
                display = text_in(each, "display", place)
                if display is not None:
                    made.displays[entry] = display
                designations = list_in(each, "designation", place)
                spend(len(designations))
                named = [d for d in designations if text_in(d, "value", place)]
                if named:
                    made.designations[entry] = named
                extensions = list_in(each, "extension", place)
                spend(len(extensions))
                if extensions := [e for e in extensions if isinstance(e, dict)]:
                    made.extensions[entry] = extensions
        return tuple(listed)

    # ---- filters

    def _filter(self, system: CodeSystem, given: Any) -> Condition:
        place = f"{_PLACE}.filter"
        spend()
        name, operator, value = (
            required_in(given, key, place) for key in ("property", "op", "value")
        )
        if operator not in _OPERATORS:
            raise TerminologyError(
                "invalid", f"{place}.op: {operator!r} is no operator of a filter"
            )
        found = self._of_hierarchy(system, name, operator, value)
        if found is None and isinstance(system, SuppliedSystem):
            found = _of_property(system, name, operator, value)
        if found is None and name == "type" and operator == "=":
            found = self._of_type(value)
        if found is None and operator == "=" and not isinstance(system, SuppliedSystem):
            if name == CONSTRAINT:
                found = self._of_expression(system, value)
            elif name in self._kb.relation_names:
                found = self._of_expression(system, f'* : "{name}" = "{value}"')
        if found is None:
            raise TerminologyError(
                "not-supported",
                f"{place}: {name} {operator} is not supported for {system.url}; known are concept "
                "is-a, is-not-a, descendent-of, child-of, generalizes, in, not-in and =, parent, "
                "child, type, constraint and the relations =, and the properties of code systems "
                "in the request",
            )
        return found

    def _of_hierarchy(
        self, system: CodeSystem, name: str, operator: str, value: str
    ) -> Condition | None:
        """Return a filter by code, or by what is above or below a code."""
        codes = self._codes
        if name in ("parent", "child") and operator == "=":
            steps = codes.children if name == "parent" else codes.parents
            return those(counted(steps(self._row(system, value))))
        if name not in _CODE:
            return None
        ways: dict[str, Callable[[], Condition]] = {
            "=": lambda: those([self._row(system, value)]),
            "in": lambda: those(self._rows(system, value)),
            "not-in": lambda: not_(those(self._rows(system, value))),
            "is-a": lambda: self._below(system, value, own=True),
            "is-not-a": lambda: not_(self._below(system, value, own=True)),
            "descendent-of": lambda: self._below(system, value, own=False),
            "child-of": lambda: those(counted(codes.children(self._row(system, value)))),
            "descendent-leaf": lambda: those(
                row
                for row in counted(codes.descendants(self._row(system, value)))
                if not len(codes.children(row))
            ),
            "generalizes": lambda: those(
                counted([row := self._row(system, value), *codes.ancestors(row)])
            ),
        }
        return ways[operator]() if operator in ways else None

    def _below(self, system: CodeSystem, code: str, *, own: bool) -> Condition:
        goal = self._row(system, code)

        def rows() -> Sequence[int]:
            below = counted(self._codes.descendants(goal))
            return [goal, *below] if own else below

        def holds(row: int) -> bool:
            return (own or row != goal) and self._codes.is_a(row, goal)

        return Condition(holds, rows)

    def _of_type(self, code: str) -> Condition:
        numbers = [i for i, each in enumerate(self._kb.types) if each.code == code]
        if not numbers:
            raise TerminologyError("not-found", f"no semantic type {code!r}")
        types = np.asarray(self._kb.numbers("types", "type"))
        spend(len(types) // AT_ONCE)
        marked = np.flatnonzero(types == numbers[0])
        ends = np.asarray(self._kb.numbers("concepts", "types_end"))
        return those(np.searchsorted(ends, marked, side="right").tolist())

    def _of_expression(self, system: CodeSystem, text: str) -> Condition:
        """Return the filter by an expression; its ids are codes of the system, or ids."""
        if isinstance(system, SuppliedSystem):
            raise TerminologyError(
                "not-supported",
                f"{system.url}: expressions are not supported for code systems that are not in "
                "the knowledge base; use the filters is-a, descendent-of, in and others",
            )
        codes, kb = self._codes, self._kb

        def find_row(identifier: str) -> int | None:
            found = codes.resolve(system, identifier)
            return codes.row(found[0]) if found else kb.find_row(identifier)

        def members_of(url: str) -> Flags:
            return codes.mark(self.of_url(url).entries(codes))

        try:
            flags = Expression(text).select(kb, find_row=find_row, members_of=members_of)
        except ConfigError as error:
            raise TerminologyError("invalid", f"{_PLACE}.filter: {error}") from error
        return Condition(lambda row: bool(flags[row]), lambda: np.flatnonzero(flags))

    def _rows(self, system: CodeSystem, codes: str) -> list[int]:
        return [self._row(system, code.strip()) for code in codes.split(",")]

    def _row(self, system: CodeSystem, code: str) -> int:
        return self._codes.row(self._codes.entry(system, code))


def expansion_codes(expansion: Resource) -> list[Resource]:
    """Return the codes of an expansion as what a value set would include.

    Args:
        expansion: The expansion.
    """
    included: list[Resource] = []
    queue = list_in(expansion, "contains", "valueSet.expansion")
    for each in queue:
        if not isinstance(each, dict):
            raise TerminologyError("invalid", "valueSet.expansion.contains: expected objects")
        concept = {key: each[key] for key in ("code", "display", "designation") if key in each}
        if "code" in concept and not each.get("abstract"):
            if not included or included[-1]["system"] != each.get("system"):
                included.append({"system": each.get("system"), "concept": []})
            included[-1]["concept"].append(concept)
        queue += list_in(each, "contains", "valueSet.expansion.contains")
        if len(queue) > MAX_CONCEPTS:
            raise TerminologyError("too-costly", "valueSet.expansion: too many codes")
    return included


def _of_property(system: SuppliedSystem, name: str, operator: str, value: str) -> Condition | None:
    """Return a filter by a property that the code system has."""
    if name not in (
        *_CODE,
        "display",
        "definition",
        "notSelectable",
        "status",
        "inactive",
        "parent",
        "child",
        *system.known_properties,
    ):
        return None

    def values(row: int) -> list[str]:
        concept = system.concept(row)
        if name in _CODE:
            return [concept.code]
        if name in ("display", "definition") and not concept.values(name):
            return [text for text in (getattr(concept, name),) if text]
        return concept.values(name)

    if operator == "regex":
        return _of_pattern(system, values, value)
    wanted = {each.strip() for each in value.split(",")}
    ways: dict[str, Callable[[int], bool]] = {
        "=": lambda row: value in values(row),
        "in": lambda row: bool(wanted.intersection(values(row))),
        "not-in": lambda row: not wanted.intersection(values(row)),
        "exists": lambda row: bool(values(row)) == (value == "true"),
    }
    return Condition(ways[operator]) if operator in ways else None


def _of_pattern(
    system: SuppliedSystem, values: Callable[[int], list[str]], pattern: str
) -> Condition:
    """Return a filter by a regular expression, which must match a whole value.

    RE2 needs time in proportion to the text, whatever the pattern is.
    """
    try:
        import pyarrow as pa
        import pyarrow.compute as pc
    except ImportError:
        raise TerminologyError(
            "not-supported",
            f"{_PLACE}.filter: a pattern needs pyarrow: pip install 'biograft[build]'",
        ) from None

    rows = range(system.first, system.first + len(system.concepts))
    spend(len(rows))
    pairs = [(row, text) for row in rows for text in values(row)]
    matching: list[int] = []
    start = size = 0
    for end, (_, text) in enumerate(pairs, 1):
        size += len(text)
        if len(text) > _PATTERN_TEXT:
            raise TerminologyError("too-costly", f"{_PLACE}.filter: a value is too long")
        if size > _PATTERN_TEXT or end == len(pairs):
            part = pa.array([text for _, text in pairs[start:end]], pa.string())
            try:
                found = pc.match_substring_regex(part, f"^(?:{pattern})$").to_pylist()
            except pa.ArrowInvalid:
                raise TerminologyError(
                    "invalid", f"{_PLACE}.filter: {pattern!r} is no regular expression"
                ) from None
            matching += [row for (row, _), hit in zip(pairs[start:end], found, strict=True) if hit]
            spend(size)
            start, size = end, 0
    return those(matching)
