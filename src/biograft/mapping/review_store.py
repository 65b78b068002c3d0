"""Reviews: terms of a mapping, decided by people, with versions, history and undo.

Every change names the version of the term that was seen. Whoever comes second with the same version
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

import os
import secrets
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Engine, Row

import biograft
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
from biograft.mapping.decisions import RELATIONS
from biograft.mapping.review_check import HASH, HASH_BYTES, TABLES, row_hash
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
    SuggestedConcept,
    TermDecision,
    TermState,
)
from biograft.text import name_fault, term_key

_SEALED_AT_ONCE = 1000
"""Rows that are given their hashes at once."""


def _hash_column() -> sa.Column[str]:
    """Return the column of the hashes, which is empty after any other column was written."""
    return sa.Column(HASH, sa.String(2 * HASH_BYTES), onupdate=sa.null())


def _index_of_unsealed(table: str) -> sa.Index:
    """Return the index that finds the rows without a hash at once."""
    return sa.Index(
        f"{table}_without_hash", "id",
        sqlite_where=sa.text(f"{HASH} IS NULL"), postgresql_where=sa.text(f"{HASH} IS NULL"),
    )  # fmt: skip


METADATA = sa.MetaData()
_ID = sa.BigInteger().with_variant(sa.Integer, "sqlite")  # SQLite numbers its INTEGER keys only

VERSIONS = sa.Table(
    "review_versions",
    METADATA,
    sa.Column("version", sa.Integer, primary_key=True),
    sa.Column("made_at", sa.String(32), nullable=False),
    sa.Column("made_by", sa.String(64), nullable=False),
)
QUEUES = sa.Table(
    "review_queues",
    METADATA,
    sa.Column("id", _ID, primary_key=True),
    sa.Column("name", sa.String(200), nullable=False, unique=True),
    sa.Column("approvals", sa.Integer, nullable=False),  # reviewers that a decision needs
    sa.Column("made_at", sa.String(32), nullable=False),
    _hash_column(),
    _index_of_unsealed("review_queues"),
)
TERMS = sa.Table(
    "review_terms",
    METADATA,
    sa.Column("id", _ID, primary_key=True),
    sa.Column("queue", _ID, sa.ForeignKey("review_queues.id"), nullable=False),
    sa.Column("term_key", sa.Text, nullable=False),  # the term but for case and whitespace
    sa.Column("code", sa.Text, nullable=False),
    sa.Column("context", sa.Text, nullable=False),
    sa.Column("text", sa.Text, nullable=False),
    sa.Column("frequency", sa.BigInteger, nullable=False),
    sa.Column("flag", sa.String(40), nullable=False),
    sa.Column("candidates", sa.JSON, nullable=False),
    sa.Column("score", sa.Float),  # of the first candidate
    sa.Column("probability", sa.Float),
    sa.Column("priority", sa.Float, nullable=False),  # frequency x doubt
    sa.Column("version", sa.Integer, nullable=False),  # counts changes; a writer names it
    sa.Column("updated_at", sa.String(32), nullable=False),
    # what was decided
    sa.Column("status", sa.String(20), nullable=False),
    sa.Column("action", sa.String(20), nullable=False),
    sa.Column("concept", sa.Text),
    sa.Column("name", sa.Text),
    sa.Column("relation", sa.String(20), nullable=False),
    sa.Column("reviewer", sa.Text),
    sa.Column("second_reviewer", sa.Text),
    sa.Column("rejected", sa.JSON, nullable=False),  # concepts that the term does not mean
    _hash_column(),
    sa.UniqueConstraint("queue", "term_key", "code", "context"),
    sa.Index("review_terms_by_priority", "queue", "status", "priority"),
    _index_of_unsealed("review_terms"),
)
EVENTS = sa.Table(
    "review_events",
    METADATA,
    sa.Column("id", _ID, primary_key=True),
    sa.Column("term", _ID, sa.ForeignKey("review_terms.id"), nullable=False, index=True),
    sa.Column("batch", sa.String(32), nullable=False, index=True),  # one for what is done at once
    sa.Column("at", sa.String(32), nullable=False),
    sa.Column("reviewer", sa.Text, nullable=False),
    sa.Column("action", sa.String(20), nullable=False),
    sa.Column("comment", sa.Text, nullable=False),
    sa.Column("before", sa.JSON),  # what was decided before and after; null: there was no term
    sa.Column("after", sa.JSON),
    sa.Column("undoes", _ID),
    sa.Column("undone", sa.Boolean, nullable=False),
    _hash_column(),
    _index_of_unsealed("review_events"),
)
SEALED = tuple(METADATA.tables[name] for name in TABLES)
"""Tables whose rows have hashes."""


def _seal(connection: Connection) -> None:
    """Give all rows that have no hash theirs."""
    for table in SEALED:
        own = table.c.id == sa.bindparam("of")
        query = table.update().where(own).values({HASH: sa.bindparam("its_hash")})
        unsealed = sa.select(table).where(table.c[HASH].is_(None)).limit(_SEALED_AT_ONCE)
        while rows := connection.execute(unsealed).all():
            made = [{"of": row.id, "its_hash": row_hash(dict(row._mapping))} for row in rows]
            connection.execute(query, made)


def _create(connection: Connection) -> None:
    METADATA.create_all(connection, tables=SEALED)


def _add_hashes(connection: Connection) -> None:
    """Add the column of the hashes; the transaction that this is part of computes them."""
    inspector = sa.inspect(connection)
    for table in SEALED:
        if HASH in {column["name"] for column in inspector.get_columns(table.name)}:
            continue  # made just now
        kind = table.c[HASH].type.compile(connection.dialect)
        connection.exec_driver_sql(f"ALTER TABLE {table.name} ADD COLUMN {HASH} {kind}")
        for index in table.indexes:
            index.create(connection, checkfirst=True)


MIGRATIONS: tuple[Callable[[Connection], None], ...] = (_create, _add_hashes)
"""Migrations of a database from version N to N + 1; a new version appends one."""
VERSION = len(MIGRATIONS)
_WRITES = "biograft_writes"
_BUSY_SECONDS = 120
_POSTGRES = "postgresql+psycopg"
_DISK_FULL = "53100"
"""The code of a full disk in PostgreSQL."""
_PRIMARY = 0xFF
"""The bits of SQLite's codes that say what kind an error is of."""
_FAILED = {
    *(sqlite3.SQLITE_IOERR, sqlite3.SQLITE_BUSY),
    *(sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY),
}


def now() -> str:
    """Return the time in UTC, to the millisecond."""
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


class ReviewDatabase:
    """A database of reviews: SQLite in a file, or PostgreSQL by its URL."""

    def __init__(self, engine: Engine, where: str) -> None:
        self.engine, self.where = engine, where

    @classmethod
    def open(cls, place: str | Path, *, create: bool = False) -> ReviewDatabase:
        """Open a file or a URL; with ``create`` make the tables where there are none."""
        url, where = _url_of(place, create=create)
        engine = sa.create_engine(url, hide_parameters=True)  # errors must not show terms
        if engine.dialect.name == "sqlite":
            sa.event.listen(engine, "connect", _prepare_sqlite)
            sa.event.listen(engine, "begin", _begin_sqlite)
        database = cls(engine, where)
        with ExitStack() as closed_on_error:
            closed_on_error.callback(engine.dispose)
            try:
                database._update(create=create)
            except sa.exc.OperationalError as error:
                raise StoreError(f"{where}: cannot be opened ({error.orig})") from error
            except sa.exc.DatabaseError as error:
                remedy = "give a file that `biograft review import` made"
                raise StoreError(
                    f"{where}: is no review database ({error.orig}); {remedy}"
                ) from error
            closed_on_error.pop_all()
        return database

    def close(self) -> None:
        """Close all connections."""
        self.engine.dispose()

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
        except sa.exc.OperationalError as error:
            code = getattr(error.orig, "sqlite_errorcode", 0) & _PRIMARY
            full = code == sqlite3.SQLITE_FULL or getattr(error.orig, "sqlstate", "") == _DISK_FULL
            if not full and code not in _FAILED:
                raise
            remedy = "free space" if full else "try again, or look at the disk"
            if code in (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY):
                remedy = "the file and its folder must be writable, also to read"
            raise OutputError(
                f"{self.where}: {error.orig}; nothing was changed; {remedy}"
            ) from error

    def _update(self, *, create: bool) -> None:
        with self.writing() as connection:
            if connection.dialect.name == "postgresql":
                connection.execute(sa.text("SELECT pg_advisory_xact_lock(7261)"))
            if not sa.inspect(connection).has_table(VERSIONS.name):
                if not create:
                    raise StoreError(
                        f"{self.where}: has no review; begin one with `biograft review import`"
                    )
                METADATA.create_all(connection, tables=[VERSIONS])
            found = connection.scalar(sa.select(sa.func.max(VERSIONS.c.version))) or 0
            if found > VERSION:
                raise StoreError(
                    f"{self.where}: review of version {found}, this biograft knows {VERSION}; "
                    "update biograft"
                )
            for version in range(found, VERSION):
                MIGRATIONS[version](connection)
                connection.execute(
                    VERSIONS.insert().values(
                        version=version + 1,
                        made_at=now(),
                        made_by=f"biograft {biograft.__version__}",
                    )
                )


def _url_of(place: str | Path, *, create: bool) -> tuple[sa.URL, str]:
    """Return the URL of a database, and what it is called in messages (without a password)."""
    text = str(place)
    if "://" not in text:
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
    except sa.exc.ArgumentError as error:
        raise ConfigError("review: the URL of the database cannot be read") from error
    if url.drivername in ("postgresql", "postgres"):
        url = url.set(drivername=_POSTGRES)
    if url.drivername not in (_POSTGRES, "sqlite"):
        raise ConfigError(
            f"review: expected a file or a postgresql:// URL, found {url.drivername}://"
        )
    return url, url.render_as_string(hide_password=True)


def _prepare_sqlite(connection: Any, _: Any) -> None:
    """Leave transactions to SQLAlchemy; readers do not wait for a writer."""
    connection.isolation_level = None
    cursor = connection.cursor()
    cursor.execute(f"PRAGMA busy_timeout = {1000 * _BUSY_SECONDS}")
    cursor.execute("PRAGMA journal_mode = WAL")
    cursor.execute("PRAGMA synchronous = FULL")  # a decision that was answered survives
    cursor.execute("PRAGMA foreign_keys = ON")
    cursor.close()


def _begin_sqlite(connection: Connection) -> None:
    """Take the lock of a writer at once, so that what it reads cannot change before it writes."""
    writes = connection.get_execution_options().get(_WRITES, False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")


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
