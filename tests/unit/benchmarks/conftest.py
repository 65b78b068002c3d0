"""Imports of the benchmark scripts, which are no package."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[3] / "benchmarks"


@pytest.fixture
def script(monkeypatch):
    """Import a file of the benchmarks: ``script("synthetic_names")``."""
    monkeypatch.syspath_prepend(BENCHMARKS)
    return importlib.import_module
