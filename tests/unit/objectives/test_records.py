"""Examples put together: padded, mentions in one list, nothing of one in another."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from biograft.objectives.examples import IGNORED, TextExample, collate


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


def test_mentions_are_fixed_beside_what_is_fixed_already():
    given = example(6, [(1, 2, 7), (4, 4, 5)])
    assert given.fixed is None
    assert not given.fixed_with([]).any()
    first = replace(given, fixed=given.fixed_with([0]))
    assert first.fixed.tolist() == [False, True, True, False, False, False]
    assert first.fixed_with(row for row in [1]).tolist() == [False, True, True, False, True, False]
    assert first.fixed.sum() == 2
