"""Concept maps for ``$translate``: resources of FHIR, mapping sets (SSSOM), decisions of a review.

Each is read into groups of one source and one target system, which are looked up by code in either
direction. Relations are those of R4; R5 has fewer, which follow from them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from biograft.errors import shorten
from biograft.kb.fhir import Resource, TerminologyError, list_in, spend, text_in
from biograft.mapping import MappingSet
from biograft.mapping.sssom import concept_of, is_term, subject_of
from biograft.serve.fhir.parameters import Coding, Parameters, coding, coding_of, list_of_parts

UNMATCHED = "unmatched"
NO_MATCH = (UNMATCHED, "disjoint")
"""Relations that are no translation."""
_OF_R5 = {
    "equivalent": "equivalent",
    "related-to": "relatedto",
    "source-is-narrower-than-target": "wider",
    "source-is-broader-than-target": "narrower",
    "not-related-to": "disjoint",
}
RELATIONSHIPS: Mapping[str, str] = {
    **{r4: r5 for r5, r4 in _OF_R5.items()},
    "equal": "equivalent",
    "inexact": "related-to",
    "subsumes": "source-is-narrower-than-target",
    "specializes": "source-is-broader-than-target",
    UNMATCHED: "not-related-to",
}
"""The relationship of R5 for an equivalence of R4."""
_INVERSE = {
    "wider": "narrower",
    "narrower": "wider",
    "subsumes": "specializes",
    "specializes": "subsumes",
}
_OF_SKOS = {
    "exact": "equivalent",
    "broad": "wider",
    "narrow": "narrower",
    "close": "inexact",
    "related": "relatedto",
}
_MODES = {"provided": "provided", "use-source-code": "provided", "fixed": "fixed"}
_OTHER_MAP = ("other-map",)
_MAX_MAPS = 20
"""Maps that refer to each other."""
_PLACE = "ConceptMap.group"


class Attribute(NamedTuple):
    """A value that a mapping depends on, or that it gives in addition."""

    name: str
    system: str | None
    value: str
    display: str | None = None


class CodeMatch(NamedTuple):
    """A mapping between two codes; without a code there is none on that side."""

    source: Coding
    target: Coding
    equivalence: str
    origin: str = ""
    """URL and version of the map."""
    depends_on: tuple[Attribute, ...] = ()
    products: tuple[Attribute, ...] = ()

    def inverted(self) -> CodeMatch:
        """Return the mapping in the other direction."""
        how = _INVERSE.get(self.equivalence, self.equivalence)
        return self._replace(source=self.target, target=self.source, equivalence=how)


@dataclass
class _Group:
    """Mappings from one system to another."""

    source: str | None
    target: str | None
    by_source: dict[str, list[CodeMatch]] = field(default_factory=dict)
    by_target: dict[str, list[CodeMatch]] = field(default_factory=dict)
    unmapped: Resource = field(default_factory=dict)

    def add(self, match: CodeMatch) -> None:
        self.by_source.setdefault(match.source.code or "", []).append(match)
        if match.target.code:
            self.by_target.setdefault(match.target.code, []).append(match)


@dataclass
class TranslationMap:
    """A concept map, looked up by code."""

    resource: Resource
    """The map without its groups."""
    groups: list[_Group] = field(default_factory=list)

    @property
    def url(self) -> str:
        """Its URL."""
        return str(self.resource.get("url", ""))

    @property
    def version(self) -> str | None:
        """Its version, where it has one."""
        return text_in(self.resource, "version", "ConceptMap")

    @property
    def canonical(self) -> str:
        """Its URL, with its version."""
        return f"{self.url}|{self.version}" if self.version else self.url

    def to_resource(self) -> Resource:
        """Return the ConceptMap of R4."""
        groups = []
        for group in self.groups:
            elements: list[Resource] = []
            for code, matches in group.by_source.items():
                spend(1 + len(matches))
                targets = [
                    {
                        **coding(None, m.target.code or "", m.target.display),
                        "equivalence": m.equivalence,
                        **({} if m.target.code else {"comment": "no concept"}),
                    }
                    for m in matches
                ]
                element = coding(None, code, matches[0].source.display)
                elements.append({**element, "target": targets})
            ends = {"source": group.source, "target": group.target, "element": elements}
            groups.append({key: value for key, value in ends.items() if value})
        return self.resource | ({"group": groups} if groups else {})

    def has_scope(self, side: str, wanted: str | None) -> bool:
        """Return True if the map states no scope, or the one that is wanted.

        Args:
            side: ``source`` or ``target``.
            wanted: URL of a value set; None: any.
        """
        stated = self.scope(side)
        return not wanted or not stated or stated.partition("|")[0] == wanted.partition("|")[0]

    def scope(self, side: str) -> str:
        """Return the value set that the codes of a side are from, where it is stated.

        Args:
            side: ``source`` or ``target``.
        """
        keys = (f"{side}{end}" for end in ("ScopeUri", "ScopeCanonical", "Uri", "Canonical"))
        return next((str(self.resource[key]) for key in keys if key in self.resource), "")

    def find(
        self,
        given: Coding,
        *,
        reverse: bool,
        find_map: Callable[[str], TranslationMap | None] = lambda url: None,
        seen: tuple[str, ...] = (),
    ) -> Iterator[CodeMatch]:
        """Yield the mappings of a code.

        Args:
            given: A code with its system.
            reverse: Look for it among the targets.
            find_map: Finds another map by its URL, which unmapped codes may refer to.
            seen: URLs of the maps that referred to this one.
        """
        spend(1 + len(self.groups))
        code = given.code or ""
        for group in self.groups:
            if reverse:
                if group.target == given.system:
                    yield from group.by_target.get(code, ())
            elif group.source == given.system:
                found = group.by_source.get(code)
                yield from found or self._unmapped(group, given, find_map, seen)

    def _unmapped(
        self,
        group: _Group,
        given: Coding,
        find_map: Callable[[str], TranslationMap | None],
        seen: tuple[str, ...],
    ) -> Iterator[CodeMatch]:
        """Yield what the map says of codes that it does not list."""
        mode = group.unmapped.get("mode")
        if mode in _OTHER_MAP:
            url = text_in(group.unmapped, "url", _PLACE) or text_in(
                group.unmapped, "otherMap", _PLACE
            )
            other = find_map(url) if url and url not in seen and len(seen) < _MAX_MAPS else None
            if other is not None:
                trail = (*seen, self.url, url or "")
                yield from other.find(given, reverse=False, find_map=find_map, seen=trail)
        elif mode in _MODES:
            is_fixed = _MODES[mode] == "fixed"
            code = text_in(group.unmapped, "code", _PLACE) if is_fixed else given.code
            shown = text_in(group.unmapped, "display", _PLACE) if is_fixed else given.display
            if code:
                target = Coding(group.target, code, shown)
                yield CodeMatch(given, target, _equivalence(group.unmapped), self.canonical)


def read_map(resource: Resource) -> TranslationMap:
    """Read a ConceptMap of R4 or R5.

    Args:
        resource: The resource.

    Raises:
        TerminologyError: It is damaged.
    """
    made = TranslationMap({key: value for key, value in resource.items() if key != "group"})
    attributes = {
        text_in(each, "code", "ConceptMap"): text_in(each, "uri", "ConceptMap")
        for each in list_in(resource, "additionalAttribute", "ConceptMap")
    }
    for given in list_in(resource, "group", "ConceptMap"):
        source, target = (text_in(given, side, _PLACE) for side in ("source", "target"))
        group = _Group(source and source.partition("|")[0], target and target.partition("|")[0])
        unmapped = given.get("unmapped")
        group.unmapped = unmapped if isinstance(unmapped, dict) else {}
        for element in list_in(given, "element", _PLACE):
            spend()
            if not (code := text_in(element, "code", f"{_PLACE}.element")):
                continue
            shown = text_in(element, "display", f"{_PLACE}.element")
            own = Coding(group.source, code, shown)
            targets = list_in(element, "target", f"{_PLACE}.element")
            for each in targets:
                group.add(_read_target(each, own, group, made.canonical, attributes))
            if not targets:
                group.add(CodeMatch(own, Coding(group.target, None), UNMATCHED, made.canonical))
        made.groups.append(group)
    return made


def _read_target(
    given: Any, source: Coding, group: _Group, origin: str, names: Mapping[str | None, str | None]
) -> CodeMatch:
    place = f"{_PLACE}.element.target"
    spend()
    code, shown = (text_in(given, key, place) for key in ("code", "display"))
    depends, products = (
        tuple(_read_attribute(each, place, names) for each in list_in(given, key, place))
        for key in ("dependsOn", "product")
    )
    how = _equivalence(given) if code else UNMATCHED
    return CodeMatch(source, Coding(group.target, code, shown), how, origin, depends, products)


def _equivalence(given: Any) -> str:
    """Return the relation of a target: its equivalence (R4) or relationship (R5)."""
    place = f"{_PLACE}.element.target"
    if (how := text_in(given, "relationship", place)) is not None:
        how = _OF_R5.get(how, how)
    how = how or text_in(given, "equivalence", place) or "relatedto"
    if how not in RELATIONSHIPS:
        raise TerminologyError("invalid", f"{place}: {shorten(how)!r} is no relation of a mapping")
    return how


def _read_attribute(given: Any, place: str, names: Mapping[str | None, str | None]) -> Attribute:
    name = text_in(given, "property", place) or text_in(given, "attribute", place) or ""
    system, display = text_in(given, "system", place), text_in(given, "display", place)
    found = [v for k, v in given.items() if k.startswith("value") and k != "valueSet"]
    if len(found) != 1:
        raise TerminologyError("invalid", f"{place}: expected an attribute with one value")
    if isinstance(found[0], dict):
        value = coding_of(found[0], place)
        system, display = value.system, value.display
        found = [value.code or ""]
    return Attribute(names.get(name) or name, system, _as_text(found[0]), display)


def _as_text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def map_of_set(
    mappings: MappingSet, url: str, coding_of_id: Callable[[str, str], Coding], name: str
) -> TranslationMap:
    """Return a mapping set as a concept map; rejected mappings are left out.

    Args:
        mappings: The set.
        url: URL of the map.
        coding_of_id: Returns the code of an id of a concept, with a label.
        name: Name of the map.
    """
    identifier = re.sub(r"[^A-Za-z0-9.-]+", "-", name).strip("-")[:64] or "set"
    described = {"id": identifier, "url": url, "name": name, "status": "active"}
    made = TranslationMap({"resourceType": "ConceptMap", **described})
    groups: dict[tuple[str | None, str | None], _Group] = {}
    own = mappings.source
    terms = own if ":" in own else f"urn:biograft:source:{own}" if own else url
    for row in mappings.rows:
        if row.predicate_modifier:
            continue
        if is_term(row.subject_id):
            term, code = subject_of(row.subject_id)
            source = Coding(terms, code or term, row.subject_label or None)
        else:
            source = coding_of_id(concept_of(row.subject_id), row.subject_label)
        identifier = concept_of(row.object_id)
        target = Coding(None, None)
        if identifier:
            target = coding_of_id(identifier, row.object_label)
        key = (source.system, target.system)
        if key not in groups:
            groups[key] = _Group(*key)
        how = _OF_SKOS[row.relation] if identifier else UNMATCHED
        groups[key].add(CodeMatch(source, target, how, url))
    made.groups = list(groups.values())
    return made


# ---- requests


class Question(NamedTuple):
    """Input of ``$translate``, by the parameters of R4 or R5."""

    codings: list[Coding]
    reverse: bool
    system: str | None
    """System of the answer."""
    scope: str | None
    """Value set of the answer."""
    own_scope: str | None
    """Value set of the codes."""
    dependencies: Mapping[str, set[tuple[str | None, str]]]
    is_r5: bool

    @classmethod
    def read(cls, asked: Parameters) -> Question:
        """Read the parameters.

        Args:
            asked: The parameters of the request.
        """
        ends = ("Code", "Coding", "CodeableConcept")
        sides = [s for s in ("source", "target") if any(f"{s}{end}" in asked for end in ends)]
        if len(sides) > 1:
            raise TerminologyError("invalid", "give either a source or a target to translate")
        if not sides:
            reverse = asked.flag("reverse")
            return cls(
                _codings(asked, "code", "coding", "codeableConcept", asked.text("system")),
                reverse,
                asked.text("targetsystem"),
                asked.text("source" if reverse else "target"),
                asked.text("target" if reverse else "source"),
                _dependencies(asked),
                False,
            )
        (own,) = sides
        other = "source" if own == "target" else "target"
        system = asked.text(f"{own}System") or asked.text("system")
        return cls(
            _codings(asked, f"{own}Code", f"{own}Coding", f"{own}CodeableConcept", system),
            own == "target",
            asked.text(f"{other}System"),
            asked.text(f"{other}Scope"),
            asked.text(f"{own}Scope"),
            _dependencies(asked),
            True,
        )

    def select(self, match: CodeMatch) -> CodeMatch | None:
        """Return a mapping as it is asked for, with what it still depends on; None: it is not.

        Args:
            match: A mapping, in the direction of its map.
        """
        other = match.source if self.reverse else match.target
        if self.system is not None and other.system != self.system.partition("|")[0]:
            return None
        open_ones = []
        for each in match.depends_on:
            values = self.dependencies.get(each.name)
            if values is None:
                open_ones.append(each)
            elif not any(
                value == each.value and (system is None or each.system in (None, system))
                for system, value in values
            ):
                return None
        return match._replace(depends_on=tuple(open_ones))


def _codings(
    asked: Parameters, code: str, coding: str, concept: str, system: str | None
) -> list[Coding]:
    given = asked.codings(concept) or [asked.coding(coding) or Coding(system, asked.required(code))]
    if any(each.code is None or each.system is None for each in given):
        raise TerminologyError("required", "expected a code and its system")
    return given


def _dependencies(asked: Parameters) -> dict[str, set[tuple[str | None, str]]]:
    """Read the values that the caller knows: element and concept (R4), attribute and value (R5)."""
    found: dict[str, set[tuple[str | None, str]]] = {}
    for parts in list_of_parts(asked, "dependency"):
        name = parts.get("element") or parts.get("attribute")
        value = parts.get("concept", parts.get("value"))
        if not isinstance(name, str) or value is None:
            raise TerminologyError("invalid", "dependency: expected an element and its concept")
        values = found.setdefault(name, set())
        if not isinstance(value, dict):
            values.add((None, _as_text(value)))
            continue
        for each in list_in(value, "coding", "dependency") or [value]:
            given = coding_of(each, "dependency")
            values.add((given.system, given.code or ""))
        if text := text_in(value, "text", "dependency"):
            values.add((None, text))
    return found
