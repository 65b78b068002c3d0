"""Local terms to concepts: one row a distinct term, flags, messy cells, the command."""

from __future__ import annotations

import csv
import json
import re
import shlex
from pathlib import Path

import pytest
from generative_store import store_in

from biograft.mapping import SourceTerm, distinct_terms, read_decisions

CONCEPTS = [
    {"id": "D1", "name": "Myocardial Infarction", "names": ["heart attack", "=1+1"]},
    {"id": "D2", "name": "Breast Neoplasms", "names": ["breast cancer"]},
    {"id": "D3", "name": "Cold Temperature", "names": ["chill"]},
    {"id": "D4", "name": "Common Cold", "names": ["chill"]},
]


@pytest.fixture
def kb(tmp_path):
    return store_in(tmp_path, CONCEPTS, "KB").folder


def test_terms_that_differ_in_case_and_whitespace_are_one():
    terms = [SourceTerm(t) for t in ("Rh +", "rh  +", "Rh -", "", " \0\t", "a\0b")]
    assert distinct_terms(terms) == [
        SourceTerm("Rh +", "", 2),
        SourceTerm("Rh -"),
        SourceTerm("a b"),
    ]


def test_equal_terms_with_two_codes_stay_two():
    terms = [SourceTerm("flu", "1"), SourceTerm("Flu", "2"), SourceTerm("FLU", "1")]
    assert [(t.code, t.frequency) for t in distinct_terms(terms)] == [("1", 2), ("2", 1)]


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (
            ("-o", "out.doc"),
            "ends in .sssom.tsv, .sssom, .csv, .tsv, .xlsx, .json, found 'out.doc'",
        ),
        (("-o", "o.csv", "--column", "trem"), "column 'trem' is missing.*did you mean 'term'"),
        (("-o", "o.csv", "--sheet", "a"), "has no sheets; leave --sheet out"),
        (("-o", "o.csv", "--to", "omop"), "D1 .Myocardial Infarction. has no OMOP id"),
        (("-o", "o.csv", "--threshold", "5"), "threshold: expected a score from 0 to 1, found 5"),
        (("-o", "o.csv", "--apply", "terms.csv"), "no column 'predicate_id', which SSSOM has"),
    ],
)
def test_what_is_wrong_is_one_line(kb, tmp_path, run_main, monkeypatch, arguments, problem):
    monkeypatch.chdir(tmp_path)
    Path("terms.csv").write_text("code,term,empty\n1,heart attack,\n")
    column = () if "--column" in arguments else ("--column", "term")
    done = run_main("map", "terms.csv", *column, "--kb", str(kb), *arguments, "-q")
    assert done.code == 2
    assert re.search(problem, done.err)
    assert done.err.count("\n") == 1
    assert not list(tmp_path.glob("o*"))


def test_codes_frequencies_and_contexts(kb, tmp_path, run_main, monkeypatch):
    monkeypatch.chdir(tmp_path)
    lines = [
        "panel,code,term,n,unit",
        "A,1,chill,3,",
        "A,1,chill,2,",
        "B,1,chill,1,x",
        "B,2,chill,0,",
    ]
    Path("terms.csv").write_text("\n".join(lines))
    done = run_main(
        "map",
        "terms.csv",
        "--column",
        "term",
        "--code-column",
        "panel",
        "--code-column",
        "code",
        "--frequency-column",
        "n",
        "--context-column",
        "unit",
        "--kb",
        str(kb),
        "-o",
        "o.tsv",
        "-q",
    )
    assert done.code == 1
    assert "1 records left out: the frequency is no whole number above 0" in done.err
    rows = list(csv.DictReader(Path("o.tsv").read_text().splitlines(), delimiter="\t"))
    found = [(row["source_code"], row["frequency"], row["context"]) for row in rows]
    assert found == [("A|1", "5", ""), ("B|1", "1", "unit: x")]


def test_earlier_decisions_are_applied(kb, tmp_path, run_main, monkeypatch):
    """A mapped table in which a person filled in verdicts is applied to another table."""
    monkeypatch.chdir(tmp_path)
    Path("a.csv").write_text("term\nchill\nhart attack\nbreast\n")
    arguments = ("--column", "term", "--kb", str(kb), "-q", "--json")
    assert run_main("map", "a.csv", *arguments, "-o", "m.csv").code == 0
    again = run_main("map", "a.csv", *arguments, "-o", "n.csv", "--apply", "m.csv")
    assert "no row has a verdict; fill in" in again.err
    rows = list(csv.DictReader(Path("m.csv").read_text().splitlines()))
    rows[0] |= {"concept": "D3", "name": "Cold Temperature", "verdict": "Approved"}
    rows[1] |= {"verdict": "rejected"}
    with Path("m.csv").open("w") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    Path("b.csv").write_text("term\nCHILL\nhart attack\nbreast cancer\n")
    arguments = ("map", "b.csv", *arguments, "--apply", "m.csv")
    summary = json.loads(run_main(*arguments, "-o", "o.csv").out)
    assert (summary["n_seen"], summary["n_rejected"], summary["n_exact"]) == (1, 1, 1)
    assert (summary["n_unused_decisions"], summary["changed"]) == (0, [])
    seen, rejected, _ = csv.DictReader(Path("o.csv").read_text().splitlines())
    assert (seen["concept"], seen["flag"], seen["verdict"]) == ("D3", "seen", "approved")
    assert (rejected["concept"], rejected["flag"]) == ("", "rejected")
    assert "D1" not in (rejected["candidate_2"], rejected["candidate_3"])
    assert run_main(*arguments, "-o", "o.sssom.tsv").code == 0
    verdicts = {d.term: d.verdict for d in read_decisions("o.sssom.tsv")}
    expected = {"CHILL": "approved", "hart attack": "proposed", "breast cancer": "proposed"}
    assert verdicts == expected
    Path("o.csv").unlink()
    proposals = tmp_path / "p.sssom.tsv"
    assert run_main(*arguments[:-2], "-o", str(proposals)).code == 0
    refused = run_main(*arguments[:-2], "--apply", str(proposals), "-o", "o.csv")
    assert "none of its 3 mappings is decided; approve them first" in refused.err
    assert not Path("o.csv").exists()


def test_the_example_of_the_page(tmp_path, run_main, monkeypatch):
    monkeypatch.chdir(tmp_path)
    page = Path(__file__).parents[3] / "docs" / "mapping.md"
    blocks = re.findall(r"^```(\w*)\n(.*?)^```$", page.read_text("utf-8"), re.M | re.S)
    table, commands, mapped, applied = (text for language, text in blocks if not language)
    Path("terms.csv").write_text(table, "utf-8")
    for command in commands.splitlines():
        assert run_main(*shlex.split(command)[1:], "-q").code == 0
    assert Path("mapped.csv").read_text("utf-8") == mapped
    edited = mapped.replace("609536,,,1,1,,", "609536,,,1,1,broad,approved", 1)
    Path("mapped.csv").write_text(edited, "utf-8")
    Path("next.csv").write_text("term\nHart  atack\nHTN\n", "utf-8")
    (command,) = applied.splitlines()
    assert run_main(*shlex.split(command)[1:], "-q").code == 0
    seen, new = csv.DictReader(Path("next-mapped.csv").read_text("utf-8").splitlines())
    assert [seen[name] for name in ("concept", "flag", "relation")] == ["D009203", "seen", "broad"]
    assert (new["flag"], new["verdict"]) == ("short", "")
