"""The starter store, which every kind of service answers from."""

from __future__ import annotations

from pathlib import Path

import pytest

from biograft.kb import KnowledgeBase, build_starter


@pytest.fixture(scope="session")
def starter(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("starter") / "KB"
    build_starter(folder)
    return folder


@pytest.fixture(scope="session")
def kb(starter: Path) -> KnowledgeBase:
    return KnowledgeBase.open(starter)
