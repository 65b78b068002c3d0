"""Local terms to concepts: one row a distinct term, flags, messy cells, the command."""

from __future__ import annotations

import csv
import json
import re
import shlex
from pathlib import Path

import pytest

from biograft.kb import BuildConfig, KnowledgeBase, build_store
from biograft.linking import Linker
from biograft.mapping import SourceTerm, distinct_terms, map_terms
from biograft.sources import SourceConfig

CONCEPTS = [
    {"id": "D1", "name": "Myocardial Infarction", "names": ["heart attack", "=1+1"]},
    {"id": "D2", "name": "Breast Neoplasms", "names": ["breast cancer"]},
    {"id": "D3", "name": "Cold Temperature", "names": ["chill"]},
    {"id": "D4", "name": "Common Cold", "names": ["chill"]},
]


@pytest.fixture
def kb(tmp_path):
    source = tmp_path / "kb.jsonl"
    source.write_text("\n".join(map(json.dumps, CONCEPTS)), encoding="utf-8")
    config = BuildConfig(sources=(SourceConfig(path=source, format="jsonl"),))
    build_store(config, tmp_path / "KB")
    return tmp_path / "KB"


def test_terms_that_differ_in_case_and_whitespace_are_one():
    terms = [SourceTerm(t) for t in ("Rh +", "rh  +", "Rh -", "", " \0\t", "a\0b")]
    assert distinct_terms(terms) == [
        SourceTerm("Rh +", "", 2), SourceTerm("Rh -"), SourceTerm("a b"),
    ]  # fmt: skip


def test_equal_terms_with_two_codes_stay_two():
    terms = [SourceTerm("flu", "1"), SourceTerm("Flu", "2"), SourceTerm("FLU", "1")]
    assert [(t.code, t.frequency) for t in distinct_terms(terms)] == [("1", 2), ("2", 1)]


def test_flags(kb):
    linker = Linker.open(KnowledgeBase.open(kb))
    terms = ["Heart Attack", "hart attack", "chill", "zzqx", "12345", "x" * 40_000]
    mapped = list(map_terms(linker, terms))
    assert [m.flag for m in mapped] == ["exact", "", "ambiguous", "nil", "nil", "nil"]
    assert [m.concept for m in mapped[:2]] == ["D1", "D1"]
    assert {mapped[2].concept, *(c.concept for c in mapped[2].others)} >= {"D3", "D4"}


def test_nil_is_what_the_linker_says(kb):
    linker = Linker.open(KnowledgeBase.open(kb), threshold=1.0)
    mapped = list(map_terms(linker, ["hart attack", "heart attack"]))
    assert [m.concept for m in mapped] == [None, "D1"]
    assert mapped[0].others[0].concept == "D1"


def test_the_command(kb, tmp_path, run_main):
    table, out = tmp_path / "terms.csv", tmp_path / "map.csv"
    table.write_text("code,term\n1,heart attack\n1,HEART ATTACK\n2,=1+1\n3,\n4,zzqx\n", "utf-8")
    arguments = ("map", str(table), "--column", "term", "--code-column", "code")
    arguments += ("--kb", str(kb), "-o", str(out), "-k", "2", "--json", "-q")
    done = run_main(*arguments)
    assert done.code == 0, done.err
    summary = json.loads(done.out)
    assert (summary["n_terms"], summary["n_exact"], summary["n_nil"]) == (3, 2, 1)
    rows = list(csv.DictReader(out.read_text("utf-8").splitlines()))
    assert list(rows[0])[:6] == ["source_term", "concept", "name", "score", "probability", "flag"]
    assert list(rows[0])[6:] == ["source_code", "frequency", "candidate_2", "name_2", "score_2"]
    assert [(r["source_term"], r["concept"], r["frequency"]) for r in rows] == [
        ("heart attack", "D1", "2"), ("'=1+1", "D1", "1"), ("zzqx", "", "1"),
    ]  # fmt: skip
    again = run_main(*arguments)
    assert again.code == 2
    assert "--overwrite" in again.err


def test_another_ending_is_refused(kb, tmp_path, run_main):
    done = run_main("map", "x.csv", "--column", "t", "--kb", str(kb), "-o", "out.xlsx")
    assert done.code == 2
    assert ".csv or .tsv" in done.err


def test_the_example_of_the_page(tmp_path, run_main, monkeypatch):
    monkeypatch.chdir(tmp_path)
    page = Path(__file__).parents[3] / "docs" / "mapping.md"
    table, commands, mapped = re.findall(r"^```\n(.*?)^```$", page.read_text("utf-8"), re.M | re.S)
    Path("terms.csv").write_text(table, "utf-8")
    for command in commands.splitlines():
        assert run_main(*shlex.split(command)[1:], "-q").code == 0
    assert Path("mapped.csv").read_text("utf-8") == mapped
