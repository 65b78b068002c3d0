"""``ValueSet/$expand``: the codes of a value set, by pages, nested, or found by a filter."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import Any

from biograft.kb.names import normalise
from biograft.kb.search import NameSuggestions
from biograft.serve.fhir.code_systems import CodeSystem
from biograft.serve.fhir.errors import TerminologyError
from biograft.serve.fhir.names import designations, display, languages_of, wanted_designations
from biograft.serve.fhir.parameters import Parameters, Resource, part
from biograft.serve.fhir.supplied import Codes, RequestCodes, SuppliedConcept, SuppliedSystem
from biograft.serve.fhir.value_sets import ValueSet
from biograft.serve.fhir.work import spend

MAX_EXPANSION = 10_000
"""Codes of one page of an expansion; more are refused as too costly."""
MAX_FOUND = 2_000
"""Concepts that a text filter finds; a filter that finds as many has no total."""
_STEPS_OF_CODE = 40
_STEPS_OF_SEARCH = 5_000
_FLAGS = (
    *("includeDesignations", "includeDefinition", "activeOnly", "excludeNested"),
    *("excludeNotForUI", "excludePostCoordinated"),
)
PARAMETERS = (
    *("url", "valueSet", "valueSetVersion", "filter", "offset", "count", *_FLAGS),
    *("displayLanguage", "designation", "property", "tx-resource", "useSupplement"),
    *("system-version", "check-system-version", "force-system-version"),
)
_R5 = "http://hl7.org/fhir/5.0/StructureDefinition/extension-ValueSet.expansion"
_DEPRECATED = "http://hl7.org/fhir/StructureDefinition/valueset-deprecated"
_COPIED = (
    *("id", "language", "url", "identifier", "version", "name", "title", "status"),
    *("experimental", "date", "publisher", "description"),
)
_STATUS_URI = "http://hl7.org/fhir/concept-properties#status"
_DEFINITION_URI = "http://hl7.org/fhir/concept-properties#definition"


class Expansion:
    """The expansion of one request."""

    def __init__(
        self,
        codes: Codes,
        asked: Parameters,
        chosen: ValueSet,
        suggestions: NameSuggestions,
        made_at: str,
    ) -> None:
        self._codes, self._asked, self._chosen = codes, asked, chosen
        self._suggestions, self._made_at = suggestions, made_at
        self._languages = languages_of(asked, chosen)
        self._designated = asked.flag("includeDesignations") or "designation" in asked
        self._designations = asked.all_texts("designation")
        self._properties = asked.all_texts("property")
        self._shown: dict[str, str] = {}

    def answer(self, entries: Sequence[int] | None = None) -> Resource:
        """Return the value set with its expansion; ``entries`` are its codes, where known."""
        asked = self._asked
        text, offset = asked.text("filter"), asked.number("offset") or 0
        count = asked.number("count")
        if count is not None and count > MAX_EXPANSION:
            raise TerminologyError("too-costly", f"count: at most {MAX_EXPANSION} codes a page")
        total: int | None
        if text:
            entries, total = self._filtered(text)
        else:
            entries = self._in_use(self.all_entries() if entries is None else entries)
            total = len(entries)
        last = len(entries) if count is None else min(offset + count, len(entries))
        if last - offset > MAX_EXPANSION:
            raise TerminologyError(
                "too-costly",
                f"{len(entries)} codes; at most {MAX_EXPANSION} at once: give count and offset, or "
                "a filter",
            )
        if self._is_nested(text, offset, count):
            page = self._nested([int(each) for each in entries])
        else:
            page = [self._contained(int(each)) for each in entries[offset:last]]
        expansion: Resource = {
            "identifier": f"urn:uuid:{uuid.uuid4()}",
            "timestamp": self._made_at,
            "total": total,
            "offset": offset,
            "parameter": self._parameters(),
            "contains": page,
        }
        if self._shown:
            expansion["extension"] = [
                _extension("property", code=("Code", code), uri=("Uri", uri))
                for code, uri in self._shown.items()
            ]
        return {**self._described(), "expansion": {
            key: value for key, value in expansion.items() if value not in ([], None)
        }}  # fmt: skip

    def all_entries(self) -> Sequence[int]:
        """Return all codes of the value set."""
        return self._chosen.entries(self._codes)  # type: ignore[return-value]

    def _in_use(self, entries: Sequence[int]) -> Sequence[int]:
        if not self._asked.flag("activeOnly"):
            return entries
        spend(len(entries))
        return [entry for entry in entries if self._codes.is_active(int(entry))]

    def _filtered(self, text: str) -> tuple[Sequence[int], int | None]:
        """Return the codes with a name that begins so, best first; no total if there are more."""
        spend(_STEPS_OF_SEARCH)
        rows = self._suggestions.rows(text, MAX_FOUND)
        entries = [
            entry
            for row in rows
            for system in self._chosen.systems
            if not isinstance(system, SuppliedSystem)
            for entry in self._codes.codes_at(row, system)
            if self._chosen.has(entry, self._codes)
        ]
        words = normalise(text).split()
        for system in self._chosen.systems:
            if isinstance(system, SuppliedSystem):
                entries += [
                    entry
                    for entry in self._codes.members(system).tolist()
                    if self._chosen.has(entry, self._codes) and self._has_words(entry, words)
                ]
        entries = list(self._in_use(entries))
        return entries, len(entries) if len(rows) < MAX_FOUND else None

    def _has_words(self, entry: int, words: list[str]) -> bool:
        names = [name.text for name in self._codes.names(entry)]
        spend(len(names) + len(words))
        return any(
            all(word in key for word in words)
            for key in map(normalise, [self._codes.code(entry), *names])
        )

    # ---- nesting

    def _is_nested(self, text: str | None, offset: int, count: int | None) -> bool:
        """Whether codes stand below their parents: systems of the request, as a whole."""
        if text or offset or count is not None or self._asked.flag("excludeNested"):
            return False
        return len(self._chosen.included) == 1 and all(
            isinstance(each.system, SuppliedSystem) and each.listed is None and not each.within
            for each in self._chosen.included
        )

    def _nested(self, entries: list[int]) -> list[Resource]:
        made = {entry: self._contained(entry) for entry in entries}
        top = []
        for entry in entries:
            above = next((p for p in self._codes.hierarchy.parents(entry) if p in made), None)
            if above is None or self._codes.hierarchy.is_a(above, entry):
                top.append(made[entry])
            else:
                made[above].setdefault("contains", []).append(made[entry])
        return top

    # ---- one code

    def _contained(self, entry: int) -> Resource:
        codes, chosen = self._codes, self._chosen
        spend(_STEPS_OF_CODE)
        system = codes.known_system(entry)
        concept = system.concept(entry) if isinstance(system, SuppliedSystem) else None
        content: Resource = {"system": system.url}
        if concept is not None and isinstance(system, SuppliedSystem) and system.is_abstract(entry):
            content["abstract"] = True
        if not codes.is_active(entry):
            content["inactive"] = True
        if self._has_versions(system):
            content["version"] = system.version
        content["code"] = codes.code(entry)
        name = None if self._languages.tags else chosen.displays.get(entry)
        if shown := name or display(codes, entry, self._languages):
            content["display"] = shown
        if self._designated:
            listed = [*designations(codes, codes.row(entry)), *chosen.designations.get(entry, [])]
            spend(len(listed) * (1 + len(self._designations)))
            if listed := wanted_designations(listed, self._designations):
                content["designation"] = listed
        if concept is not None and isinstance(system, SuppliedSystem):
            extensions = self._extensions(system, concept)
            if extensions:
                content["extension"] = extensions
        return content

    def _has_versions(self, system: CodeSystem) -> bool:
        """Whether the value set has codes of several versions of a system."""
        return sum(each.url == system.url for each in self._chosen.systems) > 1

    def _extensions(self, system: SuppliedSystem, concept: SuppliedConcept) -> list[Resource]:
        """Return the properties that are asked for, and why a code is out of use."""
        found: list[Resource] = []
        status = system.status_of(concept)
        if status == "deprecated":
            found.append({"url": _DEPRECATED, "valueBoolean": True})
        if "definition" in self._properties and concept.definition:
            self._shown["definition"] = _DEFINITION_URI
            value = ("String", concept.definition)
            found.append(_extension("contains.property", code=("Code", "definition"), value=value))
        out_of_use = status if status in ("inactive", "retired", "withdrawn") else None
        if out_of_use and "status" not in self._properties:
            self._shown["status"] = _STATUS_URI
            value = ("Code", out_of_use)
            found.append(_extension("contains.property", code=("Code", "status"), value=value))
        for name, given, kind in concept.properties:
            if name in self._properties or "*" in self._properties:
                self._shown[name] = _uri_of(system, name)
                found.append(
                    _extension("contains.property", code=("Code", name), value=(kind, given))
                )
        return found

    # ---- the value set

    def _described(self) -> Resource:
        chosen = self._chosen
        made: Resource = {"resourceType": "ValueSet"}
        made |= {key: chosen.resource[key] for key in _COPIED if key in chosen.resource}
        if chosen.url is not None:
            made.setdefault("url", chosen.url)
        made.setdefault("status", "active")
        if self._asked.flag("includeDefinition") and "compose" in chosen.resource:
            made["compose"] = chosen.resource["compose"]
        return made

    def _parameters(self) -> list[Resource]:
        """Return what the expansion was made with, and from."""
        asked = self._asked
        listed = [part(name, "Boolean", asked.flag(name)) for name in _FLAGS if name in asked]
        listed += [part("filter", "String", asked.text("filter"))] if "filter" in asked else []
        if self._languages.tags:
            listed.append(part("displayLanguage", "Code", ",".join(self._languages.tags)))
        listed += [
            part(name, "Integer", asked.number(name))
            for name in ("offset", "count")
            if name in asked
        ]
        for name in ("designation", "property"):
            listed += [part(name, "String", each) for each in asked.all_texts(name)]
        for name in ("system-version", "check-system-version", "force-system-version"):
            listed += [part(name, "Uri", each) for each in asked.all_texts(name)]
        for system in self._chosen.systems:
            named = f"{system.url}|{system.version}" if system.version else system.url
            listed.append(part("used-codesystem", "Uri", named))
            if isinstance(system, SuppliedSystem):
                status = system.resource.get("status")
                if status in ("draft", "retired"):
                    warning = "warning-draft" if status == "draft" else "warning-withdrawn"
                    listed.append(part(warning, "Uri", named))
                if system.resource.get("experimental") is True:
                    listed.append(part("warning-experimental", "Uri", named))
        listed += [part("used-valueset", "Uri", each) for each in self._chosen.used]
        if isinstance(self._codes, RequestCodes):
            listed += [part("used-supplement", "Uri", each) for each in self._codes.supplements]
        return listed


def _extension(name: str, **parts: tuple[str, Any]) -> Resource:
    inner = [{"url": key, f"value{kind}": value} for key, (kind, value) in parts.items()]
    return {"url": f"{_R5}.{name}", "extension": inner}


def _uri_of(system: SuppliedSystem, name: str) -> str:
    for each in system.resource.get("property", ()):
        if each.get("code") == name and isinstance(each.get("uri"), str):
            return str(each["uri"])
    return f"http://hl7.org/fhir/concept-properties#{name}"
