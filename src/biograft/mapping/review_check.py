"""Checking review databases for damage: the file's structure, and the hashes of all rows.

Only a copy is opened, so that nothing is written, and a review is checked that cannot be written.
"""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import sqlite3
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

from biograft.artifacts import CheckedArtifact
from biograft.errors import shorten

FORMAT = "biograft-review"
HASH, HASH_BYTES = "hash", 16
PART, REASON, BLIND = LATER = ("part", "reason", "blind")
"""Columns that reviews of earlier versions do not have; empty, they do not change the hash."""
TABLES = ("review_queues", "review_terms", "review_events")
"""Tables whose rows have hashes."""
_MARK, _LOOKED_AT = b"CREATE TABLE review_", 1 << 18
"""Beginning of the schema of a review, and the searched length of the file."""
_TRIES = 3
_READERS: Mapping[str, Callable[[Any], Any]] = {"JSON": json.loads, "BOOLEAN": bool}
"""Readers of values that SQLite holds otherwise, by the types of their columns."""
SCHEMA = "SELECT type, name, sql FROM sqlite_master"
"""Query of all that a SQLite file defines."""
_NAME = r'"?\w+"?'
_NAMES = rf"\({_NAME}(?:, {_NAME})*\)"
_TYPE = r"(?:INTEGER|BIGINT|FLOAT|BOOLEAN|JSON|TEXT|VARCHAR\(\d+\))"
_PART = (
    rf"(?:(?:PRIMARY KEY|UNIQUE) {_NAMES}|FOREIGN KEY ?{_NAMES} REFERENCES {_NAME} {_NAMES}"
    rf"|{_NAME}(?: {_TYPE})?(?: NOT NULL)?)"
)
_DEFINITION = re.compile(
    rf"CREATE TABLE {_NAME} ?\( ?{_PART}(?:, ?{_PART})* ?\)"
    rf"|CREATE INDEX {_NAME} ON {_NAME} {_NAMES}(?: WHERE {_NAME} IS NULL)?"
)
"""Definitions that a review has: tables and indexes, without an expression to evaluate."""
_UNREADABLE = (sqlite3.Error, ValueError, TypeError, RecursionError, OverflowError)


def row_hash(values: Mapping[str, Any]) -> str:
    """Compute the hash of a row: of what all its columns but that of the hash hold."""
    content = {
        name: value
        for name, value in values.items()
        if name != HASH and (name not in LATER or value is not None)
    }
    text = json.dumps(content, sort_keys=True)
    return hashlib.blake2b(text.encode(), digest_size=HASH_BYTES).hexdigest()


def foreign_definitions(schema: Iterable[tuple[str, str, str | None]]) -> Iterator[str]:
    """Yield what no review defines, such as triggers and views, which act when rows are read.

    Args:
        schema: Rows of :data:`SCHEMA`.
    """
    for kind, name, definition in schema:
        text = " ".join(str(definition or "").split())
        is_index_of_table = kind == "index" and definition is None
        if not is_index_of_table and not _DEFINITION.fullmatch(text):
            yield f"defines the {kind} {shorten(str(name))!r}, which no review has"


def is_url(place: str) -> bool:
    """Whether a place is a URL, or was meant to be one."""
    return "://" in place or place.lower().startswith(("postgresql:", "postgres:"))


def damaged_row(table: str, id_: object) -> str:
    """Say that the content of a row is damaged.

    Args:
        table: Name of its table.
        id_: Its id.
    """
    return f"{table}, row {id_}: its content is not what was written"


def find_reviews(path: Path) -> Iterator[Path]:
    """Yield the review databases of a folder, or the file that was named, if it is one."""
    files = [path] if path.is_file() else sorted(path.rglob("*.db"))
    yield from (file for file in files if file.is_file() and _is_review(file))


def _is_review(path: Path) -> bool:
    """Whether a file has the schema of a review, wherever else it is damaged."""
    try:
        with path.open("rb") as file:
            return _MARK in file.read(_LOOKED_AT)
    except OSError:
        return False


def check_review(path: Path) -> CheckedArtifact:
    """Check all rows of a review against their hashes, and the structure of the file.

    Args:
        path: SQLite file of the review.
    """
    try:
        with tempfile.TemporaryDirectory() as folder:
            copy = _copy(path, Path(folder))
            with closing(sqlite3.connect(copy)) as database:
                database.execute("PRAGMA trusted_schema = OFF")
                problems = tuple(f"{path}: {each}" for each in _problems(database))
    except (*_UNREADABLE, OSError) as error:
        problems = (f"{path}: cannot be read ({' '.join(str(error).split())})",)
    return CheckedArtifact(path, FORMAT, 1, path.stat().st_size, problems)


def _copy(path: Path, folder: Path) -> Path:
    """Copy a database with what was written last; again, if another process writes meanwhile."""
    files = [path, path.with_name(f"{path.name}-wal")]
    for _ in range(_TRIES):
        before = _states(files)
        for file in files:
            if file.exists():
                shutil.copyfile(file, folder / file.name)
        if _states(files) == before:
            break
    return folder / path.name


def _states(files: list[Path]) -> list[tuple[int, int]]:
    stats = [file.stat() for file in files if file.exists()]
    return [(each.st_size, each.st_mtime_ns) for each in stats]


def _problems(database: sqlite3.Connection) -> Iterator[str]:
    """Yield damage of the file, and the rows that are not as they were written.

    Of a file that is not what SQLite writes no row is read, since that need not end.
    """
    faults = list(foreign_definitions(database.execute(SCHEMA)))
    if not faults:
        found = (row[0] for row in database.execute("PRAGMA integrity_check"))
        faults = [each for each in found if each != "ok"]
    if faults:
        yield from faults
        return
    for table in TABLES:
        columns = database.execute(f"PRAGMA table_info({table})").fetchall()
        readers = {name: _READERS.get(kind, lambda value: value) for _, name, kind, *_ in columns}
        if not readers:
            yield f"the table {table} is missing"
        if HASH not in readers:  # a review of version 1, which was not opened since, has none
            continue
        for row in database.execute(f"SELECT {', '.join(readers)} FROM {table}"):
            values = dict(zip(readers, row, strict=True))
            try:
                read = {k: None if v is None else readers[k](v) for k, v in values.items()}
                is_right = row_hash(read) == values[HASH]
            except _UNREADABLE:
                is_right = False
            if not is_right:
                yield damaged_row(table, values["id"])
