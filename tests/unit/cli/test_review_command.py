"""The command line of a review: a file workflow from a mapped table to SSSOM."""

from __future__ import annotations

import csv
import json
import sqlite3
import zipfile

import pytest

pytest.importorskip("sqlalchemy", reason="the extra `review` is not installed")

HEADER = "source_term,concept,name,score,probability,flag,source_code,frequency"
MAPPED = f"""{HEADER},candidate_2,name_2,score_2
heart attack,D1,Myocardial Infarction,1.0,,exact,1,12,,,
hart atack,D1,Myocardial Infarction,0.76,,,2,40,D2,Heart Arrest,0.5
zzq,,,0.2,,nil,3,2,D2,Heart Arrest,0.2
'=1+1,D3,One,0.7,,,4,1,,,
"""


@pytest.fixture
def review(tmp_path, run_main):
    (tmp_path / "mapped.csv").write_text(MAPPED, "utf-8")
    place = ("--review", str(tmp_path / "review.db"))

    def run(*words: str, code: int = 0):
        done = run_main("review", *words, *place)
        assert done.code == code, done.err
        if "--json" in words:
            return [json.loads(line) for line in done.out.splitlines()]
        return done

    run("import", str(tmp_path / "mapped.csv"), "--reviewer", "ann")
    return run


def test_undo_by_event_and_by_batch(review):
    (bulk,) = review("approve", "--min-score", "0.7", "--yes", "--json")
    assert bulk["n_changed"] == 3
    (event, *_) = review("history", "--json")
    review("undo", str(event["id"]))
    (undone,) = review("undo", "--batch", bulk["batch"], "--json")
    assert (undone["n_changed"], undone["n_skipped"]) == (2, 1)
    assert "undo" in review("history").out
    assert len(review("list", "--status", "open", "--json")) == 4


def test_a_refused_row_of_a_worksheet_is_exit_code_1(review, tmp_path):
    sheet = tmp_path / "sheet.csv"
    review("export", "-o", str(sheet))
    assert ",'=1+1," in sheet.read_text("utf-8")
    rows = list(csv.DictReader(sheet.read_text("utf-8").splitlines()))
    for row in rows:
        row["decision"] = "approve" if row["source_term"] != "zzq" else ""
    with sheet.open("w", newline="") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        writer.writerows(rows)
    review("nil", rows[0]["review_id"], "--reviewer", "bob")
    done = review("import", str(sheet), "--reviewer", "ann", code=1)
    assert "sheet.csv:2: term" in done.err
    assert "decided 2" in done.out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("approve", "1", "--min-score", "0.5"), "not both"),
        (("approve", "--flag", "exact", "--concept", "D1", "--yes"), "one term"),
        (("list", "--min-probability", "2"), "--min-probability"),
        (("undo",), "--batch"),
        (("export", "-o", "x.docx"), ".sssom.tsv"),
    ],
)
def test_wrong_use_is_one_line(review, words, said):
    assert said in review(*words, code=2).err


def test_texts_with_line_ends_do_not_block_the_export(review, tmp_path):
    """One name with a line end, or a concept with a tab, blocked the export of a whole review."""
    table = tmp_path / "more.csv"
    table.write_text(f'{HEADER}\n"chest\npain",D9,"Chest\n\tPain",1.0,,,7,1\n', "utf-8")
    review("import", str(table))
    (chest,) = review("list", "--text", "chest pain", "--json")
    assert (chest["text"], chest["candidates"][0]["name"]) == ("chest pain", "Chest Pain")
    review("approve", "--min-score", "0.7", "--yes")
    for words in (("--concept", "D\t2"), ("--name", "a\nb"), ("--comment", "\x07")):
        assert "control characters" in review("approve", "1", *words, code=2).err
    with sqlite3.connect(tmp_path / "review.db") as old:  # an earlier version stored such texts
        old.execute("UPDATE review_terms SET name = 'Heart\nattack' WHERE text = 'heart attack'")
        old.execute("UPDATE review_terms SET concept = 'D\t3' WHERE text = '=1+1'")
    old.close()
    out = tmp_path / "x.sssom.tsv"
    done = review("export", "-o", str(out))
    assert "3 rows" in done.out
    assert "not written: term 4: concept: expected one line" in done.err
    text = out.read_text("utf-8")
    assert "\tHeart attack\t" in text
    (counts,) = review("export", "-o", str(out), "--overwrite", "--json")
    assert (counts["n_rows"], counts["n_left_out"]) == (3, 1)


def test_a_concept_is_looked_up_where_the_knowledge_base_is_given(review, starter):
    unknown = review("approve", "3", "--concept", "NOPE:1", "--kb", str(starter), code=2)
    assert "no concept of the knowledge base has the id 'NOPE:1'" in unknown.err
    assert (
        "'NOPE:1' is no candidate, and was not looked up"
        in review("approve", "3", "--concept", "NOPE:1").err
    )
    assert not review("approve", "3", "--concept", "D006321", "--kb", str(starter)).err
    assert not review("approve", "1", "--concept", "D1").err


def test_a_term_that_is_too_long_is_listed_and_the_others_are_imported(review, tmp_path):
    """Guards: one cell of 2,001 characters blocked the import of a whole table."""
    table = tmp_path / "more.csv"
    table.write_text(f"{HEADER}\n{'x' * 2001},,,,,nil,8,1\ncough,D9,Cough,1.0,,,9,1\n", "utf-8")
    done = review("import", str(table), code=1)
    assert "more.csv:2: term: expected a text of 1 to 2,000 characters" in done.err
    assert "added 1" in done.out


def test_a_blind_queue_shows_agreement_but_no_first_opinion(review, tmp_path):
    review("import", str(tmp_path / "mapped.csv"), "--blind", code=2)
    queue = ("--queue", "two")
    review("import", str(tmp_path / "mapped.csv"), "--approvals", "2", "--blind", *queue)
    ids = [str(row["id"]) for row in review("list", *queue, "--json")]
    review("approve", ids[0], "--reviewer", "ann", "--relation", "broad")
    review("nil", ids[1], "--reviewer", "ann")
    for command in ("list", "history"):
        assert "ann" not in review(command, *queue, "--reviewer", "bob").out
    (_, two) = review("status", "--reviewer", "bob", "--json")
    assert (two["blind"], two["statuses"]) == (True, {"open": 4})
    review("approve", ids[0], "--reviewer", "bob")
    review("nil", ids[1], "--reviewer", "bob")
    (found,) = review("agreement", *queue, "--json")
    (pair,) = found["pairs"]
    assert (pair["n_terms"], pair["n_equal"], pair["kappa"]) == (2, 1, pytest.approx(1 / 3))
    shown = review("agreement", *queue).out
    assert "ann, bob: 1 of 2, kappa 0.333" in shown
    assert "disputed  ann approve broad D1 Myocardial Infarction  bob approve D1" in shown


def test_a_sample_is_checked_before_the_rest_is_approved(review, tmp_path):
    rows = "".join(f"name {i},D{i},Name {i},0.9,,,C{i},1,,,\n" for i in range(30))
    rows += "MS,D99,Multiple Sclerosis,1.0,,exact,C99,1,,,\n"
    (tmp_path / "many.csv").write_text(f"{HEADER},candidate_2,name_2,score_2\n{rows}", "utf-8")
    queue = ("--queue", "many")
    review("import", str(tmp_path / "many.csv"), *queue)
    (sample,) = review("sample", *queue, "-n", "20", "--json")
    assert (sample["n_terms"], sample["left"], sample["interval"]) == (30, {"acronym": 1}, None)
    review("approve", *(str(each["id"]) for each in sample["to_check"]))
    said = review("sample", *queue, "-n", "20").err
    assert "10 terms: estimated at most" in said
    assert "1 left for single decisions: an acronym" in said
    (done,) = review("approve", "--min-score", "0.5", *queue, "--yes", "--json")
    assert done["n_changed"] == 10
    (left,) = review("list", *queue, "--status", "open", "--json")
    assert left["text"] == "MS"
    review("approve", "--min-score", "0.5", "--risky", *queue, "--yes")
    assert review("list", *queue, "--status", "open", "--json") == []


def test_a_further_target_and_all_formats_in_a_zip(review, tmp_path):
    (first,) = review("list", "--text", "hart", "--json")
    review("approve", str(first["id"]), "--relation", "narrow")
    (added,) = review(
        "target", str(first["id"]), "D7", "--name", "Seven", "--relation", "broad", "--json"
    )
    assert (added["part"], added["relation"], added["concept"]) == ("Seven", "broad", "D7")
    out = tmp_path / "all.zip"
    done = review("export", "-o", str(out))
    assert "the knowledge base" in done.err
    names = set(zipfile.ZipFile(out).namelist())
    assert {"review.sssom.tsv", "review.csv", "review.tsv", "review.usagi.csv"} <= names
