"""A client of the terminology routes on the starter store."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("fastapi", reason="the extra `serve` is not installed")
pytest.importorskip("httpx")
from fastapi.testclient import TestClient
from terminology_client import opened


@pytest.fixture(scope="session")
def starter_client(starter: Path) -> TestClient:
    return opened(starter)
