"""Hashes of the rows of a review, so that a row that the disk has changed is found.

Every row has the hash of what its other columns hold. Writing a row takes its hash away, and the
end of the transaction gives all rows without one their hashes, so that no writer can forget it.
"""

from __future__ import annotations

from collections.abc import Sequence

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from biograft.mapping.review_check import HASH, HASH_BYTES, row_hash

_BLOCK = 1000
"""Rows that are read at once."""


def hash_column() -> sa.Column[str]:
    """Return the column of the hashes, which is empty after any other column was written."""
    return sa.Column(HASH, sa.String(2 * HASH_BYTES), onupdate=sa.null())


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
        unsealed = sa.select(table).where(table.c[HASH].is_(None)).limit(_BLOCK)
        while rows := connection.execute(unsealed).all():
            made = [{"of": row.id, "its_hash": row_hash(dict(row._mapping))} for row in rows]
            connection.execute(query, made)
