"""Where results come from: every row has a commit, its experiment's design and its answers."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from biograft_lab.places import BENCHMARKS, REPOSITORY, RESULTS
from biograft_lab.replication import Experiment, shipped_experiments
from biograft_lab.replication.experiment import part_of_design
from biograft_lab.replication.results import read_result

CORRECTED = "2d5aa7f6"
"""The last commit that corrected what an experiment measures: rows are made at it or after it."""


FILES = sorted([*RESULTS.glob("*.json"), *BENCHMARKS.glob("*.json")])


_WITH_ANSWERS = ("linking", "joint_linking", "generative_linking")
"""Kinds whose rows hold the answer to every item, where the mentions are given."""


def find_doubts(path: Path) -> list[str]:
    """Return why a result file cannot be trusted; nothing if it can.

    Args:
        path: A result file, named for its experiment or script.
    """
    content = read_result(path)
    rows = content.get("rows")
    measured: list[dict[str, Any]] = rows if isinstance(rows, list) else [content]
    doubts = [
        _doubt_of_commit(str(row.get("commit", content.get("commit", "")))) for row in measured
    ]
    if path.stem in shipped_experiments():
        experiment = Experiment.load(path.stem)
        doubts += [doubt for row in measured for doubt in _doubts_of_design(experiment, row)]
    return list(dict.fromkeys(filter(None, doubts)))


def commits_of(path: Path) -> set[str]:
    """Return the commits that the rows of a result file were made at."""
    return {str(row.get("commit", "")) for row in read_result(path).get("rows", ())}


def _doubt_of_commit(commit: str) -> str:
    if not commit:
        return "a row without a commit"
    return f"a row of the uncommitted tree {commit}" if commit.endswith("-dirty") else ""


def _doubts_of_design(experiment: Experiment, row: Mapping[str, Any]) -> Iterator[str]:
    name, config = part_of_design(row)
    if name and name not in experiment.sets:
        yield f"a row of {name}, which the experiment does not have"
        return
    if row.get("design") != experiment.design(name, config):
        yield f"{name}, {config or 'all variants'}: another design than the experiment's file"
    if "seed" in row and row["seed"] not in experiment.seeds_of(name):
        yield f"{name}, {config}: seed {row['seed']}, which the experiment does not have"
    given = "acc@1" in row and experiment.kind in _WITH_ANSWERS
    if given and not {"right", "documents"} <= row.keys():
        yield f"{name}, {config}: without the answer to every item"


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_results_have_commits_designs_and_answers(path):
    assert find_doubts(path) == []


@pytest.mark.parametrize("name", shipped_experiments())
def test_rows_are_not_of_code_before_it_was_corrected(name):
    path = RESULTS / f"{name}.json"
    if not path.exists():
        return

    def is_ancestor(commit):
        command = ["git", "-C", str(REPOSITORY), "merge-base", "--is-ancestor", CORRECTED, commit]
        return subprocess.run(command, capture_output=True, check=False).returncode

    if is_ancestor("HEAD") not in (0, 1):
        pytest.skip("the history is not here")
    assert {commit for commit in commits_of(path) if is_ancestor(commit)} == set()


def test_a_row_of_another_design_is_found(tmp_path):
    experiment = Experiment.load("linking-protocols")
    row = {"set": "ncbi-disease", "config": "lexical", "commit": "abc1234", "acc@1": 1.0}
    row |= {"right": "1", "documents": "1", "design": experiment.design("ncbi-disease", "lexical")}

    def doubts(**changes):
        path = tmp_path / "linking-protocols.json"
        rows = [{key: value for key, value in (row | changes).items() if value is not None}]
        path.write_text(json.dumps({"rows": rows}), encoding="utf-8")
        return find_doubts(path)

    assert doubts() == []
    assert doubts(commit="") == ["a row without a commit"]
    assert doubts(commit="abc1234-dirty") == ["a row of the uncommitted tree abc1234-dirty"]
    (found,) = doubts(design="0")
    assert "another design" in found
    (found,) = doubts(right=None)
    assert "without the answer" in found
    (found,) = doubts(seed=7)
    assert "seed 7" in found
    (found,) = doubts(set="cometa")
    assert "cometa" in found


def test_a_design_is_that_of_the_row_alone(write):
    text = 'about = "A."\nkind = "linking"\nsets = ["a", "b"]\n[variants.x]\nz = 1\n'
    plain = Experiment.load(write("plain.toml", text))
    more = Experiment.load(write("more.toml", f"{text}[variants.y]\nz = 2\n"))
    other = Experiment.load(write("other.toml", text.replace("z = 1", "z = 3")))
    own = Experiment.load(write("own.toml", f"{text}[set_settings.b]\nk = 1\n"))
    assert plain.design("a", "dense:x") == more.design("a", "x") != other.design("a", "x")
    assert plain.design("a") != more.design("a")  # a row of all variants
    assert plain.design("a", "x") == own.design("a", "x")
    assert plain.design("b", "x") != own.design("b", "x")
