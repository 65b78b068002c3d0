"""Reviews: terms of a mapping, decided by people, with versions, history and undo.

Every change names the version of the term that was seen. Whoever comes second with the same version
gets a :class:`~biograft.errors.ConflictError`, and nothing is lost. Every change is an event, and
each event can be undone, an undo included.

>>> with ReviewStore.open("review.db", create=True) as store:  # doctest: +SKIP
...     store.add_terms([ReviewTerm("heart attack", candidates=...)], reviewer="ann")
...     item = store.items(limit=1)[0]
...     store.decide(item.id, "approve", reviewer="ann", version=item.version)
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Row

from biograft.config import check_choice
from biograft.errors import BiograftError, ConfigError, ConflictError, NotFoundError, nearest
from biograft.mapping.decisions import RELATIONS
from biograft.mapping.review_changes import (
    Change,
    by_whom,
    event_row,
    read_items,
    undo_events,
    write_changes,
)
from biograft.mapping.review_records import (
    ACTIONS,
    ADD,
    APPROVE,
    COMMENT,
    NO_CONCEPT,
    OPEN,
    PROPOSED,
    REJECT,
    REMOVED,
    UNDO,
    BulkResult,
    ReviewEvent,
    ReviewFilter,
    ReviewItem,
    ReviewTerm,
    TermDecision,
    TermState,
)
from biograft.mapping.review_rows import (
    columns_of,
    event_of,
    item_of,
    select_events,
    select_terms,
    term_of,
)
from biograft.mapping.review_tables import EVENTS, QUEUES, TERMS, ReviewDatabase, now
from biograft.text import name_fault, term_key

DEFAULT_QUEUE = "review"
_MAX_TEXT = 2000
"""Characters of a term, a comment or the name of a reviewer."""


class ReviewStore:
    """The queues of a review database: what is to be decided, by whom it was, and why."""

    def __init__(
        self, database: ReviewDatabase, has_concept: Callable[[str], bool] | None = None
    ) -> None:
        self.database, self._has_concept = database, has_concept

    @classmethod
    def open(
        cls,
        place: str | Path,
        *,
        create: bool = False,
        has_concept: Callable[[str], bool] | None = None,
    ) -> ReviewStore:
        """Open a file (SQLite) or a postgresql:// URL.

        ``create`` begins a review where there is none. ``has_concept`` says whether the knowledge
        base that is reviewed for has an id: no other concept can be approved.
        """
        return cls(ReviewDatabase.open(place, create=create), has_concept)

    def check_concept(self, concept: str | None) -> None:
        """Refuse a concept that the knowledge base does not have."""
        if self._has_concept and concept is not None and not self._has_concept(concept):
            raise ConfigError(f"concept: no concept of the knowledge base has the id {concept!r}")

    def close(self) -> None:
        """Close all connections."""
        self.database.close()

    def __enter__(self) -> ReviewStore:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # ---- queues

    def queues(self) -> list[dict[str, Any]]:
        """Return the queues: name, approvals that a decision needs, terms of each status."""
        with self.database.reading() as connection:
            rows = connection.execute(sa.select(QUEUES).order_by(QUEUES.c.id)).all()
            return [
                {"queue": row.name, "approvals": row.approvals, **self._counts(connection, row.id)}
                for row in rows
            ]

    def _counts(self, connection: Connection, queue: int) -> dict[str, Any]:
        of_queue = (TERMS.c.queue == queue) & (TERMS.c.status != REMOVED)
        query = (
            sa.select(TERMS.c.status, sa.func.count(), sa.func.sum(TERMS.c.frequency))
            .where(of_queue)
            .group_by(TERMS.c.status)
        )
        found = {status: (int(n), int(rows)) for status, n, rows in connection.execute(query)}
        n_terms = sum(n for n, _ in found.values())
        undecided = sum(found.get(status, (0, 0))[0] for status in (OPEN, PROPOSED))
        return {
            "n_terms": n_terms,
            "n_decided": n_terms - undecided,
            "n_rows": sum(rows for _, rows in found.values()),
            "statuses": {status: n for status, (n, _) in sorted(found.items())},
        }

    def set_approvals(self, queue: str, approvals: int) -> None:
        """Say how many people a decision of a queue needs: 1, or 2 different ones."""
        _check_approvals(approvals)
        with self.database.writing() as connection:
            row = self._queue(connection, queue)
            connection.execute(
                QUEUES.update().where(QUEUES.c.id == row.id).values(approvals=approvals)
            )

    def _queue(self, connection: Connection, name: str) -> Row[Any]:
        row = connection.execute(sa.select(QUEUES).where(QUEUES.c.name == name)).one_or_none()
        if row is None:
            known = connection.scalars(sa.select(QUEUES.c.name)).all()
            advice = nearest(name, known) if known else "there is none; import a mapping first"
            raise NotFoundError(f"no queue is called {name!r}; {advice}")
        return row

    def _make_queue(self, connection: Connection, name: str, approvals: int | None) -> Row[Any]:
        _check_text("queue", name)
        exists = sa.select(QUEUES.c.id).where(QUEUES.c.name == name)
        if connection.scalar(exists) is None:
            _check_approvals(approvals or 1)
            values = {"name": name, "approvals": approvals or 1, "made_at": now()}
            connection.execute(QUEUES.insert().values(**values))
        elif approvals is not None:
            connection.execute(
                QUEUES.update().where(QUEUES.c.name == name).values(approvals=approvals)
            )
        return self._queue(connection, name)

    # ---- terms

    def add_terms(
        self,
        terms: Iterable[ReviewTerm],
        *,
        reviewer: str,
        queue: str = DEFAULT_QUEUE,
        approvals: int | None = None,
    ) -> BulkResult:
        """Add terms to a queue; of those that are there and open, renew what is suggested.

        What was decided stays. ``n_changed`` counts the terms that are new or have new suggestions.
        """
        _check_text("reviewer", reviewer)
        try:
            return self._add_terms(terms, reviewer, queue, approvals)
        except sa.exc.IntegrityError as error:
            raise ConflictError(
                f"queue {queue!r}: another user imported the same terms meanwhile; import again"
            ) from error

    def _add_terms(
        self, terms: Iterable[ReviewTerm], reviewer: str, queue: str, approvals: int | None
    ) -> BulkResult:
        new: dict[tuple[str, str, str], ReviewTerm] = {}
        renewed: dict[int, ReviewTerm] = {}
        batch = _new_batch()
        with self.database.writing() as connection:
            own = self._make_queue(connection, queue, approvals)
            rows = connection.execute(sa.select(TERMS).where(TERMS.c.queue == own.id))
            known = {(row.term_key, row.code, row.context): row for row in rows}
            for term in (each.folded() for each in terms):
                for candidate in term.candidates:
                    if fault := name_fault(candidate.concept):
                        raise ConfigError(f"concept {candidate.concept!r}: {fault}")
                key = (term_key(term.text), term.code, term.context)
                earlier = known.get(key)
                if earlier is None and key[0]:
                    _check_text("term", term.text)
                    new.setdefault(key, term)
                elif earlier is not None and earlier.status == OPEN and term != term_of(earlier):
                    renewed[earlier.id] = term
            self._insert(connection, own.id, new, batch, reviewer)
            self._renew(connection, renewed)
        return BulkResult(batch, len(new) + len(renewed))

    def _insert(
        self,
        connection: Connection,
        queue: int,
        terms: Mapping[tuple[str, str, str], ReviewTerm],
        batch: str,
        reviewer: str,
    ) -> None:
        if not terms:
            return
        at, state = now(), TermState().to_json()
        rows = [
            {
                "queue": queue, "term_key": key, "code": code, "context": context, "version": 1,
                "updated_at": at, **columns_of(term), **state,
            }
            for (key, code, context), term in terms.items()
        ]  # fmt: skip
        made = connection.scalars(TERMS.insert().returning(TERMS.c.id), rows).all()
        added = {"batch": batch, "at": at, "reviewer": reviewer, "action": ADD, "after": state}
        connection.execute(EVENTS.insert(), [event_row(id_, **added) for id_ in made])

    def _renew(self, connection: Connection, terms: Mapping[int, ReviewTerm]) -> None:
        """Replace the proposals of a mapping for terms without a decision."""
        rows = [{"of": id_, "updated_at": now(), **columns_of(each)} for id_, each in terms.items()]
        if rows:
            columns: dict[str, Any] = {name: sa.bindparam(name) for name in rows[0] if name != "of"}
            own = TERMS.c.id == sa.bindparam("of")
            query = TERMS.update().where(own).values(**columns, version=TERMS.c.version + 1)
            connection.execute(query, rows)

    def items(
        self,
        queue: str = DEFAULT_QUEUE,
        where: ReviewFilter | None = None,
        *,
        limit: int | None = None,
        offset: int = 0,
    ) -> list[ReviewItem]:
        """Return the terms of a queue, the highest frequency x doubt first."""
        with self.database.reading() as connection:
            row = self._queue(connection, queue)
            query = select_terms(row.id, where).limit(limit).offset(offset)
            return [item_of(each, queue) for each in connection.execute(query)]

    def count(self, queue: str = DEFAULT_QUEUE, where: ReviewFilter | None = None) -> int:
        """Count the terms of a queue that a filter means."""
        with self.database.reading() as connection:
            chosen = select_terms(self._queue(connection, queue).id, where).subquery()
            return connection.scalar(sa.select(sa.func.count()).select_from(chosen)) or 0

    def item(self, term_id: int) -> ReviewItem:
        """Return a term by its id."""
        with self.database.reading() as connection:
            return read_items(connection, [term_id])[term_id]

    def find(self, queue: str, text: str, code: str = "", context: str = "") -> ReviewItem | None:
        """Return the term of a queue with this text, code and context, if there is one."""
        with self.database.reading() as connection:
            query = (
                sa.select(TERMS, QUEUES.c.name.label("queue_name"))
                .join(QUEUES, QUEUES.c.id == TERMS.c.queue)
                .where(QUEUES.c.name == queue, TERMS.c.code == code)
                .where(TERMS.c.context == context)
                .where(TERMS.c.term_key == term_key(text), TERMS.c.status != REMOVED)
            )
            row = connection.execute(query).one_or_none()
            return None if row is None else item_of(row, row.queue_name)

    # ---- decisions

    def decide(self, term_id: int, action: str, *, reviewer: str, **details: Any) -> ReviewItem:
        """Approve the suggestion, or another ``concept``; reject it; or say that there is none.

        ``details`` are the fields of :class:`TermDecision`: version, concept, name, relation and
        comment. Raises :class:`ConflictError` if the term has another version by now.
        """
        return self.decide_all([TermDecision(term_id, action, reviewer, **details)])[0]

    def decide_all(self, decisions: Sequence[TermDecision]) -> list[ReviewItem]:
        """Decide about several terms at once; if one decision is refused, all are."""
        with self.database.writing() as connection:
            refused = self._decide(connection, decisions, _new_batch())
            if refused:
                raise refused[0][1]
            ids = [decision.term_id for decision in decisions]
            items = read_items(connection, ids)
            return [items[term_id] for term_id in ids]

    def decide_each(
        self, decisions: Sequence[TermDecision]
    ) -> tuple[BulkResult, list[tuple[TermDecision, BiograftError]]]:
        """Decide about many terms, each as it was decided; return what was refused, and why."""
        batch = _new_batch()
        with self.database.writing() as connection:
            refused = self._decide(connection, decisions, batch)
        skipped = tuple((decision.term_id, str(error)) for decision, error in refused)
        return BulkResult(batch, len(decisions) - len(refused), skipped), refused

    def decide_many(
        self,
        action: str,
        *,
        reviewer: str,
        queue: str = DEFAULT_QUEUE,
        where: ReviewFilter | None = None,
        comment: str = "",
        expected: int | None = None,
    ) -> BulkResult:
        """Decide the same about all terms that wait for the reviewer and that a filter means.

        With ``expected`` nothing is done if there are not as many terms as were shown.
        """
        wanted, batch = replace(where or ReviewFilter(), waits_for=reviewer), _new_batch()
        with self.database.writing() as connection:
            row = self._queue(connection, queue)
            ids = select_terms(row.id, wanted).with_only_columns(TERMS.c.id).with_for_update()
            found = connection.scalars(ids).all()
            if expected is not None and len(found) != expected:
                raise ConflictError(
                    f"{len(found):,} terms are meant now, {expected:,} were when you asked; "
                    "look again"
                )
            decisions = [TermDecision(id_, action, reviewer, comment=comment) for id_ in found]
            refused = self._decide(connection, decisions, batch)
        skipped = tuple((decision.term_id, str(error)) for decision, error in refused)
        return BulkResult(batch, len(found) - len(refused), skipped)

    def _decide(
        self, connection: Connection, decisions: Sequence[TermDecision], batch: str
    ) -> list[tuple[TermDecision, BiograftError]]:
        """Write decisions about terms that have not changed since; return those refused."""
        items = read_items(connection, [each.term_id for each in decisions], lock=True)
        rows = connection.execute(sa.select(QUEUES.c.name, QUEUES.c.approvals))
        approvals = {row.name: row.approvals for row in rows}
        changes: list[Change] = []
        refused: list[tuple[TermDecision, BiograftError]] = []
        for each in decisions:
            item = items[each.term_id]
            try:
                after = _decided(item, each, approvals[item.queue])
                if each.action == APPROVE:
                    self.check_concept(after.concept)
            except BiograftError as error:
                refused.append((each, error))
                continue
            said = {
                **({"at": each.time} if each.time else {}),
                "reviewer": each.reviewer,
                "action": each.action,
                "comment": each.comment,
            }
            changes.append((item, after, said))
            items[item.id] = replace(item, state=after, version=item.version + 1)
        write_changes(connection, changes, batch)
        return refused

    def comment(self, term_id: int, text: str, *, reviewer: str) -> ReviewEvent:
        """Add a comment to a term; it changes nothing else."""
        _check_text("comment", text)
        _check_text("reviewer", reviewer)
        with self.database.writing() as connection:
            row = event_row(
                read_items(connection, [term_id])[term_id].id, batch=_new_batch(), at=now(),
                reviewer=reviewer, action=COMMENT, comment=text,
            )  # fmt: skip
            made = connection.scalar(EVENTS.insert().returning(EVENTS.c.id), row)
            return self._event(connection, int(made or 0))

    # ---- history and undo

    def history(
        self, queue: str = DEFAULT_QUEUE, term_id: int | None = None, *, limit: int | None = None
    ) -> list[ReviewEvent]:
        """Return the events of a term, or of a queue (without what was imported), latest first."""
        with self.database.reading() as connection:
            query = select_events().order_by(EVENTS.c.id.desc()).limit(limit)
            if term_id is not None:
                query = query.where(EVENTS.c.term == read_items(connection, [term_id])[term_id].id)
            else:
                own = self._queue(connection, queue).id
                query = query.where(TERMS.c.queue == own, EVENTS.c.action != ADD)
            return [event_of(row) for row in connection.execute(query)]

    def undo(self, event_id: int, *, reviewer: str, comment: str = "") -> ReviewItem:
        """Undo an event: the term is again as it was before. An undo can be undone, too."""
        _check_text("reviewer", reviewer)
        if comment:
            _check_text("comment", comment)
        with self.database.writing() as connection:
            event = self._event(connection, event_id)
            said = {"reviewer": reviewer, "comment": comment}
            skipped = undo_events(connection, [event], _new_batch(), said)
            if skipped:
                raise ConflictError(skipped[0][1])
            return read_items(connection, [event.term_id])[event.term_id]

    def undo_batch(self, batch: str, *, reviewer: str, comment: str = "") -> BulkResult:
        """Undo all that was done at once; what was decided anew since then stays."""
        _check_text("reviewer", reviewer)
        if comment:
            _check_text("comment", comment)
        own = _new_batch()
        with self.database.writing() as connection:
            query = select_events().where(EVENTS.c.batch == batch).order_by(EVENTS.c.id.desc())
            events = [event_of(row) for row in connection.execute(query)]
            if not events:
                raise NotFoundError(f"nothing was done in the batch {batch!r}")
            said = {"reviewer": reviewer, "comment": comment}
            skipped = undo_events(connection, events, own, said)
        return BulkResult(own, len(events) - len(skipped), tuple(skipped))

    def _event(self, connection: Connection, event_id: int) -> ReviewEvent:
        row = connection.execute(select_events().where(EVENTS.c.id == event_id)).one_or_none()
        if row is None:
            raise NotFoundError(f"no event has the id {event_id}")
        return event_of(row)

    def comments(self, queue: str = DEFAULT_QUEUE) -> dict[int, str]:
        """Return the last comment on each term of a queue, also one made with a decision."""
        with self.database.reading() as connection:
            query = select_events().where(
                TERMS.c.queue == self._queue(connection, queue).id,
                EVENTS.c.comment != "",
                EVENTS.c.action != UNDO,
                EVENTS.c.undone.is_(False),
            )
            return {
                row.term: row.comment for row in connection.execute(query.order_by(EVENTS.c.id))
            }

    def rejections(self, queue: str = DEFAULT_QUEUE) -> dict[tuple[int, str], tuple[str, str]]:
        """Return who rejected a concept for a term, and when: (term id, concept) -> (who, when)."""
        with self.database.reading() as connection:
            query = select_events().where(
                TERMS.c.queue == self._queue(connection, queue).id,
                EVENTS.c.action == REJECT,
                EVENTS.c.undone.is_(False),
            )
            return {
                (row.term, row.after["concept"]): (row.reviewer, row.at)
                for row in connection.execute(query.order_by(EVENTS.c.id))
            }


def _meant(
    item: ReviewItem, action: str, concept: str | None, name: str | None
) -> tuple[str | None, str | None]:
    """Return the concept that a decision is about."""
    if action == NO_CONCEPT:
        if concept is not None:
            raise ConfigError("nil: says that there is no concept, and one was given")
        return None, None
    if concept is not None:
        known = {each.concept: each.name for each in item.term.candidates}
        return concept, name or known.get(concept)
    state = item.state
    if state.status == PROPOSED and state.action == action:
        return state.concept, state.name
    found = item.suggestion if action == APPROVE else item.next_candidate
    if found is None:
        advice = "name a concept" if action == APPROVE else "there is nothing to reject"
        raise ConfigError(f"term {item.id}: has no suggestion; {advice}")
    return found.concept, found.name


def _decided(item: ReviewItem, decision: TermDecision, approvals: int) -> TermState:
    """Return the state of a term after a decision; refuse one that is late or says nothing."""
    check_choice("action", decision.action, ACTIONS)
    check_choice("relation", decision.relation, RELATIONS)
    _check_text("reviewer", decision.reviewer)
    if decision.version is not None and decision.version != item.version:
        raise ConflictError(f"term {item.id}: was changed meanwhile{by_whom(item)}; look again")
    if item.state.status == REMOVED:
        raise NotFoundError(f"term {item.id} was removed")
    concept, name = _meant(item, decision.action, decision.concept, decision.name)
    state, action, reviewer = item.state, decision.action, decision.reviewer
    if state.proposes(action, concept) and state.reviewer == reviewer:
        raise ConflictError(
            f"term {item.id}: {reviewer} has proposed this; a second person is to decide"
        )
    after = state.decide(action, concept, name, reviewer, approvals)
    return replace(after, relation=decision.relation if action == APPROVE else "exact")


def _new_batch() -> str:
    return secrets.token_hex(8)


def _check_approvals(approvals: int) -> None:
    if approvals not in (1, 2):
        raise ConfigError(f"approvals: expected 1 or 2, found {approvals}")


def _check_text(what: str, value: str) -> None:
    if not value.strip() or len(value) > _MAX_TEXT:
        raise ConfigError(f"{what}: expected a text of 1 to {_MAX_TEXT:,} characters")
    if fault := name_fault(value, multiline=what == "comment"):
        raise ConfigError(f"{what}: {fault}")
