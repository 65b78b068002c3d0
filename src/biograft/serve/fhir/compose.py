"""Reading value sets: by the URL of an implicit one, or from a resource and its ``compose``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any
from urllib.parse import unquote

import numpy as np

from biograft.kb import KnowledgeBase
from biograft.serve.fhir.code_systems import CodeSystem
from biograft.serve.fhir.errors import TerminologyError
from biograft.serve.fhir.parameters import Resource, list_in, text_in
from biograft.serve.fhir.supplied import Codes, RequestCodes, SuppliedSystem
from biograft.serve.fhir.value_sets import CodeSet, Condition, ValueSet, not_, those
from biograft.serve.fhir.work import AT_ONCE, counted, spend

_IMPLICIT = "fhir_vs"
_MAX_PARTS = 1000
_MAX_IMPORTS = 50
_PLACE = "valueSet.compose"
_CODE = ("code", "concept")
_OPERATORS = (
    *("=", "in", "not-in", "is-a", "is-not-a", "descendent-of", "child-of", "descendent-leaf"),
    *("generalizes", "regex", "exists"),
)


class ValueSetReader:
    """Reads value sets; ``supplied`` are those that the request brings."""

    def __init__(self, kb: KnowledgeBase, codes: Codes, supplied: Sequence[Resource] = ()) -> None:
        self._kb, self._codes, self._supplied = kb, codes, supplied
        self._reading: list[int] = []
        self._read: dict[int, ValueSet] = {}
        """Value sets by the identity of their resource: each is read once in a request."""

    # ---- by URL

    def of_url(self, url: str, contained: Sequence[Resource] = ()) -> ValueSet:
        """Return a value set of the request, or an implicit one of a code system."""
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
            return next((each for each in contained if each.get("id") == url[1:]), None)
        base, bar, version = url.partition("|")
        spend(1 + len(self._supplied))
        found = [
            each
            for each in self._supplied
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
                "not-found",
                f"no value set {url!r}; known are those of the request and SYSTEM?fhir_vs of the "
                "code systems",
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
        """Return the value set of a resource, by its ``compose``, else as it was expanded."""
        compose = resource.get("compose")
        url = text_in(resource, "url", "valueSet")
        if compose is None and isinstance(resource.get("expansion"), dict):
            compose = {"include": _listed_in(resource["expansion"])}
        included = list_in(compose, "include", _PLACE)
        excluded = list_in(compose, "exclude", _PLACE)
        if not included:
            raise TerminologyError("required", f"{_PLACE}.include: missing")
        if len(included) + len(excluded) > _MAX_PARTS:
            raise TerminologyError("too-costly", f"{_PLACE}: at most {_MAX_PARTS} parts")
        made = _Made(list_in(resource, "contained", "valueSet"))
        return ValueSet(
            url,
            tuple(part for each in included for part in self._parts(each, made, "include")),
            tuple(part for each in excluded for part in self._parts(each, made, "exclude")),
            made.displays,
            made.designations,
            isinstance(compose, dict) and compose.get("inactive") is False,
            tuple(made.used),
            resource,
        )

    def _parts(self, given: Any, made: _Made, what: str) -> list[CodeSet]:
        place = f"{_PLACE}.{what}"
        spend()
        urls = list_in(given, "valueSet", place)
        if not all(isinstance(url, str) for url in urls) or len(urls) > _MAX_PARTS:
            raise TerminologyError("invalid", f"{place}.valueSet: expected a list of URLs")
        within = tuple(self.of_url(url, made.contained) for url in urls)
        for each in within:
            spend(1 + len(each.used) + len(each.displays))
            made.used.update(dict.fromkeys([*filter(None, [each.canonical]), *each.used]))
            for entry, display in each.displays.items():
                made.displays.setdefault(entry, display)
        url = text_in(given, "system", place)
        concepts, filters = (list_in(given, key, place) for key in ("concept", "filter"))
        if url is None:
            if not within or concepts or filters:
                raise TerminologyError("required", f"{place}.system: missing")
            return [CodeSet(each, within=within) for each in within[0].systems]
        system = self._system(url, text_in(given, "version", place))
        if concepts and filters:
            raise TerminologyError("invalid", f"{place}: give either concept or filter")
        if concepts:
            listed = self._listed(system, concepts, made, f"{place}.concept")
            return [CodeSet(system, listed=listed, within=within)]
        if len(filters) > _MAX_PARTS:
            raise TerminologyError("too-costly", f"{place}: at most {_MAX_PARTS} filters")
        return [CodeSet(system, tuple(self._filter(system, f) for f in filters), within=within)]

    def _system(self, url: str, version: str | None) -> CodeSystem:
        system = self._codes.find(url, version)
        if system is None:
            known = self._codes.versions_of(url) if isinstance(self._codes, RequestCodes) else []
            also = f"; known versions: {', '.join(known)}" if known else ""
            named = f"{url}|{version}" if version else url
            raise TerminologyError("not-found", f"no code system {named!r}{also}", named=named)
        if isinstance(system, SuppliedSystem) and system.content in ("not-present", "example"):
            raise TerminologyError(
                "not-found", f"{url}: the code system has no codes (content {system.content})",
                named=url,
            )  # fmt: skip
        return system

    def _listed(
        self, system: CodeSystem, concepts: list[Any], made: _Made, place: str
    ) -> tuple[int, ...]:
        """Return the codes that are listed; those that the system has not are in no value set."""
        listed: dict[int, None] = {}
        for each in concepts:
            spend()
            code = text_in(each, "code", place)
            if code is None:
                raise TerminologyError("required", f"{place}.code: missing")
            for entry in self._codes.resolve(system, code)[:1]:
                listed[entry] = None
                display = text_in(each, "display", place)
                if display is not None:
                    made.displays[entry] = display
                designations = list_in(each, "designation", place)
                spend(len(designations))
                named = [d for d in designations if text_in(d, "value", place)]
                if named:
                    made.designations[entry] = named
        return tuple(listed)

    # ---- filters

    def _filter(self, system: CodeSystem, given: Any) -> Condition:
        place = f"{_PLACE}.filter"
        spend()
        name, operator, value = (text_in(given, key, place) for key in ("property", "op", "value"))
        if name is None or operator is None or value is None:
            raise TerminologyError("required", f"{place}: expected property, op and value")
        if operator not in _OPERATORS:
            raise TerminologyError(
                "invalid", f"{place}.op: {operator!r} is no operator of a filter"
            )
        found = self._of_hierarchy(system, name, operator, value)
        if found is None and isinstance(system, SuppliedSystem):
            found = _of_property(system, name, operator, value)
        if found is None and name == "type" and operator == "=":
            found = self._of_type(value)
        if found is None:
            raise TerminologyError(
                "not-supported",
                f"{place}: {name} {operator} is not supported for {system.url}; known are concept "
                "is-a, is-not-a, descendent-of, child-of, generalizes, in, not-in and =, parent, "
                "child and type =, and the properties of code systems in the request",
            )
        return found

    def _of_hierarchy(
        self, system: CodeSystem, name: str, operator: str, value: str
    ) -> Condition | None:
        """Return a filter by code, or by what is above or below a code."""
        hierarchy = self._codes.hierarchy
        if name in ("parent", "child") and operator == "=":
            steps = hierarchy.children if name == "parent" else hierarchy.parents
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
            "child-of": lambda: those(counted(hierarchy.children(self._row(system, value)))),
            "descendent-leaf": lambda: those(
                row
                for row in counted(hierarchy.descendants(self._row(system, value)))
                if not len(hierarchy.children(row))
            ),
            "generalizes": lambda: those(
                counted([row := self._row(system, value), *hierarchy.ancestors(row)])
            ),
        }
        return ways[operator]() if operator in ways else None

    def _below(self, system: CodeSystem, code: str, *, own: bool) -> Condition:
        goal, hierarchy = self._row(system, code), self._codes.hierarchy

        def rows() -> Sequence[int]:
            below = counted(hierarchy.descendants(goal))
            return [goal, *below] if own else below

        def holds(row: int) -> bool:
            return (own or row != goal) and hierarchy.is_a(row, goal)

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

    def _rows(self, system: CodeSystem, codes: str) -> list[int]:
        return [self._row(system, code.strip()) for code in codes.split(",")]

    def _row(self, system: CodeSystem, code: str) -> int:
        found = self._codes.resolve(system, code)
        if not found:
            raise TerminologyError("not-found", f"{system.url} has no code {code!r}")
        return self._codes.row(found[0])


class _Made:
    """Intermediate result of reading a value set."""

    def __init__(self, contained: list[Any]) -> None:
        self.contained = [each for each in contained if isinstance(each, dict)]
        self.displays: dict[int, str] = {}
        self.designations: dict[int, list[Resource]] = {}
        self.used: dict[str, None] = {}


def _listed_in(expansion: Resource) -> list[Resource]:
    """Return the codes of an expansion as what a value set would include."""
    included: list[Resource] = []
    queue = list_in(expansion, "contains", "valueSet.expansion")
    for each in queue:
        if not isinstance(each, dict):
            raise TerminologyError("invalid", "valueSet.expansion.contains: expected objects")
        concept = {key: each[key] for key in ("code", "display", "designation") if key in each}
        if "code" in concept and not each.get("abstract"):
            included.append({"system": each.get("system"), "concept": [concept]})
        queue += list_in(each, "contains", "valueSet.expansion.contains")
        if len(queue) > _MAX_PARTS:
            raise TerminologyError("too-costly", "valueSet.expansion: too many codes")
    return included


def _of_property(system: SuppliedSystem, name: str, operator: str, value: str) -> Condition | None:
    """Return a filter by a property that the code system has."""
    if name not in (*_CODE, "display", "definition", "notSelectable", "status", "inactive",
                    "parent", "child", *system.known_properties):  # fmt: skip
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
    try:
        matching = pc.match_substring_regex(
            pa.array([text for _, text in pairs], pa.string()), f"^(?:{pattern})$"
        )
    except pa.ArrowInvalid:
        raise TerminologyError(
            "invalid", f"{_PLACE}.filter: {pattern!r} is no regular expression"
        ) from None
    return those(row for (row, _), hit in zip(pairs, matching.to_pylist(), strict=True) if hit)
