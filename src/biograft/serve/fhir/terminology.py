"""The operations of a FHIR R4 terminology service, on a store; they know nothing of HTTP."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from biograft.ids import vocabulary_name
from biograft.kb import KnowledgeBase, Name
from biograft.kb.suggest import NameSuggestions
from biograft.records import NameKind
from biograft.serve.fhir.code_systems import CodeSystem, CodeSystems
from biograft.serve.fhir.errors import TerminologyError
from biograft.serve.fhir.parameters import Coding, Parameters, Resource, part, parts, to_parameters
from biograft.serve.fhir.value_sets import ValueSet, ValueSetReader
from biograft.text import normalise

MAX_EXPANSION = 10_000
"""Codes of one page of an expansion; more are refused as too costly."""
_MAX_FOUND = 2_000
"""Concepts that a text filter finds; a filter that finds as many has no total."""
_MAX_CHILDREN = 1_000
"""Codes that a look-up lists below a code."""
_SNOMED = "http://snomed.info/sct"
_USES: Mapping[str, Resource] = {
    NameKind.PREFERRED: {
        "system": "http://terminology.hl7.org/CodeSystem/designation-usage",
        "code": "display",
    },
    NameKind.SYNONYM: {"system": _SNOMED, "code": "900000000000013009", "display": "Synonym"},
}
_PROPERTIES = ("display", "designation", "definition", "parent", "child", "inactive", "type")
_SAME_AS = "same-as"


class Terminology:
    """The terminology service of a store."""

    def __init__(
        self,
        kb: KnowledgeBase,
        suggestions: NameSuggestions,
        urls: Mapping[str, str] | None = None,
    ) -> None:
        self.kb, self._suggestions = kb, suggestions
        self.systems = CodeSystems(kb, urls)
        self._value_sets = ValueSetReader(kb, self.systems)
        self._ends = kb.numbers("concepts", "names_end")
        self._expanded = lru_cache(4)(self._all_of_url)

    # ---- CodeSystem

    def lookup(self, asked: Parameters) -> Resource:
        """Return what is known of a code (``CodeSystem/$lookup``)."""
        entry = self._entry(*self._coding(asked, "coding", "code", "system"))
        system = self.systems.known_system(entry)
        wanted = asked.all_texts("property")
        languages = _languages(asked)
        row = self.systems.row(entry)
        return to_parameters(
            part("name", "String", system.name or "kb"),
            part("display", "String", self.display(entry, languages)),
            *(self._designations(row, wanted) if _wants("designation", wanted) else ()),
            *self._properties(entry, wanted, languages),
        )

    def _designations(self, row: int, wanted: list[str]) -> list[Resource]:
        only = [each[5:] for each in wanted if each.startswith("lang.")]
        listed = []
        for name in self._names(row):
            if only and not any(_same_language(name.language, each) for each in only):
                continue
            listed.append(
                parts(
                    "designation",
                    part("language", "Code", name.language) if name.language else None,
                    part("use", "Coding", _use(name)),
                    part("value", "String", name.text),
                )
            )
        return listed

    def _properties(self, entry: int, wanted: list[str], languages: list[str]) -> list[Resource]:
        row, system = self.systems.row(entry), self.systems.known_system(entry)
        listed = []
        if _wants("inactive", wanted):
            listed.append(_property("inactive", "Boolean", not self.systems.is_active(entry)))
        concept = self.kb.concept_at(row)
        if _wants("definition", wanted):
            listed += [_property("definition", "String", d.text) for d in concept.definitions]
        if _wants("type", wanted):
            listed += [_property("type", "Code", kind.code, kind.label) for kind in concept.types]
        ways = {"parent": self.kb.hierarchy.parents, "child": self.kb.hierarchy.children}
        for name, rows_of in ways.items():
            rows = rows_of(row) if _wants(name, wanted) else ()
            if len(rows) > _MAX_CHILDREN:
                if name in wanted:
                    raise TerminologyError(
                        "too-costly",
                        f"property {name}: {len(rows)} codes, at most {_MAX_CHILDREN} are listed; "
                        "use ValueSet/$expand with count and offset",
                    )
                continue
            for other in self.systems.of_rows(system, rows).tolist():
                code, display = self.systems.code(other), self.display(other, languages)
                listed.append(_property(name, "Code", code, display))
        return listed + self._related(row, wanted)

    def _related(self, row: int, wanted: list[str]) -> list[Resource]:
        """Return the concepts at the other end of the relations that are asked for by name."""
        listed = []
        for name in wanted:
            if name in self.kb.relation_names and name not in _PROPERTIES:
                for each in self.kb.relations(
                    self.kb.id_at(row), relation=name, direction="out", limit=_MAX_CHILDREN
                ):
                    system, code, display = self._described(self.kb.row(each.tail))
                    coded = {"system": system, "code": code, "display": display}
                    coded = {key: value for key, value in coded.items() if value}
                    listed.append(_property(name, "Coding", coded))
        return listed

    def validate_code(self, asked: Parameters, system: CodeSystem | None = None) -> Resource:
        """Return whether a system has a code, by a name of it (``CodeSystem/$validate-code``)."""
        _refuse(asked, "codeSystem")
        url = asked.text("url") or asked.text("system")
        if system is None and url is not None:
            system = self._system(url)
        asked_for = self._codings(asked, system)
        return self._validated(
            asked_for,
            asked,
            lambda entry: system is None or self.systems.system(entry) == system,
            f"code system {system.url}" if system else "code system",
        )

    def subsumes(self, asked: Parameters, system: CodeSystem | None = None) -> Resource:
        """Return how two codes stand to each other (``CodeSystem/$subsumes``)."""
        default = system.url if system else asked.text("system")
        first, second = (
            self._row_of(asked, f"coding{which}", f"code{which}", default) for which in "AB"
        )
        if first[1] != second[1]:
            raise TerminologyError("invalid", "the codes are of different systems")
        down, up = (
            self.kb.hierarchy.is_a(lower, upper)
            for lower, upper in ((second[0], first[0]), (first[0], second[0]))
        )
        outcome = {
            (True, True): "equivalent",
            (True, False): "subsumes",
            (False, True): "subsumed-by",
            (False, False): "not-subsumed",
        }[down, up]
        return to_parameters(part("outcome", "Code", outcome))

    def _row_of(
        self, asked: Parameters, coding: str, code: str, default: str | None
    ) -> tuple[int, CodeSystem | None]:
        given = asked.coding(coding)
        if given is None:
            given = Coding(default, asked.required(code))
        entry = self._entry(given.system or default, given.code)
        return self.systems.row(entry), self.systems.system(entry)

    # ---- ValueSet

    def expand(self, asked: Parameters) -> Resource:
        """Return the codes of a value set, page by page (``ValueSet/$expand``)."""
        _refuse(asked, "context", "exclude-system")
        chosen = self._value_set(asked)
        text, offset, count = (
            asked.text("filter"),
            asked.number("offset") or 0,
            asked.number("count"),
        )
        if count is not None and count > MAX_EXPANSION:
            raise TerminologyError("too-costly", f"count: at most {MAX_EXPANSION} codes a page")
        if text:
            entries, total = self._filtered(chosen, text)
        else:
            entries = self._all(asked, chosen)
            total = len(entries)
        last = len(entries) if count is None else min(offset + count, len(entries))
        if last - offset > MAX_EXPANSION:
            raise TerminologyError(
                "too-costly",
                f"{len(entries)} codes; at most {MAX_EXPANSION} at once: give count and offset, or "
                "a filter",
            )
        languages, named = _languages(asked), asked.flag("includeDesignations")
        page = [self._contained(e, chosen, languages, named) for e in entries[offset:last]]
        expansion: Resource = {
            "identifier": f"urn:biograft:expansion:{self.kb.manifest.get('made_at', '')}",
            "timestamp": self.kb.manifest.get("made_at"),
            "offset": offset,
            "parameter": _given(asked),
            "contains": page,
        }
        if total is not None:
            expansion["total"] = total
        answer: Resource = {"resourceType": "ValueSet", "status": "active", "expansion": expansion}
        for key in [key for key, value in expansion.items() if value in ([], None)]:
            del expansion[key]
        return answer if chosen.url is None else {**answer, "url": chosen.url}

    def _all(self, asked: Parameters, chosen: ValueSet) -> list[int]:
        """Return the codes; those of a URL are kept, so that the next page is at hand."""
        if "valueSet" in asked:
            return chosen.entries(self.systems)  # type: ignore[return-value]
        return self._expanded(asked.required("url"))

    def _all_of_url(self, url: str) -> list[int]:
        return self._value_sets.of_url(url).entries(self.systems)  # type: ignore[return-value]

    def _filtered(self, chosen: ValueSet, text: str) -> tuple[list[int], int | None]:
        """Return the codes with a name that begins so, best first; no total if there are more."""
        rows = self._suggestions.rows(text, _MAX_FOUND)
        entries = [
            entry
            for row in rows
            for system in chosen.systems
            for entry in self.systems.codes_at(row, system)
            if chosen.has(entry, self.systems)
        ]
        return entries, len(entries) if len(rows) < _MAX_FOUND else None

    def _contained(
        self, entry: int, chosen: ValueSet, languages: list[str], named: bool
    ) -> Resource:
        entry = int(entry)
        content: Resource = {
            "system": self.systems.known_system(entry).url,
            "code": self.systems.code(entry),
            "display": chosen.displays.get(entry) or self.display(entry, languages),
        }
        if not self.systems.is_active(entry):
            content["inactive"] = True
        names = self._names(self.systems.row(entry)) if named else []
        if names:
            content["designation"] = [
                {
                    **({"language": name.language} if name.language else {}),
                    "use": _use(name),
                    "value": name.text,
                }
                for name in names
            ]
        return content

    def validate_member(self, asked: Parameters) -> Resource:
        """Return whether a value set has a code (``ValueSet/$validate-code``)."""
        _refuse(asked, "context")
        chosen = self._value_set(asked)
        systems = chosen.systems
        default = systems[0] if len(systems) == 1 else None
        return self._validated(
            self._codings(asked, default),
            asked,
            lambda entry: chosen.has(entry, self.systems),
            f"value set {chosen.url}" if chosen.url else "value set",
        )

    def _value_set(self, asked: Parameters) -> ValueSet:
        given = asked.resource("valueSet", "ValueSet")
        if given is not None:
            return self._value_sets.of_resource(given)
        return self._value_sets.of_url(asked.required("url"))

    # ---- ConceptMap

    def translate(self, asked: Parameters) -> Resource:
        """Return the codes of other systems for a code (``ConceptMap/$translate``)."""
        _refuse(asked, "conceptMap", "dependency")
        if (url := asked.text("url")) is not None:
            raise TerminologyError(
                "not-found", f"no concept map {url!r}; leave url out to translate by the store"
            )
        wanted = asked.text("targetsystem")
        among = asked.text("target")
        target = None if among is None else self._value_sets.of_url(among)
        matches: dict[tuple[str | None, str], Resource] = {}
        for given in self._codings(asked, None):
            for equivalence, system, code, display in self._translations(given):
                if wanted is not None and system != wanted.partition("|")[0]:
                    continue
                if target is not None and not self._is_in(target, system, code):
                    continue
                coded = {"system": system, "code": code, "display": display}
                concept = {key: value for key, value in coded.items() if value}
                matches.setdefault(
                    (system, code),
                    parts(
                        "match",
                        part("equivalence", "Code", equivalence),
                        part("concept", "Coding", concept),
                    ),
                )
        found = len(matches) > 0
        return to_parameters(
            part("result", "Boolean", found),
            None if found else part("message", "String", "the store has no translation"),
            *matches.values(),
        )

    def _is_in(self, chosen: ValueSet, url: str | None, code: str) -> bool:
        system = self.systems.find(url) if url else None
        entries = self.systems.resolve(system, code) if system else []
        return any(chosen.has(entry, self.systems) for entry in entries)

    def _translations(self, given: Coding) -> list[tuple[str, str | None, str, str | None]]:
        """Return (equivalence, system, code, display): ids of the concept before references."""
        system = self.systems.find(given.system) if given.system else None
        if system is None or given.code is None:
            return []
        own = self.systems.resolve(system, given.code)
        same: list[tuple[str, int]] = []
        related: list[tuple[str, int]] = []
        for row in dict.fromkeys(self.systems.row(entry) for entry in own):
            for entry in self.systems.entries_at(row):
                if self.systems.is_xref(entry):
                    related.append(("relatedto", entry))
                elif self.systems.system(entry) != system:
                    same.append(("equivalent", entry))
                elif entry not in own and self.systems.is_primary(entry):
                    same.append(("equal", entry))
            others = self.kb.neighbours(self.kb.id_at(row), relation=_SAME_AS)
            related += [("relatedto", self.kb.row(other)) for other in others]
        referring = self.systems.referring(system, given.code)
        related += [("relatedto", row) for row in referring]
        return [(how, *self._described(entry)) for how, entry in same + related]

    def _described(self, entry: int) -> tuple[str | None, str, str | None]:
        """Return system, code and display; a cross-reference has no name of its own here."""
        system = self.systems.system(entry)
        display = None if self.systems.is_xref(entry) else self.display(entry, [])
        return system.url if system else None, self.systems.code(entry), display

    # ---- codes

    def _system(self, url: str) -> CodeSystem:
        system = self.systems.find(url)
        if system is None:
            raise TerminologyError("not-found", f"no code system {url!r}; see /fhir/CodeSystem")
        return system

    def _entry(self, url: str | None, code: str | None) -> int:
        if url is None or code is None:
            raise TerminologyError("required", f"{'system' if url is None else 'code'}: missing")
        found = self.systems.resolve(self._system(url), code)
        if not found:
            raise TerminologyError("not-found", f"{url} has no code {code!r}")
        return found[0]

    @staticmethod
    def _coding(
        asked: Parameters, coding: str, code: str, system: str
    ) -> tuple[str | None, str | None]:
        given = asked.coding(coding)
        if given is not None:
            return given.system, given.code
        return asked.text(system), asked.required(code)

    @staticmethod
    def _codings(asked: Parameters, default: CodeSystem | None) -> list[Coding]:
        """Return the codes of a request, whichever way they are given."""
        given = asked.codings("codeableConcept")
        if given is None:
            single = asked.coding("coding")
            if single is None:
                code = asked.required("code")
                single = Coding(asked.text("system"), code, asked.text("display"))
            given = [single]
        whole = [each._replace(system=each.system or (default.url if default else None))
                 for each in given]  # fmt: skip
        if any(each.code is None or each.system is None for each in whole):
            raise TerminologyError("required", "expected a code and its system")
        return whole

    def _validated(
        self, codings: list[Coding], asked: Parameters, accepts: Any, where: str
    ) -> Resource:
        """Return the answer for the first code that is accepted, else why there is none."""
        languages, message = _languages(asked), ""
        for each in codings:
            system = self.systems.find(each.system or "")
            if system is None:
                message = message or f"the code system {each.system!r} is not known"
                continue
            entries = [e for e in self.systems.resolve(system, each.code or "") if accepts(e)]
            if not entries:
                message = message or f"the code {each.code!r} is not in the {where}"
                continue
            display = self.display(entries[0], languages)
            right = each.display is None or self._is_name(entries, each.display)
            wrong = f"{each.display!r} is not a name of the code {each.code!r}"
            return to_parameters(
                part("result", "Boolean", right),
                None if right else part("message", "String", wrong),
                part("display", "String", display),
            )
        return to_parameters(part("result", "Boolean", False), part("message", "String", message))

    def _is_name(self, entries: list[int], text: str) -> bool:
        key = normalise(text)
        rows = {self.systems.row(entry) for entry in entries}
        return any(normalise(name.text) == key for row in rows for name in self._names(row))

    # ---- names

    def display(self, entry: int, languages: list[str]) -> str:
        """Return the name of a code: in the first of these languages that it has a name in.

        A further id is called as its own vocabulary calls it, where that is a source of the store.
        """
        row = self.systems.row(entry)
        if not languages and self.systems.is_primary(entry):
            return self.kb.name_at(row)
        system = self.systems.system(entry)
        names = self._names(row)

        def rank(name: Name) -> tuple[int, bool, bool]:
            matching = [
                i for i, each in enumerate(languages) if _same_language(name.language, each)
            ]
            foreign = not self.systems.is_primary(entry) and not _is_source(system, name.source)
            return min(matching, default=len(languages)), foreign, name.kind != NameKind.PREFERRED

        return min(names, key=rank).text if names else self.kb.name_at(row)

    def _names(self, row: int) -> list[Name]:
        first = int(self._ends[row - 1]) if row else 0
        return [self.kb.name(position) for position in range(first, int(self._ends[row]))]


def _wants(name: str, wanted: list[str]) -> bool:
    """Whether a property is returned: all are, unless some are named."""
    if not wanted or name in wanted or "*" in wanted:
        return True
    return name == "designation" and any(each.startswith("lang.") for each in wanted)


def _property(name: str, kind: str, value: Any, description: str = "") -> Resource:
    return parts(
        "property",
        part("code", "Code", name),
        part("value", kind, value),
        part("description", "String", description) if description else None,
    )


def _use(name: Name) -> Resource:
    return _USES.get(name.kind) or {"system": "urn:biograft:name-kind", "code": name.kind}


def _is_source(system: CodeSystem | None, source: str) -> bool:
    return system is not None and vocabulary_name(source) == system.name


def _languages(asked: Parameters) -> list[str]:
    """Return the languages of names that are wanted, such as zh-CN, the first before others."""
    given = asked.text("displayLanguage") or ""
    return [tag for each in given.split(",") if (tag := each.partition(";")[0].strip())]


def _same_language(tag: str, wanted: str) -> bool:
    return tag.partition("-")[0].lower() == wanted.partition("-")[0].lower()


def _refuse(asked: Parameters, *names: str) -> None:
    """Refuse parameters without which the answer would be another one."""
    for name in names:
        if name in asked:
            raise TerminologyError("not-supported", f"{name}: not supported")


def _given(asked: Parameters) -> list[Resource]:
    """Return what an expansion was made with."""
    kinds = {"filter": "String", "displayLanguage": "Code"}
    listed = [part(k, kind, asked.text(k)) for k, kind in kinds.items() if k in asked]
    listed += [part(k, "Integer", asked.number(k)) for k in ("offset", "count") if k in asked]
    return listed
