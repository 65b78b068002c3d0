"""Hashes of the rows of a review, so that a row that the disk has changed is found.

Every row has the hash of what its other columns hold. Writing a row takes its hash away, and the
end of the transaction gives all rows without one their hashes, so that no writer can forget it.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Row

from biograft.artifacts import CheckedArtifact
from biograft.errors import StoreError

HASH = "hash"
FORMAT = "biograft-review"
_MAGIC = b"SQLite format 3\0"
_HASH_BYTES = 16
_ROWS = 1000


def hash_column() -> sa.Column[str]:
    """Return the column of the hashes, which is empty after any other column was written."""
    return sa.Column(HASH, sa.String(2 * _HASH_BYTES), onupdate=sa.null())


def index_of_unsealed(table: str) -> sa.Index:
    """Return the index that finds the rows without a hash at once."""
    return sa.Index(
        f"{table}_without_hash", "id",
        sqlite_where=sa.text(f"{HASH} IS NULL"), postgresql_where=sa.text(f"{HASH} IS NULL"),
    )  # fmt: skip


def seal(connection: Connection, tables: Sequence[sa.Table]) -> None:
    """Give all rows that have no hash theirs."""
    for table in tables:
        own = table.c.id == sa.bindparam("of")
        query = table.update().where(own).values({HASH: sa.bindparam("its_hash")})
        rows = connection.execute(sa.select(table).where(table.c[HASH].is_(None))).all()
        if rows:
            connection.execute(query, [{"of": row.id, "its_hash": _hash(row)} for row in rows])


def _hash(row: Row[Any]) -> str:
    values = {name: value for name, value in row._mapping.items() if name != HASH}
    text = json.dumps(values, ensure_ascii=False, sort_keys=True)
    return hashlib.blake2b(text.encode(), digest_size=_HASH_BYTES).hexdigest()


def changed_rows(connection: Connection, tables: Sequence[sa.Table]) -> Iterator[str]:
    """Yield the rows that are not as they were written."""
    for table in tables:
        rows = connection.execution_options(yield_per=_ROWS).execute(sa.select(table))
        for row in rows:
            if row._mapping[HASH] != _hash(row):
                yield f"{table.name}, row {row.id}: its content is not what was written"


def find_reviews(path: Path) -> Iterator[Path]:
    """Yield the review databases of a folder, or the file that was named, if it is one."""
    if path.is_file():
        if path.suffix == ".db" or _is_sqlite(path):
            yield path
        return
    yield from (file for file in sorted(path.rglob("*.db")) if _is_sqlite(file) and _is_own(file))


def _is_sqlite(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return file.read(len(_MAGIC)) == _MAGIC
    except OSError:
        return False


def _is_own(path: Path) -> bool:
    """Whether a database has a review, or is damaged so that this cannot be seen."""
    query = "SELECT 1 FROM sqlite_master WHERE name = 'review_versions'"
    try:
        with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)) as database:
            return bool(database.execute(query).fetchall())
    except sqlite3.Error:
        return True


def check_review(path: Path) -> CheckedArtifact:
    """Compare all rows of a review with their hashes, and the file's structure with itself."""
    from biograft.mapping.review_tables import SEALED, ReviewDatabase

    problems: list[str] = []
    try:
        database = ReviewDatabase.open(path)
        try:
            with database.reading() as connection:
                found = connection.exec_driver_sql("PRAGMA integrity_check").scalars()
                problems += [f"{path}: {each}" for each in found if each != "ok"]
                problems += [f"{path}: {each}" for each in changed_rows(connection, SEALED)]
        finally:
            database.close()
    except StoreError as error:
        problems.append(str(error))
    except (sa.exc.DatabaseError, ValueError, LookupError, TypeError) as error:
        said = getattr(error, "orig", None) or error
        problems.append(f"{path}: cannot be read ({' '.join(str(said).split())})")
    return CheckedArtifact(path, FORMAT, 1, path.stat().st_size, tuple(problems))
