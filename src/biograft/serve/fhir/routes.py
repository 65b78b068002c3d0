"""The routes under ``/fhir``: capabilities, and each operation by GET and POST.

Errors are an OperationOutcome.
"""

from __future__ import annotations

import asyncio
import math
import re
from collections.abc import Awaitable, Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, urlencode
from weakref import WeakSet

from fastapi import FastAPI, Request, Response
from starlette.routing import BaseRoute, Match
from starlette.types import Receive, Scope, Send

import biograft
from biograft.errors import BiograftError, NotFoundError
from biograft.kb.code_systems import CodeSystem, SuppliedSystem
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
    summary: str = ""
    query: str = ""
    """Parameters of GET that are described; all others of FHIR are taken as well."""


OPERATIONS = (
    Operation(
        "CodeSystem",
        "lookup",
        Terminology.lookup,
        "",
        "Names and properties of a code",
        "system code version property displayLanguage",
    ),
    Operation(
        *("CodeSystem", "validate-code", Terminology.validate_code, "url"),
        *("Whether a code system has a code, by a display", "url code display displayLanguage"),
    ),
    Operation(
        "CodeSystem",
        "batch-validate-code",
        lambda terminology, asked: terminology.validate_batch(asked, terminology.validate_code),
        summary="Several requests of $validate-code at once",
    ),
    Operation(
        *("CodeSystem", "subsumes", Terminology.subsumes, "system"),
        *("How two codes stand to each other", "system codeA codeB"),
    ),
    Operation(
        *("ValueSet", "expand", Terminology.expand, "url"),
        *("The codes of a value set", "url filter count offset activeOnly displayLanguage"),
    ),
    Operation(
        *("ValueSet", "validate-code", Terminology.validate_member, "url"),
        *("Whether a value set has a code", "url system code display displayLanguage"),
    ),
    Operation(
        "ValueSet",
        "batch-validate-code",
        lambda terminology, asked: terminology.validate_batch(asked, terminology.validate_member),
        summary="Several requests of $validate-code at once",
    ),
    Operation(
        *("ConceptMap", "translate", Terminology.translate, "url"),
        *("Codes of other systems for a code", "url system code targetsystem target reverse"),
    ),
    Operation(
        *("", "closure", Terminology.closure, ""),
        *("The is-a relations between the codes of a client", "name concept version"),
    ),
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
                "operation": [
                    {"name": "closure", "definition": f"{_DEFINITION}/ConceptMap-closure"}
                ],
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
    described["interaction"] = [{"code": "read"}, {"code": "search-type"}]
    described["searchParam"] = [
        {"name": name, "type": kind}
        for name, kind in (
            *(("url", "uri"), ("version", "token"), ("status", "token"), ("_id", "token")),
            *(("name", "string"), ("title", "string")),
        )
    ]
    return described


_LARGE = ("concept", "group", "expansion", "contained", "text")
"""Members that a list leaves out."""
_PAGE = 100
"""Resources of a page of a list."""


def _search(kind: str, terminology: Terminology, asked: Parameters, base: str) -> Resource:
    """Return the resources of a kind that fit, by pages, as a Bundle."""
    found = [each for each in _resources(kind, terminology) if _fits(each, asked)]
    count, offset = asked.number("_count"), asked.number("_offset") or 0
    count = _PAGE if count is None else min(count, _MAX_ENTRIES)
    page = found[offset : offset + count]
    bundle: Resource = {"resourceType": "Bundle", "type": "searchset", "total": len(found)}
    query = [(name, value) for name in _SEARCHED for value in asked.all_texts(name)]
    links = {"self": offset} | ({"next": offset + count} if page and page != found[offset:] else {})
    bundle["link"] = [
        {
            "relation": relation,
            "url": f"{base}/{kind}?"
            + urlencode([*query, ("_count", count), ("_offset", position)]),
        }
        for relation, position in links.items()
    ]
    if not page:
        return bundle
    return bundle | {
        "entry": [
            {
                "fullUrl": f"{base}/{kind}/{each['id']}",
                "resource": _in_brief(each),
                "search": {"mode": "match"},
            }
            for each in page
        ]
    }


def _resources(kind: str, terminology: Terminology) -> Iterator[Resource]:
    """Yield what is listed: code systems, their implicit value sets, and what is served beside."""
    if kind != "ConceptMap":
        for system in terminology.systems:
            if not isinstance(system, SuppliedSystem):
                yield _describe(kind, terminology, system)
    if kind == "ConceptMap":
        yield from ({**each.resource, "group": []} for each in terminology.maps())
    else:
        yield from terminology.resources(kind)


def _fits(resource: Resource, asked: Parameters) -> bool:
    """Whether a resource is searched for: by URL, version, name, title, status or id."""
    spend()
    url = asked.text("url")
    if url is not None:
        base, bar, version = url.partition("|")
        if resource.get("url") != base or (bar and resource.get("version") != version):
            return False
    for name in ("version", "status", "_id"):
        wanted = asked.text(name)
        if wanted is not None and resource.get(name.lstrip("_")) != wanted:
            return False
    for name in ("name", "title"):
        own = str(resource.get(name, "")).casefold()
        for key, holds in _TEXT_MATCHES.items():
            wanted = asked.text(f"{name}{key}")
            if wanted is not None and not holds(own, wanted.casefold()):
                return False
    return True


_TEXT_MATCHES: Mapping[str, Callable[[str, str], bool]] = {
    "": str.startswith,
    ":contains": str.__contains__,
    ":exact": str.__eq__,
}
_SEARCHED = (
    *("url", "version", "status", "_id"),
    *(f"{name}{key}" for name in ("name", "title") for key in _TEXT_MATCHES),
)


def _in_brief(resource: Resource) -> Resource:
    """Return a resource as a list has it: without its codes."""
    if not any(key in resource for key in _LARGE):
        return resource
    tag = {"system": "http://terminology.hl7.org/CodeSystem/v3-ObservationValue"}
    kept = {key: value for key, value in resource.items() if key not in (*_LARGE, "meta")}
    return {**kept, "meta": {"tag": [{**tag, "code": "SUBSETTED"}]}}


def _read(kind: str, terminology: Terminology, asked: Parameters, identifier: str) -> Resource:
    """Return the resource of a kind with an id, such as ``mesh``."""
    for system in terminology.systems if kind != "ConceptMap" else ():
        if system.id == identifier and not isinstance(system, SuppliedSystem):
            return _describe(kind, terminology, system)
    for resource in terminology.resources(kind):
        if resource.get("id") == identifier:
            return resource
    for each in terminology.maps() if kind == "ConceptMap" else ():
        if each.resource.get("id") == identifier:
            return each.to_resource()
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


class _Route(NamedTuple):
    """A route below ``/fhir``."""

    path: str
    methods: tuple[str, ...]
    operation: _Answer
    summary: str
    query: str = ""
    """Parameters of GET that are described."""


def _answers() -> Iterator[_Route]:
    """Yield the routes; those of operations first."""
    yield _Route("metadata", _READ, metadata, "What the terminology service can do", "mode")
    for each in OPERATIONS:
        path = f"{each.kind}/${each.name}".lstrip("/")
        yield _Route(path, _BOTH, partial(_run, each), each.summary, each.query)
        if each.own:
            path = f"{each.kind}/{{id}}/${each.name}"
            query = " ".join(name for name in each.query.split() if name != each.own)
            yield _Route(path, _BOTH, partial(_run_on_one, each), each.summary, query)
    for kind in _KINDS:
        query = " ".join(["_count", "_offset", *(n for n in _SEARCHED if ":" not in n)])
        yield _Route(kind, _READ, partial(_search, kind), f"The resources {kind}, by pages", query)
        yield _Route(f"{kind}/{{id}}", _READ, partial(_read, kind), f"A {kind} by its id")


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
    plain = _PlainRoutes()
    app.router.routes.insert(0, plain)
    threads = ThreadPoolExecutor(_AT_A_TIME, thread_name_prefix="fhir")

    def add(
        path: str,
        methods: tuple[str, ...],
        operation: _Answer | None,
        described: _Route | None = None,
    ) -> None:
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

        for method in methods:
            more = _description(described, method) if described else {"include_in_schema": False}
            app.add_api_route(path, answer, methods=[method], **more)
            plain.add(method, path, answer)

    for each in _ROUTES:
        add(f"/fhir/{each.path}", each.methods, each.operation, each)
    add("/fhir", ("POST",), None)
    add("/fhir/", ("POST",), None)
    add("/fhir/{rest:path}", ("GET", "POST", "PUT", "DELETE", "PATCH"), _unknown)

    def stop() -> None:
        for work in tuple(working):
            work.stop()

    return stop


class _Named(NamedTuple):
    """A route, as metrics and the log name it, and the id in a path."""

    path: str
    answer: Callable[[Request], Awaitable[Response]]


class _PlainRoutes(BaseRoute):
    """The routes below ``/fhir``, found by one look-up.

    FastAPI tries its routes one after the other and reads what a function declares, which costs as
    much as a look-up of a code. The same functions are its routes, which describe them.
    """

    def __init__(self) -> None:
        self._routes: dict[tuple[str, str], _Named] = {}

    def add(self, method: str, path: str, answer: Callable[[Request], Awaitable[Response]]) -> None:
        """Add a route.

        Args:
            method: Its method.
            path: Its path, with ``{id}`` or ``{rest:path}``.
            answer: Answers a request.
        """
        self._routes[method, path] = _Named(path, answer)

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        """Take the requests that a route answers.

        Args:
            scope: The request.
        """
        if scope["type"] != "http" or not scope["path"].startswith("/fhir"):
            return Match.NONE, {}
        method, path = scope["method"], scope["path"]
        found, params = self._routes.get((method, path)), {}
        if found is None:
            kind, _, rest = path.removeprefix("/fhir/").partition("/")
            identifier, _, operation = rest.partition("/")
            parts = ("/fhir", kind, "{id}", *filter(None, [operation]))
            found, params = self._routes.get((method, "/".join(parts))), {"id": identifier}
        return (Match.FULL, {"route": found, "path_params": params}) if found else (Match.NONE, {})

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request.

        Args:
            scope: The request.
            receive: Gives its body.
            send: Takes the answer.
        """
        response = await scope["route"].answer(Request(scope, receive))
        await response(scope, receive, send)


class _FhirResponse(Response):
    media_type = _JSON


_OUTCOME = {kind: {"schema": {"type": "object"}} for kind in (_JSON, "application/json")}
_RESPONSES: dict[int | str, dict[str, Any]] = {
    200: {"description": "a resource", "content": {_JSON: {"schema": {"type": "object"}}}},
    "4XX": {"description": "an OperationOutcome, or a limit", "content": _OUTCOME},
    503: {"description": "no answer in time; see Retry-After", "content": _OUTCOME},
}


def _description(route: _Route, method: str) -> dict[str, Any]:
    """Return what OpenAPI says of a route."""
    names = re.findall(r"{(\w+)}", route.path)
    text = {"schema": {"type": "string"}}
    extra: dict[str, Any] = {
        "parameters": [{"name": name, "in": "path", "required": True, **text} for name in names]
    }
    if method == "GET":
        extra["parameters"] += [{"name": n, "in": "query", **text} for n in route.query.split()]
    else:
        body = {"schema": {"type": "object", "title": "Parameters"}}
        extra["requestBody"] = {"content": {_JSON: body, "application/json": body}}
    return {
        "summary": route.summary,
        "tags": ["fhir"],
        "operation_id": f"fhir_{method}_{re.sub(r'[^A-Za-z]+', '_', route.path)}".lower(),
        "response_class": _FhirResponse,
        "responses": _RESPONSES,
        "openapi_extra": extra,
    }


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
    is_r5 = "fhirversion=5" in request.headers.get("accept", "").lower().replace(" ", "")
    asked = Parameters.read(query, media_type, body, languages, is_r5=is_r5)
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
    for route in _ROUTES:
        found = re.fullmatch(re.escape(route.path).replace(r"\{id\}", "([^/$]+)"), path)
        if found and method in route.methods:
            return route.operation(terminology, asked, found[1] if found.groups() else base)
    raise TerminologyError("not-supported", f"{method} {path}: not supported", 404)
