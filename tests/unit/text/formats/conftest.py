"""Fixture that reads a snippet with its log; makes ``random_documents`` importable."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from biograft.kb.sources import ReadLog
from biograft.text import read_documents
from biograft.text.documents import Document


@pytest.fixture
def read_as(write: Callable[..., Path]) -> Callable[..., tuple[list[Document], ReadLog]]:
    def read(form: str, content: str | bytes, name: str = "a") -> tuple[list[Document], ReadLog]:
        path = write(name, content)
        log = ReadLog(path)
        return list(read_documents(path, form, log)), log

    return read
