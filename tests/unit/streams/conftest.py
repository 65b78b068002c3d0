"""A store of named concepts: ``store({"A": ["one", "two"]}, relations=[("A", "is-a", "B")])``."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pytest

from biograft.kb import BuildConfig, KnowledgeBase, build_store
from biograft.sources import SourceConfig


@pytest.fixture
def store(tmp_path: Path) -> Callable[..., KnowledgeBase]:
    """Build a store of concepts and their names, each a text or (text, language)."""

    def build(
        concepts: Mapping[str, Sequence[str | tuple[str, str]]],
        relations: Sequence[tuple[str, str, str]] = (),
    ) -> KnowledgeBase:
        lines = []
        for concept, names in concepts.items():
            pairs = [(name, "en") if isinstance(name, str) else name for name in names]
            lines.append({
                "id": concept,
                "names": [{"text": text, "language": language} for text, language in pairs],
                "relations": [{"relation": r, "tail": tail} for head, r, tail in relations
                              if head == concept],
            })  # fmt: skip
        path = tmp_path / "concepts.jsonl"
        path.write_text("".join(f"{json.dumps(line)}\n" for line in lines), encoding="utf-8")
        config = BuildConfig(sources=(SourceConfig(path=path, format="jsonl"),))
        build_store(config, tmp_path / "kb")
        return KnowledgeBase.open(tmp_path / "kb")

    return build
