"""Tables of a review, in SQLite or PostgreSQL, by SQLAlchemy (extra ``review``); their versions.

Every row has the hash of what its other columns hold. Writing a row takes its hash away, and the
end of the transaction gives all rows without one theirs, so that no writer can forget it.

A database states its version in the table ``review_versions``. An older one is brought up to date
when it is opened, in one transaction; a newer one is refused.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Engine

import biograft
from biograft.errors import ConfigError, NotFoundError, OutputError, StoreError
from biograft.mapping.review_check import HASH, HASH_BYTES, TABLES, row_hash

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
