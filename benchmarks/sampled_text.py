"""Random batches of tokens and mentions, and a random graph of entities."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from biograft.training.objectives.examples import (
    CONSISTENT,
    HEAD_OFFSET,
    IGNORED,
    SEGMENT_ENDS,
    SPECIAL,
    EntityGraph,
    TextExample,
)

N_TOKENS, N_SPECIAL, CLS, SEP, MASK = 30_522, 5, 1, 2, 4
N_NEIGHBOURS, N_RELATIONS, N_TYPES, GRAPH_DIM = 10, 56, 26, 200
"""Of the graph of SMedBERT."""


def sample_graph(rng: np.random.Generator, n_entities: int) -> EntityGraph:
    """Sample a graph with as many relations and types as SMedBERT's."""
    shape, square = (n_entities, N_NEIGHBOURS), (N_RELATIONS, GRAPH_DIM, GRAPH_DIM)
    return EntityGraph(
        neighbours=rng.integers(0, n_entities, shape),
        relations=rng.integers(0, N_RELATIONS, shape),
        signs=rng.choice([-1, 1], shape),
        types=rng.integers(0, N_TYPES, n_entities),
        counts=rng.zipf(1.5, n_entities).clip(max=1_000_000),
        relation_vectors=rng.standard_normal((N_RELATIONS, GRAPH_DIM), np.float32),
        projections=rng.standard_normal(square, np.float32) / GRAPH_DIM**0.5,
    )


def sample_batches(
    rng: np.random.Generator, n: int, batch: int, length: int, n_entities: int, mentions: int
) -> list[list[TextExample]]:
    """Sample batches of sequences with a number of mentions each, at least one."""
    return [
        [_sample_example(rng, length, n_entities, max(1, mentions)) for _ in range(batch)]
        for _ in range(n)
    ]


def _sample_example(rng: np.random.Generator, length: int, n_entities: int, n: int) -> TextExample:
    """Sample tokens, words of one or two tokens, and disjoint mentions of one to four."""
    tokens = rng.integers(N_SPECIAL, N_TOKENS, length)
    tokens[[0, -1]] = CLS, SEP
    words = np.cumsum(rng.random(length) < 0.7, dtype=np.int64)
    words[[0, -1]] = SPECIAL
    first = np.sort(rng.choice(np.arange(1, length - 5, 5), n, replace=False))
    last = first + rng.integers(0, 4, n)
    rows = rng.integers(0, n_entities, n)
    mentions = np.column_stack([first, last, rows])
    ends = np.full(length, IGNORED)
    for begin, end in mentions[last > first, :2]:
        ends[begin : end + 1] = 0
        ends[[(begin + end) // 2, end]] = 1
    heads = np.where(last > first, (first + last) // 2 + 1 - first, IGNORED)
    consistent = np.where(rng.random(n) < 0.5, rng.integers(0, 2, n), IGNORED)
    return TextExample(
        tokens,
        np.zeros_like(tokens),
        words,
        mentions,
        token_labels={SEGMENT_ENDS: ends},
        mention_labels={HEAD_OFFSET: heads, CONSISTENT: consistent},
    )


def as_segment_pair(example: TextExample) -> TextExample:
    """End a first segment near the middle, at a multiple of five, where no mention is."""
    end = len(example.tokens) // 10 * 5
    tokens, words = example.tokens.copy(), example.words.copy()
    tokens[end], words[end] = SEP, SPECIAL
    words[end + 1 : -1] += 1  # no word is in both segments
    segments = (np.arange(len(tokens)) > end).astype(np.int64)
    return replace(example, tokens=tokens, words=words, segments=segments)
