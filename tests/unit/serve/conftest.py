"""The starter store, which every kind of service answers from."""

from __future__ import annotations

from pathlib import Path

import pytest

from biograft.kb import KnowledgeBase


@pytest.fixture(scope="session")
def kb(starter: Path) -> KnowledgeBase:
    return KnowledgeBase.open(starter)
