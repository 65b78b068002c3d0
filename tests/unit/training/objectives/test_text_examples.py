"""Examples of text: batches, fixed tokens and visible entities."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from graph_examples import sequence, visible

from biograft.errors import ConfigError
from biograft.training.objectives import (
    IGNORED,
    VISIBLE_ENTITIES,
    WITHHELD_NEIGHBOURS,
    TextExample,
    collate,
    set_visible_entities,
)


def example(n_tokens, mentions, sequence_label=0):
    return TextExample(
        tokens=np.arange(n_tokens) + 10,
        segments=np.arange(n_tokens) % 2,
        words=np.arange(n_tokens),
        mentions=np.array(mentions, np.int64).reshape(-1, 3),
        token_labels={"token": np.arange(n_tokens) + 100},
        mention_labels={"mention": np.arange(len(mentions))},
        labels={"sequence": sequence_label},
    )


def test_sequences_are_padded_and_mentions_listed():
    batch = collate(
        [example(2, [(0, 1, 7)]), example(4, []), example(3, [(0, 0, -1), (2, 2, 5)])], 9
    )
    assert len(batch) == 3
    assert batch.tokens.tolist() == [[10, 11, 9, 9], [10, 11, 12, 13], [10, 11, 12, 9]]
    assert batch.mask.tolist() == [[1, 1, 0, 0], [1, 1, 1, 1], [1, 1, 1, 0]]
    assert batch.segments.tolist() == [[0, 1, 0, 0], [0, 1, 0, 1], [0, 1, 0, 0]]
    assert batch.mentions.tolist() == [[0, 0, 1], [2, 0, 0], [2, 2, 2]]
    assert batch.entities.tolist() == [7, -1, 5]
    assert batch.token_labels["token"][0].tolist() == [100, 101, IGNORED, IGNORED]
    assert batch.mention_labels["mention"].tolist() == [0, 0, 1]


MENTIONS = [(1, 2, 7), (3, 3, 0), (4, 6, 5), (8, 9, -1), (10, 11, 8)]
MASKED = (1, 2, 3, 4, 6, 8, 9)


def label(example, visibility, neighbours=None, seed=0):
    return set_visible_entities(example, visibility, np.random.default_rng(seed), neighbours)


def test_masked_mentions_are_visible_if_all_of_their_tokens_are_predicted():
    labelled = label(sequence(MENTIONS, MASKED), "masked")
    assert visible(labelled) == [7, 0, None, None, None]


def many_mentions(rng, n_entities=400):
    """A sequence of one-token mentions, a seventh of them masked, some entities more than once."""
    entities = rng.integers(-1, n_entities, 300)
    masked = np.flatnonzero(rng.random(300) < 0.15)
    spans = [(k, k, entity) for k, entity in enumerate(entities.tolist())]
    return sequence(spans, masked, n_tokens=300), entities, np.isin(np.arange(300), masked)


def test_mixed_shows_masked_mentions_and_half_of_the_others():
    """Readable mentions had no entities in pre-training (1.4 %), and all had them in tasks."""
    rng = np.random.default_rng(5)
    n_readable = n_visible = 0
    for seed in range(20):
        given, entities, masked = many_mentions(rng)
        labels = label(given, "mixed", seed=seed).mention_labels[VISIBLE_ENTITIES]
        assert (labels[masked & (entities >= 0)] == entities[masked & (entities >= 0)]).all()
        assert (labels[entities < 0] == IGNORED).all()
        others = ~masked & ~np.isin(entities, [-1, *entities[masked]])
        assert set(labels[others] == entities[others]) == {True, False}
        n_readable, n_visible = n_readable + others.sum(), n_visible + (labels[others] >= 0).sum()
        for entity in set(entities.tolist()):  # all mentions of an entity, or none
            assert len(set((labels[entities == entity] >= 0).tolist())) == 1
    assert n_readable > 3000
    assert n_visible / n_readable == pytest.approx(0.5, abs=0.03)


def test_neighbours_that_are_predicted_are_withheld_from_all_mentions_of_the_entity():
    rng = np.random.default_rng(7)
    neighbours = np.sort(rng.integers(0, 6, (400, 8)), axis=1)  # many are joined by two relations
    neighbours[np.arange(8) >= rng.integers(0, 9, 400)[:, None]] = -1
    given, entities, _ = many_mentions(rng)
    labelled = label(given, "mixed", neighbours)
    seen = labelled.mention_labels[VISIBLE_ENTITIES] >= 0
    withheld = labelled.mention_labels[WITHHELD_NEIGHBOURS]
    assert withheld.shape == (300, 8)
    assert not withheld[~seen].any()
    assert not withheld[neighbours[entities] < 0].any()
    for entity in set(entities[seen].tolist()):
        rows = withheld[entities == entity]
        assert (rows == rows[0]).all()
        predicted = set(neighbours[entity][rows[0] == 1].tolist())
        assert not predicted & set(neighbours[entity][rows[0] == 0].tolist())
    exists = neighbours[entities[seen]] >= 0
    assert withheld[seen].sum() / exists.sum() == pytest.approx(0.5, abs=0.08)


@pytest.mark.parametrize("visibility", ["mixed", "masked", "all"])
def test_labelling_visible_entities_is_idempotent(visibility):
    given = sequence(MENTIONS, MASKED)
    once = label(given, visibility)
    twice = label(once, visibility)
    assert VISIBLE_ENTITIES not in given.mention_labels
    assert np.array_equal(
        once.mention_labels[VISIBLE_ENTITIES], twice.mention_labels[VISIBLE_ENTITIES]
    )
    assert visible(label(sequence([]), visibility)) == []


def test_without_masking_only_all_entities_can_be_visible():
    bare = replace(sequence(MENTIONS), token_labels={})
    assert visible(label(bare, "all")) == [7, 0, 5, None, 8]
    for visibility in ("masked", "mixed"):
        with pytest.raises(ConfigError, match=r"found none; add objective\.masked_tokens, or set"):
            label(bare, visibility)
    with pytest.raises(ConfigError, match="entity_visibility: expected one of mixed, masked, all"):
        label(bare, "maskd")
