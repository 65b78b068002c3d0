"""Small stores for the tests of generation, some of whose names several concepts share."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from biograft.kb import BuildConfig, KnowledgeBase, build_store
from biograft.kb.sources import SourceConfig

CONCEPTS: list[dict[str, Any]] = [
    {
        "id": "D1",
        "name": "Diabetes Mellitus, Type 2",
        "type": "disease",
        "names": {"en": ["type 2 diabetes", "T2DM"], "zh": ["2型糖尿病"]},
    },
    {
        "id": "D2",
        "name": "Breast Neoplasms",
        "names": ["breast cancer", "Breast-Cancer"],
        "type": "disease",
    },
    {"id": "D3", "name": "Ovarian Neoplasms", "names": ["ovarian cancer"], "type": "disease"},
    {
        "id": "D4",
        "name": "Myocardial Infarction",
        "names": ["heart attack", "MI"],
        "type": "disease",
    },
    {"id": "D5", "name": "Metformin", "names": {"zh": ["二甲双胍"]}, "type": "drug"},
    {"id": "D6", "name": "Cold", "names": ["common cold", "coryza"], "type": "disease"},
    {"id": "D7", "name": "Cold Temperature", "names": ["cold"], "type": "finding"},
    {"id": "D8", "name": "Mitral Insufficiency", "names": ["MI"], "type": "finding"},
]
OTHERS = [
    {"id": "X1", "name": "Influenza", "names": ["flu"]},
    {"id": "X2", "name": "Headache", "names": ["cephalgia", "head pain"]},
]


@dataclass(frozen=True)
class Query:
    """The query of a mention, as in an evaluation."""

    parts: tuple[str, ...]
    gold: frozenset[str] = frozenset()
    needed: tuple[frozenset[str], ...] = field(default=())
    document: str = ""
    context: str = ""
    start: int | None = None
    end: int | None = None

    def __post_init__(self) -> None:
        if self.gold and not self.needed:
            object.__setattr__(self, "needed", (self.gold,))


def query_in(context: str, mention: str, *gold: str, document: str = "") -> Query:
    """The query of the first occurrence of a mention in a text."""
    start = context.index(mention)
    span = {"context": context, "start": start, "end": start + len(mention)}
    return Query((mention,), frozenset(gold), document=document or context, **span)


def store_in(folder: Path, concepts: list[dict[str, Any]], name: str = "kb") -> KnowledgeBase:
    """Build a store of some concepts."""
    folder.mkdir(parents=True, exist_ok=True)
    source = folder / "kb.jsonl"
    lines = (json.dumps(concept, ensure_ascii=False) for concept in concepts)
    source.write_text("\n".join(lines), encoding="utf-8")
    build_store(BuildConfig(sources=(SourceConfig(path=source),)), folder / name)
    return KnowledgeBase.open(folder / name)
