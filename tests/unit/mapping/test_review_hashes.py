"""A row of a review that the disk has changed is found by ``biograft check``."""

from __future__ import annotations

import contextlib
import os
import sqlite3

import pytest

pytest.importorskip("sqlalchemy", reason="the extra `review` is not installed")
import sqlalchemy as sa

from biograft.mapping import ReviewStore, ReviewTerm, SuggestedConcept, check_review
from biograft.mapping.review_check import HASH, find_reviews, row_hash
from biograft.mapping.review_store import SEALED, VERSION

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
