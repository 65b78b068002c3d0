"""The lists and tables of lab/docs/reliability.md."""

from __future__ import annotations

import ast
import json
from pathlib import Path

import pytest

from biograft_lab.replication import reliability_tables
from biograft_lab.replication.reliability_tables import (
    FINDINGS,
    PROMISES,
    read_list,
    tests_of as ids_of,
    tried,
)

ROOT = Path(__file__).parents[3]


def names_of(path):
    """Return the tests of a file, as FILE::NAME or FILE::CLASS::NAME."""
    found = set()
    for node in ast.parse((ROOT / path).read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef):
            found.add(f"{path}::{node.name}")
        if isinstance(node, ast.ClassDef):
            inner = [each for each in node.body if isinstance(each, ast.FunctionDef)]
            found |= {f"{path}::{node.name}::{each.name}" for each in inner}
    return found


@pytest.mark.parametrize("name", [PROMISES, FINDINGS])
def test_every_test_that_is_named_exists(name):
    ids = [each for entry in read_list(name) for each in ids_of(entry) if each]
    files = {each.partition("::")[0] for each in ids}
    known = set().union(*(names_of(path) for path in files if (ROOT / path).is_file()))
    assert [each for each in ids if each.partition("[")[0] not in known] == []
    assert ids or name == FINDINGS


def test_benchmarks_that_were_not_run_say_so(tmp_path, monkeypatch):
    monkeypatch.setattr(reliability_tables, "RESULTS", tmp_path)
    assert tried().count("not run") == 4
    readers = {"obo": {"inputs": 1_000_000, "seconds": 60.0, "findings": []}}
    (tmp_path / "fuzz.json").write_text(json.dumps({"readers": readers}))
    modules = {"kb": {"mutants": 20, "killed": 18, "survived": 1, "equivalent": 1}}
    (tmp_path / "mutants.json").write_text(json.dumps({"modules": modules}))
    table = tried()
    assert table.count("not run") == 2
    assert "| obo | 1,000,000 inputs, 60 s | 0 findings |" in table
    assert "| kb | 20 mutants, 1 equivalent | 18 killed (95%), 1 survived |" in table
