"""Errors of requests as one plain line of JSON; what was sent is never repeated."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError

from biograft.errors import BiograftError, ConflictError, NotFoundError
from biograft.serve.engine import QueueFullError, json_answer

_Words = Callable[[Mapping[str, Any]], str]
_KINDS: Mapping[str, str] = {
    "string": "a text",
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "list": "a list",
    "dict": "an object",
    "model": "an object",
}
_MESSAGES: Mapping[str, _Words] = {
    "missing": lambda _: "missing",
    "extra_forbidden": lambda _: "a field that is not known here",
    "json_invalid": lambda _: "expected JSON",
    "greater_than_equal": lambda ctx: f"expected {_number(ctx['ge'])} or more",
    "less_than_equal": lambda ctx: f"expected {_number(ctx['le'])} or less",
    "string_too_long": lambda ctx: f"expected at most {ctx['max_length']} characters",
    "string_too_short": lambda ctx: f"expected at least {ctx['min_length']} characters",
    "literal_error": lambda ctx: f"expected {ctx['expected']}",
    "finite_number": lambda _: "expected a number",
    "string_unicode": lambda _: "expected a text",
}


def _number(value: float) -> str:
    return str(value) if isinstance(value, int) else f"{value:g}"


def describe(error: Mapping[str, Any]) -> str:
    """Return what is wrong with a request, where.

    >>> describe({"loc": ("body", "k"), "type": "greater_than_equal", "ctx": {"ge": 1}})
    'k: expected 1 or more'
    """
    first, *rest = error["loc"]
    known = [str(part) for part in rest if isinstance(part, int) or str(part).isidentifier()]
    place = ".".join(known) or str(first)
    kind = str(error["type"])
    if kind in ("extra_forbidden", "json_invalid"):
        place = str(first)  # the rest is what was sent
    words = _MESSAGES.get(kind)
    if words is not None:
        return f"{place}: {words(error.get('ctx') or {})}"
    expected = _KINDS.get(kind.partition("_")[0], "something else")
    return f"{place}: expected {expected}"


def add_problems(app: FastAPI) -> None:
    """Answer every expected error with one line."""

    @app.exception_handler(RequestValidationError)
    async def invalid(request: Request, error: RequestValidationError) -> Response:
        return json_answer({"detail": describe(error.errors()[0])}, 422)

    @app.exception_handler(NotFoundError)
    async def unknown(request: Request, error: NotFoundError) -> Response:
        return json_answer({"detail": str(error)}, 404)

    @app.exception_handler(ConflictError)
    async def conflicting(request: Request, error: ConflictError) -> Response:
        return json_answer({"detail": str(error)}, 409)

    @app.exception_handler(BiograftError)
    async def refused(request: Request, error: BiograftError) -> Response:
        return json_answer({"detail": str(error)}, 422)

    @app.exception_handler(RecursionError)
    async def nested(request: Request, error: RecursionError) -> Response:
        return json_answer({"detail": "body: nested too deeply"}, 422)

    @app.exception_handler(Exception)
    async def failed(request: Request, error: Exception) -> Response:
        return json_answer({"detail": "internal error; it was logged"}, 500)

    @app.exception_handler(QueueFullError)
    async def busy(request: Request, error: QueueFullError) -> Response:
        headers = {"retry-after": str(error.retry_after)}
        return json_answer({"detail": "too many requests wait; try again"}, 503, headers)
