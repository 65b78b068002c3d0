"""What the tests of experiments share."""

from __future__ import annotations

import json
from functools import cache

import pytest
from smoke import run_smoke

from biograft_lab.replication import Experiment, ExperimentJob, run_experiment


@pytest.fixture(scope="session")
def smoke_work(tmp_path_factory):
    """The work folder of all smoke runs, so that toy data and inputs are made once."""
    return tmp_path_factory.mktemp("replication")


@pytest.fixture(scope="session")
def smoke_rows(smoke_work):
    """Return the rows of the smoke run of a shipped experiment, which runs once."""

    def rows(name):
        job = ExperimentJob(
            experiment=Experiment.load(name),
            work=smoke_work,
            data=smoke_work / "none",
            out=smoke_work / f"{name}.json",
        )
        return json.loads(run_smoke(job).read_text("utf-8"))["rows"]

    return cache(rows)


@pytest.fixture
def measure(write, tmp_path):
    """Run an experiment given as text on the data of the test; return its rows and its work."""

    def run(text, encoder):
        job = ExperimentJob(
            experiment=Experiment.load(write("experiment.toml", text)),
            work=tmp_path / "work",
            data=tmp_path / "data",
            out=tmp_path / "results.json",
            inputs={"encoder": encoder},
            say=run.said.append,
        )
        run_experiment(job)
        return json.loads(job.out.read_text("utf-8"))["rows"], job.work

    run.said = []
    return run
