"""``ValueSet/$expand``: the codes of a value set by pages, nested, or found by a filter.

Names are those in the languages of the request.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from biograft.kb import Name
from biograft.kb.code_systems import (
    STANDARDS_STATUS,
    CodeSystems,
    Entries,
    SuppliedSystem,
    canonical,
    standards_status,
)
from biograft.kb.fhir import (
    Resource,
    TerminologyError,
    spend,
)
from biograft.kb.names import normalise
from biograft.kb.records import NameKind
from biograft.kb.search import NameSuggestions
from biograft.kb.value_sets import ValueSet
from biograft.kb.vocabularies import vocabulary_name
from biograft.serve.fhir.parameters import Parameters, part

_SNOMED = "http://snomed.info/sct"
_USES: Mapping[str, Resource] = {
    NameKind.PREFERRED: {
        "system": "http://terminology.hl7.org/CodeSystem/hl7TermMaintInfra",
        "code": "preferredForLanguage",
        "display": "Preferred For Language",
    },
    NameKind.SYNONYM: {"system": _SNOMED, "code": "900000000000013009", "display": "Synonym"},
}
_MAX_LANGUAGES = 50
_EXPANSION_PARAMETER = "StructureDefinition/valueset-expansion-parameter"


class Languages(NamedTuple):
    """The languages of names that are wanted, the first before others."""

    tags: tuple[str, ...] = ()
    only: bool = False
    """Whether a name in another language is none: ``de, *;q=0``."""
    given: str = ""
    """Language tags as written in a request."""


def languages_of(asked: Parameters, chosen: ValueSet | None = None) -> Languages:
    """Return the languages of a request, by parameter, value set, header, in this order.

    Args:
        asked: The parameters of the request.
        chosen: The value set.
    """
    given = asked.text("displayLanguage")
    if given is None and chosen is not None:
        given = _expansion_parameter(chosen.resource, "displayLanguage")
    if given is None:
        given = asked.accept_language
    if given is None and chosen is not None and isinstance(chosen.resource.get("language"), str):
        given = str(chosen.resource["language"])
    return _parsed(given or "")


def _expansion_parameter(resource: Resource, wanted: str) -> str | None:
    """Return a parameter of expansion that a value set itself states, by an extension."""
    extensions = resource.get("extension")
    compose = resource.get("compose")
    listed = [*(extensions if isinstance(extensions, list) else [])]
    if isinstance(compose, dict) and isinstance(compose.get("extension"), list):
        listed += compose["extension"]
    for each in listed:
        if not isinstance(each, dict) or not str(each.get("url")).endswith(_EXPANSION_PARAMETER):
            continue
        inner = {
            part.get("url"): next((v for k, v in part.items() if k.startswith("value")), None)
            for part in each.get("extension", ())
            if isinstance(part, dict)
        }
        if inner.get("name") == wanted and isinstance(inner.get("value"), str):
            return str(inner["value"])
    return None


def _parsed(given: str) -> Languages:
    """Read languages with weights, as of the header Accept-Language."""
    weighed: list[tuple[float, str]] = []
    only = False
    for each in given.split(","):
        tag, _, weight = (part.strip() for part in each.partition(";"))
        try:
            quality = float(weight.removeprefix("q=")) if weight else 1.0
        except ValueError:
            quality = 1.0
        if tag == "*":
            only = quality == 0
        elif tag and quality > 0:
            weighed.append((-quality, tag))
    if len(weighed) > _MAX_LANGUAGES:
        raise TerminologyError("too-costly", f"displayLanguage: at most {_MAX_LANGUAGES} languages")
    tags = tuple(tag for _, tag in sorted(weighed, key=lambda pair: pair[0]))
    return Languages(tags, only, ", ".join([*tags, "*; q=0"]) if only else given)


def same_language(tag: str, wanted: str) -> bool:
    """Return whether a name's language is one that is asked for, regions aside.

    Args:
        tag: Language of the name.
        wanted: Language that is wanted.
    """
    return tag.partition("-")[0].lower() == wanted.partition("-")[0].lower()


def display(
    codes: CodeSystems, entry: int, languages: Languages, chosen: ValueSet | None = None
) -> str | None:
    """Return the name of a code: in the first of these languages that it has a name in.

    A further id is called as its own vocabulary calls it, where that is a source of the store.

    Args:
        codes: The codes of the request.
        entry: Number of the code.
        languages: Languages of names, the wanted ones first.
        chosen: Value set, whose own names of codes come first.
    """
    if chosen is not None and not languages.tags and (own := chosen.displays.get(entry)):
        return own
    row = codes.row(entry)
    if not languages.tags and codes.is_primary(entry):
        return codes.name(row) or None
    system = codes.system(entry)
    vocabulary = None if system is None else system.name
    names = codes.names(row)
    spend(1 + len(names) * len(languages.tags))

    def rank(name: Name) -> tuple[int, bool, bool]:
        return (
            _position(name, languages),
            not codes.is_primary(entry) and vocabulary_name(name.source) != vocabulary,
            name.kind != NameKind.PREFERRED,
        )

    if not names:
        return codes.name(row) or None
    best = min(names, key=rank)
    if languages.only and languages.tags and _position(best, languages) == len(languages.tags):
        return None
    return best.text


def _position(name: Name, languages: Languages) -> int:
    tags = languages.tags
    return next((i for i, each in enumerate(tags) if same_language(name.language, each)), len(tags))


def designations(codes: CodeSystems, row: int) -> list[Resource]:
    """Return the names of a concept as designations; those of the request as they were given.

    Args:
        codes: The codes of the request.
        row: Row of the concept.
    """
    if (owner := codes.owner(row)) is not None:
        concept = owner.concept(row)
        listed: list[Resource] = []
        if concept.display and owner.language:
            listed.append(
                {
                    "language": owner.language,
                    "use": _USES[NameKind.PREFERRED],
                    "value": concept.display,
                }
            )
        return [*listed, *concept.designations]
    return [
        {
            **({"language": name.language} if name.language else {}),
            "use": _USES.get(name.kind) or {"system": "urn:biograft:name-kind", "code": name.kind},
            "value": name.text,
        }
        for name in codes.names(row)
    ]


def wanted_designations(listed: Sequence[Resource], wanted: Sequence[str]) -> list[Resource]:
    """Return those in some languages (``de`` or ``urn:ietf:bcp:47|de``), or for some uses.

    Args:
        listed: Designations.
        wanted: Languages or uses; default: all.
    """
    if not wanted:
        return list(listed)

    def fits(each: Resource) -> bool:
        used: Any = each.get("use")
        for token in wanted:
            system, _, code = token.rpartition("|")
            language = str(each.get("language") or "")
            if system in ("", "urn:ietf:bcp:47") and language and same_language(language, code):
                return True
            if isinstance(used, dict) and (used.get("system"), used.get("code")) == (system, code):
                return True
        return False

    return [each for each in listed if fits(each)]


MAX_EXPANSION = 10_000
"""Codes of one page of an expansion; more are refused as too costly."""
_MAX_FILTER = 1_000
"""Characters of a text filter."""
MAX_FOUND = 2_000
"""Concepts that a text filter finds; a filter that finds as many has no total."""
_STEPS_OF_CODE = 40
_STEPS_OF_SEARCH = 5_000
PARAMETERS: Mapping[str, str] = {
    **dict.fromkeys(("url", "valueSet", "valueSetVersion"), ""),
    "filter": "String",
    "offset": "Integer",
    "count": "Integer",
    **dict.fromkeys(("includeDesignations", "includeDefinition", "activeOnly"), "Boolean"),
    **dict.fromkeys(("excludeNested", "excludeNotForUI", "excludePostCoordinated"), "Boolean"),
    "designation": "String",
    **dict.fromkeys(("displayLanguage", "property", "tx-resource", "useSupplement"), ""),
    "system-version": "",
    **dict.fromkeys(("check-system-version", "force-system-version"), "Uri"),
    "default-valueset-version": "Uri",
}
"""Parameters of ``$expand``, and the type of those that its answer repeats."""
_R5 = "http://hl7.org/fhir/5.0/StructureDefinition/extension-ValueSet.expansion"
_STRUCTURE = "http://hl7.org/fhir/StructureDefinition/"
_COPIED = (
    *("id", "language", "url", "identifier", "version", "name", "title", "status"),
    *("experimental", "date"),
)
_CONCEPT_PROPERTIES = "http://hl7.org/fhir/concept-properties#"
STATUSES = ("deprecated", "inactive", "retired", "withdrawn")
_SHOWN = (f"{_STRUCTURE}rendering-style", f"{_STRUCTURE}rendering-xhtml")
"""Extensions of a code that are repeated in an expansion."""
VALUE_SET_DEPRECATED = f"{_STRUCTURE}valueset-deprecated"
_OF_VALUE_SET = (
    VALUE_SET_DEPRECATED,
    STANDARDS_STATUS,
    f"{_STRUCTURE}valueset-concept-definition",
)
_SHOWN_AS_PROPERTY = {
    f"{_STRUCTURE}{url}": name
    for name, urls in {
        "label": ("codesystem-label", "valueset-label"),
        "order": ("codesystem-conceptOrder", "valueset-conceptOrder"),
        "weight": ("itemWeight", "valueset-itemWeight"),
    }.items()
    for url in urls
}
"""Extensions of a code that R5 has as properties of an expansion."""


class Expansion:
    """The expansion of one request.

    Args:
        codes: Code systems of the store.
        asked: Parameters of the request.
        chosen: Value set to expand.
        suggestions: Searches names as they are typed, for ``filter``.
        made_at: Timestamp of the expansion.
    """

    def __init__(
        self,
        codes: CodeSystems,
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

    def answer(self, entries: Sequence[int] | Entries | None = None) -> Resource:
        """Return the value set with its expansion; ``entries`` are its codes, where known.

        Args:
            entries: Numbers of the codes.
        """
        asked = self._asked
        text, offset = asked.text("filter"), asked.number("offset") or 0
        count = asked.number("count")
        if count is not None and count > MAX_EXPANSION:
            raise TerminologyError("too-costly", f"count: at most {MAX_EXPANSION} codes a page")
        total: int | None
        if text:
            entries, total = self._filtered(text)
        else:
            entries = self._in_use(
                self._chosen.entries(self._codes) if entries is None else entries
            )
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
            "offset": asked.number("offset"),
            "parameter": self._parameters(),
            "contains": page,
        }
        expansion["extension"] = [
            _extension("property", code=("Code", code), uri=("Uri", uri))
            for code, uri in self._shown.items()
        ] + [
            each
            for system in self._chosen.systems
            if isinstance(system, SuppliedSystem) and system.content == "fragment"
            for each in _unclosed(system.url)
        ]
        return {
            **self._described(),
            "expansion": {
                key: value for key, value in expansion.items() if value not in ([], None)
            },
        }

    def _in_use(self, entries: Sequence[int] | Entries) -> Sequence[int] | Entries:
        if not self._asked.flag("activeOnly"):
            return entries
        spend(len(entries))
        return [entry for entry in entries if self._codes.is_active(int(entry))]

    def _filtered(self, text: str) -> tuple[Sequence[int] | Entries, int | None]:
        """Return the codes with a name that begins so, best first; no total if there are more."""
        if len(text) > _MAX_FILTER:
            raise TerminologyError("too-costly", f"filter: at most {_MAX_FILTER} characters")
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
        used = self._in_use(entries)
        return used, len(used) if len(rows) < MAX_FOUND else None

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
            above = next((p for p in self._codes.parents(entry) if p in made), None)
            if above is None or self._codes.is_a(above, entry):
                top.append(made[entry])
            else:
                made[above].setdefault("contains", []).append(made[entry])
        return top

    # ---- one code

    def _contained(self, entry: int) -> Resource:
        codes, chosen = self._codes, self._chosen
        spend(_STEPS_OF_CODE)
        system = codes.known_system(entry)
        owner = codes.owner(entry)
        content: Resource = {"system": system.url}
        if owner is not None and owner.is_abstract(entry):
            content["abstract"] = True
        if not codes.is_active(entry):
            content["inactive"] = True
        if sum(each.url == system.url for each in chosen.systems) > 1:
            content["version"] = system.version
        content["code"] = codes.code(entry)
        if shown := display(codes, entry, self._languages, chosen):
            content["display"] = shown
        if self._designated:
            listed = [*designations(codes, codes.row(entry)), *chosen.designations.get(entry, [])]
            own = next((d for d in listed if d["value"] == shown), None)
            listed = [each for each in listed if each is not own]
            spend(len(listed) * (1 + len(self._designations)))
            if listed := wanted_designations(listed, self._designations):
                content["designation"] = [_as_shown(each) for each in listed]
        if owner is not None and (found := self._extensions(owner, entry)):
            content["extension"] = found
        return content

    def _extensions(self, system: SuppliedSystem, entry: int) -> list[Resource]:
        """Return how a code is shown, its properties that are asked for, and its status."""
        concept = system.concept(entry)
        own = self._chosen.extensions.get(entry, [])
        found: dict[str, Resource] = {}
        for each in [*own, *concept.extensions]:
            url = str(each.get("url"))
            if url in _SHOWN or (url in _OF_VALUE_SET and each in own):
                found.setdefault(url, each)
            elif name := _SHOWN_AS_PROPERTY.get(url):
                value = next((v for k, v in each.items() if k.startswith("value")), None)
                kind = "String" if isinstance(value, str) else "Decimal"
                uri = f"{_CONCEPT_PROPERTIES}{'itemWeight' if name == 'weight' else name}"
                found.setdefault(name, self._property(name, kind, value, uri))
        listed = list(found.values())
        if "definition" in self._properties and concept.definition:
            listed.append(self._property("definition", "String", concept.definition))
        status = system.status_of(concept)
        if status in STATUSES and "status" not in self._properties:
            listed.append(self._property("status", "Code", status))
        return listed + [
            self._property(name, kind, given, system.property_uris.get(name))
            for name, given, kind in concept.properties
            if name in self._properties or "*" in self._properties
        ]

    def _property(self, name: str, kind: str, value: Any, uri: str | None = None) -> Resource:
        """Return a property of a code; its URI is listed with the expansion."""
        self._shown[name] = uri or f"{_CONCEPT_PROPERTIES}{name}"
        return _extension("contains.property", code=("Code", name), value=(kind, value))

    # ---- the value set

    def _described(self) -> Resource:
        chosen = self._chosen
        made: Resource = {"resourceType": "ValueSet"}
        made |= {key: chosen.resource[key] for key in _COPIED if key in chosen.resource}
        if chosen.url is not None:
            made.setdefault("url", chosen.url)
        made.setdefault("status", "unknown" if chosen.resource else "active")
        if self._asked.flag("includeDefinition") and "compose" in chosen.resource:
            kept = ("compose", "extension")
            made |= {key: chosen.resource[key] for key in kept if key in chosen.resource}
        return made

    def _parameters(self) -> list[Resource]:
        """Return what the expansion was made with, and from."""
        listed = [
            part(name, kind, value)
            for name, kind in PARAMETERS.items()
            if kind
            for value in self._asked.values(name, kind)
        ]
        if self._languages.tags:
            listed.append(part("displayLanguage", "Code", self._languages.given))
        for system in self._chosen.systems:
            named = canonical(system.url, system.version)
            listed.append(part("used-codesystem", "Uri", named))
            if isinstance(system, SuppliedSystem):
                found = use_statuses(system.resource)
                listed += [part(f"warning-{status}", "Uri", named) for status in found]
                if system.content == "fragment":
                    listed.append(part("used-fragment", "Uri", named))
        own = {self._chosen.canonical: self._chosen.resource} if self._chosen.canonical else {}
        for named, resource in {**own, **self._chosen.used}.items():
            listed += [
                part(f"warning-{status}", "Uri", named)
                for status in use_statuses(resource)
                if status in ("deprecated", "withdrawn")
            ]
        listed += [part("used-valueset", "Uri", each) for each in self._chosen.used]
        listed += [part("used-supplement", "Uri", each) for each in self._codes.supplements]
        return listed


def use_statuses(resource: Resource) -> list[str]:
    """Return why a resource is not in full use: draft, deprecated, withdrawn, experimental.

    Args:
        resource: A code system or value set.
    """
    listed = [e for e in resource.get("extension", ()) if isinstance(e, dict)]
    status = standards_status(listed) or resource.get("status")
    found = [str(status)] if status in ("draft", "deprecated", "withdrawn") else []
    return found + (["experimental"] if resource.get("experimental") is True else [])


def _extension(name: str, **parts: tuple[str, Any]) -> Resource:
    inner = [{"url": key, f"value{kind}": value} for key, (kind, value) in parts.items()]
    return {"url": f"{_R5}.{name}", "extension": inner}


def _unclosed(url: str) -> list[Resource]:
    """Say that an expansion may lack codes, as a code system is a fragment."""
    reason = f"This extension is based on a fragment of the code system {url}"
    return [
        {"url": f"{_STRUCTURE}valueset-unclosed", "valueBoolean": True},
        {"url": f"{_STRUCTURE}valueset-unclosed-reason", "valueString": reason},
    ]


def _as_shown(designation: Resource) -> Resource:
    """Return a designation with the extensions of FHIR itself only."""
    extensions = designation.get("extension")
    if not isinstance(extensions, list):
        return designation
    kept = [e for e in extensions if isinstance(e, dict) and _is_own(e.get("url"))]
    rest = {key: value for key, value in designation.items() if key != "extension"}
    return {"extension": kept, **rest} if kept else rest


def _is_own(url: Any) -> bool:
    return str(url).startswith(_STRUCTURE)
