"""Reviews: terms of a mapping, decided by people, with versions, history and undo.

Every change names the version of the term that was seen. A second change with the same version
gets a :class:`~biograft.errors.ConflictError`, and nothing is lost. Every change is an event, and
each event can be undone, an undo included.

The database is SQLite or PostgreSQL, by SQLAlchemy (extra ``review``). Every row has the hash of
the values of its other columns: writing a row empties it, and the end of the transaction computes
those that are empty, so that no writer can forget one. A database states its version in the table
``review_versions``; an older one is brought up to date when it is opened, in one transaction, and a
newer one is refused.

>>> with ReviewStore.open("review.db", create=True) as store:  # doctest: +SKIP
...     store.add_terms([ReviewTerm("heart attack", candidates=...)], reviewer="ann")
...     item = store.items(limit=1)[0]
...     store.decide(item.id, "approve", reviewer="ann", version=item.version)
"""

from __future__ import annotations

import json
import os
import secrets
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import asdict, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Engine, Row

import biograft
from biograft.artifacts import CheckedArtifact
from biograft.config import check_choice
from biograft.errors import (
    BiograftError,
    ConfigError,
    ConflictError,
    NotFoundError,
    OutputError,
    StoreError,
    nearest,
)
from biograft.kb.names import name_fault, term_key
from biograft.mapping.decisions import EXACT, RELATIONS
from biograft.mapping.review_check import (
    BLIND,
    FORMAT,
    HASH,
    HASH_BYTES,
    LATER,
    PART,
    REASON,
    SCHEMA,
    TABLES,
    damaged_row,
    foreign_definitions,
    is_url,
    row_hash,
)
from biograft.mapping.review_records import (
    ACTIONS,
    ADD,
    APPROVE,
    COMMENT,
    DISPUTED,
    MAX_TEXT,
    NO_CONCEPT,
    OPEN,
    PROPOSED,
    REJECT,
    REMOVED,
    STATUS_OF,
    UNDECIDED,
    UNDO,
    BulkResult,
    ReviewEvent,
    ReviewFilter,
    ReviewItem,
    ReviewTerm,
    SuggestedConcept,
    TermDecision,
    TermState,
    checked,
    to_json,
)

_SEALED_AT_ONCE = 1000
"""Rows that are given their hashes at once."""


def _hashes(table: str) -> tuple[sa.Column[str], sa.Index]:
    """Return the column of the hashes, and the index that finds the rows without one at once.

    The column is empty after any other column was written.
    """
    unsealed = sa.text(f"{HASH} IS NULL")
    name = f"{table}_without_hash"
    index = sa.Index(name, "id", sqlite_where=unsealed, postgresql_where=unsealed)
    return sa.Column(HASH, sa.String(2 * HASH_BYTES), onupdate=sa.null()), index


METADATA = sa.MetaData()
_required = partial(sa.Column, nullable=False)
_ID = sa.BigInteger().with_variant(sa.Integer, "sqlite")  # SQLite numbers its INTEGER keys only

VERSIONS = sa.Table(
    "review_versions",
    METADATA,
    sa.Column("version", sa.Integer, primary_key=True),
    _required("made_at", sa.String(32)),
    _required("made_by", sa.String(64)),
)
_PLACE = ("queue", "term_key", "code", "context")
_UNIQUE = "review_terms_queue_term_key_code_context_key"
"""Name of the constraint that PostgreSQL had until version 4, where it held no long text."""
QUEUES = sa.Table(
    "review_queues",
    METADATA,
    sa.Column("id", _ID, primary_key=True),
    _required("name", sa.String(200), unique=True),
    _required("approvals", sa.Integer),  # reviewers that a decision needs
    _required("made_at", sa.String(32)),
    sa.Column(BLIND, sa.Boolean),  # whether the second reviewer does not see the first decision
    *_hashes("review_queues"),
)
TERMS = sa.Table(
    "review_terms",
    METADATA,
    sa.Column("id", _ID, primary_key=True),
    _required("queue", _ID, sa.ForeignKey("review_queues.id")),
    _required("term_key", sa.Text),  # the term, and its part, but for case and whitespace
    _required("code", sa.Text),
    _required("context", sa.Text),
    _required("text", sa.Text),
    _required("frequency", sa.BigInteger),
    _required("flag", sa.String(40)),
    _required("candidates", sa.JSON),
    sa.Column("score", sa.Float),  # of the first candidate
    sa.Column("probability", sa.Float),
    _required("priority", sa.Float),  # frequency x doubt
    _required("version", sa.Integer),  # counts changes; a writer names it
    _required("updated_at", sa.String(32)),
    # what was decided
    _required("status", sa.String(20)),
    _required("action", sa.String(20)),
    sa.Column("concept", sa.Text),
    sa.Column("name", sa.Text),
    _required("relation", sa.String(20)),
    sa.Column("reviewer", sa.Text),
    sa.Column("second_reviewer", sa.Text),
    _required("rejected", sa.JSON),  # concepts that the term does not mean
    sa.Column(PART, sa.Text),  # of a term with several concepts
    sa.Column(REASON, sa.Text),  # what the mapping says about its suggestion
    sa.UniqueConstraint(*_PLACE).ddl_if(dialect="sqlite"),
    sa.Index(
        "review_terms_by_text",
        "queue",
        *(sa.func.md5(sa.column(name)) for name in _PLACE[1:]),  # an index holds no long text
        unique=True,
    ).ddl_if(dialect="postgresql"),
    sa.Index("review_terms_by_priority", "queue", "status", "priority"),
    *_hashes("review_terms"),
)
EVENTS = sa.Table(
    "review_events",
    METADATA,
    sa.Column("id", _ID, primary_key=True),
    _required("term", _ID, sa.ForeignKey("review_terms.id"), index=True),
    _required("batch", sa.String(32), index=True),  # one for what is done at once
    _required("at", sa.String(32)),
    _required("reviewer", sa.Text),
    _required("action", sa.String(20)),
    _required("comment", sa.Text, default=""),
    sa.Column("before", sa.JSON),  # what was decided before and after; null: there was no term
    sa.Column("after", sa.JSON),
    sa.Column("undoes", _ID),
    _required("undone", sa.Boolean, default=False),
    *_hashes("review_events"),
)
SEALED = tuple(METADATA.tables[name] for name in TABLES)
"""Tables whose rows have hashes."""


_CONDITIONS: Mapping[str, Callable[[Any], sa.ColumnElement[bool]]] = {
    "flag": lambda flag: TERMS.c.flag == ("" if flag == "none" else flag),
    "text": lambda text: TERMS.c.term_key.contains(term_key(text), autoescape=True),
    "min_probability": lambda least: TERMS.c.probability >= least,
    "min_score": lambda least: TERMS.c.score >= least,
    "max_score": lambda most: sa.func.coalesce(TERMS.c.score, 0) <= most,
    "min_frequency": lambda least: TERMS.c.frequency >= least,
    "reviewer": lambda name: (TERMS.c.reviewer == name) | (TERMS.c.second_reviewer == name),
    "waits_for": lambda name: (
        (TERMS.c.status == OPEN) | ((TERMS.c.status == PROPOSED) & (TERMS.c.reviewer != name))
    ),
}
"""Conditions of the fields of a :class:`ReviewFilter`."""


def _update(connection: Connection, table: sa.Table, rows: Sequence[Mapping[str, Any]]) -> None:
    """Write columns of rows; each names its row as ``of``."""
    if rows:
        connection.execute(table.update().where(table.c.id == sa.bindparam("of")), rows)


def _seal(connection: Connection) -> None:
    """Give all rows that have no hash theirs."""
    for table in SEALED:
        unsealed = sa.select(table).where(table.c[HASH].is_(None)).limit(_SEALED_AT_ONCE)
        while rows := connection.execute(unsealed).all():
            hashes = [{"of": row.id, HASH: row_hash(dict(row._mapping))} for row in rows]
            _update(connection, table, hashes)


def _add_columns(connection: Connection) -> None:
    """Add the columns that earlier versions did not have: hashes since 2, parts since 3.

    The transaction that this is part of computes the hashes.
    """
    inspector = sa.inspect(connection)
    for table in SEALED:
        known = {column["name"] for column in inspector.get_columns(table.name)}
        for name in {*LATER, HASH} & {*table.c.keys()} - known:
            kind = table.c[name].type.compile(connection.dialect)
            connection.exec_driver_sql(f"ALTER TABLE {table.name} ADD COLUMN {name} {kind}")
        for index in table.indexes:
            index.create(connection, checkfirst=True)
    if connection.dialect.name == "postgresql":
        drop = f"ALTER TABLE {TERMS.name} DROP CONSTRAINT IF EXISTS {_UNIQUE}"
        connection.exec_driver_sql(drop)


VERSION = 5
DEFAULT_QUEUE = "review"
_WRITES = "biograft_writes"
_BUSY_SECONDS = 120
_CONNECT_SECONDS = "10"
_POSTGRES = "postgresql+psycopg"
_DISK_FULL = "53100"
"""The code of a full disk in PostgreSQL."""
_REMEDY = "give a file that `biograft review import` made"
_PRIMARY = 0xFF
"""The bits of SQLite's codes that say what kind an error is of."""
_FAILED = {
    *(sqlite3.SQLITE_IOERR, sqlite3.SQLITE_BUSY),
    *(sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY),
}


class ReviewStore:
    """The queues of a review database: what is to be decided, by whom it was, and why.

    Args:
        engine: SQLAlchemy engine of an opened review database.
        where: Its file or URL, for messages.
        has_concept: Says whether the knowledge base has an id, to refuse others; None accepts all.
    """

    def __init__(
        self, engine: Engine, where: str, has_concept: Callable[[str], bool] | None = None
    ) -> None:
        self.engine, self.where, self._has_concept = engine, where, has_concept

    @classmethod
    def open(
        cls,
        place: str | Path,
        *,
        create: bool = False,
        has_concept: Callable[[str], bool] | None = None,
    ) -> ReviewStore:
        """Open a review.

        Args:
            place: File (SQLite), or a postgresql:// URL.
            create: Begin a review where there is none.
            has_concept: Returns True for an id of the knowledge base that is reviewed for; no other
                concept can be approved.
        """
        url, where = _url_of(place, create=create)
        engine = sa.create_engine(
            url,
            hide_parameters=True,  # errors must not show terms
            json_deserializer=_read_json,
            pool_pre_ping=True,  # a connection that was lost is opened anew
        )
        if engine.dialect.name == "sqlite":
            sa.event.listen(engine, "connect", _prepare_sqlite)
            sa.event.listen(engine, "begin", _begin_sqlite)
        with ExitStack() as closed_on_error:
            store = closed_on_error.enter_context(cls(engine, where, has_concept))
            try:
                store._migrate(create=create)
            except sa.exc.OperationalError as error:
                raise StoreError(f"{where}: cannot be opened ({error.orig})") from error
            except sa.exc.DatabaseError as error:
                raise StoreError(
                    f"{where}: is no review database ({error.orig}); {_REMEDY}"
                ) from error
            closed_on_error.pop_all()
        return store

    def check(self) -> None:
        """Ask the database for its version, which fails if it cannot be reached."""
        with self.reading() as connection:
            connection.scalar(sa.select(VERSIONS.c.version).limit(1))

    def close(self) -> None:
        """Close all connections."""
        self.engine.dispose()

    def __enter__(self) -> ReviewStore:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """Give a connection that sees one state."""
        with self._explained(), self.engine.connect() as connection:
            yield connection

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """Give a transaction that is kept if the block ends well, and else leaves no trace."""
        writer = self.engine.execution_options(**{_WRITES: True})
        with self._explained(), writer.begin() as connection:
            yield connection
            _seal(connection)

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """Say in one line that the disk is full, fails, or that another writer does not end."""
        try:
            yield
        except (sa.exc.OperationalError, sa.exc.InterfaceError) as error:
            code = getattr(error.orig, "sqlite_errorcode", 0) & _PRIMARY
            if "decode" in str(error.orig):  # bytes in a column of texts
                raise _damaged("a row") from error
            full = code == sqlite3.SQLITE_FULL or getattr(error.orig, "sqlstate", "") == _DISK_FULL
            is_file = self.engine.dialect.name == "sqlite"
            if is_file and not full and code not in _FAILED:
                raise
            remedy = (
                "free space"
                if full
                else "try again when no other program holds it, or look at the disk"
            )
            if code in (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY):
                remedy = "the file and its folder must be writable, also to read"
            change = "nothing was changed" if is_file else "what had no answer may be undone"
            raise OutputError(f"{self.where}: {error.orig}; {change}; {remedy}") from error

    def _migrate(self, *, create: bool) -> None:
        with self.writing() as connection:
            if connection.dialect.name == "postgresql":
                connection.execute(sa.text("SELECT pg_advisory_xact_lock(7261)"))
            else:
                schema = (tuple(row) for row in connection.exec_driver_sql(SCHEMA))
                if fault := next(foreign_definitions(schema), ""):
                    raise StoreError(f"{self.where}: {fault}; {_REMEDY}")
            if not create and not sa.inspect(connection).has_table(VERSIONS.name):
                raise StoreError(
                    f"{self.where}: has no review; begin one with `biograft review import`"
                )
            METADATA.create_all(connection)
            found = connection.scalar(sa.select(sa.func.max(VERSIONS.c.version))) or 0
            if found > VERSION:
                raise StoreError(
                    f"{self.where}: review of version {found}, this biograft knows {VERSION}; "
                    "update biograft"
                )
            if found < VERSION:
                _add_columns(connection)
                made = {"made_at": now(), "made_by": f"biograft {biograft.__version__}"}
                connection.execute(VERSIONS.insert().values(version=VERSION, **made))

    # ---- queues

    def revision(self) -> int:
        """Return a number that grows with every change of a term, and every decision."""
        with self.reading() as connection:
            return int(connection.execute(sa.select(sa.func.max(EVENTS.c.id))).scalar() or 0)

    def queues(self, viewer: str | None = None) -> list[dict[str, Any]]:
        """Return the queues: name, approvals that a decision needs, terms of each status.

        Args:
            viewer: Reviewer who asks; blind decisions of others count as open. None: none do.
        """
        status, rows_of = _seen_status(viewer), sa.func.sum(TERMS.c.frequency)
        query = (
            sa.select(TERMS.c.queue, status, sa.func.count(), rows_of)
            .join(QUEUES)
            .where(TERMS.c.status != REMOVED)
            .group_by(TERMS.c.queue, status)
            .order_by(status)
        )
        with self.reading() as connection:
            queues = connection.execute(sa.select(QUEUES).order_by(QUEUES.c.id)).all()
            counts = connection.execute(query).all()
        found: list[dict[str, Any]] = []
        for queue in queues:
            statuses = {name: n for of, name, n, _ in counts if of == queue.id}
            n_terms = sum(statuses.values())
            n_undecided = sum(statuses.get(each, 0) for each in UNDECIDED)
            found.append(
                {
                    "queue": queue.name,
                    "approvals": queue.approvals,
                    "blind": bool(queue.blind),
                    "n_terms": n_terms,
                    "n_decided": n_terms - n_undecided,
                    "n_rows": int(sum(n for of, _, _, n in counts if of == queue.id)),
                    "statuses": statuses,
                }
            )
        return found

    def set_approvals(self, queue: str, approvals: int, *, blind: bool = False) -> None:
        """Set how many reviewers must agree on a decision of a queue.

        Args:
            queue: Name of the queue.
            approvals: 1, or 2 different reviewers.
            blind: The second reviewer does not see the decision of the first.
        """
        if blind and approvals != 2:
            raise ConfigError(f"approvals: blind second opinions need 2, found {approvals}")
        with self.writing() as connection:
            _find_queue(connection, queue)
            own = _make_queue(connection, queue, approvals)
            change = QUEUES.update().where(QUEUES.c.id == own)
            connection.execute(change.values(blind=blind or None))

    # ---- terms

    def add_terms(
        self,
        terms: Iterable[ReviewTerm],
        *,
        reviewer: str,
        queue: str = DEFAULT_QUEUE,
        approvals: int | None = None,
        batch: str = "",
    ) -> BulkResult:
        """Add terms to a queue; of those that are there and open, renew what is suggested.

        What was decided stays. Terms that were removed, by the undo of an import, are there again.

        Args:
            terms: Terms with their suggestions.
            reviewer: Name of the person who adds them.
            queue: Name of the queue, which is made if there is none.
            approvals: Reviewers that must agree on a decision, 1 or 2; None: as it is, or 1.
            batch: Id of the batch.

        Returns:
            The number of terms that are new or have new suggestions, as ``n_changed``.
        """
        _check_text("reviewer", reviewer)
        batch, at, state = batch or secrets.token_hex(8), now(), to_json(TermState())
        new: dict[tuple[str, str, str], dict[str, Any]] = {}
        renewed: dict[int, dict[str, Any]] = {}
        try:
            with self.writing() as connection:
                own = _make_queue(connection, queue, approvals)
                query = sa.select(TERMS).where(TERMS.c.queue == own).order_by(TERMS.c.id)
                rows = connection.execute(query.with_for_update())
                known = {(row.term_key, row.code, row.context): row for row in rows}
                removed = {row.id for row in known.values() if row.status == REMOVED}
                for term in (each.folded() for each in terms):
                    if term.fault:
                        raise ConfigError(term.fault)
                    key = term.key
                    earlier = known.get(key)
                    if earlier is None:
                        place = {"queue": own, "term_key": key[0], "version": 1, "updated_at": at}
                        new.setdefault(key, {**place, **_columns(term), **state})
                    elif earlier.id in removed or (
                        earlier.status == OPEN and term != _term(earlier)
                    ):
                        place = {"version": earlier.version + 1, "updated_at": at}
                        renewed[earlier.id] = {**place, **_columns(term), **state}
                _update(connection, TERMS, [{"of": id_} | row for id_, row in renewed.items()])
                ids = sorted(removed & renewed.keys())
                if new:
                    insert = TERMS.insert().returning(TERMS.c.id)
                    ids += connection.scalars(insert, list(new.values()))
                if ids:
                    added = {"batch": batch, "at": at, "reviewer": reviewer, "action": ADD}
                    events = [{"term": each, "after": state, **added} for each in ids]
                    connection.execute(EVENTS.insert(), events)
        except sa.exc.IntegrityError as error:
            raise ConflictError(
                f"queue {queue!r}: another user imported the same terms meanwhile; import again"
            ) from error
        return BulkResult(batch, len(new) + len(renewed))

    def items(
        self,
        queue: str = DEFAULT_QUEUE,
        where: ReviewFilter | None = None,
        *,
        limit: int | None = None,
        offset: int = 0,
        viewer: str | None = None,
    ) -> list[ReviewItem]:
        """Return the terms of a queue, the highest frequency x doubt first.

        Args:
            queue: Name of the queue.
            where: Filter; None: all terms that were not removed.
            limit: Maximum terms.
            offset: Terms that are skipped.
            viewer: Reviewer who asks, who does not see blind decisions of others; None sees all.
        """
        with self.reading() as connection:
            query = _select_terms(connection, queue, where, viewer).limit(limit).offset(offset)
            return [_item(row).seen_by(viewer) for row in connection.execute(query)]

    def count(
        self,
        queue: str = DEFAULT_QUEUE,
        where: ReviewFilter | None = None,
        viewer: str | None = None,
    ) -> int:
        """Count the terms of a queue that a filter means.

        Args:
            queue: Name of the queue.
            where: Filter; None: all terms that were not removed.
            viewer: Reviewer who asks, who does not see blind decisions of others; None sees all.
        """
        with self.reading() as connection:
            chosen = _select_terms(connection, queue, where, viewer).subquery()
            return connection.scalar(sa.select(sa.func.count()).select_from(chosen)) or 0

    def item(self, term_id: int, viewer: str | None = None) -> ReviewItem:
        """Return a term.

        Args:
            term_id: Id of the term.
            viewer: Reviewer who asks, who does not see blind decisions of others; None sees all.
        """
        with self.reading() as connection:
            return _read_items(connection, [term_id])[term_id].seen_by(viewer)

    def find(
        self, queue: str, text: str, code: str = "", context: str = "", part: str = ""
    ) -> ReviewItem | None:
        """Return a term of a queue by its text; None if there is none.

        Args:
            queue: Name of the queue.
            text: Text of the term; case and whitespace do not matter.
            code: Its code in the source.
            context: Its further columns.
            part: Its part, where it has several concepts.
        """
        query = _TERMS.where(
            QUEUES.c.name == queue,
            TERMS.c.term_key == ReviewTerm(text, part=part).key[0],
            TERMS.c.code == code,
            TERMS.c.context == context,
            TERMS.c.status != REMOVED,
        )
        with self.reading() as connection:
            row = connection.execute(query).one_or_none()
        return None if row is None else _item(row)

    def others(self, item: ReviewItem, viewer: str | None = None) -> list[ReviewItem]:
        """Return the other targets of a term: the items of its queue that differ in the part only.

        Args:
            item: The term.
            viewer: Reviewer who asks, who does not see blind decisions of others; None sees all.
        """
        (whole, code, context), key = replace(item.term, part="").key, TERMS.c.term_key
        query = _TERMS.where(
            QUEUES.c.name == item.queue,
            (key == whole) | key.startswith(f"{whole}\t", autoescape=True),
            TERMS.c.code == code,
            TERMS.c.context == context,
            TERMS.c.status != REMOVED,
            TERMS.c.id != item.id,
        )
        with self.reading() as connection:
            rows = connection.execute(query.order_by(TERMS.c.id)).all()
        return [_item(row).seen_by(viewer) for row in rows]

    # ---- decisions

    def add_target(
        self, term_id: int, concept: str, *, reviewer: str, name: str = "", **details: Any
    ) -> ReviewItem:
        """Approve a further concept of a term, as a term of its own that is called by its name.

        Args:
            term_id: Id of the term.
            concept: Id of the concept.
            reviewer: Name of the reviewer.
            name: Name of the concept.
            **details: Further fields of :class:`TermDecision`, and ``batch``, as in `decide`.
        """
        item = self.item(term_id)
        if item.is_blind and item.state.status in UNDECIDED:
            raise ConfigError(f"term {term_id}: waits for a blind opinion; decide it first")
        self.check_concept(concept)
        if concept == item.state.concept:
            raise ConfigError(f"term {term_id}: has the concept {concept!r} already")
        details["batch"] = batch = details.get("batch") or secrets.token_hex(8)
        names = {each.concept: each.name for each in item.term.candidates}
        name = name or names.get(concept, "")
        suggested = (SuggestedConcept(concept, name),)
        term = replace(
            item.term, part=name or concept, candidates=suggested, flag="", reason=""
        ).folded()
        self.add_terms([term], reviewer=reviewer, queue=item.queue, batch=batch)
        added = self.find(item.queue, term.text, term.code, term.context, term.part)
        if added is None:
            raise NotFoundError(f"term {term_id} was removed")
        details |= {"concept": concept, "name": name or None}
        return self.decide(added.id, APPROVE, reviewer=reviewer, **details)

    def check_concept(self, concept: str | None) -> None:
        """Refuse a concept that the knowledge base does not have."""
        if self._has_concept and concept is not None and not self._has_concept(concept):
            raise ConfigError(f"concept: no concept of the knowledge base has the id {concept!r}")

    def decide(
        self, term_id: int, action: str, *, reviewer: str, batch: str = "", **details: Any
    ) -> ReviewItem:
        """Approve the suggestion, or another ``concept``; reject it; or say that there is none.

        Args:
            term_id: Id of the term.
            action: ``approve``, ``reject`` or ``nil``.
            reviewer: Name of the reviewer.
            batch: Id of the change, chosen by the caller: sent again, it is not done twice.
            **details: Further fields of :class:`TermDecision`.

        Raises:
            ConflictError: The term has another version by now.
        """
        return self.decide_all([TermDecision(term_id, action, reviewer, **details)], batch)[0]

    def decide_all(self, decisions: Sequence[TermDecision], batch: str = "") -> list[ReviewItem]:
        """Decide about several terms at once; if one decision is refused, all are.

        Args:
            decisions: Decisions, of one batch.
            batch: Id of the batch; what was done under it is not done again.
        """
        with self.writing() as connection:
            for error in filter(None, self._decide(connection, decisions, batch)[1]):
                raise error
            ids = [decision.term_id for decision in decisions]
            items = _read_items(connection, ids)
            return [items[term_id] for term_id in ids]

    def decide_each(
        self, decisions: Sequence[TermDecision]
    ) -> tuple[BulkResult, list[BiograftError | None]]:
        """Decide about many terms; decisions that are refused do not stop the others.

        Args:
            decisions: Decisions, of one batch.

        Returns:
            The result, and for each decision the error if it was refused.
        """
        with self.writing() as connection:
            return self._decide(connection, decisions)

    def decide_many(
        self,
        action: str,
        *,
        reviewer: str,
        queue: str = DEFAULT_QUEUE,
        where: ReviewFilter | None = None,
        comment: str = "",
        expected: int | None = None,
        batch: str = "",
        leave_risky: bool = False,
    ) -> BulkResult:
        """Decide the same about all terms that wait for the reviewer and that a filter means.

        Args:
            action: ``approve``, ``reject`` or ``nil``.
            reviewer: Name of the reviewer.
            queue: Name of the queue.
            where: Filter; None: all terms that wait for the reviewer.
            comment: Why.
            expected: Number of terms that was shown; with another one nothing is done.
            batch: Id of the batch; what was done under it is not done again.
            leave_risky: Leave the terms that are to be decided on their own
                (:attr:`ReviewTerm.bulk_risk`).
        """
        wanted = replace(where or ReviewFilter(), waits_for=reviewer)
        with self.writing() as connection:
            query = _select_terms(connection, queue, wanted).with_for_update(of=TERMS)
            rows = connection.execute(query)
            ids = [row.id for row in rows if not (leave_risky and _term(row).bulk_risk)]
            if n_done := _n_done(connection, batch, reviewer):
                return BulkResult(batch, n_done)
            if expected is not None and len(ids) != expected:
                raise ConflictError(
                    f"{len(ids):,} terms are meant now, {expected:,} were when you asked; "
                    "look again"
                )
            decisions = [TermDecision(each, action, reviewer, comment=comment) for each in ids]
            return self._decide(connection, decisions, batch)[0]

    def _decide(
        self, connection: Connection, decisions: Sequence[TermDecision], batch: str = ""
    ) -> tuple[BulkResult, list[BiograftError | None]]:
        """Write decisions about terms that have not changed since."""
        items = _read_items(connection, [each.term_id for each in decisions], lock=True)
        if n_done := _n_done(connection, batch, *{each.reviewer for each in decisions}):
            return BulkResult(batch, n_done), []
        rows = connection.execute(sa.select(QUEUES.c.name, QUEUES.c.approvals))
        approvals = {row.name: row.approvals for row in rows}
        disputed = [id_ for id_, each in items.items() if each.state.status == DISPUTED]
        own = EVENTS.c.term.in_(disputed), EVENTS.c.action.in_(ACTIONS), EVENTS.c.undone.is_(False)
        said_before: dict[tuple[int, str], TermState] = {
            (event.term_id, event.reviewer): event.after
            for event in reversed(_read_events(connection, *own) if disputed else [])
            if event.after
        }
        changes: list[_Change] = []
        skipped: list[tuple[int, str]] = []
        errors: list[BiograftError | None] = []
        for each in decisions:
            item = items[each.term_id]
            try:
                other = said_before.get((item.id, item.state.second_reviewer or ""))
                after = _decided(item, each, approvals[item.queue], other)
                if each.action == APPROVE:
                    self.check_concept(after.concept)
            except BiograftError as error:
                errors.append(error)
                skipped.append((item.id, str(error)))
                continue
            errors.append(None)
            said = {"action": each.action, "comment": each.comment, "at": each.time or now()}
            changes.append((item, after, {"reviewer": each.reviewer, **said}))
            items[item.id] = replace(item, state=after, version=item.version + 1)
        batch = _write_changes(connection, changes, batch)
        return BulkResult(batch, len(changes), tuple(skipped)), errors

    def comment(self, term_id: int, text: str, *, reviewer: str) -> ReviewEvent:
        """Add a comment to a term; it changes nothing else.

        Args:
            term_id: Id of the term.
            text: The comment.
            reviewer: Name of the reviewer.
        """
        _check_text("comment", text)
        _check_text("reviewer", reviewer)
        said = {"reviewer": reviewer, "action": COMMENT, "comment": text}
        with self.writing() as connection:
            item = _read_items(connection, [term_id])[term_id]
            batch = _write_changes(connection, [(item, None, said)])
            return _read_events(connection, EVENTS.c.batch == batch)[0]

    # ---- history and undo

    def events(self, **values: Any) -> list[ReviewEvent]:
        """Return the events with these values of columns: ``id``, ``batch``, ``term``."""
        with self.reading() as connection:
            conditions = [EVENTS.c[name] == value for name, value in values.items()]
            return _read_events(connection, *conditions)

    def history(
        self,
        queue: str = DEFAULT_QUEUE,
        term_id: int | None = None,
        *,
        limit: int | None = None,
        viewer: str | None = None,
    ) -> list[ReviewEvent]:
        """Return the events of a term, or of a queue (without what was imported), latest first.

        Args:
            queue: Name of the queue.
            term_id: Id of a term; None: the whole queue.
            limit: Maximum events.
            viewer: Reviewer who asks, who does not see what others say of a term that waits for a
                blind opinion; None sees all.
        """
        seen = [] if viewer is None else [~_hidden_event(viewer)]
        with self.reading() as connection:
            if term_id is not None:
                _read_items(connection, [term_id])  # refuse an unknown one
                return _read_events(connection, EVENTS.c.term == term_id, *seen, limit=limit)
            own = TERMS.c.queue == _find_queue(connection, queue)
            return _read_events(connection, own, EVENTS.c.action != ADD, *seen, limit=limit)

    def opinions(self, queue: str = DEFAULT_QUEUE) -> dict[int, tuple[ReviewEvent, ReviewEvent]]:
        """Return the first decisions of two reviewers about each term that has two.

        Args:
            queue: Name of the queue.
        """
        first: dict[int, dict[str, ReviewEvent]] = {}
        for event in self._standing(queue, EVENTS.c.action.in_(ACTIONS)):
            first.setdefault(event.term_id, {}).setdefault(event.reviewer, event)
        pairs = {id_: tuple(said.values())[:2] for id_, said in first.items() if len(said) > 1}
        return {id_: (one, two) for id_, (one, two) in pairs.items()}

    def undo(
        self, event_id: int, *, reviewer: str, comment: str = "", batch: str = ""
    ) -> ReviewItem:
        """Undo an event: the term is again as it was before. An undo can be undone, too.

        Args:
            event_id: Id of the event.
            reviewer: Name of the reviewer.
            comment: Why.
            batch: Id of the change; what was done under it is not done again.

        Raises:
            ConflictError: It is undone already, or the term was decided anew since then.
        """
        with self.writing() as connection:
            this = EVENTS.c.id == event_id
            for _, problem in _undo(connection, this, reviewer, comment, batch).skipped:
                raise ConflictError(problem)
            (event,) = _read_events(connection, this)
            return _read_items(connection, [event.term_id])[event.term_id]

    def undo_batch(
        self, batch: str, *, reviewer: str, comment: str = "", undo_batch: str = ""
    ) -> BulkResult:
        """Undo all events of a batch; terms that were decided anew since then stay.

        Args:
            batch: Id of the batch.
            reviewer: Name of the reviewer.
            comment: Why.
            undo_batch: Id of the change; what was done under it is not done again.
        """
        with self.writing() as connection:
            return _undo(connection, EVENTS.c.batch == batch, reviewer, comment, undo_batch)

    def comments(self, queue: str = DEFAULT_QUEUE, viewer: str | None = None) -> dict[int, str]:
        """Return the last comment on each term of a queue, also one made with a decision.

        Args:
            queue: Name of the queue.
            viewer: Reviewer who asks; see `history`.
        """
        seen = [] if viewer is None else [~_hidden_event(viewer)]
        events = self._standing(queue, EVENTS.c.comment != "", EVENTS.c.action != UNDO, *seen)
        return {event.term_id: event.comment for event in events}

    def rejections(self, queue: str = DEFAULT_QUEUE) -> dict[tuple[int, str], tuple[str, str]]:
        """Return who rejected concepts, and when: (term id, concept) -> (reviewer, time).

        Args:
            queue: Name of the queue.
        """
        events = self._standing(queue, EVENTS.c.action == REJECT)
        return {
            (event.term_id, event.after.concept): (event.reviewer, event.at)
            for event in events
            if event.after and event.after.concept
        }

    def _standing(self, queue: str, *conditions: sa.ColumnElement[bool]) -> Iterable[ReviewEvent]:
        """Return the events of a queue that were not undone, the earliest first."""
        with self.reading() as connection:
            own = TERMS.c.queue == _find_queue(connection, queue)
            return reversed(_read_events(connection, own, EVENTS.c.undone.is_(False), *conditions))


def check_database(place: str) -> CheckedArtifact:
    """Check all rows of a review in PostgreSQL against their hashes, without writing."""
    url, where = _url_of(place, create=False)
    engine, problems = sa.create_engine(url, hide_parameters=True), []
    with closing(ReviewStore(engine, where)) as store, store.reading() as connection:
        known = sa.inspect(connection).get_table_names()
        problems += [f"the table {name} is missing" for name in TABLES if name not in known]
        for name in (each for each in TABLES if each in known):
            table = sa.Table(name, sa.MetaData(), autoload_with=connection)  # of any version
            rows = connection.execution_options(yield_per=_SEALED_AT_ONCE).execute(sa.select(table))
            for values in (dict(row._mapping) for row in rows):
                if HASH in values and row_hash(values) != values[HASH]:
                    problems.append(damaged_row(name, values["id"]))
    return CheckedArtifact(where, FORMAT, 1, 0, tuple(f"{where}: {each}" for each in problems))


def _url_of(place: str | Path, *, create: bool) -> tuple[sa.URL, str]:
    """Return the URL of a database, and what it is called in messages (without a password)."""
    text = str(place)
    if not is_url(text):
        path = Path(place)
        if path.exists() and not path.is_file():
            what = "folder" if path.is_dir() else "pipe or a device"
            raise ConfigError(f"{path}: is a {what}; a review is a file, or a postgresql:// URL")
        if not path.exists():
            if not create:
                raise NotFoundError(
                    f"{path}: no such review; begin one with `biograft review import`"
                )
            try:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.touch(mode=0o600)  # terms may be about patients
            except OSError as error:
                raise OutputError(
                    f"{path}: cannot be made ({error.strerror}); choose another place"
                ) from error
        return sa.URL.create("sqlite", database=os.fspath(path)), str(path)
    try:
        url = sa.make_url(text)
    except (sa.exc.ArgumentError, ValueError):  # they may quote a password
        problem = "the URL cannot be read: expected postgresql://USER@HOST/DATABASE"
        raise ConfigError(f"review: {problem}") from None
    if url.drivername in ("postgresql", "postgres"):
        url = url.set(drivername=_POSTGRES)
    if url.drivername not in (_POSTGRES, "sqlite"):
        raise ConfigError(
            f"review: expected a file or a postgresql:// URL, found {url.drivername}://"
        )
    where = url.difference_update_query(["password", "sslpassword"])
    if url.drivername == _POSTGRES:
        url = url.update_query_dict({"connect_timeout": _CONNECT_SECONDS, **url.query})
    return url, where.render_as_string(hide_password=True)


def _prepare_sqlite(connection: Any, _: Any) -> None:
    """Leave transactions to SQLAlchemy; readers do not wait for a writer."""
    connection.isolation_level = None
    cursor = connection.cursor()
    cursor.execute(f"PRAGMA busy_timeout = {1000 * _BUSY_SECONDS}")
    cursor.execute("PRAGMA journal_mode = WAL")
    cursor.execute("PRAGMA synchronous = FULL")  # a decision that was answered survives
    cursor.execute("PRAGMA foreign_keys = ON")
    cursor.execute("PRAGMA trusted_schema = OFF")
    cursor.close()


def _begin_sqlite(connection: Connection) -> None:
    """Take the lock of a writer at once, so that what it reads cannot change before it writes."""
    writes = connection.get_execution_options().get(_WRITES, False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")


def now() -> str:
    """Return the time in UTC, to the millisecond."""
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


# ---- rows and records


_TERMS = sa.select(TERMS, QUEUES.c.name.label("queue_name"), QUEUES.c.blind).join(QUEUES)
_TOGETHER = 500
"""Terms that are read by one query."""
_Change = tuple[ReviewItem, TermState | None, dict[str, Any]]
"""A term as it is, its new state (None: as it is), and what the event says."""


def _find_queue(connection: Connection, name: str) -> int:
    """Return the id of a queue."""
    queue: int | None = connection.scalar(sa.select(QUEUES.c.id).where(QUEUES.c.name == name))
    if queue is None:
        known = connection.scalars(sa.select(QUEUES.c.name)).all()
        advice = nearest(name, known) if known else "there is none; import a mapping first"
        raise NotFoundError(f"no queue is called {name!r}; {advice}")
    return queue


def _make_queue(connection: Connection, name: str, approvals: int | None) -> int:
    """Return the id of a queue, which is made if there is none."""
    _check_text("queue", name)
    if approvals not in (None, 1, 2):
        raise ConfigError(f"approvals: expected 1 or 2, found {approvals}")
    own = QUEUES.c.name == name
    if connection.scalar(sa.select(QUEUES.c.id).where(own)) is None:
        values = {"name": name, "approvals": approvals or 1, "made_at": now()}
        connection.execute(QUEUES.insert().values(**values))
    elif approvals is not None:
        connection.execute(QUEUES.update().where(own).values(approvals=approvals))
    return _find_queue(connection, name)


def _hidden(viewer: str) -> sa.ColumnElement[bool]:
    """Condition of the terms whose proposal a reviewer does not see, to give a blind opinion."""
    is_proposed = TERMS.c.status == PROPOSED
    return QUEUES.c.blind.is_(True) & is_proposed & (TERMS.c.reviewer != viewer)


def _hidden_event(viewer: str) -> sa.ColumnElement[bool]:
    """SQL condition: opinions of others on terms that wait for a blind opinion, undone or not."""
    blind = sa.select(QUEUES.c.id).where(QUEUES.c.blind.is_(True))
    is_waiting = TERMS.c.queue.in_(blind) & TERMS.c.status.in_((OPEN, PROPOSED))
    return is_waiting & (EVENTS.c.reviewer != viewer) & (EVENTS.c.action != ADD)


def _seen_status(viewer: str | None) -> sa.ColumnElement[str]:
    """Return the status of terms as a reviewer sees it."""
    if viewer is None:
        return TERMS.c.status
    return sa.case((_hidden(viewer), sa.literal_column(f"'{OPEN}'")), else_=TERMS.c.status)


def _select_terms(
    connection: Connection, queue: str, where: ReviewFilter | None, viewer: str | None = None
) -> sa.Select[Any]:
    """Select the terms of a queue that a filter means, the highest priority first."""
    wanted = {k: v for k, v in asdict(where or ReviewFilter()).items() if v is not None}
    status = wanted.pop("status", None)
    conditions = [_CONDITIONS[name](value) for name, value in wanted.items()]
    if "reviewer" in wanted and viewer is not None:
        conditions.append(~_hidden(viewer))
    is_wanted = TERMS.c.status != REMOVED if status is None else _seen_status(viewer) == status
    conditions.append(is_wanted)
    query = _TERMS.where(TERMS.c.queue == _find_queue(connection, queue), *conditions)
    return query.order_by(TERMS.c.priority.desc(), TERMS.c.frequency.desc(), TERMS.c.id)


def _read_items(
    connection: Connection, ids: Iterable[int], *, lock: bool = False
) -> dict[int, ReviewItem]:
    """Return terms by their ids; locked, no other user can change them in this transaction."""
    wanted, found = list(dict.fromkeys(ids)), {}
    for start in range(0, len(wanted), _TOGETHER):
        query = _TERMS.where(TERMS.c.id.in_(wanted[start : start + _TOGETHER]))
        query = query.order_by(TERMS.c.id)  # so that two writers do not wait for each other
        rows = connection.execute(query.with_for_update(of=TERMS) if lock else query)
        found.update({row.id: _item(row) for row in rows})
    for id_ in wanted:
        if id_ not in found:
            raise NotFoundError(f"no term has the id {id_}")
    return found


@contextmanager
def _read_row(row: Row[Any]) -> Iterator[None]:
    """Say in one line that a row does not hold what a review writes."""
    try:
        yield
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise _damaged(f"row {row.id}") from error


def _read_json(text: str) -> Any:
    try:
        return json.loads(text)
    except (RecursionError, TypeError, ValueError) as error:
        raise _damaged("a row") from error


def _damaged(what: str) -> StoreError:
    return StoreError(f"review: {what} does not hold what a review writes; run `biograft check`")


def _term(row: Row[Any]) -> ReviewTerm:
    with _read_row(row):
        candidates = tuple(SuggestedConcept(**each) for each in row.candidates)
        place = (row.text, row.code, row.context, row.frequency, row.flag)
        return checked(ReviewTerm(*place, candidates, row.part or "", row.reason or ""))


def _item(row: Row[Any]) -> ReviewItem:
    with _read_row(row):
        state = TermState.from_json(dict(row._mapping))
        place = (row.id, row.queue_name, row.version, _term(row), state, row.updated_at)
        return checked(ReviewItem(*place, bool(row.blind)))


def _columns(term: ReviewTerm) -> dict[str, Any]:
    """Return the columns that a mapping gives a term."""
    first = term.candidates[0] if term.candidates else SuggestedConcept("")
    certainty = {"score": first.score, "probability": first.probability}
    later = {PART: term.part or None, REASON: term.reason or None}
    return {**to_json(term), **later, **certainty, "priority": term.priority}


def _event(row: Row[Any]) -> ReviewEvent:
    with _read_row(row):
        place = (row.id, row.term, row.text, row.batch, row.at, row.reviewer, row.action)
        before, after = (state and TermState.from_json(state) for state in (row.before, row.after))
        return checked(ReviewEvent(*place, row.comment, before, after, row.undoes, row.undone))


def _read_events(
    connection: Connection, *conditions: sa.ColumnElement[bool], limit: int | None = None
) -> list[ReviewEvent]:
    """Return events, the latest first."""
    query = sa.select(EVENTS, TERMS.c.text).join(TERMS).where(*conditions)
    rows = connection.execute(query.order_by(EVENTS.c.id.desc()).limit(limit))
    return [_event(row) for row in rows]


def _n_done(connection: Connection, batch: str, *reviewers: str) -> int:
    """Count what was done under an id, which is new where nothing was; refuse that of others."""
    if not batch:
        return 0
    done = _read_events(connection, EVENTS.c.batch == batch, EVENTS.c.action != ADD)
    if any(event.reviewer not in reviewers for event in done):
        raise ConflictError("change: another reviewer used this id; choose a new one")
    return len(done)


def _write_changes(connection: Connection, changes: Sequence[_Change], batch: str = "") -> str:
    """Write new states of locked terms, and an event for each; return their batch."""
    batch, at = batch or secrets.token_hex(8), now()
    terms, events = [], []
    for seen, after, said in changes:
        event = {"term": seen.id, "batch": batch, "at": at, "before": None, "after": None, **said}
        if after is not None:
            event |= {"before": to_json(seen.state), "after": to_json(after)}
            change = {"version": seen.version + 1, "updated_at": event["at"]}
            terms.append({"of": seen.id, **change, **event["after"]})
        events.append(event)
    _update(connection, TERMS, terms)
    if events:
        connection.execute(EVENTS.insert(), events)
    return batch


def _undo(
    connection: Connection,
    which: sa.ColumnElement[bool],
    reviewer: str,
    comment: str,
    batch: str,
) -> BulkResult:
    """Restore the states before some events.

    A term that was decided anew since then is left: that is to be undone first.
    """
    _check_text("reviewer", reviewer)
    if comment:
        _check_text("comment", comment)
    touched = [event.term_id for event in _read_events(connection, which)]
    if not touched:
        raise NotFoundError("undo: there is no such event, or batch")
    items = _read_items(connection, touched, lock=True)
    events = _read_events(connection, which)  # read again, under the lock
    if n_done := _n_done(connection, batch, reviewer):
        return BulkResult(batch, n_done)
    changes: list[_Change] = []
    skipped, marks = [], []
    for event in events:
        seen, before = items[event.term_id], None
        if event.undone:
            skipped.append((seen.id, f"event {event.id} is undone already"))
            continue
        if event.after is not None:  # neither a comment, nor the undo of one
            if event.after != seen.state:
                problem = f"event {event.id}: the term was decided anew since then"
                skipped.append((seen.id, f"{problem}{seen.last_change}; undo that first"))
                continue
            before = event.before or TermState(status=REMOVED)
            items[seen.id] = replace(seen, state=before, version=seen.version + 1)
        said = {"reviewer": reviewer, "comment": comment, "action": UNDO, "undoes": event.id}
        changes.append((seen, before, said))
        marks.append({"of": event.id, "undone": True})
        if event.undoes is not None:  # what an undone undo had undone counts again
            marks.append({"of": event.undoes, "undone": False})
    batch = _write_changes(connection, changes, batch)
    _update(connection, EVENTS, marks)
    return BulkResult(batch, len(changes), tuple(skipped))


def _decided(
    item: ReviewItem, decision: TermDecision, approvals: int, other: TermState | None = None
) -> TermState:
    """Return the state of a term after a decision; refuse one that is late or says nothing.

    Args:
        item: The term.
        decision: The decision.
        approvals: Reviewers that must agree.
        other: What the other reviewer said of a term about which two disagree.
    """
    check_choice("action", decision.action, ACTIONS)
    check_choice("relation", decision.relation or EXACT, RELATIONS)
    _check_text("reviewer", decision.reviewer)
    action, reviewer = decision.action, decision.reviewer
    seen, state = item.seen_by(reviewer), item.state
    if decision.version not in (None, seen.version, item.version):
        raise ConflictError(f"term {item.id}: was changed meanwhile{seen.last_change}; look again")
    if state.status == REMOVED:
        raise NotFoundError(f"term {item.id} was removed")
    concept, name = decision.concept, decision.name
    is_reply = seen.state.status == PROPOSED and seen.state.action == action
    if action == NO_CONCEPT:
        if concept is not None:
            raise ConfigError("nil: says that there is no concept, and one was given")
        name = None
    elif concept is not None:
        known = {each.concept: each.name for each in item.term.candidates}
        name = name or known.get(concept)
    elif is_reply:
        concept, name = state.concept, state.name
    else:
        found = item.suggestion if action == APPROVE else item.next_candidate
        if found is None:
            advice = "name a concept" if action == APPROVE else "there is nothing to reject"
            raise ConfigError(f"term {item.id}: has no suggestion; {advice}")
        concept, name = found.concept, found.name
    if fault := name_fault(concept or ""):  # of a candidate that an earlier version stored
        raise ConfigError(f"concept {concept!r}: {fault}")
    proposed = state.relation if is_reply and state.concept == concept else EXACT
    relation = (decision.relation or proposed) if action == APPROVE else EXACT
    said = {state.reviewer: state} if state.status in (PROPOSED, DISPUTED) else {}
    if state.status == DISPUTED and other is not None:
        said[state.second_reviewer] = other
    opinion = (action, concept, relation)
    same = [who for who, each in said.items() if each.opinion == opinion]
    if reviewer in same:
        raise ConflictError(
            f"term {item.id}: {reviewer} has proposed this; a second person is to decide"
        )
    is_judge = state.status == DISPUTED and reviewer not in said
    is_final = approvals == 1 or bool(same) or is_judge
    rejected = tuple(each for each in state.rejected if action != APPROVE or each != concept)
    if is_final and action == REJECT and concept is not None and concept not in rejected:
        rejected = (*rejected, concept)
    first, second, status = reviewer, None, STATUS_OF[action]
    if same:
        first, second = same[0] or "", reviewer
    elif not is_final:
        others = [who for who in said if who != reviewer]
        is_dispute = item.is_blind and bool(others)
        status, second = (DISPUTED, others[0]) if is_dispute else (PROPOSED, None)
    return TermState(status, action, concept, name, relation, first, second, rejected)


def _check_text(what: str, value: str) -> None:
    if not value.strip() or len(value) > MAX_TEXT:
        raise ConfigError(f"{what}: expected a text of 1 to {MAX_TEXT:,} characters")
    if fault := name_fault(value, multiline=what == "comment"):
        raise ConfigError(f"{what}: {fault}")
