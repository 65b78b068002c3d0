"""Smoke runs: every shipped experiment runs on toy data, with all of its variants."""

from __future__ import annotations

import dataclasses
import json

import pytest
from smoke import run_smoke, smaller

from biograft.errors import ConfigError
from biograft_lab.replication import Experiment, ExperimentJob, shipped_experiments
from biograft_lab.replication.results import without_fold

WITHOUT_VARIANTS = {
    "joint_linking": 2,  # alone, and beside lexical search
}
"""Kinds whose experiments name no variants, and how many systems they measure."""


SHORT = "linking-protocols"
"""The experiment whose run on toy data is part of every run of the tests."""


def job(experiment, work, **changes):
    given = {"work": work, "data": work / "none", "out": work / f"{experiment.name}.json"}
    return ExperimentJob(experiment=experiment, **{**given, **changes})


def measured(content):
    """The variants in a result file."""
    rows = content["rows"]
    return {row["config"].partition(":")[2] or row["config"] for row in rows}


@pytest.mark.parametrize(
    "name",
    [
        name if name == SHORT else pytest.param(name, marks=pytest.mark.long)
        for name in shipped_experiments()
    ],
)
def test_every_experiment_runs_on_toy_data(name, smoke_work):
    experiment = Experiment.load(name)
    out = run_smoke(job(experiment, smoke_work))
    content = json.loads(out.read_text("utf-8"))
    found, variants = measured(content), dict(experiment.variants)
    if experiment.kind == "linking":  # lexical search has one name, whatever the dictionary
        variants = {label: v for label, v in variants.items() if v["search"] != ["lexical"]}
        assert set(variants) <= found
    elif variants:
        assert found == set(variants)
    else:
        assert len(found) >= WITHOUT_VARIANTS[experiment.kind]
    sets = {without_fold(row["set"]) for row in content["rows"]}
    assert sets == set(map(without_fold, experiment.sets))


def test_a_smoke_run_measures_nothing_again(smoke_work):
    experiment, said = Experiment.load(SHORT), []
    run_smoke(job(experiment, smoke_work))
    run_smoke(job(experiment, smoke_work, say=said.append))
    assert said == []


def test_an_input_that_toy_data_lack_is_named(smoke_work):
    experiment = Experiment.load(SHORT)
    unknown = dataclasses.replace(experiment, inputs={"kb": "from a friend"})
    with pytest.raises(ConfigError, match=r"inputs\.kb: 'from a friend'"):
        run_smoke(job(unknown, smoke_work))


def test_only_sizes_are_smaller():
    """Settings are replaced in the sets that have them, too; changes are added to those there."""
    experiment = Experiment.load("alignment-losses")
    small = smaller(experiment, {"scratch_width": 16}, {"alignment": ["y=1"]})
    assert (small.sets, small.seeds) == (experiment.sets, (1,))
    assert small.settings["alignment"] == [*experiment.settings["alignment"], "y=1"]
    assert small.settings["scratch_width"] == 16
    assert small.set_settings == experiment.set_settings
    circle = experiment.variants["MiniLM-circle"]["alignment"]
    assert small.variants["MiniLM-circle"]["alignment"] == [*circle, "y=1"]
    assert list(small.variants) == list(experiment.variants)


def test_toy_data_have_a_file_for_every_set(smoke_work):
    from toy_files import write_toy_files

    from biograft_lab.replication.linking_sets import SETS

    data = smoke_work / "smoke" / "data"
    write_toy_files(data)
    first = [each for name, each in SETS.items() if name == without_fold(name) or "-0" in name]
    for each in first:
        assert all(each.exists(data, split) for split in each.gold), each.name
