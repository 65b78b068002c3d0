"""Rows of fine-tuned encoders are told apart by all that was set."""

from __future__ import annotations

from argparse import Namespace

import pytest


@pytest.fixture
def measured(script, monkeypatch, tmp_path):
    """Measure a set with changes of the recipe; give the rows of the file, and what was done."""
    tasks = script("encoder_tasks")
    done = []

    def measure(name, options):
        done.append((name, options.task_changes))
        return {"encoders": {"all": {"test": {"mean": 1.0}}}}

    monkeypatch.setattr(tasks, "measure_encoders", measure)
    monkeypatch.setattr(tasks.sys, "argv", ["it"])

    def run(*changes):
        options = Namespace(
            seeds=[1], epochs=3, most=9, sets=["ncbi"], task_changes=list(changes)
        )  # fmt: skip
        tasks.measure_sets("it.py", options, tmp_path / "out.json", key={"labels": ["all"]})
        return tasks.Results(tmp_path / "out.json").rows

    return run, done


def test_a_row_with_changes_is_not_taken_for_one_without(measured):
    run, done = measured
    assert len(run("config.head=crf")) == 1
    assert len(run()) == 2
    assert len(run("config.head=crf")) == 2
    assert done == [("ncbi", ["config.head=crf"]), ("ncbi", [])]


def test_the_settings_of_a_row_stand_above_changes(script):
    options = Namespace(data="", seeds=[4], epochs=3, task_changes=["config.training.epochs=5"])
    recipe = script("encoder_tasks")._recipe("ncbi", options)
    assert (recipe.search.seeds, recipe.config.training.epochs) == ((4,), 3)
