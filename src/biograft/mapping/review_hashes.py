"""Hashes of the rows of a review, so that a row that the disk has changed is found.

Every row has the hash of what its other columns hold. Writing a row takes its hash away, and the
end of the transaction gives all rows without one their hashes, so that no writer can forget it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Row

HASH = "hash"
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
