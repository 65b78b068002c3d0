"""Examples of text: batches, fixed tokens and visible entities."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from graph_examples import sequence, visible

from biograft.errors import ConfigError
from biograft.objectives.examples import (
    IGNORED,
    VISIBLE_ENTITIES,
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


def test_labels_of_sequences_stay_in_order():
    batch = collate([example(2, [], 1), example(2, [], 0)], 0)
    assert batch.labels["sequence"].tolist() == [1, 0]
    assert batch.mentions.shape == (0, 3)
    assert batch.entities.shape == (0,)


def test_fixed_tokens_accumulate():
    given = example(6, [(1, 2, 7), (4, 4, 5)])
    assert given.fixed is None
    assert not given.fixed_with([]).any()
    first = replace(given, fixed=given.fixed_with([0]))
    assert first.fixed.tolist() == [False, True, True, False, False, False]
    assert first.fixed_with(row for row in [1]).tolist() == [False, True, True, False, True, False]
    assert first.fixed.sum() == 2


MENTIONS = [(1, 2, 7), (3, 3, 0), (4, 6, 5), (8, 9, -1), (10, 11, 8)]
MASKED = (1, 2, 3, 4, 6, 8, 9)


def test_masked_mentions_are_visible_if_all_of_their_tokens_are_predicted():
    assert visible(set_visible_entities(sequence(MENTIONS, MASKED), "masked")) == [
        7,
        0,
        None,
        None,
        None,
    ]


def test_all_mentions_of_known_entities_are_visible():
    assert visible(set_visible_entities(sequence(MENTIONS, MASKED), "all")) == [7, 0, 5, None, 8]


@pytest.mark.parametrize("visibility", ["masked", "all"])
def test_labelling_visible_entities_is_idempotent(visibility):
    given = sequence(MENTIONS, MASKED)
    once = set_visible_entities(given, visibility)
    twice = set_visible_entities(once, visibility)
    assert VISIBLE_ENTITIES not in given.mention_labels
    assert np.array_equal(
        once.mention_labels[VISIBLE_ENTITIES], twice.mention_labels[VISIBLE_ENTITIES]
    )
    assert visible(set_visible_entities(sequence([]), visibility)) == []


def test_without_masking_only_all_entities_can_be_visible():
    bare = replace(sequence(MENTIONS), token_labels={})
    assert visible(set_visible_entities(bare, "all")) == [7, 0, 5, None, 8]
    with pytest.raises(ConfigError, match=r"found none; add objective\.masked_tokens, or set"):
        set_visible_entities(bare, "masked")
    with pytest.raises(ConfigError, match="entity_visibility: expected one of masked, all, found"):
        set_visible_entities(bare, "maskd")
