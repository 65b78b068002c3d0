"""Which mentions the knowledge layer is told the entities of."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from graph_examples import sequence, told

from biograft.errors import ConfigError
from biograft.objectives.examples import VISIBLE_ENTITIES, show

MENTIONS = [(1, 2, 7), (3, 3, 0), (4, 6, 5), (8, 9, -1), (10, 11, 8)]
HIDDEN = (1, 2, 3, 4, 6, 8, 9)


def test_hidden_mentions_are_told_if_all_of_their_tokens_are_foretold():
    assert told(show(sequence(MENTIONS, HIDDEN), "hidden")) == [7, 0, None, None, None]


def test_all_mentions_of_known_entities_are_told():
    assert told(show(sequence(MENTIONS, HIDDEN), "all")) == [7, 0, 5, None, 8]


@pytest.mark.parametrize("which", ["hidden", "all"])
def test_telling_twice_is_telling_once_and_the_given_example_stays(which):
    given = sequence(MENTIONS, HIDDEN)
    once = show(given, which)
    twice = show(once, which)
    assert VISIBLE_ENTITIES not in given.mention_labels
    assert np.array_equal(once.mention_labels[VISIBLE_ENTITIES], twice.mention_labels[VISIBLE_ENTITIES])
    assert told(show(sequence([]), which)) == []


def test_without_hidden_tokens_only_all_can_be_told():
    bare = replace(sequence(MENTIONS), token_labels={})
    assert told(show(bare, "all")) == [7, 0, 5, None, 8]
    with pytest.raises(ConfigError, match=r"nothing hides any; add objective\.masked_tokens"):
        show(bare, "hidden")
    with pytest.raises(ConfigError, match="shown: expected one of hidden, all, found 'hiden'"):
        show(bare, "hiden")
