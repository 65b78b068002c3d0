"""A rule file of a test's own."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture
def rule_file(tmp_path):
    """Write a rule file and return its path."""

    def write(text: str) -> Path:
        path = tmp_path / "rules.toml"
        path.write_text(text, encoding="utf-8")
        return path

    return write
