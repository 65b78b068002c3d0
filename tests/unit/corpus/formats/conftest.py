"""Fixture that reads a snippet with its log; makes ``random_documents`` importable."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from biograft.corpus import read_documents
from biograft.documents import Document
from biograft.sources import ReadLog


@pytest.fixture
def read_as(write: Callable[..., Path]) -> Callable[..., tuple[list[Document], ReadLog]]:
    def read(form: str, content: str | bytes, name: str = "a") -> tuple[list[Document], ReadLog]:
        path = write(name, content)
        log = ReadLog(path)
        return list(read_documents(path, form, log)), log

    return read
