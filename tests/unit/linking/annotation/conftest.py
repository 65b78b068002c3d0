"""A small knowledge base, and a corpus to annotate."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from biograft.kb import BuildConfig, KnowledgeBase, build_store
from biograft.kb.sources import SourceConfig

CONCEPTS: list[dict[str, Any]] = [
    {"id": "D1", "name": "Diabetes Mellitus, Type 2", "names": ["type 2 diabetes", "T2DM"]},
    {"id": "D2", "name": "Breast Neoplasms", "names": ["breast cancer"]},
    {"id": "D3", "name": "Neoplasms", "names": ["cancer"]},
    {"id": "D4", "name": "Common Cold", "names": ["cold"]},
    {"id": "D5", "name": "Cold Temperature", "names": ["cold"]},
    {"id": "D6", "name": "Alzheimer Disease", "names": ["AD"]},
    {"id": "D7", "name": "Myocardial Infarction", "names": ["heart attack", {"zh": "心肌梗死"}]},
    {"id": "D8", "name": "Cancer Cell Line", "names": ["line of cells"]},
]
"""*cold* is two concepts; *AD* is a name that documents may use for something else."""


@pytest.fixture(scope="session")
def kb_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A built store."""
    folder = tmp_path_factory.mktemp("annotation")
    source = folder / "concepts.jsonl"
    lines = [json.dumps(_plain(concept), ensure_ascii=False) for concept in CONCEPTS]
    source.write_text("\n".join(lines), encoding="utf-8")
    build_store(BuildConfig(sources=(SourceConfig(path=source, format="jsonl"),)), folder / "kb")
    return folder / "kb"


def _plain(concept: dict[str, Any]) -> dict[str, Any]:
    """Return a concept with its names by language."""
    names: dict[str, list[str]] = {"en": []}
    for name in concept["names"]:
        if isinstance(name, str):
            names["en"].append(name)
        else:
            names.update({tag: [text] for tag, text in name.items()})
    return {**concept, "names": names}


@pytest.fixture(scope="session")
def kb(kb_folder: Path) -> KnowledgeBase:
    """The store, open."""
    return KnowledgeBase.open(kb_folder)


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    """Three hundred lines of text, some of them invalid."""
    lines = [
        b"Case %d: <b>breast cancer</b> and a cold &amp; type-2 diabetes in %d of cancers." % (n, n)
        for n in range(300)
    ]
    lines[17] = b"broken \xff cancer"
    lines[211] = b"a NUL \x00 in cancer"
    lines[40] = b""
    path = tmp_path / "corpus.txt"
    path.write_bytes(b"\n".join(lines) + b"\n")
    return path
