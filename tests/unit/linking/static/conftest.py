"""Static encoders small enough for a test."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from biograft.linking import StaticEncoder, StaticWeights, WordPieceTokenizer, quantise
from biograft.linking.static import POOLING
from biograft.models import EncoderSettings

TOKENS = ("[UNK]", *"abcdefghijklmnopqrstuvwxyz心脏病", "heart", "attack", "type", "2")
WORDS = ("heartattack", "diabetes")


@pytest.fixture
def random_encoder() -> Callable[..., StaticEncoder]:
    """Make an encoder with random weights: ``random_encoder(width=8)``."""

    def make(*, width: int = 8, dim: int = 12, hidden: int = 5, seed: int = 0) -> StaticEncoder:
        letters = [f"##{token}" for token in TOKENS[1:] if len(token) == 1]
        tokenizer = WordPieceTokenizer((*TOKENS, *letters), WORDS)
        rng = np.random.default_rng(seed)

        def array(*shape: int) -> np.ndarray:
            return rng.normal(size=shape).astype(np.float32)

        table, scales = quantise(array(len(tokenizer), width))
        weights = StaticWeights(
            table=table,
            scales=scales,
            importance=array(len(tokenizer)),
            projection=array(width, dim),
            expand=array(dim, hidden),
            bias=array(hidden),
            contract=array(hidden, dim),
        )
        settings = EncoderSettings(pooling=POOLING, max_length=16, lower=True)
        return StaticEncoder(tokenizer, weights, settings, "random")

    return make
