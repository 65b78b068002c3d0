"""Vectors by skip-gram with negative sampling (word2vec), trained by gensim."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from biograft.errors import MissingExtraError
from biograft.probing.similarity.word_vectors import (
    LEAST_OFTEN,
    TrainingConfig,
    TrainingText,
    WordVectors,
)

EPOCHS, WINDOW, NEGATIVES = 5, 5, 5
_LONGEST = 10_000
"""Tokens of a line that gensim reads; it would drop the rest."""


def train_sgns(text: TrainingText, config: TrainingConfig) -> WordVectors:
    """Train vectors on text; on one core, so that the same seed gives the same."""
    try:
        from gensim.models import Word2Vec
    except ImportError as error:
        raise MissingExtraError("vectors", "training vectors by skip-gram") from error
    model = Word2Vec(
        _Lines(text),
        vector_size=config.dim,
        window=WINDOW,
        min_count=LEAST_OFTEN,
        sg=1,
        negative=NEGATIVES,
        epochs=config.epochs or EPOCHS,
        seed=config.seed,
        workers=1,
    )
    tokens = list(model.wv.index_to_key)
    return WordVectors(tokens, np.asarray(model.wv.vectors, np.float32))


class _Lines:
    """The lines of a text as tokens, as often as they are asked for."""

    def __init__(self, text: TrainingText) -> None:
        self.text = text

    def __iter__(self) -> Iterator[list[str]]:
        for line in self.text.lines():
            for start in range(0, len(line), _LONGEST):
                yield [self.text.tokens[k] for k in line[start : start + _LONGEST].tolist()]
