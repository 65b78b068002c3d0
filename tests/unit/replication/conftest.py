"""What the tests of experiments share."""

from __future__ import annotations

import json

import pytest

from biograft.replication import Experiment, ExperimentJob, run_experiment


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
