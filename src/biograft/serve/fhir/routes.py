"""The routes under ``/fhir``: capabilities, and each operation by GET and POST.

Errors are an OperationOutcome.
"""

from __future__ import annotations

import asyncio
import math
import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl
from weakref import WeakSet

from fastapi import FastAPI, Request, Response

import biograft
from biograft.errors import BiograftError, NotFoundError
from biograft.serve.engine import json_answer
from biograft.serve.fhir.code_systems import CodeSystem
from biograft.serve.fhir.parameters import (
    FORM,
    Parameters,
    Resource,
    TerminologyError,
    Work,
    list_in,
    pairs_of,
    parse_json,
    spend,
)
from biograft.serve.fhir.terminology import Terminology
from biograft.serve.fhir.value_sets import PARAMETERS

if TYPE_CHECKING:
    from fastapi import Response


_LISTED_OPERATIONS = {
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
                "resource": [
                    _capability(kind, names) for kind, names in _LISTED_OPERATIONS.items()
                ],
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


_JSON = "application/fhir+json"
_MAX_ENTRIES = 1_000
"""Requests of a batch."""
_STEPS_OF_ENTRY = 100
_READ, _BOTH = ("GET",), ("GET", "POST")
_Operation = Callable[[Terminology, Parameters, str], Resource]
"""Answers a request; the text is the id in the path, or the URL of the service."""
_OPERATIONS: tuple[tuple[str, tuple[str, ...], _Operation], ...] = (
    ("metadata", _READ, lambda t, asked, _: metadata(t, asked)),
    ("CodeSystem", _READ, list_systems),
    ("CodeSystem/$lookup", _BOTH, lambda t, asked, _: t.lookup(asked)),
    ("CodeSystem/$validate-code", _BOTH, lambda t, asked, _: t.validate_code(asked)),
    (
        "CodeSystem/$batch-validate-code",
        _BOTH,
        lambda t, asked, _: t.validate_batch(asked, in_value_set=False),
    ),
    ("CodeSystem/$subsumes", _BOTH, lambda t, asked, _: t.subsumes(asked)),
    ("CodeSystem/{id}", _READ, lambda t, _, name: describe(t, system_by_id(t, name))),
    (
        "CodeSystem/{id}/$validate-code",
        _BOTH,
        lambda t, asked, name: t.validate_code(asked, system_by_id(t, name)),
    ),
    (
        "CodeSystem/{id}/$subsumes",
        _BOTH,
        lambda t, asked, name: t.subsumes(asked, system_by_id(t, name)),
    ),
    ("ValueSet", _READ, list_value_sets),
    ("ValueSet/$expand", _BOTH, lambda t, asked, _: t.expand(asked)),
    ("ValueSet/$validate-code", _BOTH, lambda t, asked, _: t.validate_member(asked)),
    (
        "ValueSet/$batch-validate-code",
        _BOTH,
        lambda t, asked, _: t.validate_batch(asked, in_value_set=True),
    ),
    ("ValueSet/{id}", _READ, lambda t, _, name: value_set_by_id(t, name)),
    ("ValueSet/{id}/$expand", _BOTH, lambda t, asked, name: t.expand(_of_set(t, asked, name))),
    (
        "ValueSet/{id}/$validate-code",
        _BOTH,
        lambda t, asked, name: t.validate_member(_of_set(t, asked, name)),
    ),
    (
        "ConceptMap",
        _READ,
        lambda *_: {"resourceType": "Bundle", "type": "searchset", "total": 0},
    ),
    ("ConceptMap/$translate", _BOTH, lambda t, asked, _: t.translate(asked)),
)


def _of_set(terminology: Terminology, asked: Parameters, name: str) -> Parameters:
    """Return a request with the URL of the value set in its path."""
    return asked.with_value("url", value_set_by_id(terminology, name)["url"])


def add_fhir(
    app: FastAPI,
    terminology: Callable[[], Terminology],
    *,
    seconds: float = math.inf,
    max_steps: float = math.inf,
) -> Callable[[], None]:
    """Add the routes.

    Args:
        app: Application that gets them.
        terminology: Returns the terminology in use; it is called outside the loop.
        seconds: Time after which no client waits for an answer, so that work on it ends.
        max_steps: Steps of work that a request may need.

    Returns:
        A function that ends the work on every request in progress.

    """
    working: WeakSet[Work] = WeakSet()

    def add(path: str, methods: tuple[str, ...], operation: _Operation | None) -> None:
        async def answer(request: Request) -> Response:
            body, work = await request.body(), Work(seconds, max_steps)

            def run() -> tuple[int, Resource]:
                with work.counted():
                    return _carry_out(terminology, operation, request, body)

            working.add(work)
            status, resource = await asyncio.to_thread(run)
            return json_answer(resource, status, media_type=_JSON)

        app.add_api_route(path, answer, methods=list(methods), include_in_schema=False)

    for path, methods, operation in _OPERATIONS:
        add(f"/fhir/{path}", methods, operation)
    add("/fhir", ("POST",), None)
    add("/fhir/", ("POST",), None)
    add("/fhir/{rest:path}", ("GET", "POST", "PUT", "DELETE", "PATCH"), _unknown)

    def stop() -> None:
        for work in tuple(working):
            work.stop()

    return stop


def _carry_out(
    terminology: Callable[[], Terminology],
    operation: _Operation | None,
    request: Request,
    body: bytes,
) -> tuple[int, Resource]:
    """Carry out a request; without an operation, it is a batch of several."""

    def run() -> Resource:
        _check_types(request.headers, request.query_params.get("_format"), has_body=bool(body))
        base, languages = f"{request.base_url}fhir", request.headers.get("accept-language")
        if operation is None:
            return _batch(terminology(), parse_json(body), base, languages)
        media_type = request.headers.get("content-type", "")
        query = request.query_params.multi_items()
        asked = Parameters.read(query, media_type, body, languages)
        place = request.path_params.get("id") or request.path_params.get("rest") or base
        return operation(terminology(), asked, place)

    return _guarded(run)


def _guarded(run: Callable[[], Resource]) -> tuple[int, Resource]:
    """Return the status and the answer, or what is wrong with the request."""
    try:
        return 200, run()
    except TerminologyError as error:
        refused = error
    except NotFoundError as error:
        refused = TerminologyError("not-found", str(error))
    except BiograftError as error:
        refused = TerminologyError("invalid", str(error))
    except RecursionError:
        refused = TerminologyError("invalid", "body: nested too deeply")
    return refused.status, refused.to_outcome()


def _check_types(headers: Mapping[str, str], wanted: str | None, *, has_body: bool) -> None:
    """Refuse what is neither JSON nor a form, such as XML."""
    accept = headers.get("accept", "").lower()
    only_xml = "xml" in accept and not any(kind in accept for kind in ("json", "*/*", "html"))
    if "xml" in (wanted or "") or (only_xml and "json" not in (wanted or "")):
        raise TerminologyError(
            "not-supported", "only JSON is given: accept application/fhir+json", 406
        )
    kind = headers.get("content-type", "").partition(";")[0].strip().lower()
    if has_body and kind and not kind.endswith(("/json", "+json")) and kind != FORM:
        raise TerminologyError(
            "not-supported", "only JSON is read: send application/fhir+json", 415
        )


def _unknown(terminology: Terminology, asked: Parameters, rest: str) -> Resource:
    kind = re.match(r"\w*", rest)
    raise TerminologyError(
        "not-supported", f"{kind.group() if kind else ''}: not supported; see /fhir/metadata", 404
    )


# ---- batches


def _batch(terminology: Terminology, bundle: Any, base: str, languages: str | None) -> Resource:
    """Answer a Bundle of requests, each by itself."""
    if not isinstance(bundle, dict) or bundle.get("resourceType") != "Bundle":
        raise TerminologyError("invalid", "body: expected a resource of type Bundle")
    if bundle.get("type") != "batch":
        raise TerminologyError("not-supported", "Bundle.type: expected batch")
    entries = list_in(bundle, "entry", "Bundle")
    if len(entries) > _MAX_ENTRIES:
        raise TerminologyError("too-costly", f"Bundle.entry: at most {_MAX_ENTRIES} at once")
    answers = []
    for each in entries:
        status, resource = _guarded(lambda e=each: _one(terminology, e, base, languages))  # type: ignore[misc]
        answers.append({"resource": resource, "response": {"status": str(status)}})
    return {"resourceType": "Bundle", "type": "batch-response", "entry": answers}


def _one(terminology: Terminology, entry: Any, base: str, languages: str | None) -> Resource:
    """Answer one request of a batch."""
    spend(_STEPS_OF_ENTRY)
    request = entry.get("request") if isinstance(entry, dict) else None
    if not isinstance(request, dict) or not isinstance(request.get("url"), str):
        raise TerminologyError("required", "Bundle.entry.request.url: missing")
    method = request.get("method")
    path, _, query = request["url"].removeprefix(base).lstrip("/").partition("?")
    pairs: list[tuple[str, Any]] = list(parse_qsl(query, keep_blank_values=True))
    if method == "POST" and entry.get("resource") is not None:
        pairs += pairs_of(entry["resource"])
    asked = Parameters(pairs, languages)
    for pattern, methods, operation in _OPERATIONS:
        found = re.fullmatch(re.escape(pattern).replace(r"\{id\}", "([^/$]+)"), path)
        if found and method in methods:
            return operation(terminology, asked, found[1] if found.groups() else base)
    raise TerminologyError("not-supported", f"{method} {path}: not supported", 404)
