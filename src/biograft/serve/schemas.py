"""Requests, answers and errors of the service; what was sent is never repeated in an error."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Annotated, Any, get_origin

from fastapi import FastAPI, Request as HttpRequest, Response
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, create_model

from biograft.config import described_fields
from biograft.errors import BiograftError, ConflictError, NotFoundError, OutputError
from biograft.linking.config import LinkerConfig
from biograft.serve.batches import QueueFullError
from biograft.serve.engine import json_answer

MAX_QUERY = 1000
"""Characters of an id, or of what is typed into a search."""
MAX_HITS = 200
"""Concepts of a search."""
Span = Annotated[int, Field(ge=0, description="Characters of the text, the end exclusive.")]
_NOTE = "Denies chest pain. Mother had type 2 diabetes."


class _Answer(BaseModel):
    """An answer, made from a record that has its fields as attributes."""

    model_config = ConfigDict(from_attributes=True)


class Request(BaseModel):
    """A body of a request: a field that is not known, or of another type, is refused."""

    model_config = ConfigDict(extra="forbid", strict=True)


class SearchQuery(BaseModel):
    """The query of a search."""

    q: str = Field(max_length=MAX_QUERY, description="The beginning of a name.")
    limit: int = Field(10, ge=1, le=MAX_HITS, description="Concepts wanted.")
    language: str | None = Field(None, max_length=20, description="Language of the names.")

    @classmethod
    def parameters(cls) -> list[dict[str, Any]]:
        """Return the parameters as OpenAPI describes them."""
        schema = cls.model_json_schema()
        return [
            {
                "name": name,
                "in": "query",
                "required": name in schema["required"],
                "schema": each,
            }
            for name, each in schema["properties"].items()
        ]

    @classmethod
    def read(cls, query: Mapping[str, str]) -> SearchQuery:
        """Read a query; by itself, since FastAPI needs more time for it than a search.

        Args:
            query: The query.
        """
        try:
            return cls.model_validate_strings(dict(query))
        except ValidationError as error:
            raise RequestValidationError(
                [{**each, "loc": ("query", *each["loc"])} for each in error.errors()]
            ) from error


PER_REQUEST = ("k", "threshold", "types", "sources", "assertions")
"""Settings of the linker that a request may give; all else is fixed when the service starts."""


def _link_options() -> Any:
    """Make the schema of those settings from their declarations in ``LinkerConfig``."""
    fields: dict[str, Any] = {}
    for field in described_fields(LinkerConfig):
        if field.name in PER_REQUEST:
            kind = list[str] if get_origin(field.type) is tuple else field.type
            least = None if field.range is None else field.range.min
            about = Field(None, description=field.doc.help, ge=least)
            fields[field.name] = (kind | None, about)
    return create_model("LinkOptions", __base__=Request, **fields)


if TYPE_CHECKING:
    LinkOptions = Request
else:
    LinkOptions = _link_options()


class LinkRequest(LinkOptions):
    """One text, or several."""

    model_config = ConfigDict(
        extra="forbid", strict=True, json_schema_extra={"examples": [{"text": _NOTE, "k": 3}]}
    )
    text: str | None = None
    texts: list[str] | None = None


class MentionsRequest(LinkOptions):
    """Terms, each of which is one mention."""

    model_config = ConfigDict(
        extra="forbid",
        strict=True,
        json_schema_extra={"examples": [{"mentions": ["heart atack", "sugar disease"]}]},
    )
    mentions: list[str]


class CandidateAnswer(_Answer):
    """A concept that a mention may refer to."""

    concept: str
    name: str = Field(validation_alias="concept_name", description="The concept's preferred name.")
    matched: str = Field(validation_alias="name", description="The name that was found.")
    score: float
    probability: float | None = Field(None, description="Where the linker is calibrated.")
    types: list[str] = Field([], description="Codes of its semantic types.")
    evidence: Annotated[
        list[dict[str, Any]], BeforeValidator(lambda found: [each.to_json() for each in found])
    ] = Field([], description="Names that each search found, with their ranks.")


class MentionAnswer(_Answer):
    """A mention with its concept, or null, and what the text says about it."""

    start: Span
    end: Span
    text: str
    concept: str | None = Field(description="Id of the concept; null: no answer is good enough.")
    name: str | None
    score: float | None
    probability: float | None = None
    types: list[str] = Field([], description="Codes of the concept's semantic types.")
    status: str | None = Field(description="Such as present, absent, possible, family.")
    axes: dict[str, str] | None = Field(None, description="Such as course: resolved.")
    section: str | None = None
    ambiguous: list[str] = Field([], description="Other concepts with the same name.")
    candidates: list[CandidateAnswer] = []


class LinkAnswer(_Answer):
    """The mentions of a text, from left to right."""

    mentions: list[MentionAnswer]


class BatchAnswer(BaseModel):
    """The mentions of each text, in the order of the request."""

    documents: list[LinkAnswer]


class TermAnswer(BaseModel):
    """The candidates of a term, best first."""

    text: str
    concept: str | None
    name: str | None
    score: float | None
    candidates: list[CandidateAnswer]


class MentionsAnswer(BaseModel):
    """The answers to terms, in the order of the request."""

    mentions: list[TermAnswer]


class AssertionsRequest(Request):
    """A text, and the spans of it that are asked about."""

    model_config = ConfigDict(
        extra="forbid",
        strict=True,
        json_schema_extra={"examples": [{"text": _NOTE, "spans": [[7, 17], [30, 45]]}]},
    )
    text: str
    spans: list[Annotated[list[Span], Field(min_length=2, max_length=2)]]


class AssertionAnswer(BaseModel):
    """Assertion of a span: the status, the axes and the flags, with their triggers."""

    model_config = ConfigDict(extra="allow")
    start: Span
    end: Span
    status: str
    axes: dict[str, str]
    section: str
    triggers: list[dict[str, Any]]


class AssertionsAnswer(BaseModel):
    """The assertions of the spans, in the order of the request."""

    assertions: list[AssertionAnswer]


class SearchHit(BaseModel):
    """A concept with the name that matches what was typed."""

    concept: str
    name: str
    matched: str
    language: str
    how: str = Field(description="exact, prefix, words, pinyin or similar")


class SearchAnswer(BaseModel):
    """Concepts, best first."""

    concepts: list[SearchHit]


class NeighbourAnswer(BaseModel):
    """A concept at the other end of a relation."""

    concept: str
    name: str
    relation: str
    direction: str = Field(description="out: the concept asked for is the head")


class NeighboursAnswer(BaseModel):
    """Neighbours of a concept, by relation and direction."""

    concept: str
    neighbours: list[NeighbourAnswer]


class IsAAnswer(BaseModel):
    """Whether a concept is another one, or below it."""

    is_a: bool


class ConceptAnswer(BaseModel):
    """A concept as the store has it."""

    model_config = ConfigDict(extra="allow")
    id: str
    name: str
    names: list[dict[str, Any]]
    definitions: list[dict[str, Any]]
    types: list[dict[str, Any]]
    ids: list[dict[str, Any]]
    parents: list[dict[str, str]]
    children: list[dict[str, str]]
    relations: list[dict[str, Any]]


class Problem(BaseModel):
    """Why a request was refused: what, where, and what to do."""

    detail: str


# ---- errors

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

    Args:
        error: The error, as pydantic describes it.

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
    """Answer every error with one line that repeats nothing of what was sent.

    Args:
        app: Application that answers so.
    """

    async def answer(request: HttpRequest, error: Exception) -> Response:
        headers = {}
        if isinstance(error, RequestValidationError):
            status, detail = 422, describe(error.errors()[0])
        elif isinstance(error, RecursionError):
            status, detail = 422, "body: nested too deeply"
        elif isinstance(error, QueueFullError):
            status, detail = 503, "too many requests wait; try again"
            headers = {"retry-after": str(error.retry_after)}
        elif isinstance(error, BiograftError):
            known = {NotFoundError: 404, ConflictError: 409, OutputError: 503}
            status = next((n for kind, n in known.items() if isinstance(error, kind)), 422)
            detail = str(error)
        else:
            status, detail = 500, "internal error; it was logged"
        return json_answer({"detail": detail}, status, headers)

    kinds = (RequestValidationError, RecursionError, QueueFullError, BiograftError, Exception)
    for kind in kinds:
        app.add_exception_handler(kind, answer)
