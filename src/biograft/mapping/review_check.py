"""Checking review databases for damage: the file's structure, and the hashes of all rows."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import sqlalchemy as sa

from biograft.artifacts import CheckedArtifact
from biograft.errors import StoreError
from biograft.mapping.review_hashes import changed_rows
from biograft.mapping.review_tables import SEALED, ReviewDatabase

FORMAT = "biograft-review"
_MAGIC = b"SQLite format 3\0"


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
