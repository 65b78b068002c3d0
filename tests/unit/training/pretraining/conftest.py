"""Annotated text made on the spot, and a tokenizer for it; makes this folder importable."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from annotated_texts import TEXTS, annotate, write_shards
from tiny_models import tiny_encoder_folder, tiny_tokenizer

from biograft.kb import BuildConfig, KnowledgeBase, build_store
from biograft.kb.sources import SourceConfig
from biograft.linking.annotation import (
    AnnotationConfig,
    ExecutionConfig,
    annotate as annotate_corpus,
)
from biograft.training.pretraining import PretrainingRecipe


@pytest.fixture
def shards(tmp_path: Path) -> Callable[..., Path]:
    """Write annotated documents, or texts in which names are found."""

    def write(documents: list[Any] = TEXTS, name: str = "shards") -> Path:
        made = [annotate(each) if isinstance(each, str) else each for each in documents]
        return write_shards(tmp_path / name, made)

    return write


@pytest.fixture(scope="session")
def tokenizer() -> Any:
    """A fast WordPiece tokenizer that knows half of the words; others are characters."""
    words = [word for text in TEXTS for word in text.split()]
    made = tiny_tokenizer(TEXTS)
    kept = made.get_vocab()
    for word in words[::2]:
        if len(word) > 2 and word.isascii():
            kept.pop(word.lower().strip(".!,"), None)
    return _with_vocabulary(made, kept)


def _with_vocabulary(tokenizer: Any, vocabulary: dict[str, int]) -> Any:
    from tokenizers import models
    from transformers import PreTrainedTokenizerFast

    backend = tokenizer.backend_tokenizer
    pieces = sorted(vocabulary, key=lambda piece: vocabulary[piece])
    backend.model = models.WordPiece(
        {piece: row for row, piece in enumerate(pieces)}, unk_token="[UNK]"
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=backend,
        pad_token="[PAD]",
        unk_token="[UNK]",
        cls_token="[CLS]",
        sep_token="[SEP]",
        mask_token="[MASK]",
    )


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
            lines.append(
                {
                    "id": concept,
                    "names": [{"text": text, "language": language} for text, language in pairs],
                    "relations": [
                        {"relation": r, "tail": tail}
                        for head, r, tail in relations
                        if head == concept
                    ],
                }
            )
        path = tmp_path / "concepts.jsonl"
        path.write_text("".join(f"{json.dumps(line)}\n" for line in lines), encoding="utf-8")
        config = BuildConfig(sources=(SourceConfig(path=path, format="jsonl"),))
        build_store(config, tmp_path / "kb")
        return KnowledgeBase.open(tmp_path / "kb")

    return build


class Bench(NamedTuple):
    """Everything a run needs."""

    kb: KnowledgeBase
    encoder: Path
    recipe: Callable[..., PretrainingRecipe]


@pytest.fixture(scope="session")
def bench(starter: Path, tmp_path_factory: pytest.TempPathFactory) -> Bench:
    """Make it once: ``bench.recipe(steps=5)`` changes the training."""
    folder = tmp_path_factory.mktemp("bench")
    kb = KnowledgeBase.open(starter)
    texts = kb.table("names").column("text").to_pylist()
    encoder = tiny_encoder_folder(folder / "encoder", texts)

    def recipe(stream: dict[str, Any] | None = None, **training: Any) -> PretrainingRecipe:
        values = {"steps": 4, "batch_size": 16, "precision": "fp32", "learning_rate": 1e-3}
        return PretrainingRecipe.from_values(
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
def starter_shards(bench: Bench, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Sentences about concepts of the starter store, annotated."""
    folder = tmp_path_factory.mktemp("text")
    names = bench.kb.table("names").column("text").to_pylist()[:240]
    lines = [f"{names[n]} and {names[n + 1]} are not {names[n + 2]}" for n in range(0, 240, 3)]
    (folder / "text.txt").write_text("\n".join(lines), encoding="utf-8")
    config = AnnotationConfig(cleaning=None)
    annotate_corpus(
        bench.kb.folder,
        [folder / "text.txt"],
        folder / "corpus",
        config,
        ExecutionConfig(workers=1),
    )
    return folder / "corpus"
