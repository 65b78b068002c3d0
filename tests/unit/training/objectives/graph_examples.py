"""A small graph of entities, batches of mentions of them, and a reader of mentions."""

from __future__ import annotations

import numpy as np
import torch
from torch import nn

from biograft.training.objectives import (
    IGNORED,
    VISIBLE_ENTITIES,
    EntityGraph,
    EntityVisibility,
    Setting,
    TensorBatch,
    TextExample,
    TextStates,
    collate,
)

WIDTH, LENGTH = 6, 12


def random_graph(
    n_entities=20, dim=4, *, n_relations=3, max_neighbours=5, dim_r=3, dtype=np.float64
):
    """Entities 0 and 1 have no neighbour, 2 and 3 no type; others have 1 to ``max_neighbours``."""
    rng = np.random.default_rng(0)
    n_known = rng.integers(1, max_neighbours + 1, n_entities)
    n_known[:2] = 0
    padding = np.arange(max_neighbours) >= n_known[:, None]

    def padded(values, with_what):
        return np.where(padding, with_what, values)

    shape = (n_entities, max_neighbours)
    types = rng.integers(0, 3, n_entities)
    types[2:4] = -1
    return EntityGraph(
        neighbours=padded(rng.integers(0, n_entities, shape), -1),
        relations=padded(rng.integers(0, n_relations, shape), -1),
        signs=padded(rng.choice([-1, 1], shape), 0),
        types=types,
        counts=rng.integers(0, 9, n_entities),
        relation_vectors=rng.normal(size=(n_relations, dim_r)).astype(dtype),
        projections=rng.normal(size=(n_relations, dim, dim_r)).astype(dtype),
    )


def setting(graph=None, visibility="masked", **fields):
    return Setting(
        mask=4,
        n_tokens=60,
        special=(0, 1, 2, 3, 4),
        width=WIDTH,
        graph=graph,
        entity_visibility=visibility,
        **fields,
    )


def sequence(mentions, masked=(), tokens=None, n_tokens=LENGTH):
    """A sequence whose masked tokens were 30, 31, ...; mentions are (first, last, entity)."""
    labels = np.full(n_tokens, IGNORED)
    labels[list(masked)] = 30 + np.array(masked, np.int64)
    original = np.zeros(n_tokens, np.int64) + 10 if tokens is None else np.array(tokens)
    return TextExample(
        tokens=np.where(labels == IGNORED, original, 4),
        segments=np.zeros(n_tokens, np.int64),
        words=np.arange(n_tokens),
        mentions=np.array(mentions, np.int64).reshape(-1, 3),
        token_labels={"masked_tokens": labels},
    )


def batches(objective, examples):
    """Prepare and collate examples, with visible entities where the objective uses them."""
    rng = np.random.default_rng(0)
    if visibility := getattr(objective, "entity_visibility", None):
        graph = getattr(objective, "graph", None)
        transform = EntityVisibility(visibility, graph.neighbours if graph else None)
        examples = [transform.prepare(example, rng) for example in examples]
    text = collate([objective.prepare(example, rng) for example in examples], 0)
    return text, TensorBatch.of(text)


class Reader(nn.Module):
    """The mean of a mention's states, through a matrix and tanh; instead of a model's reader."""

    def __init__(self, dim=4, width=WIDTH, dtype=torch.float64):
        super().__init__()
        weight = torch.randn(width, dim, generator=torch.Generator().manual_seed(1))
        self.weight = nn.Parameter(weight.to(dtype))

    def forward(self, states, mentions):
        rows = [states[s, first : last + 1].mean(0) for s, first, last in mentions.tolist()]
        pooled = torch.stack(rows) if rows else states[0, :0]
        return (pooled @ self.weight).tanh()


def text_states(n_sequences, table=None, reader=None, length=LENGTH, seed=0):
    """Random states with gradients, with or without a table and a reader."""
    rng = torch.Generator().manual_seed(seed)
    final = torch.randn(n_sequences, length, WIDTH, dtype=torch.float64, generator=rng)
    return TextStates(
        final=final.requires_grad_(),
        token_scores=lambda some: some,
        table=table,
        read_mentions=reader,
    )


def random_table(n_entities=20, dim=4, trained=False):
    rng = torch.Generator().manual_seed(2)
    table = torch.randn(n_entities, dim, dtype=torch.float64, generator=rng)
    return table.requires_grad_(trained)


def visible(text):
    """The visible entity of each mention of a batch or an example, or None."""
    return [None if row == IGNORED else int(row) for row in text.mention_labels[VISIBLE_ENTITIES]]
