"""Names of codes: which is shown, in which language, and what each name is for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from biograft.kb import Name
from biograft.kb.records import NameKind
from biograft.kb.vocabularies import vocabulary_name
from biograft.serve.fhir.code_systems import CodeSystem
from biograft.serve.fhir.parameters import Parameters, Resource
from biograft.serve.fhir.supplied import Codes, RequestCodes
from biograft.serve.fhir.value_sets import ValueSet

_SNOMED = "http://snomed.info/sct"
_USES: Mapping[str, Resource] = {
    NameKind.PREFERRED: {
        "system": "http://terminology.hl7.org/CodeSystem/designation-usage",
        "code": "display",
    },
    NameKind.SYNONYM: {"system": _SNOMED, "code": "900000000000013009", "display": "Synonym"},
}
_EXPANSION_PARAMETER = "http://hl7.org/fhir/tools/StructureDefinition/valueset-expansion-parameter"


class Languages(NamedTuple):
    """The languages of names that are wanted, the first before others."""

    tags: tuple[str, ...] = ()
    only: bool = False
    """Whether a name in another language is none: ``de, *;q=0``."""


def languages_of(asked: Parameters, chosen: ValueSet | None = None) -> Languages:
    """Return the languages of a request, by parameter, value set, header, in this order."""
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
        if not isinstance(each, dict) or each.get("url") != _EXPANSION_PARAMETER:
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
    ordered = sorted(weighed, key=lambda pair: pair[0])
    return Languages(tuple(tag for _, tag in ordered), only)


def same_language(tag: str, wanted: str) -> bool:
    """Return whether a name's language is one that is asked for, regions aside."""
    return tag.partition("-")[0].lower() == wanted.partition("-")[0].lower()


def display(codes: Codes, entry: int, languages: Languages) -> str | None:
    """Return the name of a code: in the first of these languages that it has a name in.

    A further id is called as its own vocabulary calls it, where that is a source of the store.
    """
    row = codes.row(entry)
    if not languages.tags and codes.is_primary(entry):
        return codes.name(row) or None
    system = codes.system(entry)
    names = codes.names(row)

    def rank(name: Name) -> tuple[int, bool, bool]:
        return (
            _position(name, languages),
            not codes.is_primary(entry) and not _is_source(system, name.source),
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


def use(name: Name) -> Resource:
    """Return what a name is for, as a Coding."""
    return _USES.get(name.kind) or {"system": "urn:biograft:name-kind", "code": name.kind}


def designations(codes: Codes, row: int) -> list[Resource]:
    """Return the names of a concept as designations; those of the request as they were given."""
    if isinstance(codes, RequestCodes) and row >= codes.store.n_entries:
        owner = codes.owner(row)
        concept = owner.concept(row)
        listed: list[Resource] = []
        if concept.display and owner.language:
            listed.append({"language": owner.language, "use": _USES[NameKind.PREFERRED],
                           "value": concept.display})  # fmt: skip
        return [*listed, *concept.designations]
    return [
        {
            **({"language": name.language} if name.language else {}),
            "use": use(name),
            "value": name.text,
        }
        for name in codes.names(row)
    ]


def wanted_designations(listed: Sequence[Resource], wanted: Sequence[str]) -> list[Resource]:
    """Return those in some languages (``de`` or ``urn:ietf:bcp:47|de``), or for some uses."""
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


def _is_source(system: CodeSystem | None, source: str) -> bool:
    return system is not None and vocabulary_name(source) == system.name
