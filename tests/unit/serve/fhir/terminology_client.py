"""A client of the terminology routes alone: they need no linker."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from fastapi import FastAPI
from fastapi.testclient import TestClient

from biograft.kb import KnowledgeBase, NameSuggestions
from biograft.mapping import ReviewStore
from biograft.serve import Terminology
from biograft.serve.fhir.content import read_content
from biograft.serve.fhir.routes import FhirRoutes


def opened(
    folder: Path,
    max_steps: float = 4e6,
    fhir: Sequence[Path] = (),
    review: ReviewStore | None = None,
    **urls: str,
) -> TestClient:
    """Return a client of a store, and of the files and the review beside it."""
    kb = KnowledgeBase.open(folder)
    content = read_content(fhir)
    terminology = Terminology(kb, NameSuggestions(kb), urls, content, lambda: review)
    return TestClient(FhirRoutes(FastAPI(), lambda: terminology, max_steps=max_steps))
