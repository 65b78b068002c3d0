"""A row of a review that the disk has changed is found by ``biograft check``."""

from __future__ import annotations

import contextlib
import os
import sqlite3

import pytest

pytest.importorskip("sqlalchemy", reason="the extra `review` is not installed")
import sqlalchemy as sa

from biograft.errors import StoreError
from biograft.mapping import ReviewStore, ReviewTerm, SuggestedConcept, check_review
from biograft.mapping.review_check import HASH, find_reviews, row_hash
from biograft.mapping.review_store import SEALED, VERSION, check_database

TABLES = ("review_queues", "review_terms", "review_events")
TEXTS = ("heart attack", "chill", "zzq", "心肌梗死")


def decide_something(store: ReviewStore) -> None:
    """Write in every way there is: import, decide, comment, undo, undo the undo, renew."""
    found = (SuggestedConcept("D1", "Myocardial Infarction", 0.76),)
    terms = [ReviewTerm(text, frequency=3, candidates=found) for text in TEXTS]
    store.add_terms(terms, reviewer="ann", queue="labs", approvals=2)
    items = store.items("labs")
    store.decide(items[0].id, "approve", reviewer="ann")
    store.decide(items[0].id, "approve", reviewer="bob")
    store.comment(items[1].id, "ask the ward", reviewer="bob")
    store.decide(items[1].id, "nil", reviewer="bob")
    undone = store.history("labs", limit=1)[0]
    store.undo(undone.id, reviewer="ann")
    store.undo(store.history("labs", limit=1)[0].id, reviewer="ann")
    store.add_terms([ReviewTerm("zzq", frequency=9)], reviewer="ann", queue="labs")
    store.set_approvals("labs", 1)


@pytest.fixture
def place(tmp_path):
    with ReviewStore.open(tmp_path / "review.db", create=True) as store:
        decide_something(store)
    return tmp_path / "review.db"


def query(place, *commands):
    with contextlib.closing(sqlite3.connect(place)) as database, database:
        return [database.execute(command).fetchall() for command in commands][-1]


def columns():
    return [
        (table.name, column.name)
        for table in SEALED
        for column in table.columns
        if column.name != "id" and not column.foreign_keys
    ]


@pytest.mark.parametrize(("table", "column"), columns())
def test_a_change_of_any_column_is_found(place, table, column):
    value = query(place, f"SELECT {column} FROM {table} ORDER BY id DESC LIMIT 1")[0][0]
    other = {str: '"x"', int: 1 - (value == 1), float: 0.125}.get(type(value), 1)
    change = f"UPDATE {table} SET {column} = '{other}' WHERE id = (SELECT max(id) FROM {table})"
    query(place, change)
    assert query(place, f"SELECT {column} FROM {table} ORDER BY id DESC LIMIT 1")[0][0] != value
    (problem,) = check_review(place).problems
    assert table in problem


def test_flipped_bits_of_the_file_are_found_or_without_effect(place):
    """What is stored of the texts of terms, wherever it is in the file."""
    content = place.read_bytes()
    starts = [n for n in range(len(content)) if content.startswith(b"Myocardial", n)]
    assert len(starts) > 4
    for start in starts:
        place.write_bytes(content[:start] + b"L" + content[start + 1 :])
        with ReviewStore.open(place) as store:
            changed = [item for item in store.items("labs") if "Lyo" in repr(item)]
            changed += [event for event in store.history("labs") if "Lyo" in repr(event)]
        assert bool(check_review(place).problems) == bool(changed)


def test_a_file_cut_short_or_overwritten_is_found(place):
    content = place.read_bytes()
    for damaged in (content[:-4096], b"x" * 100 + content[100:], content[:20]):
        place.write_bytes(damaged)
        assert check_review(place).problems


def test_a_review_without_hashes_gets_them(place):
    """A database of version 1 had none."""
    for table in TABLES:
        query(place, f"DROP INDEX {table}_without_hash", f"ALTER TABLE {table} DROP COLUMN hash")
    query(place, f"DELETE FROM review_versions WHERE version = {VERSION}")
    before = query(place, "SELECT * FROM review_terms")
    ReviewStore.open(place).close()
    assert [row[:-1] for row in query(place, "SELECT * FROM review_terms")] == before
    assert query(place, "SELECT max(version) FROM review_versions") == [(VERSION,)]
    assert check_review(place).problems == ()


def test_rows_in_postgresql():
    """What is read back has the hash of what was written."""
    from review_places import postgresql

    with postgresql() as url, ReviewStore.open(url, create=True) as store:
        decide_something(store)
        with store.reading() as connection:
            for table in SEALED:
                rows = connection.execute(sa.select(table)).all()
                assert rows
                assert all(row_hash(dict(row._mapping)) == row._mapping[HASH] for row in rows)
        assert check_database(url).problems == ()
        with store.engine.begin() as connection:
            connection.execute(sa.text("UPDATE review_terms SET frequency = 77 WHERE id = 1"))
        (problem,) = check_database(url).problems
        assert "review_terms, row 1" in problem


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_checking_writes_nothing(place):
    """A journal was made or applied, and rows without a hash were given one."""
    query(place, "UPDATE review_terms SET name = 'evil', hash = NULL WHERE id = 1")
    with contextlib.closing(sqlite3.connect(place)) as writer:
        writer.execute("UPDATE review_terms SET name = 'worse' WHERE id = 1")
        writer.commit()
        before = contents(place.parent)
        assert f"{place.name}-wal" in before
        (problem,) = check_review(place).problems
        assert "review_terms, row 1" in problem
        assert contents(place.parent) == before


def test_what_is_no_review_is_left_alone(tmp_path):
    (tmp_path / "Thumbs.db").write_bytes(b"no database")
    (tmp_path / "empty.db").touch()
    query(tmp_path / "other.db", "CREATE TABLE t (x)")
    os.mkfifo(tmp_path / "pipe.db")
    assert list(find_reviews(tmp_path)) == []


@pytest.mark.parametrize("damage", [b"X", b"\0" * 16])
def test_a_review_that_is_no_database_any_more_is_found_in_its_folder(place, damage):
    place.write_bytes(damage + place.read_bytes()[len(damage) :])
    assert list(find_reviews(place.parent)) == [place]
    assert check_review(place).problems


def test_every_damaged_row_is_named(place):
    query(place, "UPDATE review_events SET after = x'ff00' WHERE id = 1")
    query(place, "UPDATE review_events SET after = '" + "[" * 100_000 + "' WHERE id = 2")
    query(place, "UPDATE review_terms SET text = 'x' WHERE id = 3")
    problems = " ".join(check_review(place).problems)
    for row in ("review_events, row 1", "review_events, row 2", "review_terms, row 3"):
        assert row in problems


EVIL = (
    "CREATE TRIGGER evil AFTER UPDATE ON review_terms WHEN NEW.concept != 'EVIL:1' BEGIN "
    "UPDATE review_terms SET concept = 'EVIL:1' WHERE id = NEW.id; END",
    "CREATE VIEW more AS SELECT * FROM review_terms",
    "CREATE VIRTUAL TABLE more USING fts5(text)",
    "CREATE TABLE more (x DEFAULT (randomblob(1000)))",
    "CREATE TABLE more (x CHECK (x LIKE '%a%a%a%a%'))",
    "CREATE INDEX more ON review_terms (printf('%.*c', 100000000, text))",
    "CREATE INDEX more ON review_terms (text) WHERE text LIKE code",
    "ALTER TABLE review_terms ADD COLUMN more AS (printf('%.*c', 100000000, text))",
)
ENDLESS = (
    "ALTER TABLE review_events RENAME TO kept",
    "CREATE VIEW review_events(id, hash) AS WITH RECURSIVE c(n) AS "
    "(SELECT 1 UNION ALL SELECT n + 1 FROM c) SELECT n, n FROM c WHERE n < 0",
)


@pytest.mark.parametrize("commands", [*((each,) for each in EVIL), ENDLESS])
def test_what_acts_when_rows_are_read_is_refused(place, commands):
    """A trigger changed what was approved, and checking a view with an endless query never ended.

    SQLite would run what the schema of a file says, which others may have written.
    """
    query(place, *commands)
    problems = check_review(place).problems
    assert problems
    assert all("which no review has" in each for each in problems)
    with pytest.raises(StoreError, match="which no review has"):
        ReviewStore.open(place)


def test_a_file_whose_pages_go_in_circles_is_checked_to_the_end(place):
    """Rows of a tree that is no tree are not read."""
    content = bytearray(place.read_bytes())
    size = int.from_bytes(content[16:18], "big")
    (root,) = query(place, "SELECT rootpage FROM sqlite_master WHERE name = 'review_events'")[0]
    page = bytearray(size)
    page[0] = 5  # an interior page of a table, all of whose children are itself
    n_cells = 200
    page[3:5] = n_cells.to_bytes(2, "big")
    page[5:7] = (size - 5 * n_cells).to_bytes(2, "big")
    page[8:12] = root.to_bytes(4, "big")
    for n in range(n_cells):
        start = size - 5 * (n + 1)
        page[12 + 2 * n : 14 + 2 * n] = start.to_bytes(2, "big")
        page[start : start + 5] = root.to_bytes(4, "big") + bytes([n % 128])
    content[(root - 1) * size : root * size] = page
    place.write_bytes(content)
    assert check_review(place).problems


@pytest.mark.parametrize(
    "change",
    [
        "review_terms SET candidates = '{]'",
        "review_terms SET candidates = '" + "[" * 100_000 + "'",
        "review_terms SET candidates = '[{\"a\": 1}]'",
        "review_terms SET candidates = '[{\"concept\": 5}]'",
        'review_terms SET candidates = \'[{"concept": "D1", "score": "high"}]\'',
        "review_terms SET rejected = '7'",
        "review_terms SET rejected = '[7]'",
        "review_terms SET frequency = 'many'",
        "review_terms SET version = x'00'",
        "review_terms SET text = CAST(x'ff' AS TEXT)",
        "review_terms SET status = x'00'",
        "review_events SET after = '[]', before = '5'",
        'review_events SET after = \'{"status": "open"}\'',
        "review_events SET undoes = 'x'",
        "review_events SET at = x'00'",
    ],
)
def test_a_row_of_other_types_is_one_line(place, change):
    """Guards: such rows were tracebacks of listing, approving and exporting."""
    query(place, f"UPDATE {change}")

    def read(store):
        return store.items("labs"), store.history("labs")

    with ReviewStore.open(place) as store, pytest.raises(StoreError, match="run `biograft check`"):
        read(store)
    assert check_review(place).problems
