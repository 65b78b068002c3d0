"""Self-description of the service: capabilities, and its code systems as resources."""

from __future__ import annotations

from typing import Any

import biograft
from biograft.serve.fhir.code_systems import CodeSystem
from biograft.serve.fhir.errors import TerminologyError
from biograft.serve.fhir.expansion import PARAMETERS
from biograft.serve.fhir.parameters import Parameters, Resource
from biograft.serve.fhir.terminology import Terminology

_OPERATIONS = {
    "CodeSystem": ("lookup", "validate-code", "batch-validate-code", "subsumes"),
    "ValueSet": ("expand", "validate-code", "batch-validate-code"),
    "ConceptMap": ("translate",),
}
_DEFINITION = "http://hl7.org/fhir/OperationDefinition"
_FILTERS = (
    (
        "concept",
        ("is-a", "is-not-a", "descendent-of", "generalizes", "in", "not-in", "="),
    ),
    ("parent", ("=",)),
    ("child", ("=",)),
    ("type", ("=",)),
)


def metadata(terminology: Terminology, asked: Parameters) -> Resource:
    """Return the CapabilityStatement, or the TerminologyCapabilities with ``mode=terminology``."""
    mode = asked.text("mode")
    common: Resource = {
        "status": "active",
        "date": _made_at(terminology),
        "kind": "instance",
        "name": "BiograftTerminology",
        "title": "biograft terminology service",
        "url": "urn:biograft:fhir:capabilities",
        "version": biograft.__version__,
        "software": {"name": "biograft", "version": biograft.__version__},
        "implementation": {"description": "Terminology of a biograft store"},
    }
    if mode == "terminology":
        return {
            "resourceType": "TerminologyCapabilities",
            **common,
            "codeSystem": [{"uri": each.url, "subsumption": True} for each in terminology.systems],
            "expansion": {
                "hierarchical": False,
                "paging": True,
                "parameter": [{"name": name} for name in PARAMETERS],
                "textFilter": "beginnings of names, or of their words",
            },
            "codeSearch": "explicit",
            "validateCode": {"translations": True},
            "translation": {"needsMap": False},
        }
    if mode not in (None, "full", "normative"):
        raise TerminologyError("invalid", "mode: expected full, normative or terminology")
    return {
        "resourceType": "CapabilityStatement",
        **common,
        "fhirVersion": "4.0.1",
        "format": ["application/fhir+json"],
        "instantiates": ["http://hl7.org/fhir/CapabilityStatement/terminology-server"],
        "rest": [
            {
                "mode": "server",
                "documentation": "Reads a store; nothing can be written.",
                "security": {"cors": False, "service": [{"text": "API key, where keys are given"}]},
                "interaction": [{"code": "batch"}],
                "resource": [_capability(kind, names) for kind, names in _OPERATIONS.items()],
            }
        ],
    }


def _capability(kind: str, names: tuple[str, ...]) -> Resource:
    described: Resource = {
        "type": kind,
        "operation": [{"name": n, "definition": f"{_DEFINITION}/{kind}-{n}"} for n in names],
    }
    if kind in ("CodeSystem", "ValueSet"):
        described["interaction"] = [{"code": "read"}, {"code": "search-type"}]
        described["searchParam"] = [
            {"name": "url", "type": "uri"},
            {"name": "version", "type": "token"},
        ]
    return described


def list_systems(terminology: Terminology, asked: Parameters, base: str) -> Resource:
    """Return the code systems of the store, or the one with a URL, as a Bundle."""
    resources = [describe(terminology, each) for each in terminology.systems]
    return _bundle(resources, asked, base)


def list_value_sets(terminology: Terminology, asked: Parameters, base: str) -> Resource:
    """Return the value sets of all codes of each system, or the one with a URL, as a Bundle."""
    resources = [_describe_set(terminology, each) for each in terminology.systems]
    return _bundle(resources, asked, base)


def _bundle(resources: list[Resource], asked: Parameters, base: str) -> Resource:
    url, version = asked.text("url"), asked.text("version")
    found = [
        {
            "fullUrl": f"{base}/{each['resourceType']}/{each['id']}",
            "resource": each,
            "search": {"mode": "match"},
        }
        for each in resources
        if (url is None or each["url"] == url.partition("|")[0])
        and (version is None or each.get("version") == version)
    ]
    bundle: dict[str, Any] = {"resourceType": "Bundle", "type": "searchset", "total": len(found)}
    return {**bundle, "entry": found} if found else bundle


def value_set_by_id(terminology: Terminology, identifier: str) -> Resource:
    """Return the value set of all codes of a system, such as ``mesh``."""
    return _describe_set(terminology, system_by_id(terminology, identifier, "ValueSet"))


def _describe_set(terminology: Terminology, system: CodeSystem) -> Resource:
    return {
        "resourceType": "ValueSet",
        "id": system.id,
        "url": f"{system.url}?fhir_vs",
        "name": system.name or "kb",
        "title": f"All codes of {system.url}",
        "status": "active",
        "date": _made_at(terminology),
        "compose": {"include": [{"system": system.url}]},
    }


def system_by_id(terminology: Terminology, identifier: str, kind: str = "CodeSystem") -> CodeSystem:
    """Return the code system with an id, such as ``mesh``."""
    for each in terminology.systems:
        if each.id == identifier:
            return each
    raise TerminologyError("not-found", f"no {kind}/{identifier}; see /fhir/{kind}")


def describe(terminology: Terminology, system: CodeSystem) -> Resource:
    """Return a code system as a resource, without its codes."""
    return {
        "resourceType": "CodeSystem",
        "id": system.id,
        "url": system.url,
        "name": system.name or "kb",
        "status": "active",
        "date": _made_at(terminology),
        "hierarchyMeaning": "is-a",
        "valueSet": f"{system.url}?fhir_vs",
        "content": "not-present",
        "count": terminology.systems.size(system),
        "filter": [
            {"code": code, "operator": list(operators), "value": "a code"}
            for code, operators in _FILTERS
        ],
        "property": [
            {"code": "parent", "type": "code"},
            {"code": "child", "type": "code"},
            {"code": "inactive", "type": "boolean"},
            {"code": "type", "type": "code"},
        ],
    }


def _made_at(terminology: Terminology) -> str:
    return str(terminology.kb.manifest["made_at"])
