"""A store in which names have two meanings, and documents that tell which one is meant."""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest

from biograft.kb import KnowledgeBase
from biograft.linking import (
    FusedSearch,
    LabelledMention,
    LexicalIndex,
    RankerConfig,
)
from biograft.training.linkers import grow_store

CONCEPTS: list[dict[str, Any]] = [
    # "ms" and "mi" name two concepts each, of which the second is the one that is meant
    {"id": "STENOSIS", "name": "mitral stenosis", "names": ["ms"]},
    {"id": "SCLEROSIS", "name": "multiple sclerosis", "names": ["ms"]},
    {"id": "INSUFFICIENCY", "name": "mitral insufficiency", "names": ["mi"]},
    {"id": "INFARCTION", "name": "myocardial infarction", "names": ["mi", "heart attack"]},
    {"id": "COLD", "name": "common cold", "names": ["cold", "coryza"]},
    {"id": "CHILL", "name": "cold sensation", "names": ["feeling cold", "cold"]},
    {
        "id": "RENAL",
        "name": "renal failure",
        "names": ["kidney failure"],
        "ids": [{"id": "ALT:1", "kind": "alternate"}],
    },
]
MEANT = {
    "ms": "SCLEROSIS",
    "mi": "INFARCTION",
    "cold": "COLD",
    "kidneys failing": "RENAL",
    "multiple sclerosis": "SCLEROSIS",
    "mitral stenosis": "STENOSIS",
    "heart attack": "INFARCTION",
}


class Ward(NamedTuple):
    """Everything that training needs."""

    base: KnowledgeBase
    kb: KnowledgeBase
    search: FusedSearch
    mentions: list[LabelledMention]


@pytest.fixture
def ward(store_of, tmp_path) -> Ward:
    base = store_of(CONCEPTS)
    mentions = [
        LabelledMention(text, frozenset({concept}), f"doc {n}")
        for n in range(6)
        for text, concept in MEANT.items()
    ]
    kb = grow_store(base, mentions, tmp_path / "grown")
    return Ward(base, kb, FusedSearch([LexicalIndex.build(kb)]), mentions)


@pytest.fixture
def config() -> RankerConfig:
    return RankerConfig(n_names=10, folds=3, epochs=30, batch_size=16, learning_rate=2e-2)
