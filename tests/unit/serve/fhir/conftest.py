"""A client of the terminology routes on the starter store."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("fastapi", reason="the extra `serve` is not installed")
pytest.importorskip("httpx")
from fastapi.testclient import TestClient
from terminology_client import opened

from biograft.kb import build_starter


@pytest.fixture(scope="session")
def starter(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("fhir-starter") / "KB"
    build_starter(folder)
    return folder


@pytest.fixture(scope="session")
def starter_client(starter: Path) -> TestClient:
    return opened(starter)
