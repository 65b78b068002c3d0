"""Annotated text made on the spot, and a tokenizer for it; makes this folder importable."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from annotated_texts import TEXTS, annotate, write_shards
from tiny_models import tiny_tokenizer


@pytest.fixture
def shards(tmp_path: Path) -> Callable[..., Path]:
    """Write annotated documents, or texts in which names are found."""

    def write(documents: list[Any] = TEXTS, name: str = "shards") -> Path:
        made = [annotate(each) if isinstance(each, str) else each for each in documents]
        return write_shards(tmp_path / name, made)

    return write


@pytest.fixture(scope="session")
def tokenizer() -> Any:
    """A fast WordPiece tokenizer that knows half of the words; the others fall into letters."""
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
