"""The routes under ``/fhir``: capabilities, and each operation by GET and POST.

Errors are an OperationOutcome.
"""

from __future__ import annotations

import asyncio
import math
import re
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, NamedTuple
from urllib.parse import parse_qsl
from weakref import WeakSet

from fastapi import FastAPI, Request, Response

import biograft
from biograft.errors import BiograftError, NotFoundError
from biograft.kb.code_systems import CodeSystem
from biograft.kb.fhir import Resource, TerminologyError, Work, list_in, spend
from biograft.serve.engine import to_json
from biograft.serve.fhir.expansion import PARAMETERS
from biograft.serve.fhir.parameters import (
    FORM,
    STATUS,
    Parameters,
    outcome_of,
    pairs_of,
    parse_json,
)
from biograft.serve.fhir.terminology import Terminology


class Operation(NamedTuple):
    """An operation of FHIR on a kind of resource; ``run`` answers it."""

    kind: str
    name: str
    run: Callable[[Terminology, Parameters], Resource]
    own: str = ""
    """Parameter that has the URL of the resource, where one of them may be asked by its id."""


OPERATIONS = (
    Operation("CodeSystem", "lookup", Terminology.lookup),
    Operation("CodeSystem", "validate-code", Terminology.validate_code, "url"),
    Operation(
        "CodeSystem",
        "batch-validate-code",
        lambda terminology, asked: terminology.validate_batch(asked, terminology.validate_code),
    ),
    Operation("CodeSystem", "subsumes", Terminology.subsumes, "system"),
    Operation("ValueSet", "expand", Terminology.expand, "url"),
    Operation("ValueSet", "validate-code", Terminology.validate_member, "url"),
    Operation(
        "ValueSet",
        "batch-validate-code",
        lambda terminology, asked: terminology.validate_batch(asked, terminology.validate_member),
    ),
    Operation("ConceptMap", "translate", Terminology.translate),
)
_KINDS = ("CodeSystem", "ValueSet", "ConceptMap")
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


def metadata(terminology: Terminology, asked: Parameters, base: str) -> Resource:
    """Return the CapabilityStatement, or the TerminologyCapabilities with ``mode=terminology``.

    Args:
        terminology: The terminology of the store.
        asked: The parameters of the request.
        base: URL of the service.
    """
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
                "resource": [_capability(kind) for kind in _KINDS],
            }
        ],
    }


def _capability(kind: str) -> Resource:
    described: Resource = {
        "type": kind,
        "operation": [
            {"name": each.name, "definition": f"{_DEFINITION}/{kind}-{each.name}"}
            for each in OPERATIONS
            if each.kind == kind
        ],
    }
    if kind != "ConceptMap":
        described["interaction"] = [{"code": "read"}, {"code": "search-type"}]
        described["searchParam"] = [
            {"name": "url", "type": "uri"},
            {"name": "version", "type": "token"},
        ]
    return described


def _search(kind: str, terminology: Terminology, asked: Parameters, base: str) -> Resource:
    """Return the resources of a kind, or the one with a URL, as a Bundle."""
    url, version = asked.text("url"), asked.text("version")
    systems = terminology.systems if kind != "ConceptMap" else ()
    found = [
        {
            "fullUrl": f"{base}/{kind}/{each['id']}",
            "resource": each,
            "search": {"mode": "match"},
        }
        for each in (_describe(kind, terminology, system) for system in systems)
        if (url is None or each["url"] == url.partition("|")[0])
        and (version is None or each.get("version") == version)
    ]
    bundle: dict[str, Any] = {"resourceType": "Bundle", "type": "searchset", "total": len(found)}
    return {**bundle, "entry": found} if found else bundle


def _read(kind: str, terminology: Terminology, asked: Parameters, identifier: str) -> Resource:
    """Return the resource of a kind with an id, such as ``mesh``."""
    for each in terminology.systems:
        if each.id == identifier:
            return _describe(kind, terminology, each)
    raise TerminologyError("not-found", f"no {kind}/{identifier}; see /fhir/{kind}")


def _describe(kind: str, terminology: Terminology, system: CodeSystem) -> Resource:
    """Return a code system without its codes, or the value set of all of them."""
    common = {
        "resourceType": kind,
        "id": system.id,
        "url": system.url,
        "name": system.name or "kb",
        "status": "active",
        "date": _made_at(terminology),
    }
    value_set = f"{system.url}?fhir_vs"
    if kind == "ValueSet":
        return common | {
            "url": value_set,
            "title": f"All codes of {system.url}",
            "compose": {"include": [{"system": system.url}]},
        }
    return common | {
        "hierarchyMeaning": "is-a",
        "valueSet": value_set,
        "content": "not-present",
        "count": len(terminology.systems.members(system)),
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
_FEW_STEPS = 2_000
"""Steps of a request that is answered at once, in the loop."""
_SMALL = 4_096
"""Bytes of its body."""
_AT_A_TIME = 2
"""Other requests that are worked on at a time."""
_READ, _BOTH = ("GET",), ("GET", "POST")
_Answer = Callable[[Terminology, Parameters, str], Resource]
"""Answers a request; the text is the id in the path, or the URL of the service."""


def _run(operation: Operation, terminology: Terminology, asked: Parameters, base: str) -> Resource:
    return operation.run(terminology, asked)


def _run_on_one(
    operation: Operation, terminology: Terminology, asked: Parameters, identifier: str
) -> Resource:
    """Answer an operation that is asked of one resource, by its URL."""
    resource = _read(operation.kind, terminology, asked, identifier)
    return operation.run(terminology, asked.with_values([(operation.own, resource["url"])]))


def _answers() -> Iterator[tuple[str, tuple[str, ...], _Answer]]:
    """Yield the path, the methods and the answer of each route; those of operations first."""
    yield "metadata", _READ, metadata
    for each in OPERATIONS:
        yield f"{each.kind}/${each.name}", _BOTH, partial(_run, each)
        if each.own:
            yield f"{each.kind}/{{id}}/${each.name}", _BOTH, partial(_run_on_one, each)
    for kind in _KINDS:
        yield kind, _READ, partial(_search, kind)
        if kind != "ConceptMap":
            yield f"{kind}/{{id}}", _READ, partial(_read, kind)


_ROUTES = tuple(_answers())


def add_fhir(
    app: FastAPI,
    terminology: Callable[[], Terminology],
    *,
    warm: Callable[[], Terminology | None] = lambda: None,
    seconds: float = math.inf,
    max_steps: float = math.inf,
) -> Callable[[], None]:
    """Add the routes.

    What needs few steps is answered at once. All else is done in threads of its own, a few requests
    at a time, so that look-ups, health and administration do not wait for it.

    Args:
        app: Application that gets them.
        terminology: Returns the terminology in use; it is called outside the loop.
        warm: Returns it if it can answer at once.
        seconds: Time after which no client waits for an answer, so that work on it ends.
        max_steps: Steps of work that a request may need.

    Returns:
        A function that ends the work on every request in progress.

    """
    working: WeakSet[Work] = WeakSet()
    threads = ThreadPoolExecutor(_AT_A_TIME, thread_name_prefix="fhir")

    def add(path: str, methods: tuple[str, ...], operation: _Answer | None) -> None:
        def run(
            opened: Callable[[], Terminology], work: Work, request: Request, body: bytes
        ) -> tuple[int, bytes]:
            with work.counted():
                status, found = _guarded(lambda: _carry_out(opened(), operation, request, body))
            return status, to_json(found)

        async def answer(request: Request) -> Response:
            body = await request.body()
            ready = warm() if len(body) <= _SMALL else None
            work = Work(seconds, min(_FEW_STEPS, max_steps))
            if ready is not None:
                status, content = run(lambda: ready, work, request, body)
            if ready is None or work.spent:
                work = Work(seconds, max_steps)
                working.add(work)
                status, content = await asyncio.get_running_loop().run_in_executor(
                    threads, run, terminology, work, request, body
                )
            return Response(content, status, media_type=_JSON)

        app.add_api_route(path, answer, methods=list(methods), include_in_schema=False)

    for path, methods, operation in _ROUTES:
        add(f"/fhir/{path}", methods, operation)
    add("/fhir", ("POST",), None)
    add("/fhir/", ("POST",), None)
    add("/fhir/{rest:path}", ("GET", "POST", "PUT", "DELETE", "PATCH"), _unknown)

    def stop() -> None:
        for work in tuple(working):
            work.stop()

    return stop


def _carry_out(
    terminology: Terminology, operation: _Answer | None, request: Request, body: bytes
) -> Resource:
    """Carry out a request; without an operation, it is a batch of several."""
    _check_types(request.headers, request.query_params.get("_format"), has_body=bool(body))
    base, languages = f"{request.base_url}fhir", request.headers.get("accept-language")
    if operation is None:
        return _batch(terminology, parse_json(body), base, languages)
    media_type = request.headers.get("content-type", "")
    query = request.query_params.multi_items()
    asked = Parameters.read(query, media_type, body, languages)
    place = request.path_params.get("id") or request.path_params.get("rest") or base
    return operation(terminology, asked, place)


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
    return refused.status or STATUS[refused.code], outcome_of(refused)


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
    for pattern, methods, operation in _ROUTES:
        found = re.fullmatch(re.escape(pattern).replace(r"\{id\}", "([^/$]+)"), path)
        if found and method in methods:
            return operation(terminology, asked, found[1] if found.groups() else base)
    raise TerminologyError("not-supported", f"{method} {path}: not supported", 404)
