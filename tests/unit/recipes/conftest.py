"""A starter knowledge base, a tiny encoder of its words, and a recipe for both."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from tiny_models import tiny_encoder_folder

from biograft.annotation import AnnotationConfig
from biograft.annotation.running import Running, annotate_corpus
from biograft.kb import KnowledgeBase, build_starter
from biograft.recipes import Recipe


class Bench(NamedTuple):
    """Everything a run needs."""

    kb: KnowledgeBase
    encoder: Path
    recipe: Callable[..., Recipe]


@pytest.fixture(scope="session")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Bench:
    """Make it once: ``bench.recipe(steps=5)`` changes the training."""
    folder = tmp_path_factory.mktemp("bench")
    build_starter(folder / "kb")
    kb = KnowledgeBase.open(folder / "kb")
    texts = kb.table("names").column("text").to_pylist()
    encoder = tiny_encoder_folder(folder / "encoder", texts)

    def recipe(stream: dict[str, Any] | None = None, **training: Any) -> Recipe:
        values = {"steps": 4, "batch_size": 16, "precision": "fp32", "learning_rate": 1e-3}
        return Recipe.from_values(
            "tiny",
            {
                "encoder": {"name": str(encoder), "pooling": "mean", "max_length": 16},
                "stream": stream or {},
                "objective": {"synonym_alignment": {}},
                "training": {**values, **training},
            },
        )

    return Bench(kb, encoder, recipe)


@pytest.fixture(scope="session")
def shards(bench: Bench, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Sentences about concepts of the starter store, annotated."""
    folder = tmp_path_factory.mktemp("text")
    names = bench.kb.table("names").column("text").to_pylist()[:240]
    lines = [f"{names[n]} and {names[n + 1]} are not {names[n + 2]}" for n in range(0, 240, 3)]
    (folder / "text.txt").write_text("\n".join(lines), encoding="utf-8")
    config = AnnotationConfig(cleaning=None)
    annotate_corpus(
        bench.kb.folder, [folder / "text.txt"], folder / "corpus", config, Running(workers=1)
    )
    return folder / "corpus"
