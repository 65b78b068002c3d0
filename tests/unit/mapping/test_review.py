"""Reviews: order, conflicts, two people, undo, files; in SQLite and in PostgreSQL."""

from __future__ import annotations

import csv
import json
import logging
import random
import signal
import sqlite3
import subprocess
import sys
import threading
import time
import traceback
import uuid
from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest
from hypothesis import given, settings, strategies as st

pytest.importorskip("sqlalchemy", reason="the extra `review` is not installed")
import os
from pathlib import Path

import sqlalchemy
from review_places import end_all_connections, postgresql

from biograft.errors import (
    BiograftError,
    ConfigError,
    ConflictError,
    FormatError,
    NotFoundError,
    OutputError,
    StoreError,
)
from biograft.kb import BuildConfig, build_store
from biograft.kb.sources import SourceConfig
from biograft.mapping import (
    MappingSet,
    ReviewFilter,
    ReviewStore,
    ReviewTerm,
    SuggestedConcept,
    TermDecision,
    export_decisions,
    export_review,
    import_review,
    read_decisions,
)

MI = SuggestedConcept("D1", "Myocardial Infarction", 0.76)
ARREST = SuggestedConcept("D2", "Heart Arrest", 0.5)
COLD = SuggestedConcept("D3", "Cold", 0.99)
TERMS = (
    ReviewTerm("heart attack", frequency=12, flag="exact", candidates=(replace(MI, score=1.0),)),
    ReviewTerm("hart atack", frequency=40, candidates=(MI, ARREST)),
    ReviewTerm("chill", frequency=5, flag="ambiguous", candidates=(COLD,)),
    ReviewTerm("zzq", frequency=2, flag="nil", candidates=(replace(ARREST, score=0.2),)),
)


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with postgresql() as url:
        yield url


@pytest.fixture(params=["sqlite", "postgresql"])
def place(request, tmp_path) -> str:
    if request.param == "sqlite":
        return str(tmp_path / "review.db")
    return request.getfixturevalue("server")


@pytest.fixture(scope="module")
def small_kb(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("kb")
    (folder / "names.csv").write_text("id,name\n1,heart attack\n", encoding="utf-8")
    build_store(BuildConfig(sources=(SourceConfig(path=folder / "names.csv"),)), folder / "KB")
    return folder / "KB"


@pytest.fixture
def store(place) -> Iterator[ReviewStore]:
    with ReviewStore.open(place, create=True) as opened:
        yield opened


@pytest.fixture
def queue() -> str:
    return f"labs {uuid.uuid4()}"


@pytest.fixture
def own(tmp_path) -> Iterator[ReviewStore]:
    """A review without terms, in a file of its own."""
    with ReviewStore.open(tmp_path / "review.db", create=True) as opened:
        yield opened


def fill(store: ReviewStore, queue: str, approvals: int = 1) -> dict[str, int]:
    store.add_terms(TERMS, reviewer="ann", queue=queue, approvals=approvals)
    return {item.term.text: item.id for item in store.items(queue)}


def edit(sheet: Path, change: Callable[[dict[str, str]], object], **form: str) -> list[str]:
    """Change each row of a worksheet; return the texts of its terms."""
    mark = "\t" if sheet.suffix == ".tsv" else ","
    rows = list(csv.DictReader(sheet.read_text("utf-8").splitlines(), delimiter=mark))
    for row in rows:
        change(row)
    with sheet.open("w", newline="", encoding=form.get("encoding", "utf-8")) as file:
        writer = csv.DictWriter(file, rows[0], delimiter=form.get("delimiter", mark))
        writer.writeheader()
        writer.writerows(rows)
    return [row.get("source_term", "") for row in rows]


def test_the_most_frequent_and_doubtful_comes_first(store, queue):
    fill(store, queue)
    assert [item.term.text for item in store.items(queue)] == [
        "hart atack",
        "chill",
        "zzq",
        "heart attack",
    ]
    texts = lambda **where: {i.term.text for i in store.items(queue, ReviewFilter(**where))}  # noqa: E731
    assert texts(flag="none") == {"hart atack"}
    assert texts(text="HEART") == {"heart attack"}
    assert texts(min_score=0.9) == {"heart attack", "chill"}
    assert texts(min_frequency=10) == {"heart attack", "hart atack"}
    assert texts(text="%") == set()
    assert store.count(queue, ReviewFilter(status="open")) == 4
    assert len(store.items(queue, limit=2, offset=3)) == 1


def test_who_comes_second_with_the_same_version_gets_a_conflict(store, queue):
    term = fill(store, queue)["hart atack"]
    assert store.decide(term, "approve", reviewer="ann", version=1).version == 2
    with pytest.raises(ConflictError, match="approved D1 by ann"):
        store.decide(term, "nil", reviewer="bob", version=1)
    state = store.item(term).state
    assert (state.status, state.concept, state.reviewer) == ("approved", "D1", "ann")
    assert [event.action for event in store.history(term_id=term)] == ["approve", "add"]


@pytest.mark.parametrize("of", ["text", "code", "context", "part"])
def test_long_texts_are_keys(store, queue, of):
    """A context of 950 Chinese characters was too long for an index of PostgreSQL."""
    rng = random.Random(1)
    texts = ["".join(chr(rng.randrange(0x4E00, 0x9FA5)) for _ in range(1950)) for _ in range(2)]
    terms = [replace(TERMS[0], **{of: text}) for text in texts]
    for _ in range(2):  # the second time, they are there
        store.add_terms(terms, reviewer="ann", queue=queue)
    first = terms[0]
    found = store.find(queue, first.text, first.code, first.context, first.part)
    assert found.term == first
    assert store.count(queue) == 2


def test_two_imports_at_once_do_not_double_a_term(store, queue):
    """The key is unique in the database, whoever looked first."""
    fill(store, queue)
    with pytest.raises(sqlalchemy.exc.IntegrityError), store.writing() as connection:  # noqa: PT012
        table = sqlalchemy.Table("review_terms", sqlalchemy.MetaData(), autoload_with=connection)
        row = dict(connection.execute(sqlalchemy.select(table).limit(1)).one()._mapping)
        del row["id"]
        connection.execute(table.insert().values(**row))


def test_a_review_of_an_earlier_version_in_postgresql(queue):
    """Its key was an index of whole texts."""
    with postgresql() as own_server, ReviewStore.open(own_server, create=True) as store:
        fill(store, queue)
        with store.engine.begin() as connection:
            for change in (
                "DROP INDEX review_terms_by_text",
                "ALTER TABLE review_terms ADD UNIQUE (queue, term_key, code, context)",
                "ALTER TABLE review_terms DROP COLUMN part, DROP COLUMN reason",
                "DELETE FROM review_versions WHERE version > 2",
                "INSERT INTO review_versions VALUES (2, 'long ago', 'biograft')",
            ):
                connection.exec_driver_sql(change)
        with ReviewStore.open(own_server) as opened:
            long = replace(TERMS[0], context="".join(map(chr, range(0x4E00, 0x4E00 + 1900))))
            opened.add_terms([long], reviewer="ann", queue=queue)
            assert opened.count(queue) == len(TERMS) + 1
            assert opened.find(queue, "chill").term == TERMS[2]


def test_a_lost_connection_is_opened_anew_and_said_in_a_line(server, queue):
    with ReviewStore.open(server, create=True) as store:
        ids = fill(store, queue)
        assert end_all_connections(server)
        store.decide(ids["chill"], "nil", reviewer="ann")  # found out before it was used
        with pytest.raises(OutputError, match="try again"), store.writing() as used:  # noqa: PT012
            used.execute(sqlalchemy.text("UPDATE review_terms SET frequency = 99"))
            end_all_connections(server)
            used.execute(sqlalchemy.text("SELECT 1"))
        assert store.item(ids["zzq"]).term.frequency == 2


SECRET = "s3cr3t"
PLACES = [
    f"postgresql://ann:{SECRET}@127.0.0.1:1/db",
    f"postgresql://ann@127.0.0.1:1/db?password={SECRET}",
    f"postgres://ann:{SECRET}@local host:x/db",
    f"postgresql:/ann:{SECRET}@127.0.0.1/db",
    f"POSTGRESQL://ann:{SECRET}@127.0.0.1:1/db",
    f"mysql://ann:{SECRET}@127.0.0.1/db",
]


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize(
    "command",
    [
        ["check", "{}"],
        ["learn", "{}", "--kb", "{kb}", "--index", "{kb}"],
        ["serve", "--kb", "{kb}", "--review", "{}"],
        ["review", "import", "{kb}/manifest.json", "--review", "{}"],
        ["review", "list", "--review", "{}"],
        ["review", "export", "--review", "{}", "-o", "x.csv"],
    ],
    ids=lambda words: " ".join(words[:2]).rstrip(" {}"),
)
def test_no_message_has_the_password_of_a_database(run_main, small_kb, caplog, command, place):
    pytest.importorskip("psycopg", reason="psycopg is not installed")
    done = run_main(*(word.format(place, kb=small_kb) for word in command))
    assert done.code == 2
    assert SECRET not in done.out + done.err + caplog.text
    assert done.err.count("\n") == 1


def test_no_traceback_has_the_password_of_a_database():
    pytest.importorskip("psycopg", reason="psycopg is not installed")
    for place in PLACES:
        with pytest.raises(BiograftError) as caught:
            ReviewStore.open(place)
        assert SECRET not in "".join(traceback.format_exception(caught.value))


def test_a_change_that_is_sent_again_is_not_done_twice(store, queue):
    """An answer that got lost: the same id is sent again, also after others went on."""
    ids = fill(store, queue)
    one, two, three = ids["hart atack"], ids["chill"], ids["zzq"]
    batches = [uuid.uuid4().hex[:16] for _ in range(4)]
    for _ in range(2):
        store.decide(one, "approve", reviewer="ann", version=1, batch=batches[0])
    assert store.item(one).version == 2
    with pytest.raises(ConflictError, match="another reviewer used this id"):
        store.decide(one, "nil", reviewer="bob", batch=batches[0])
    (event,) = store.events(batch=batches[0])
    for _ in range(2):
        store.undo(event.id, reviewer="ann", batch=batches[1])
    assert (store.item(one).version, store.item(one).state.status) == (3, "open")
    where, n_open = ReviewFilter(max_score=0.5), 1
    for _ in range(2):
        done = store.decide_many(
            "nil", reviewer="ann", queue=queue, where=where, expected=n_open, batch=batches[2]
        )
        assert (done.batch, done.n_changed) == (batches[2], 1)
    for _ in range(2):
        assert store.undo_batch(batches[2], reviewer="ann", undo_batch=batches[3]).n_changed == 1
    assert [store.item(each).version for each in (one, two, three)] == [3, 1, 3]


def test_of_many_threads_one_wins_each_term_and_nothing_is_lost(store, queue):
    ids = list(fill(store, queue).values())
    won: list[tuple[int, str]] = []
    lost: list[int] = []

    def work(reviewer: str) -> None:
        for term in ids:
            try:
                store.decide(term, "nil", reviewer=reviewer, version=1)
                won.append((term, reviewer))
            except ConflictError:
                lost.append(term)

    threads = [threading.Thread(target=work, args=(f"r{n}",)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(term for term, _ in won) == sorted(ids)
    assert len(lost) == 3 * len(ids)
    assert {(i.id, i.state.reviewer, i.version) for i in store.items(queue)} == {
        (term, reviewer, 2) for term, reviewer in won
    }


def test_two_people_decide_where_a_queue_wants_it(store, queue):
    term = fill(store, queue, approvals=2)["hart atack"]
    assert store.decide(term, "approve", reviewer="ann").state.status == "proposed"
    with pytest.raises(ConflictError, match="a second person"):
        store.decide(term, "approve", reviewer="ann")
    assert store.count(queue, ReviewFilter(waits_for="ann")) == 3
    assert store.count(queue, ReviewFilter(waits_for="bob")) == 4
    # another opinion is a new proposal, which the first is to confirm
    assert store.decide(term, "approve", reviewer="bob", concept="D2").state.status == "proposed"
    state = store.decide(term, "approve", reviewer="ann").state
    assert (state.status, state.concept) == ("approved", "D2")
    assert (state.reviewer, state.second_reviewer) == ("bob", "ann")


def test_many_are_approved_at_once_and_taken_back_at_once(store, queue):
    ids = fill(store, queue)
    store.decide(ids["chill"], "nil", reviewer="bob")
    everything = ReviewFilter(min_score=0.5)
    with pytest.raises(ConflictError, match="look again"):
        store.decide_many("approve", reviewer="ann", queue=queue, where=everything, expected=3)
    done = store.decide_many("approve", reviewer="ann", queue=queue, where=everything, expected=2)
    assert (done.n_changed, done.skipped) == (2, ())
    store.decide(ids["hart atack"], "reject", reviewer="bob")
    undone = store.undo_batch(done.batch, reviewer="ann")
    assert undone.n_changed == 1
    assert [term for term, _ in undone.skipped] == [ids["hart atack"]]
    assert store.item(ids["heart attack"]).state.status == "open"
    assert store.item(ids["hart atack"]).state.rejected == ("D1",)


def test_every_event_can_be_undone(store, queue):
    term = fill(store, queue)["hart atack"]
    first = store.item(term).state
    store.decide(term, "approve", reviewer="ann", comment="as in the manual")
    store.decide(term, "nil", reviewer="bob")
    latest, earlier = store.history(term_id=term)[:2]
    assert (earlier.reviewer, earlier.comment) == ("ann", "as in the manual")
    with pytest.raises(ConflictError, match="undo that first"):
        store.undo(earlier.id, reviewer="ann")
    assert store.undo(latest.id, reviewer="bob").state.concept == "D1"
    assert store.undo(earlier.id, reviewer="bob").state == first
    with pytest.raises(ConflictError, match="undone already"):
        store.undo(earlier.id, reviewer="bob")
    redone = store.undo(store.history(term_id=term)[0].id, reviewer="bob")
    assert redone.state.concept == "D1"
    said = store.comment(term, "why?", reviewer="bob")
    assert store.comments(queue)[term] == "why?"
    store.undo(said.id, reviewer="bob")
    assert store.comments(queue)[term] == "as in the manual"
    added = store.history(term_id=term)[-1]
    assert added.action == "add"


def test_what_was_undone_can_be_imported_again(store, queue, tmp_path):
    """Its terms stayed away, and decisions on them were a traceback."""
    store.add_terms(TERMS, reviewer="ann", queue=queue)
    store.decide(store.items(queue)[0].id, "nil", reviewer="ann")
    export_review(store, tmp_path / "labs.sssom.tsv", queue=queue, proposals=True)
    store.undo(store.history(queue)[0].id, reviewer="ann")
    terms = {item.id: item.term for item in store.items(queue)}
    (batch,) = {store.history(term_id=each)[-1].batch for each in terms}
    store.undo_batch(batch, reviewer="ann")
    again = store.add_terms(TERMS[:2], reviewer="bob", queue=queue)
    assert again.n_changed == 2
    assert {item.term for item in store.items(queue)} == set(TERMS[:2])
    assert store.undo_batch(again.batch, reviewer="bob").n_changed == 2
    done = import_review(store, tmp_path / "labs.sssom.tsv", reviewer="eve", queue=queue)
    assert (done.n_added, done.n_decided, done.problems) == (4, 1, ())
    assert {item.id for item in store.items(queue)} == set(terms)


def test_a_new_mapping_changes_only_what_is_open(store, queue):
    ids = fill(store, queue)
    store.decide(ids["hart atack"], "approve", reviewer="ann")
    better = [replace(term, candidates=(COLD,)) for term in TERMS]
    assert store.add_terms(better, reviewer="ann", queue=queue).n_changed == 2
    assert store.item(ids["hart atack"]).state.concept == "D1"
    assert store.item(ids["zzq"]).term.candidates == (COLD,)
    with pytest.raises(ConflictError):  # who saw the old candidates looks again
        store.decide(ids["zzq"], "nil", reviewer="bob", version=1)


def test_an_edited_worksheet_comes_back_and_conflicts_are_told_by_row(store, queue, tmp_path):
    ids = fill(store, queue)
    sheet = tmp_path / "sheet.csv"
    assert export_review(store, sheet, queue=queue) == 4
    store.decide(ids["hart atack"], "reject", reviewer="bob")
    edits = {
        "hart atack": {"decision": "Approve"},
        "chill": {"decision": "approve", "concept": "D4", "reason": "says the lab"},
        "zzq": {"decision": "nil"},
    }
    change = lambda row: row.update(edits.get(row["source_term"], {}))  # noqa: E731
    terms = edit(sheet, change, encoding="utf-8-sig", delimiter=";")  # as Excel writes it
    done = import_review(store, sheet, reviewer="ann", queue=queue)
    assert (done.n_decided, done.n_unchanged) == (2, 1)
    ((line, why),) = done.problems
    assert line == 2 + terms.index("hart atack")
    assert "rejected D1 by bob" in why
    assert store.item(ids["chill"]).state.concept == "D4"
    assert store.comments(queue)[ids["chill"]] == "says the lab"
    assert import_review(store, sheet, reviewer="ann", queue=queue).n_decided == 0


@pytest.mark.parametrize(
    ("column", "value", "why"),
    [
        ("review_id", "999999", "no term"),
        ("decision", "maybe", "decision"),
        ("source_term", "flu", "source_term"),
    ],
)
def test_a_row_of_a_worksheet_that_cannot_be_is_told(own, tmp_path, column, value, why):
    fill(own, "review")
    sheet = tmp_path / "sheet.tsv"
    export_review(own, sheet)
    change = {"decision": "approve", column: value}
    edit(sheet, lambda row: row.update(change if row["source_term"] == "hart atack" else {}))
    done = import_review(own, sheet, reviewer="ann")
    assert [line for line, _ in done.problems] == [2]
    assert why in done.problems[0][1]


@pytest.mark.parametrize("column", ["was", "version", "review_id", "decision"])
def test_a_worksheet_without_a_column_is_no_mapped_table(own, tmp_path, column):
    """It was read as one: second candidates became suggestions, and decisions were lost."""
    fill(own, "review")
    before = own.items()
    export_review(own, tmp_path / "sheet.csv")
    edit(tmp_path / "sheet.csv", lambda row: row.pop(column))
    with pytest.raises(FormatError, match=f"a worksheet without the column '{column}'"):
        import_review(own, tmp_path / "sheet.csv", reviewer="ann")
    assert own.items() == before


def test_a_worksheet_has_all_candidates(own, tmp_path):
    """The best one of a term for which nothing was suggested was left out."""
    fill(own, "review")
    export_review(own, tmp_path / "sheet.csv")
    lines = (tmp_path / "sheet.csv").read_text().splitlines()
    rows = {row["source_term"]: row for row in csv.DictReader(lines)}
    nil, several = rows["zzq"], rows["hart atack"]
    assert (nil["suggestion"], nil["candidate_2"], nil["score_2"]) == ("", "D2", "0.2")
    assert (several["suggestion"], several["candidate_2"]) == ("D1", "D2")


def test_an_import_with_a_wrong_verdict_changes_nothing(own, tmp_path):
    table = tmp_path / "mapped.csv"
    table.write_text("source_term,concept,name,verdict\nchill,D3,Cold,approved\nflu,D4,Flu,yes\n")
    with pytest.raises(FormatError, match=r":3:.*verdict"):
        import_review(own, table, reviewer="ann")
    assert own.queues() == []


@pytest.mark.parametrize(
    ("row", "why"),
    [("chill,D3,Cold,0.5,x", "frequency: expected a whole"), ("chill,D3,Cold,0·5,1", "score: exp")],
)
def test_a_cell_that_is_no_number_is_named(own, tmp_path, row, why):
    table = tmp_path / "mapped.csv"
    table.write_text(f"source_term,concept,name,score,frequency\n{row}\n", encoding="utf-8")
    with pytest.raises(FormatError, match=why):
        import_review(own, table, reviewer="ann")


def test_several_terms_are_decided_at_once_or_none(store, queue):
    ids = list(fill(store, queue).values())
    decisions = [TermDecision(each, "nil", "ann") for each in ids[:2]]
    with pytest.raises(NotFoundError):
        store.decide_all([*decisions, TermDecision(10**6, "nil", "ann")])
    assert all(item.state.status == "open" for item in store.items(queue))
    store.decide_all(decisions)
    assert len({event.batch for event in store.history(queue)}) == 1


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="needs a folder that cannot be written")
def test_a_place_that_cannot_be_written_is_one_line():
    with pytest.raises(OutputError, match=r"cannot be made \(.*\); choose another place"):
        ReviewStore.open("/proc/self/review.db", create=True)


def test_a_pipe_is_no_review(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ConfigError, match="is a pipe or a device"):
        ReviewStore.open(tmp_path / "pipe")


def test_decisions_go_through_sssom_into_another_review(store, queue, tmp_path):
    ids = fill(store, queue)
    store.decide(ids["hart atack"], "reject", reviewer="bob")
    store.decide(ids["hart atack"], "approve", reviewer="ann", concept="D2", relation="broad")
    store.decide(ids["zzq"], "nil", reviewer="ann", comment="a typo of nothing")
    file = tmp_path / "labs.sssom.tsv"
    assert export_review(store, file, queue=queue) == 3
    made = read_decisions(file)
    assert {(d.verdict, d.concept, d.author) for d in made} == {
        ("rejected", "D1", "bob"),
        ("approved", "D2", "ann"),
        ("nil", "", "ann"),
    }
    other = f"{queue} 2"
    done = import_review(store, file, reviewer="eve", queue=other)
    assert (done.n_decided, done.problems) == (3, ())
    plain = lambda d: replace(d, time="", probability=None)  # noqa: E731
    assert [plain(d) for d in export_decisions(store, other)] == [
        plain(d) for d in export_decisions(store, queue)
    ]
    again = import_review(store, file, reviewer="eve", queue=queue)
    assert (again.n_decided, again.n_unchanged, again.problems) == (0, 3, ())
    store.decide(ids["zzq"], "approve", reviewer="bob", concept="D7")
    late = import_review(store, file, reviewer="eve", queue=queue)
    ((line, _),) = late.problems
    assert "\tzzq\t" in file.read_text("utf-8").splitlines()[line - 1]
    assert store.item(ids["zzq"]).state.concept == "D7"


def test_what_is_no_review_is_said_in_a_line(tmp_path):
    with pytest.raises(NotFoundError, match="review import"):
        ReviewStore.open(tmp_path / "none.db")
    (tmp_path / "text.db").write_text("no database at all, but long enough to look like one" * 9)
    with pytest.raises(StoreError, match="no review database"):
        ReviewStore.open(tmp_path / "text.db")
    sqlite3.connect(tmp_path / "empty.db").close()
    (tmp_path / "empty.db").touch()
    with pytest.raises(StoreError, match="has no review"):
        ReviewStore.open(tmp_path / "empty.db")
    for place in ("mysql://x/y", str(tmp_path)):
        with pytest.raises(ConfigError):
            ReviewStore.open(place)


KILLED = """
import sys
from biograft.mapping import ReviewFilter, ReviewStore
store = ReviewStore.open(sys.argv[1])
print("ready", flush=True)
while True:
    done = store.decide_many("approve", reviewer="ann", where=ReviewFilter(min_score=0))
    print(done.batch, flush=True)
    store.undo_batch(done.batch, reviewer="ann")
"""


def test_a_newer_database_is_refused(tmp_path):
    ReviewStore.open(tmp_path / "review.db", create=True).close()
    with sqlite3.connect(tmp_path / "review.db") as connection:
        connection.execute("INSERT INTO review_versions VALUES (99, '', '')")
    connection.close()
    with pytest.raises(StoreError, match="update biograft"):
        ReviewStore.open(tmp_path / "review.db")


def test_a_killed_process_leaves_a_consistent_database(tmp_path):
    place = tmp_path / "review.db"
    with ReviewStore.open(place, create=True) as store:
        terms = [ReviewTerm(f"term {n}", candidates=(MI,)) for n in range(200)]
        store.add_terms(terms, reviewer="ann")
    for wait in (0.02, 0.07):
        process = subprocess.Popen(
            [sys.executable, "-c", KILLED, str(place)], stdout=subprocess.PIPE, text=True
        )
        assert process.stdout is not None
        process.stdout.readline()
        process.stdout.readline()  # a batch is done, another is under way
        time.sleep(wait)
        process.send_signal(signal.SIGKILL)
        process.wait()
        process.stdout.close()
        with ReviewStore.open(place) as store:
            assert len({item.state.status for item in store.items()}) == 1  # all or none
            events = {}
            for event in reversed(store.history()):
                events.setdefault(event.term_id, []).append(event)
            for item in store.items():
                own = events.get(item.id, [])
                assert item.version == 1 + len(own)
                assert not own or own[-1].after == item.state


def test_neither_logs_nor_errors_have_terms(own, caplog):
    caplog.set_level(logging.DEBUG)
    own.add_terms([ReviewTerm("Mrs Miller has flu", candidates=(MI,))], reviewer="ann")
    term = own.items()[0]
    own.decide(term.id, "approve", reviewer="ann")
    with pytest.raises(ConflictError) as conflict:
        own.decide(term.id, "nil", reviewer="bob", version=1)
    text = sqlalchemy.text("INSERT INTO review_terms (text) VALUES (:t)")
    with own.writing() as connection, pytest.raises(sqlalchemy.exc.SQLAlchemyError) as wrong:
        connection.execute(text, {"t": "Mrs Miller"})
    said = caplog.text + str(conflict.value) + str(wrong.value)
    assert "Miller" not in said


@settings(max_examples=10, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(["ann", "bob", "eve"]),
            st.sampled_from(["approve", "reject", "nil"]),
            st.sampled_from([None, "D1", "D2"]),
        ),
        max_size=8,
    ),
    st.sampled_from([1, 2]),
)
def test_undoing_all_events_in_reverse_leads_back(tmp_path_factory, steps, approvals):
    folder = tmp_path_factory.mktemp("undo")
    with ReviewStore.open(folder / "review.db", create=True) as store:
        term = fill(store, "q", approvals)["hart atack"]
        states = [store.item(term).state]
        for reviewer, action, concept in steps:
            try:
                chosen = None if action == "nil" else concept
                store.decide(term, action, reviewer=reviewer, concept=chosen)
            except (ConflictError, ConfigError):
                assert store.item(term).state == states[-1]
                continue
            states.append(store.item(term).state)
            two = states[-1].second_reviewer
            assert (states[-1].status == "proposed") == (approvals == 2 and two is None)
            assert two is None or two != states[-1].reviewer
        for event in [e for e in store.history(term_id=term) if e.action != "add"]:
            assert store.item(term).state == states.pop()
            store.undo(event.id, reviewer="eve")
        assert store.item(term).state == states.pop()
        assert json.loads(json.dumps(store.item(term).to_json()))["status"] == "open"


def test_the_file_is_readable_by_its_owner_only(tmp_path):
    path = tmp_path / "deep" / "review.db"
    ReviewStore.open(path, create=True).close()
    assert Path(path).stat().st_mode & 0o077 == 0


def test_a_full_disk_is_one_line_and_changes_nothing(own):
    """It was a traceback of SQLAlchemy."""
    own.add_terms([ReviewTerm("fever")], reviewer="ann")
    with own.engine.connect() as connection:
        pages = connection.exec_driver_sql("PRAGMA page_count").scalar()
    limit = f"PRAGMA max_page_count = {pages}"
    begin = lambda connection: connection.exec_driver_sql(limit)  # noqa: E731
    sqlalchemy.event.listen(own.engine, "begin", begin)
    with pytest.raises(OutputError, match="disk is full; nothing was changed; free space"):
        own.add_terms([ReviewTerm(f"term {n} " * 99) for n in range(99)], reviewer="ann")
    assert len(own.items()) == 1


SSSOM_COLUMNS = (
    *("subject_id", "subject_label", "predicate_id", "object_id", "mapping_justification"),
    *("mapping_date", "author_label"),
)


def write_sssom(path, *rows):
    lines = ["\t".join(SSSOM_COLUMNS)]
    lines += [
        "\t".join((subject, label, predicate, concept, "semapv:ManualMappingCuration", day, "bob"))
        for subject, label, predicate, concept, day in rows
    ]
    path.write_text("\n".join(lines) + "\n", "utf-8")
    return path


def test_dates_of_decisions_made_elsewhere_are_kept(tmp_path):
    exact, day = "skos:exactMatch", "2024-01-02"
    rows = [
        ("term:flu", "flu", exact, "MESH:D007251", day),
        ("code:C2", "cold", "skos:broadMatch", "MESH:D012140", "2024-03-04"),
        ("term:Mrs%20M", "Mrs M", exact, "sssom:NoTermFound", day),
    ]
    given = write_sssom(tmp_path / "given.sssom.tsv", *rows)
    with ReviewStore.open(tmp_path / "r.db", create=True) as store:
        assert import_review(store, given, reviewer="ann").n_decided == 3
        export_review(store, tmp_path / "out.sssom.tsv")
        assert {event.at for event in store.history()} == {day, "2024-03-04"}
    assert read_decisions(tmp_path / "out.sssom.tsv") == read_decisions(given)


def test_a_mapping_set_that_a_review_cannot_hold_is_refused_with_its_lines(tmp_path):
    """Subject ids of an unknown vocabulary were lost without a word."""
    day, exact = "2024-01-02", "skos:exactMatch"
    flu = ("term:flu", "flu", exact, "MESH:D007251", day)
    other = ("OURS:12", "influenza", exact, "MESH:D007251", day)
    known = ("MONDO:0005812", "influenza", exact, "MESH:D007251", day)
    files = {
        "ids.sssom.tsv": ((flu, other), "1 of its mappings .* line 3: the subject OURS:12"),
    }
    with ReviewStore.open(tmp_path / "r.db", create=True) as store:
        for name, (rows, message) in files.items():
            with pytest.raises(FormatError, match=message):
                import_review(store, write_sssom(tmp_path / name, *rows), reviewer="ann")
        assert store.queues() == []
        assert import_review(store, write_sssom(tmp_path / "s.tsv", flu, known), reviewer="a")
        export_review(store, tmp_path / "out.sssom.tsv")
        written = {row.subject_id for row in MappingSet.read(tmp_path / "out.sssom.tsv").rows}
        assert written == {"term:flu", "MONDO:0005812"}


def test_several_objects_of_a_subject_are_decided_apart_and_come_back(tmp_path):
    """A second object was lost without a word, and then refused."""
    day, exact = "2024-01-02", "skos:exactMatch"
    rows = [
        ("term:flu", "flu", exact, "MESH:D007251", day),
        ("term:flu", "flu", "skos:broadMatch", "MESH:D012140", day),
        ("term:cold", "cold", exact, "MESH:D003139", day),
    ]
    given = write_sssom(tmp_path / "given.sssom.tsv", *rows)
    with ReviewStore.open(tmp_path / "r.db", create=True) as store:
        assert import_review(store, given, reviewer="ann").n_decided == 3
        assert len(store.items()) == 3
        assert import_review(store, given, reviewer="ann").n_unchanged == 3
        export_review(store, tmp_path / "out.sssom.tsv")
        parts = sorted(item.term.part for item in store.items())
    assert parts == ["", "D007251", "D012140"]
    back, found = read_decisions(given), read_decisions(tmp_path / "out.sssom.tsv")
    assert {replace(each, part="") for each in found} == set(back)


def test_published_mapping_sets_come_back_whole(shared_data, tmp_path):
    path = shared_data("ontologies/sssom/mondo_exactmatch_mesh.sssom.tsv")
    with ReviewStore.open(tmp_path / "r.db", create=True) as store:
        import_review(store, path, reviewer="ann")
        export_review(store, tmp_path / "out.sssom.tsv", proposals=True)
    sets = [MappingSet.read(each) for each in (path, tmp_path / "out.sssom.tsv")]
    pairs = [{(row.subject_id, s.key_of(row.object_id)) for row in s.rows} for s in sets]
    assert pairs[0] == pairs[1]
