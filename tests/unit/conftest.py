"""Fixtures for the unit tests; that this file is here makes ``tiny_models`` importable below."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest


@pytest.fixture
def tiny_encoder(tmp_path: Path) -> Callable[..., Path]:
    """Write a tiny encoder: ``tiny_encoder(["heart attack", ...], hidden=32)``."""
    from tiny_models import tiny_encoder_folder

    def write(texts: list[str], **options: int) -> Path:
        return tiny_encoder_folder(tmp_path / "tiny", texts, **options)

    return write
