"""A BERT of one narrow layer that learns one objective from examples made up as they are needed."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from transformers import BertConfig, BertForMaskedLM

from biograft.objectives import Setting, TextBatch, TextExample, collate
from biograft.pretraining import TextModel, TextTraining

CLS, SEP, MASK, N_TOKENS, WIDTH = 2, 3, 4, 50, 32


def learned_accuracy(
    name: str,
    config: object,
    make: Callable[[np.random.Generator], TextExample],
    *,
    steps: int,
    batch_size: int = 64,
) -> dict[str, float]:
    """Train on some examples; give the statistics of 256 whose sequences are not among them."""
    setting = Setting(mask=MASK, n_tokens=N_TOKENS, special=(0, 1, 2, 3, 4), width=WIDTH)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        lm = BertForMaskedLM(
            BertConfig(
                vocab_size=N_TOKENS,
                hidden_size=WIDTH,
                num_hidden_layers=1,
                num_attention_heads=2,
                intermediate_size=2 * WIDTH,
                max_position_embeddings=32,
                hidden_dropout_prob=0.0,
                attention_probs_dropout_prob=0.0,
                initializer_range=0.3,
            )
        )
    objective = config.build(setting)
    reading = TextTraining(TextModel(lm, {name: objective}))
    optimiser = torch.optim.Adam(reading.model.parameters(), lr=1e-2)

    def batch(rng: np.random.Generator, n: int, *, held_out: bool) -> TextBatch:
        some: list[TextExample] = []
        while len(some) < n:
            example = make(rng)
            if (example.tokens.sum() % 5 == 0) == held_out:
                some.append(objective.prepare(example, rng))
        return collate(some, 0)

    rng = np.random.default_rng(1)
    for _ in range(steps):
        optimiser.zero_grad()
        loss, _ = reading.loss(reading.model, batch(rng, batch_size, held_out=False), {})
        loss.backward()
        optimiser.step()
    with torch.no_grad():
        return reading.evaluate([batch(np.random.default_rng(2), 256, held_out=True)], "fp32")
