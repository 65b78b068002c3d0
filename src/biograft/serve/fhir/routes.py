"""The routes under ``/fhir``: each operation by GET and POST; errors as OperationOutcome."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable

from fastapi import FastAPI, Request, Response

from biograft.errors import BiograftError, NotFoundError
from biograft.serve.answers import json_answer
from biograft.serve.fhir.capabilities import describe, list_systems, metadata, system_by_id
from biograft.serve.fhir.code_systems import CodeSystem
from biograft.serve.fhir.errors import TerminologyError
from biograft.serve.fhir.parameters import Parameters, Resource
from biograft.serve.fhir.terminology import Terminology

_JSON = "application/fhir+json"
_Operation = Callable[[Terminology, Parameters, Request], Resource]
_READ, _BOTH = ("GET",), ("GET", "POST")
_Route = tuple[str, tuple[str, ...], _Operation]


def _system(terminology: Terminology, request: Request) -> CodeSystem:
    return system_by_id(terminology, request.path_params["identifier"])


_ROUTES: tuple[_Route, ...] = (
    ("metadata", _READ, lambda t, asked, _: metadata(t, asked)),
    ("CodeSystem", _READ, lambda t, asked, r: list_systems(t, asked, f"{r.base_url}fhir")),
    ("CodeSystem/$lookup", _BOTH, lambda t, asked, _: t.lookup(asked)),
    ("CodeSystem/$validate-code", _BOTH, lambda t, asked, _: t.validate_code(asked)),
    ("CodeSystem/$subsumes", _BOTH, lambda t, asked, _: t.subsumes(asked)),
    ("CodeSystem/{identifier}", _READ, lambda t, _, r: describe(t, _system(t, r))),
    (
        "CodeSystem/{identifier}/$validate-code",
        _BOTH,
        lambda t, asked, r: t.validate_code(asked, _system(t, r)),
    ),
    (
        "CodeSystem/{identifier}/$subsumes",
        _BOTH,
        lambda t, asked, r: t.subsumes(asked, _system(t, r)),
    ),
    ("ValueSet/$expand", _BOTH, lambda t, asked, _: t.expand(asked)),
    ("ValueSet/$validate-code", _BOTH, lambda t, asked, _: t.validate_member(asked)),
    ("ConceptMap/$translate", _BOTH, lambda t, asked, _: t.translate(asked)),
)


def add_fhir(app: FastAPI, terminology: Callable[[], Terminology]) -> None:
    """Add the routes; ``terminology`` gives the one in use, and is called outside the loop."""
    for path, methods, operation in _ROUTES:
        _add(app, f"/fhir/{path}", methods, operation, terminology)
    _add(app, "/fhir/{rest:path}", ("GET", "POST"), _unknown, terminology)


def _add(
    app: FastAPI,
    path: str,
    methods: tuple[str, ...],
    operation: _Operation,
    terminology: Callable[[], Terminology],
) -> None:
    async def answer(request: Request) -> Response:
        body = await request.body()

        def run() -> Resource:
            asked = Parameters.read(
                request.query_params.multi_items(), request.headers.get("content-type", ""), body
            )
            if "xml" in (asked.text("_format") or ""):
                raise TerminologyError("not-supported", "_format: only JSON is given", 406)
            return operation(terminology(), asked, request)

        try:
            return json_answer(await asyncio.to_thread(run), media_type=_JSON)
        except TerminologyError as error:
            refused = error
        except NotFoundError as error:
            refused = TerminologyError("not-found", str(error))
        except BiograftError as error:
            refused = TerminologyError("invalid", str(error))
        return json_answer(refused.to_outcome(), refused.status, media_type=_JSON)

    app.add_api_route(path, answer, methods=list(methods), include_in_schema=False)


def _unknown(terminology: Terminology, asked: Parameters, request: Request) -> Resource:
    kind = re.match(r"\w*", request.path_params["rest"])
    raise TerminologyError(
        "not-supported", f"{kind.group() if kind else ''}: not supported; see /fhir/metadata", 404
    )
