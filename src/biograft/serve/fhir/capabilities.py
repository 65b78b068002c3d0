"""What the service says of itself: capabilities, and its code systems as resources."""

from __future__ import annotations

from typing import Any

import biograft
from biograft.serve.fhir.code_systems import CodeSystem
from biograft.serve.fhir.errors import TerminologyError
from biograft.serve.fhir.parameters import Parameters, Resource
from biograft.serve.fhir.terminology import Terminology

_OPERATIONS = {
    "CodeSystem": ("lookup", "validate-code", "subsumes"),
    "ValueSet": ("expand", "validate-code"),
    "ConceptMap": ("translate",),
}
_DEFINITION = "http://hl7.org/fhir/OperationDefinition"
_EXPANSION = (
    *("url", "valueSet", "filter", "offset", "count"),
    *("includeDesignations", "displayLanguage"),
)
_FILTERS = (
    ("concept", ("is-a", "descendent-of", "generalizes", "in", "=")),
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
                "parameter": [{"name": name} for name in _EXPANSION],
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
                "resource": [_capability(kind, names) for kind, names in _OPERATIONS.items()],
            }
        ],
    }


def _capability(kind: str, names: tuple[str, ...]) -> Resource:
    described: Resource = {
        "type": kind,
        "operation": [{"name": n, "definition": f"{_DEFINITION}/{kind}-{n}"} for n in names],
    }
    if kind == "CodeSystem":
        described["interaction"] = [{"code": "read"}, {"code": "search-type"}]
        described["searchParam"] = [{"name": "url", "type": "uri"}]
    return described


def list_systems(terminology: Terminology, asked: Parameters, base: str) -> Resource:
    """Return the code systems of the store, or the one with a URL, as a Bundle."""
    url = asked.text("url")
    found = [
        {
            "fullUrl": f"{base}/CodeSystem/{each.id}",
            "resource": describe(terminology, each),
            "search": {"mode": "match"},
        }
        for each in terminology.systems
        if url is None or each.url == url.partition("|")[0]
    ]
    bundle: dict[str, Any] = {"resourceType": "Bundle", "type": "searchset", "total": len(found)}
    return {**bundle, "entry": found} if found else bundle


def system_by_id(terminology: Terminology, identifier: str) -> CodeSystem:
    """Return the code system with an id, such as ``mesh``."""
    for each in terminology.systems:
        if each.id == identifier:
            return each
    raise TerminologyError("not-found", f"no CodeSystem/{identifier}; see /fhir/CodeSystem")


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
