"""The folder of a run: nothing is left of one that was refused before it began."""

from __future__ import annotations

import pytest
from one_writer import leave_working_file

from biograft.errors import ConfigError
from biograft.training import RUN, sole_run, start_run


def begin(folder, *others):
    """Start a run whose settings are refused after some files were written."""
    with sole_run(folder):
        start_run(folder, {"overlap": 64}, {})
        (folder / "runs" / "seed-1").mkdir(parents=True)
        for name in others:
            (folder / name).write_text("{}")
        raise ConfigError("overlap: expected at most 7, found 64")


def test_of_a_refused_run_nothing_is_left(tmp_path):
    """``--resume`` was asked for, and refused the settings that would have been right."""
    for _ in range(2):
        with pytest.raises(ConfigError, match="overlap"):
            begin(tmp_path / "RUN")
        assert list(tmp_path.iterdir()) == []
    (tmp_path / "RUN").mkdir()
    with pytest.raises(ConfigError, match="overlap"):
        begin(tmp_path / "RUN")
    assert not (tmp_path / "RUN" / RUN.file).exists()


def test_a_run_that_was_killed_before_it_began_is_started_again(tmp_path):
    leave_working_file(tmp_path / "RUN" / RUN.file)
    with sole_run(tmp_path / "RUN"):
        start_run(tmp_path / "RUN", {"overlap": 7}, {})
    assert [each.name for each in (tmp_path / "RUN").iterdir()] == [RUN.file]


def test_what_was_trained_stays(tmp_path):
    with pytest.raises(ConfigError, match="overlap"):
        begin(tmp_path / "RUN", "metrics.jsonl")
    left = {each.name for each in (tmp_path / "RUN").rglob("*") if each.is_file()}
    assert left == {"metrics.jsonl", RUN.file}


def test_a_run_that_was_there_stays(tmp_path):
    start_run(tmp_path / "RUN", {"overlap": 7}, {})
    with pytest.raises(ConfigError), sole_run(tmp_path / "RUN"):
        raise ConfigError("was started with overlap = 7, found 64")
    assert [each.name for each in (tmp_path / "RUN").iterdir()] == [RUN.file]
