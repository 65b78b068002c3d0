"""The routes under ``/fhir``: capabilities, and each operation by GET and POST.

Errors are an OperationOutcome.
"""

from __future__ import annotations

import asyncio
import math
import re
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, urlencode
from weakref import WeakSet, WeakValueDictionary

from fastapi import FastAPI, Request, Response
from starlette.types import Message, Receive, Scope, Send

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
    is_kept: Callable[[Terminology], bool] = lambda terminology: False
    """Whether an answer stays the same as long as the store does, and is often asked for."""


def _always(terminology: Terminology) -> bool:
    return True


OPERATIONS = (
    Operation(
        "CodeSystem",
        "lookup",
        Terminology.lookup,
        "",
        "Names and properties of a code",
        "system code version property displayLanguage",
        _always,
    ),
    Operation(
        *("CodeSystem", "validate-code", Terminology.validate_code, "url"),
        *("Whether a code system has a code, by a display", "url code display displayLanguage"),
        _always,
    ),
    Operation(
        "CodeSystem",
        "batch-validate-code",
        lambda terminology, asked: terminology.validate_batch(asked, terminology.validate_code),
        summary="Several requests of $validate-code at once",
    ),
    Operation(
        *("CodeSystem", "subsumes", Terminology.subsumes, "system"),
        *("Subsumption of two codes", "system codeA codeB"),
        _always,
    ),
    Operation(
        *("ValueSet", "expand", Terminology.expand, "url"),
        *("The codes of a value set", "url filter count offset activeOnly displayLanguage"),
    ),
    Operation(
        *("ValueSet", "validate-code", Terminology.validate_member, "url"),
        *("Whether a value set has a code", "url system code display displayLanguage"),
        _always,
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
        lambda terminology: not terminology.is_reviewed,
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
"""Other requests that are worked on at a time, one of a client."""
_KEPT_BYTES = 16 << 20
"""Size of all answers that are kept, with their requests; that of one is a thousandth at most."""
_CHUNKED = b"transfer-encoding"
_VARYING = (b"accept", b"accept-language", b"content-length", _CHUNKED)
"""Headers that an answer depends on."""
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
    operation: _Answer | None
    """Function that answers; None: a batch of several requests."""
    summary: str
    query: str = ""
    """Parameters of GET that are described."""
    is_kept: Callable[[Terminology], bool] = lambda terminology: False


def _answers() -> Iterator[_Route]:
    """Yield the routes; those of operations first."""
    yield _Route("metadata", _READ, metadata, "Capabilities of the terminology service", "mode")
    for each in OPERATIONS:
        path = f"{each.kind}/${each.name}".lstrip("/")
        yield _Route(path, _BOTH, partial(_run, each), each.summary, each.query, each.is_kept)
        if each.own:
            path = f"{each.kind}/{{id}}/${each.name}"
            query = " ".join(name for name in each.query.split() if name != each.own)
            run = partial(_run_on_one, each)
            yield _Route(path, _BOTH, run, each.summary, query, each.is_kept)
    for kind in _KINDS:
        query = " ".join(["_count", "_offset", *(n for n in _SEARCHED if ":" not in n)])
        yield _Route(kind, _READ, partial(_search, kind), f"The resources {kind}, by pages", query)
        yield _Route(f"{kind}/{{id}}", _READ, partial(_read, kind), f"A {kind} by its id")


_ROUTES = tuple(_answers())


class _Named(NamedTuple):
    """A route with its whole path, as metrics and the log name it."""

    path: str
    route: _Route


class FhirRoutes:
    """ASGI application: the routes below ``/fhir``, found by one look-up; all else is handed on.

    FastAPI tries its routes one after the other and reads what a function declares, which costs as
    much as a look-up of a code. The same functions are its routes, which describe them.

    What needs few steps is answered at once; answers about codes are kept, until another
    terminology is in use. All else is done in threads of its own, a few requests at a time and one
    of a client, so that look-ups, health, administration and other clients do not wait for it.

    Args:
        app: Application that gets the routes, and answers all else.
        terminology: Returns the terminology in use; it is called outside the loop.
        warm: Returns it if it can answer at once.
        seconds: Time after which no client waits for an answer, so that work on it ends.
        max_steps: Steps of work that a request may need.
    """

    def __init__(
        self,
        app: FastAPI,
        terminology: Callable[[], Terminology],
        *,
        warm: Callable[[], Terminology | None] = lambda: None,
        seconds: float = math.inf,
        max_steps: float = math.inf,
    ) -> None:
        self._app, self._terminology, self._warm = app, terminology, warm
        self._seconds, self._max_steps = seconds, max_steps
        self._routes: dict[tuple[str, str], _Named] = {}
        self._kept: OrderedDict[tuple[Any, ...], tuple[_Named, int, tuple[Message, Message]]]
        self._kept, self._kept_bytes, self._kept_of = OrderedDict(), 0, warm()
        self._working: WeakSet[Work] = WeakSet()
        self._threads = ThreadPoolExecutor(_AT_A_TIME, thread_name_prefix="fhir")
        self._turns: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        for each in _ROUTES:
            self._add(f"/fhir/{each.path}", each)
        for path in ("/fhir", "/fhir/"):
            self._add(path, _Route("", ("POST",), None, ""))
        others = ("GET", "POST", "PUT", "DELETE", "PATCH")
        self._add("/fhir/{rest:path}", _Route("", others, _unknown, ""))

    def _add(self, path: str, route: _Route) -> None:
        named = _Named(path, route)

        async def answer(request: Request) -> Response:
            return await self._answer(named, request)

        for method in route.methods:
            more = _description(route, method) if route.path else {"include_in_schema": False}
            self._app.add_api_route(path, answer, methods=[method], **more)
            self._routes[method, path] = named

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request below ``/fhir``, or hand it on.

        Args:
            scope: The request.
            receive: Gives its body.
            send: Takes the answer.
        """
        named = self._find(scope)
        if named is None:
            await self._app(scope, receive, send)
        else:
            response = await self._answer(named, Request(scope, receive))
            await response(scope, receive, send)

    def _find(self, scope: Scope) -> _Named | None:
        """Return the route of a request, which it notes."""
        if scope["type"] != "http" or not scope["path"].startswith("/fhir"):
            return None
        method, path = scope["method"], scope["path"]
        found, params = self._routes.get((method, path)), {}
        if found is None:
            kind, _, rest = path.removeprefix("/fhir/").partition("/")
            identifier, _, operation = rest.partition("/")
            parts = ("/fhir", kind, "{id}", *filter(None, [operation]))
            found, params = self._routes.get((method, "/".join(parts))), {"id": identifier}
        if found is not None:
            scope["route"], scope["path_params"] = found, params
        return found

    def kept(self, scope: Scope) -> Sequence[Message]:
        """Return the messages of an answer that is kept.

        Args:
            scope: The request.
        """
        self._ready()
        key = _key(scope)
        if key not in self._kept:
            return ()
        self._kept.move_to_end(key)
        scope["route"], _, messages = self._kept[key]
        return messages

    def _ready(self) -> Terminology | None:
        """Return the terminology if it can answer at once; what another one answered is dropped."""
        ready = self._warm()
        if self._kept_of is not ready:
            self._kept.clear()
            self._kept_bytes, self._kept_of = 0, ready
        return ready

    async def _answer(self, named: _Named, request: Request) -> Response:
        route, body = named.route, await request.body()
        ready = self._ready() if len(body) <= _SMALL else None
        work = Work(self._seconds, min(_FEW_STEPS, self._max_steps))
        if ready is not None:
            status, content = _worked(lambda: ready, work, route, request, body)
        if ready is None or work.spent:
            work = Work(self._seconds, self._max_steps)
            self._working.add(work)
            client = str(request.scope.get("state", {}).get("client"))
            async with self._turns.setdefault(client, asyncio.Lock()):
                status, content = await asyncio.get_running_loop().run_in_executor(
                    self._threads, _worked, self._terminology, work, route, request, body
                )
        elif status == 200 and route.is_kept(ready) and not body:
            self._keep(named, request.scope, content)
        return Response(content, status, media_type=_JSON)

    def _keep(self, named: _Named, scope: Scope, content: bytes) -> None:
        key = _key(scope)
        size = len(content) + len(str(key))
        if key in self._kept or size > _KEPT_BYTES // 1000 or _CHUNKED in dict(key[-1]):
            return
        headers = [(b"content-type", _JSON.encode()), (b"content-length", b"%d" % len(content))]
        start = {"type": "http.response.start", "status": 200, "headers": headers}
        self._kept[key] = (named, size, (start, {"type": "http.response.body", "body": content}))
        self._kept_bytes += size
        while self._kept_bytes > _KEPT_BYTES:
            _, (_, size, _) = self._kept.popitem(last=False)
            self._kept_bytes -= size

    def stop(self) -> None:
        """End the work on every request in progress."""
        for work in tuple(self._working):
            work.stop()


def _key(scope: Scope) -> tuple[Any, ...]:
    """Return what the answer about a code depends on, where the request has no body."""
    varying = tuple(each for each in scope["headers"] if each[0] in _VARYING)
    return scope["method"], scope["path"], scope["query_string"], varying


def _worked(
    opened: Callable[[], Terminology], work: Work, route: _Route, request: Request, body: bytes
) -> tuple[int, bytes]:
    with work.counted():
        status, found = _guarded(lambda: _carry_out(opened(), route, request, body))
    return status, to_json(found)


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


def _carry_out(terminology: Terminology, route: _Route, request: Request, body: bytes) -> Resource:
    """Carry out a request."""
    _check_types(request.headers, request.query_params.get("_format"), has_body=bool(body))
    base, languages = f"{request.base_url}fhir", request.headers.get("accept-language")
    if route.operation is None:
        return _batch(terminology, parse_json(body), base, languages)
    media_type = request.headers.get("content-type", "")
    query = request.query_params.multi_items()
    is_r5 = "fhirversion=5" in request.headers.get("accept", "").lower().replace(" ", "")
    asked = Parameters.read(query, media_type, body, languages, is_r5=is_r5)
    place = request.path_params.get("id") or request.path_params.get("rest") or base
    return route.operation(terminology, asked, place)


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
        if found and method in route.methods and route.operation:
            return route.operation(terminology, asked, found[1] if found.groups() else base)
    raise TerminologyError("not-supported", f"{method} {path}: not supported", 404)
