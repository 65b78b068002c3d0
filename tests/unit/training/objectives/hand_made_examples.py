"""Hand-made sequences with long and replaced mentions, and the states of a model."""

from __future__ import annotations

import math

import numpy as np
import torch

from biograft.training.objectives import (
    CONSISTENT,
    HEAD_OFFSET,
    IGNORED,
    SEGMENT_ENDS,
    Setting,
    TextExample,
    TextStates,
)

CLS, SEP, MASK, N_TOKENS, WIDTH = 2, 3, 4, 60, 6
SETTING = Setting(mask=MASK, n_tokens=N_TOKENS, special=(0, 1, 2, 3, 4), width=WIDTH)


def example(n_words, mentions=(), fixed=None):
    """``[CLS] 10 11 ... [SEP]``; mentions are (first, last, start of the head, consistent).

    None means that a mention is short, or not replaced. Every second token of a long one ends a
    segment, and the last one.
    """
    tokens = np.array([CLS, *range(10, 10 + n_words), SEP])
    ends = np.full(len(tokens), IGNORED)
    for first, last, start, _ in mentions:
        if start is not None:
            ends[first : last + 1] = np.arange(last + 1 - first) % 2
            ends[last] = 1
    columns = list(zip(*mentions, strict=True)) or [[]] * 4
    starts, consistent = (
        np.array([IGNORED if value is None else value for value in column], np.int64)
        for column in columns[2:]
    )
    offsets = np.where(starts == IGNORED, IGNORED, starts - np.array(columns[0], np.int64))
    return TextExample(
        tokens=tokens,
        segments=np.zeros_like(tokens),
        words=np.array([-1, *range(n_words), -1]),
        mentions=np.array([(m[0], m[1], -1) for m in mentions], np.int64).reshape(-1, 3),
        token_labels={SEGMENT_ENDS: ends},
        mention_labels={HEAD_OFFSET: offsets, CONSISTENT: consistent},
        fixed=fixed,
    )


def unlabelled():
    """A sequence of a stream without labels."""
    tokens = np.array([CLS, 10, 11, SEP])
    return TextExample(
        tokens, np.zeros_like(tokens), np.array([-1, 0, 1, -1]), np.zeros((0, 3), np.int64)
    )


def states(final, embeddings=None):
    return TextStates(final=final, token_scores=lambda some: some, embeddings=embeddings)


def random_states(n_sequences, length, seed=0):
    """Random states and input embeddings; the embeddings depend on the number of states."""
    rng = torch.Generator().manual_seed(seed)
    final = torch.randn(n_sequences, length, WIDTH, dtype=torch.float64, generator=rng)
    vectors = torch.randn(N_TOKENS, WIDTH, dtype=torch.float64, generator=rng)
    return states(final.requires_grad_(), vectors.requires_grad_())


def times(rows, given):
    """A matrix, as lists of its rows, by a vector."""
    return [sum(w * x for w, x in zip(row, given, strict=True)) for row in rows]


def layer(rows, given):
    """LN(GELU(W x)) in plain loops."""
    inner = [x * 0.5 * (1 + math.erf(x / math.sqrt(2))) for x in times(rows, given)]
    mean = sum(inner) / len(inner)
    deviation = math.sqrt(sum((x - mean) ** 2 for x in inner) / len(inner) + 1e-12)
    return [(x - mean) / deviation for x in inner]
