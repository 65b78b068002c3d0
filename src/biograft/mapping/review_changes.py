"""Changes of locked terms, with the events that say who made them, when and why; their undo."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from biograft.errors import NotFoundError
from biograft.mapping.review_records import REMOVED, UNDO, ReviewEvent, ReviewItem, TermState
from biograft.mapping.review_rows import item_of
from biograft.mapping.review_tables import EVENTS, QUEUES, TERMS, now

_TOGETHER = 500
"""Terms that are read by one query."""
Change = tuple[ReviewItem, TermState, dict[str, Any]]
"""A term as it is, its new state, and what the event says."""


def read_items(
    connection: Connection, ids: Iterable[int], *, lock: bool = False
) -> dict[int, ReviewItem]:
    """Return terms by their ids; locked, no other user can change them in this transaction."""
    wanted, found = list(dict.fromkeys(ids)), {}
    for start in range(0, len(wanted), _TOGETHER):
        query = (
            sa.select(TERMS, QUEUES.c.name.label("queue_name"))
            .join(QUEUES, QUEUES.c.id == TERMS.c.queue)
            .where(TERMS.c.id.in_(wanted[start : start + _TOGETHER]))
            .order_by(TERMS.c.id)  # so that two writers do not wait for each other
        )
        rows = connection.execute(query.with_for_update(of=TERMS) if lock else query)
        found.update({row.id: item_of(row, row.queue_name) for row in rows})
    for id_ in wanted:
        if id_ not in found:
            raise NotFoundError(f"no term has the id {id_}")
    return found


def event_row(term_id: int, **values: Any) -> dict[str, Any]:
    """Return the columns of an event."""
    empty = {"comment": "", "undone": False, "undoes": None, "before": None, "after": None}
    return {**empty, "term": term_id, **values}


def write_changes(connection: Connection, changes: Sequence[Change], batch: str) -> None:
    """Write new states of locked terms, and an event for each."""
    if not changes:
        return
    at = now()
    rows = [
        {
            "of": seen.id,
            "version": seen.version + 1,
            "updated_at": said.get("at", at),
            **after.to_json(),
        }
        for seen, after, said in changes
    ]
    names: dict[str, Any] = {name: sa.bindparam(name) for name in rows[0] if name != "of"}
    connection.execute(TERMS.update().where(TERMS.c.id == sa.bindparam("of")).values(**names), rows)
    events = [
        event_row(
            seen.id,
            batch=batch,
            before=seen.state.to_json(),
            after=after.to_json(),
            **{"at": at, **said},
        )
        for seen, after, said in changes
    ]
    connection.execute(EVENTS.insert(), events)


def undo_events(
    connection: Connection, events: Sequence[ReviewEvent], batch: str, said: dict[str, str]
) -> list[tuple[int, str]]:
    """Put back the states before some events; return the terms that were left, and why.

    A term that was decided anew since then is left: that is to be undone first.
    """
    items = read_items(connection, [event.term_id for event in events], lock=True)
    changes: list[Change] = []
    comments, skipped, undone = [], [], []
    for event in events:
        seen, why = items[event.term_id], {**said, "action": UNDO, "undoes": event.id}
        if event.undone:
            skipped.append((seen.id, f"event {event.id} is undone already"))
            continue
        if event.after is None:  # a comment, or the undo of one
            comments.append(event_row(seen.id, batch=batch, at=now(), **why))
        elif event.after != seen.state:
            problem = f"event {event.id}: the term was decided anew since then{by_whom(seen)}"
            skipped.append((seen.id, f"{problem}; undo that first"))
            continue
        else:
            before = event.before or TermState(status=REMOVED)
            changes.append((seen, before, why))
            items[seen.id] = replace(seen, state=before, version=seen.version + 1)
        undone.append(event)
    write_changes(connection, changes, batch)
    if comments:
        connection.execute(EVENTS.insert(), comments)
    _mark(connection, [event.id for event in undone], undone=True)
    # what an undone undo had undone counts again
    _mark(connection, [each.undoes for each in undone if each.undoes is not None], undone=False)
    return skipped


def _mark(connection: Connection, ids: Sequence[int], *, undone: bool) -> None:
    if ids:
        query = EVENTS.update().where(EVENTS.c.id == sa.bindparam("of")).values(undone=undone)
        connection.execute(query, [{"of": id_} for id_ in ids])


def by_whom(item: ReviewItem) -> str:
    """Return in brackets what was decided about a term, by whom and when."""
    state = item.state
    who = state.second_reviewer or state.reviewer
    what = " ".join(filter(None, (state.status, state.concept)))
    return f" ({what}{f' by {who}' if who else ''} at {item.updated_at})"
