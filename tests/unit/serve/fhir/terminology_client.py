"""A client of the terminology routes alone: they need no linker."""

from __future__ import annotations

from pathlib import Path

from fastapi import FastAPI
from fastapi.testclient import TestClient

from biograft.kb import KnowledgeBase, NameSuggestions
from biograft.serve import Terminology
from biograft.serve.fhir.routes import add_fhir


def opened(folder: Path, max_steps: float = 4e6, **urls: str) -> TestClient:
    """Return a client of a store."""
    kb, app = KnowledgeBase.open(folder), FastAPI()
    terminology = Terminology(kb, NameSuggestions(kb), urls)
    add_fhir(app, lambda: terminology, max_steps=max_steps)
    return TestClient(app)
