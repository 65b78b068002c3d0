"""Where results come from: the commit, the design and the answers that every row must have.

A row is evidence only if its code can be checked out and its experiment is the one that is shipped.
``find_doubts`` returns what speaks against a result file; the tests refuse any.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from biograft_lab.replication.experiment import Experiment, part_of_design, shipped_experiments
from biograft_lab.replication.results import Row, read_result

_WITH_ANSWERS = ("linking", "joint_linking", "generative_linking")
"""Kinds whose rows hold the answer to every item, where the mentions are given."""


def find_doubts(path: Path) -> list[str]:
    """Return why a result file cannot be trusted; nothing if it can.

    Args:
        path: A result file, named for its experiment or script.
    """
    content = read_result(path)
    rows = content.get("rows")
    measured: Sequence[Row] = rows if isinstance(rows, list) else [content]
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
