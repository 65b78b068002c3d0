"""Small stores for the tests of linking."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from biograft.kb import BuildConfig, KnowledgeBase, build_store
from biograft.kb.sources import SourceConfig

CONCEPTS: list[dict[str, Any]] = [
    {
        "id": "D1",
        "name": "Diabetes Mellitus, Type 2",
        "names": {
            "en": ["type 2 diabetes", "T2DM", "diabetes mellitus type II"],
            "zh": ["2型糖尿病"],
        },
        "type": "disease",
        "definition": "Too much sugar in the <blood>.",
    },
    {"id": "D2", "name": "Breast Neoplasms", "names": ["breast cancer"], "type": "disease"},
    {"id": "D3", "name": "Ovarian Neoplasms", "names": ["ovarian cancer"], "type": "disease"},
    {"id": "D4", "name": "Myocardial Infarction", "names": ["heart attack"], "type": "disease"},
    {"id": "D5", "name": "Metformin", "names": {"zh": ["二甲双胍"]}, "type": "drug"},
    {"id": "D6", "name": "Cold", "names": ["common cold"], "type": "disease"},
    {"id": "D7", "name": "Cold Temperature", "names": ["cold"], "type": "finding"},
]


@pytest.fixture
def store_of(tmp_path: Path) -> Callable[..., KnowledgeBase]:
    """Build a store: ``store_of(concepts)``, ``store_of(concepts, "another")``."""

    def build(concepts: Sequence[dict[str, Any]], folder: str = "KB") -> KnowledgeBase:
        source = tmp_path / f"{folder}.jsonl"
        lines = (json.dumps(concept, ensure_ascii=False) for concept in concepts)
        source.write_text("\n".join(lines), encoding="utf-8")
        config = BuildConfig(sources=(SourceConfig(path=source, format="jsonl"),))
        build_store(config, tmp_path / folder, overwrite=True)
        return KnowledgeBase.open(tmp_path / folder)

    return build


@pytest.fixture
def kb(store_of: Callable[..., KnowledgeBase]) -> KnowledgeBase:
    return store_of(CONCEPTS)
