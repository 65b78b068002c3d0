"""Requests and answers of the service, as OpenAPI describes them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, get_origin

from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model

from biograft.config import described_fields
from biograft.linking.config import LinkerConfig

MAX_QUERY = 1000
"""Characters of an id, or of what is typed into a search."""
MAX_HITS = 200
"""Concepts of a search."""
Span = Annotated[int, Field(ge=0, description="Characters of the text, the end exclusive.")]
_NOTE = "Denies chest pain. Mother had type 2 diabetes."


class _Request(BaseModel):
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
        """Read a query; by itself, since FastAPI needs more time for it than a search."""
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
            about = Field(None, description=field.doc.help)
            if field.range is not None:
                about = Field(None, description=field.doc.help, ge=field.range.min)
            fields[field.name] = (kind | None, about)
    return create_model("LinkOptions", __base__=_Request, **fields)


if TYPE_CHECKING:
    LinkOptions = _Request
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


class CandidateAnswer(BaseModel):
    """A concept that a mention may refer to."""

    concept: str
    name: str = Field(description="The concept's preferred name.")
    matched: str = Field(description="The name that was found.")
    score: float
    probability: float | None = Field(None, description="Where the linker is calibrated.")
    types: list[str] = Field([], description="Codes of its semantic types.")
    evidence: list[dict[str, Any]] = Field([], description="What each search found, and its rank.")


class MentionAnswer(BaseModel):
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
    section: str | None = None
    ambiguous: list[str] = Field([], description="Other concepts with the same name.")
    candidates: list[CandidateAnswer] = []


class LinkAnswer(BaseModel):
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


class SearchHit(BaseModel):
    """A concept with the name that matches what was typed."""

    concept: str
    name: str
    matched: str
    language: str
    how: str = Field(description="exact, prefix or words")


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
