"""Fixtures for the unit tests."""

from __future__ import annotations

import gc
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture
def ray(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Ray with two workers' on this machine; its import emits warnings."""
    monkeypatch.setenv("RAY_worker_niceness", "0")  # else the workers wait on a busy machine
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ray = pytest.importorskip(
            "ray", reason="ray is not installed (pip install 'biograft[ray]')"
        )
        pytest.importorskip("ray.data", reason="ray[data] is not installed")
        ray.init(num_cpus=4, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
        yield ray
        ray.shutdown()
        gc.collect()  # else its processes warn when they are collected, during another test


@pytest.fixture(scope="session")
def starter(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the starter store, which no test changes."""
    from biograft.kb import build_starter

    folder = tmp_path_factory.mktemp("starter") / "KB"
    build_starter(folder)
    return folder
