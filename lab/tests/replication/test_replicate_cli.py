"""``biograft replicate``: its output for people and for scripts, its errors."""

from __future__ import annotations

import json

from toy_files import write_biosyn
from typer.testing import CliRunner

from biograft_lab.commands.replicate import app
from biograft_lab.replication import shipped_claims, shipped_experiments


def invoke(*arguments):
    return CliRunner().invoke(app, [*arguments])


def test_list_has_claims_and_verdicts():
    lines = invoke("list").stdout.splitlines()
    assert lines[0].split() == ["name", "paper", "verdict", "claim"]
    assert [line.split()[0] for line in lines[1:]] == [claim.name for claim in shipped_claims()]
    lines = invoke("list", "--experiments").stdout.splitlines()
    assert [line.split()[0] for line in lines[1:]] == list(shipped_experiments())


def test_list_as_json_has_the_effect_too():
    rows = [json.loads(line) for line in invoke("list", "--json").stdout.splitlines()]
    keys = ["name", "paper", "claim", "verdict", "effect", "low", "high", "n_seeds"]
    assert all(list(row)[:8] == keys for row in rows)


def test_a_run_prints_its_rows(write, tmp_path):
    write_biosyn(tmp_path / "data/entity_linking/ncbi_disease/biosyn")
    text = 'about = "A."\nkind = "linking"\nsets = ["ncbi-disease"]\n[variants.lexical]\n'
    experiment = write("mine.toml", f"{text}search = ['lexical']\n")
    paths = ["--work", str(tmp_path / "work"), "--data", str(tmp_path / "data")]
    ran = invoke("run", str(experiment), *paths, "--json")
    assert ran.exit_code == 0
    rows = [json.loads(line) for line in ran.stdout.splitlines()]
    assert [row["config"] for row in rows] == ["lexical"]
    assert (tmp_path / "work" / "mine.json").exists()


def test_reports_are_up_to_date():
    ran = invoke("report", "--check", "--json")
    assert (ran.exit_code, json.loads(ran.stdout)) == (0, {"stale": []})
