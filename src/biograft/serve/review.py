"""The review over HTTP: queues, decisions, bulk, undo, history and export, under ``/v1/review``.

Who decides is the owner of the key. Without keys a request names its reviewer.
"""

from __future__ import annotations

import contextlib
import secrets
import tempfile
from collections.abc import Callable
from difflib import SequenceMatcher
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import quote

from fastapi import APIRouter, Depends, Query, Request as HttpRequest, Response
from pydantic import Field

from biograft.errors import ConfigError, ConflictError, NotFoundError
from biograft.kb.names import normalise, one_line
from biograft.kb.vocabularies import vocabulary_of
from biograft.mapping import (
    ReviewFilter,
    ReviewItem,
    ReviewStore,
    ReviewTerm,
    SuggestedConcept,
    draw_sample,
    export_review,
    review_agreement,
)
from biograft.mapping.review_sample import SAMPLE
from biograft.serve.engine import ServiceEngine, json_answer
from biograft.serve.schemas import Request

FINDINGS = "findings"
"""The queue of what was judged on the page of findings."""
_MAX_TERMS = 500
_MAX_TEXT = 2000
_MAX_NUMBER = (1 << 63) - 1
_CSV = "text/csv; charset=utf-8"
_EXPORTS = {
    "sssom": (".sssom.tsv", "text/tab-separated-values; charset=utf-8"),
    "csv": (".csv", _CSV),
    "xlsx": (".xlsx", "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"),
    "usagi": (".usagi.csv", _CSV),
    "omop": (".omop.csv", _CSV),
    "fhir": (".json", "application/fhir+json"),
    "all": (".zip", "application/zip"),
}
Text = Annotated[str, Field(max_length=_MAX_TEXT)]
Short = Annotated[str | None, Query(max_length=200)]
QueueName = Annotated[str, Query(max_length=200)]
Viewer = Annotated[
    str, Query(max_length=_MAX_TEXT, description="Reviewer, if the service has no keys.")
]
Share = Annotated[float | None, Query(ge=0, le=1)]


def _filter(
    status: Short = None,
    flag: Short = None,
    text: Short = None,
    min_score: Share = None,
    max_score: Share = None,
    min_probability: Share = None,
    waits_for: Short = None,
) -> ReviewFilter:
    """Return the filter of a query."""
    given = {name: value for name, value in locals().items() if value not in (None, "")}
    return ReviewFilter(**given)


Where = Annotated[ReviewFilter, Depends(_filter)]
Number = Annotated[int, Field(ge=0, le=_MAX_NUMBER)]
"""A whole number that a database can hold."""
Action = Literal["approve", "reject", "nil"]
Relation = Literal["exact", "broad", "narrow", "close", "related"]


class _Action(Request):
    reviewer: Text = Field("", description="Reviewer, if the service has no keys.")
    change: str = Field(
        default_factory=lambda: secrets.token_hex(8),
        pattern="^[0-9a-f]{16}$",
        description="Id of this change, new for each: a request sent again is not done twice.",
    )
    comment: Text = Field("", description="Reason for the decision.")


class DecisionRequest(_Action):
    """A decision about a term, in the version that was seen."""

    action: Action
    version: Number = Field(description="The version that was seen; a newer one is answered 409.")
    concept: Text | None = Field(None, description="Another concept than the suggested one.")
    name: Text | None = None
    relation: Relation | None = Field(
        None, description="Of the concept to the term; default: exact, or what was proposed."
    )


class TargetRequest(_Action):
    """A further concept of a term."""

    concept: Text
    name: Text = ""
    relation: Relation = "exact"


class CommentRequest(Request):
    """A comment on a term."""

    reviewer: Text = ""
    text: Text


class BulkRequest(_Action):
    """The same decision about all terms that filters mean."""

    action: Action
    queue: Text
    expected: Number = Field(description="The number of terms that was shown.")
    leave_risky: bool = Field(
        False, description="Leave doubtful terms, such as acronyms, for single decisions."
    )
    flag: Text | None = None
    text: Text | None = None
    min_score: float | None = Field(None, ge=0, le=1)
    max_score: float | None = Field(None, ge=0, le=1)
    min_probability: float | None = Field(None, ge=0, le=1)


class UndoRequest(_Action):
    """An event, or all of a batch."""

    event: Number | None = None
    batch: Text | None = None


class FindingRequest(_Action):
    """A reviewer's verdict on a finding in a text: only its own words are stored."""

    text: Annotated[str, Field(min_length=1, max_length=_MAX_TEXT)]
    decision: Literal["correct", "wrong", "other"]
    concept: Text | None = Field(None, description="The concept that is right, or wrong.")
    name: Text | None = None
    suggested: Text | None = Field(None, description="The concept that the linker gave.")
    version: Number | None = Field(
        None, description="The version that was seen; without, what others decided is answered 409."
    )


def add_review(
    routes: APIRouter, store: ReviewStore | None, engine: Callable[[], ServiceEngine]
) -> None:
    """Add the routes of a review; without one, only the answer that there is none.

    Args:
        routes: Where they are added.
        store: The review; None: there is none.
        engine: Returns the engine in use, whose concepts are shown beside the terms.
    """

    @routes.get("/v1/review", summary="The queues of the review, and who asks")
    def queues(request: HttpRequest, reviewer: Viewer = "") -> Response:
        viewer = _owner(request) or reviewer
        return json_answer(
            {
                "open": store is not None,
                "reviewer": _owner(request),
                "queues": [] if store is None else store.queues(viewer),
            }
        )

    if store is not None:
        _add_reading(routes, store, engine)
        _add_deciding(routes, store)


def _beside(term: ReviewTerm, engine: ServiceEngine, identifier: str) -> dict[str, Any]:
    """Return a concept, its vocabulary and status, and the name that is most like a term."""
    try:
        concept = engine.concept(identifier)
    except NotFoundError as error:  # of another release: retired, replaced or unknown
        return {"id": identifier, "status": "missing", "detail": str(error)}
    text = normalise(term.part or term.text)
    names = concept["names"][:_MAX_TERMS]
    alike = [SequenceMatcher(None, text, normalise(name["text"])).ratio() for name in names]
    best = max(range(len(names)), key=alike.__getitem__, default=None)
    why: dict[str, Any] = {"flag": term.flag, "reason": term.reason}
    if best is not None:
        why |= {"name": names[best], "similarity": round(alike[best], 3)}
    vocabulary = vocabulary_of(concept["id"]) or engine.kb.vocabulary
    return {**concept, "status": "current", "vocabulary": vocabulary, "why": why}


def _add_reading(
    routes: APIRouter, store: ReviewStore, engine: Callable[[], ServiceEngine]
) -> None:
    @routes.get(
        "/v1/review/terms", summary="Terms of a queue, the most doubtful and frequent first"
    )
    def terms(
        request: HttpRequest,
        queue: QueueName,
        where: Where,
        reviewer: Viewer = "",
        limit: Annotated[int, Query(ge=1, le=_MAX_TERMS)] = 50,
        offset: Annotated[int, Query(ge=0, le=_MAX_NUMBER)] = 0,
    ) -> Response:
        viewer = _owner(request) or reviewer
        items = store.items(queue, where, limit=limit, offset=offset, viewer=viewer)
        total = store.count(queue, where, viewer)
        return json_answer({"terms": [item.to_json() for item in items], "total": total})

    @routes.get(
        "/v1/review/terms/{term_id}", summary="A term with its other targets and its history"
    )
    def term(request: HttpRequest, term_id: Number, reviewer: Viewer = "") -> Response:
        viewer = _owner(request) or reviewer
        item = store.item(term_id, viewer)
        history = [event.to_json() for event in store.history(term_id=term_id, viewer=viewer)]
        others = [other.to_json() for other in store.others(item, viewer)]
        return json_answer({**item.to_json(), "targets": others, "history": history})

    @routes.get("/v1/review/terms/{term_id}/concept", summary="A concept beside a term, and why")
    def beside(term_id: Number, concept: Short = None) -> Response:
        item = store.item(term_id, "")
        first = item.next_candidate.concept if item.next_candidate else ""
        return json_answer(_beside(item.term, engine(), concept or first))

    @routes.get(
        "/v1/review/sample", summary="Terms to check before the others are approved at once"
    )
    def sample(
        request: HttpRequest,
        queue: QueueName,
        where: Where,
        reviewer: Viewer = "",
        size: Annotated[int, Query(ge=1, le=_MAX_TERMS)] = SAMPLE,
    ) -> Response:
        who = _reviewer(request, reviewer)
        return json_answer(draw_sample(store, queue, where, reviewer=who, size=size).to_json())

    @routes.get("/v1/review/history", summary="Decisions with their reviewers, the latest first")
    def history(
        request: HttpRequest,
        queue: QueueName,
        limit: Annotated[int, Query(ge=1, le=_MAX_TERMS)] = 50,
        reviewer: Viewer = "",
    ) -> Response:
        events = store.history(queue, limit=limit, viewer=_owner(request) or reviewer)
        return json_answer({"events": [event.to_json() for event in events]})

    @routes.get("/v1/review/agreement", summary="Agreement of two reviewers, and their differences")
    def agreement(queue: QueueName) -> Response:
        return json_answer(review_agreement(store, queue).to_json())

    @routes.get(
        "/v1/review/export", summary="The decisions as a mapping set, or all as a worksheet"
    )
    def export(
        queue: QueueName,
        to: Literal["sssom", "csv", "xlsx", "usagi", "omop", "fhir", "all"] = "sssom",
    ) -> Response:
        ending, media_type = _EXPORTS[to]
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / f"review{ending}"
            left_out: list[tuple[str, str]] = []
            export_review(store, path, queue=queue, left_out=left_out, kb=engine().kb)
            content = path.read_bytes()
        headers = {
            "content-disposition": f'attachment; filename="review{ending}"',
            "x-left-out": quote(", ".join(term for term, _ in left_out[:_MAX_TERMS]), " ,"),
        }
        return Response(content, media_type=media_type, headers=headers)


def _add_deciding(routes: APIRouter, store: ReviewStore) -> None:
    @routes.post("/v1/review/terms/{term_id}/decision", summary="Decide about a term")
    def decide(term_id: Number, asked: DecisionRequest, request: HttpRequest) -> Response:
        who = _reviewer(request, asked.reviewer)
        details = asked.model_dump(include={"version", "concept", "name", "comment"})
        details |= {"reviewer": who, "relation": asked.relation or "", "batch": asked.change}
        decision = partial(store.decide, term_id, asked.action, **details)
        return _changed(store, term_id, asked.change, who, decision)

    @routes.post(
        "/v1/review/terms/{term_id}/targets", summary="Approve a further concept of a term"
    )
    def target(term_id: Number, asked: TargetRequest, request: HttpRequest) -> Response:
        details = asked.model_dump(include={"concept", "name", "relation", "comment"})
        who = _reviewer(request, asked.reviewer)
        item = store.add_target(term_id, reviewer=who, batch=asked.change, **details)
        return json_answer({**item.to_json(), "batch": asked.change})

    @routes.post("/v1/review/terms/{term_id}/comment", summary="Comment on a term")
    def comment(term_id: Number, asked: CommentRequest, request: HttpRequest) -> Response:
        event = store.comment(term_id, asked.text, reviewer=_reviewer(request, asked.reviewer))
        return json_answer(event.to_json())

    @routes.post("/v1/review/bulk", summary="Decide the same about many terms")
    def bulk(asked: BulkRequest, request: HttpRequest) -> Response:
        names = {"flag", "text", "min_score", "max_score", "min_probability"}
        where = ReviewFilter(**asked.model_dump(include=names))
        if where == ReviewFilter():
            raise ConfigError("bulk: give a filter, such as min_probability")
        done = store.decide_many(
            asked.action,
            reviewer=_reviewer(request, asked.reviewer),
            queue=asked.queue,
            where=where,
            comment=asked.comment,
            expected=asked.expected,
            batch=asked.change,
            leave_risky=asked.leave_risky,
        )
        return json_answer(done.to_json())

    @routes.post("/v1/review/undo", summary="Undo an event, or a batch")
    def undo(asked: UndoRequest, request: HttpRequest) -> Response:
        who = _reviewer(request, asked.reviewer)
        if (asked.event is None) == (asked.batch is None):
            raise ConfigError("undo: give either event or batch")
        said = {"reviewer": who, "comment": asked.comment}
        if asked.event is None:
            done = store.undo_batch(asked.batch or "", undo_batch=asked.change, **said)
            return json_answer(done.to_json())
        for event in store.events(id=asked.event):
            undo = partial(store.undo, event.id, batch=asked.change, **said)
            return _changed(store, event.term_id, asked.change, who, undo)
        raise NotFoundError(f"no event has the id {asked.event}")

    @routes.post("/v1/review/findings", summary="Keep what was said about a finding in a text")
    def finding(asked: FindingRequest, request: HttpRequest) -> Response:
        if asked.concept is None:
            raise ConfigError("concept: say which one is right, or wrong")
        if asked.decision != "wrong":
            store.check_concept(asked.concept)
        reviewer = _reviewer(request, asked.reviewer)
        term = _finding(store, asked, reviewer)
        action = "reject" if asked.decision == "wrong" else "approve"
        state = term.state
        is_same = (state.action, state.concept) == (action, asked.concept)
        is_own = asked.version is None and reviewer in (state.reviewer, state.second_reviewer)
        details = asked.model_dump(include={"concept", "name", "comment"})
        details |= {"reviewer": reviewer, "batch": asked.change}
        is_right = is_same or is_own or state.status == "open"
        details["version"] = term.version if is_right else asked.version or 0
        decision = partial(store.decide, term.id, action, **details)
        return _changed(store, term.id, asked.change, reviewer, decision)


def _finding(store: ReviewStore, asked: FindingRequest, reviewer: str) -> ReviewItem:
    """Return the words of a finding in the queue of findings, to which they are added if new."""
    text = one_line(asked.text)
    if found := store.find(FINDINGS, text):
        return found
    candidates = (SuggestedConcept(asked.suggested or asked.concept or "", asked.name or ""),)
    with contextlib.suppress(ConflictError):  # added meanwhile
        term = ReviewTerm(text, candidates=candidates)
        store.add_terms([term], reviewer=reviewer, queue=FINDINGS)
    if found := store.find(FINDINGS, text):
        return found
    raise ConfigError("text: expected words")


def _changed(
    store: ReviewStore, term_id: int, change: str, who: str, act: Callable[[], ReviewItem]
) -> Response:
    """Answer a change: the term with the event that undoes it, or the conflict with the term."""
    try:
        item = act()
    except ConflictError as error:
        term = store.item(term_id, who).to_json()
        return json_answer({"detail": str(error), "term": term}, 409)
    (event,) = store.events(batch=change, term=term_id)
    return json_answer({**item.seen_by(who).to_json(), "event": event.id, "batch": event.batch})


def _owner(request: HttpRequest) -> str | None:
    owner = getattr(request.state, "owner", None)
    return None if owner is None else str(owner.name)


def _reviewer(request: HttpRequest, given: str) -> str:
    """Return who decides: the owner of the key, else who the request says."""
    owner = _owner(request)
    if owner is None and not given.strip():
        raise ConfigError("reviewer: say who decides")
    return owner or given.strip()
