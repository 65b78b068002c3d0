"""Rows of a review database: queries, and records made of what they find."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Row

from biograft.mapping.review_records import (
    OPEN,
    PROPOSED,
    REMOVED,
    ReviewEvent,
    ReviewFilter,
    ReviewItem,
    ReviewTerm,
    SuggestedConcept,
    TermState,
)
from biograft.mapping.review_tables import EVENTS, TERMS
from biograft.text import term_key


def select_terms(queue: int, where: ReviewFilter | None) -> sa.Select[Any]:
    """Select the terms of a queue that a filter means, the highest priority first."""
    query = sa.select(TERMS).where(TERMS.c.queue == queue)
    wanted = where or ReviewFilter()
    status = TERMS.c.status != REMOVED
    conditions = [status if wanted.status is None else TERMS.c.status == wanted.status]
    if wanted.flag is not None:
        conditions.append(TERMS.c.flag == ("" if wanted.flag == "none" else wanted.flag))
    if wanted.text:
        conditions.append(TERMS.c.term_key.contains(term_key(wanted.text), autoescape=True))
    if wanted.min_probability is not None:
        conditions.append(TERMS.c.probability >= wanted.min_probability)
    if wanted.min_score is not None:
        conditions.append(TERMS.c.score >= wanted.min_score)
    if wanted.max_score is not None:
        conditions.append(sa.func.coalesce(TERMS.c.score, 0) <= wanted.max_score)
    if wanted.min_frequency is not None:
        conditions.append(TERMS.c.frequency >= wanted.min_frequency)
    if wanted.reviewer is not None:
        columns = (TERMS.c.reviewer, TERMS.c.second_reviewer)
        conditions.append(sa.or_(*(column == wanted.reviewer for column in columns)))
    if wanted.waits_for is not None:
        others = (TERMS.c.status == PROPOSED) & (TERMS.c.reviewer != wanted.waits_for)
        conditions.append((TERMS.c.status == OPEN) | others)
    order = (TERMS.c.priority.desc(), TERMS.c.frequency.desc(), TERMS.c.id)
    return query.where(*conditions).order_by(*order)


def select_events() -> sa.Select[Any]:
    """Select events with the text of their terms."""
    return sa.select(EVENTS, TERMS.c.text).join(TERMS, TERMS.c.id == EVENTS.c.term)


def event_of(row: Row[Any]) -> ReviewEvent:
    """Read an event of a row."""
    before, after = (
        None if each is None else TermState.from_json(each) for each in (row.before, row.after)
    )
    return ReviewEvent(
        row.id, row.term, row.text, row.batch, row.at, row.reviewer, row.action, row.comment,
        before, after, row.undoes, row.undone,
    )  # fmt: skip


def term_of(row: Row[Any]) -> ReviewTerm:
    """Read a term of a row."""
    candidates = tuple(SuggestedConcept(**each) for each in row.candidates)
    return ReviewTerm(row.text, row.code, row.context, row.frequency, row.flag, candidates)


def item_of(row: Row[Any], queue: str) -> ReviewItem:
    """Read a term with its decision of a row."""
    state = TermState(
        row.status, row.action, row.concept, row.name, row.relation, row.reviewer,
        row.second_reviewer, tuple(row.rejected),
    )  # fmt: skip
    return ReviewItem(row.id, queue, row.version, term_of(row), state, row.updated_at)


def columns_of(term: ReviewTerm) -> dict[str, Any]:
    """Return the columns that a mapping gives a term."""
    first = term.candidates[0] if term.candidates else None
    return {
        "text": term.text,
        "frequency": term.frequency,
        "flag": term.flag,
        "candidates": [asdict(each) for each in term.candidates],
        "score": None if first is None else first.score,
        "probability": None if first is None else first.probability,
        "priority": term.priority,
    }
