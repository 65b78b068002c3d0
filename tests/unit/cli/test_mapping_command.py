"""``biograft mapping``: sets are put together, compared and checked on the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from biograft.mapping import MappingRow, MappingSet, read_decisions


def write(path, *rows):
    mapped = [MappingRow(subject_id=a, object_id=b, **more) for a, b, more in rows]
    MappingSet(rows=mapped).write(path)


@pytest.fixture(autouse=True)
def sets(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write(
        "a.sssom.tsv", ("MONDO:1", "MESH:D1", {"subject_label": "one"}), ("MONDO:2", "MESH:D2", {})
    )
    write("b.sssom.tsv", ("MESH:D1", "UMLS:C1", {}), ("MESH:D2", "UMLS:C2", {"confidence": 0.5}))
    write("c.sssom.tsv", ("MONDO:1", "MESH:D1", {}), ("MONDO:1", "MESH:D3", {}))


def objects(path):
    return {(row.subject_id, row.object_id) for row in MappingSet.read(path).rows}


def test_sets_are_chained_inverted_and_merged(run_main):
    run = run_main("mapping", "chain", "a.sssom.tsv", "b.sssom.tsv", "-o", "ac.sssom.tsv", "--json")
    assert json.loads(run.out) == {
        "n_rows": 2,
        "n_unmapped": 0,
        "out": "ac.sssom.tsv",
    }
    assert objects("ac.sssom.tsv") == {("MONDO:1", "UMLS:C1"), ("MONDO:2", "UMLS:C2")}
    assert run_main("mapping", "invert", "a.sssom.tsv", "-o", "i.sssom.tsv").out == "rows 2\n"
    assert objects("i.sssom.tsv") == {("MESH:D1", "MONDO:1"), ("MESH:D2", "MONDO:2")}
    run = run_main("mapping", "merge", "a.sssom.tsv", "c.sssom.tsv", "-o", "m.sssom.tsv")
    assert run.out == "rows 3  read 4  same 1  conflicts 1\n"
    assert len(read_decisions("m.sssom.tsv")) == 3


def test_a_difference_is_shown_with_examples_and_in_full(run_main):
    done = run_main("mapping", "diff", "a.sssom.tsv", "c.sssom.tsv", "-k", "1", "--exit-code")
    assert done.code == 1
    assert [line.split()[:2] for line in done.out.splitlines()[:6:2]] == [
        ["added", "1"],
        ["removed", "1"],
        ["changed", "1"],
    ]
    assert "MONDO:1 exact MESH:D1 (subject_label: one -> -)" in done.out
    shown = run_main("mapping", "diff", "a.sssom.tsv", "c.sssom.tsv", "--json").out.splitlines()
    assert [json.loads(line)["change"] for line in shown] == ["added", "removed", "changed"]
    assert run_main("mapping", "diff", "a.sssom.tsv", "a.sssom.tsv", "--exit-code").code == 0


def test_conflicts_decide_the_exit_status(run_main):
    assert run_main("mapping", "conflicts", "a.sssom.tsv").out == "no conflicts\n"
    done = run_main("mapping", "conflicts", "c.sssom.tsv")
    assert done.code == 1
    assert "MONDO:1 exact MESH:D1; MONDO:1 exact MESH:D3" in done.out
    (line,) = run_main("mapping", "conflicts", "c.sssom.tsv", "--json").out.splitlines()
    assert json.loads(line)["conflict"] == "objects"


def test_bad_input_leaves_nothing_behind(run_main):
    Path("x.tsv").write_text("a\tb\n1\t2\n")
    done = run_main("mapping", "merge", "a.sssom.tsv", "x.tsv", "-o", "m.sssom.tsv")
    assert (done.code, Path("m.sssom.tsv").exists()) == (2, False)
    assert "x.tsv:1: has no column 'predicate_id', which SSSOM has" in done.err
    done = run_main("mapping", "invert", "a.sssom.tsv", "-o", "a.sssom.tsv", "--overwrite")
    assert done.code == 2
    assert objects("a.sssom.tsv")
