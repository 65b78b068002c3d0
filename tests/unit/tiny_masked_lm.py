"""A masked language model small enough for a test, with weights large enough for clear scores."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import torch
from tiny_models import tiny_tokenizer
from tokenizers import decoders
from transformers import BertConfig, BertForMaskedLM


def tiny_masked_lm_folder(
    path: Path, texts: Iterable[str], *, seed: int = 0, positions: int = 40
) -> Path:
    """Write a random BERT with its token head as a transformers folder."""
    tokenizer = tiny_tokenizer(texts)
    tokenizer.backend_tokenizer.decoder = decoders.WordPiece()
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        model = BertForMaskedLM(
            BertConfig(
                vocab_size=len(tokenizer),
                hidden_size=16,
                num_hidden_layers=2,
                num_attention_heads=2,
                intermediate_size=32,
                max_position_embeddings=positions,
                initializer_range=0.4,
            )
        )
        torch.nn.init.normal_(model.cls.predictions.bias)
    model.save_pretrained(path)
    tokenizer.save_pretrained(path)
    return path
