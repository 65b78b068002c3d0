"""A small store, and rankers that need no index: by exact name, or from a table."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from biograft.kb import BuildConfig, KnowledgeBase, build_store
from biograft.kb.sources import SourceConfig
from biograft.linking import Candidate

CONCEPTS = [
    {"id": "MESH:D1", "name": "Influenza", "names": ["flu", "grippe"], "ids": ["OMIM:77"]},
    {"id": "D2", "name": "Infection", "names": ["infectious disease"]},
    {"id": "D3", "name": "Viral infection", "relations": {"is-a": ["D2"]}},
    {"id": "D4", "name": "Cold", "names": ["common cold", "flu"]},
    {"id": "D5", "name": "Breast cancer", "names": ["breast cancers"]},
    {"id": "D6", "name": "Ovarian cancer"},
    {"id": "D7", "name": "切除术", "names": ["bilateral resection"]},
    {"id": "D8", "name": "切除术", "names": ["resection"]},
]


@pytest.fixture
def store_of(tmp_path: Path) -> Callable[[list[dict[str, Any]]], KnowledgeBase]:
    """Build a store of some concepts."""

    def build(concepts: list[dict[str, Any]]) -> KnowledgeBase:
        source = tmp_path / "concepts.jsonl"
        lines = (json.dumps(concept, ensure_ascii=False) for concept in concepts)
        source.write_text("\n".join(lines), encoding="utf-8")
        config = BuildConfig(sources=(SourceConfig(path=source, format="jsonl"),))
        build_store(config, tmp_path / "KB", overwrite=True)
        return KnowledgeBase.open(tmp_path / "KB")

    return build


@pytest.fixture
def base(store_of) -> KnowledgeBase:
    return store_of(CONCEPTS)


class TableRanker:
    """Answers each part from a table: text -> (concept, score) pairs."""

    def __init__(self, table: dict[str, list[tuple[str, float]]], **options: Any) -> None:
        self.table, self.options = table, options
        self.ks: list[int] = []

    def rank(self, queries, k):
        self.ks.append(k)
        return [
            [
                [Candidate(c, c, c, score, **self.options) for c, score in self.table.get(p, [])][
                    :k
                ]
                for p in query.parts
            ]
            for query in queries
        ]


@pytest.fixture
def ranker() -> Callable[..., TableRanker]:
    """Make a ranker: ``ranker({"flu": [("D1", 1.0)]}, probability=0.5)``."""
    return TableRanker


class ExactRanker:
    """Finds the concepts that have exactly the name asked for."""

    def __init__(self, base: KnowledgeBase) -> None:
        self.base = base

    def rank(self, queries, k):
        return [
            [
                [Candidate(m.concept, m.concept_name, m.name, 1.0) for m in self.base.find(p)][:k]
                for p in query.parts
            ]
            for query in queries
        ]


@pytest.fixture
def exact(base) -> ExactRanker:
    return ExactRanker(base)
