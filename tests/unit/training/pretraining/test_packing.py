"""Packing: split positions on hand-made documents, and properties of packed sequences."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from biograft.training.pretraining import AnnotatedTextConfig, Packer, TokenisedDocument


def document(words, mentions=(), sentences=(), index=0):
    """Return a document with the tokens 100, 101, ..."""
    return TokenisedDocument(
        index=index,
        tokens=100 + np.arange(len(words)),
        words=np.array(words),
        mentions=np.array([(*span, 0) for span in mentions], np.int64).reshape(-1, 3),
        scores=np.ones(len(mentions)),
        sentences=np.array(sentences, np.int64),
    )


EACH = list(range(20))
"""Twenty words of one token."""


def packer(**options):
    return Packer(AnnotatedTextConfig(shards="x", **options), 1, 2)


@pytest.mark.parametrize(
    ("made", "room", "end"),
    [
        (document(EACH[:8]), 10, 8),  # the whole
        (document(EACH, sentences=[6, 9]), 10, 9),  # between sentences
        (document(EACH, sentences=[5]), 10, 5),  # half full
        (document(EACH, sentences=[4]), 10, 10),  # a sentence's end would leave too much empty
        (document([0] * 4 + [1] * 4 + [2]), 6, 4),  # between words
        (document(EACH, mentions=[(8, 11)]), 10, 8),  # before a mention
        (document(EACH, mentions=[(8, 9)]), 10, 10),  # after a mention
        (document(EACH, mentions=[(10, 11)]), 10, 10),
        (document(EACH, mentions=[(0, 15)]), 10, 10),  # a mention longer than the room
        (document([0] * 20), 8, 8),  # a word longer than the room
    ],
)
def test_a_part_ends_at_the_best_position(made, room, end):
    first, *_ = packer(max_length=room + 2, pack=False).pack([made])
    assert len(first.tokens) - 2 == end


@pytest.mark.parametrize(
    ("made", "middle"),
    [
        (document(EACH, sentences=[2, 9, 15]), 9),
        (document(EACH), 10),
        (document(EACH, mentions=[(9, 13)]), 9),
        (document([0] * 20), None),
        (document([0]), None),
    ],
)
def test_two_segments_meet_at_the_position_nearest_the_middle(made, middle):
    halving = packer(max_length=30, pack=False, two_segments=True)
    seconds = [sequence.segments.argmax() for sequence in halving.pack([made])]
    assert seconds == [middle + 2] if middle else not seconds
    assert halving.counts.n_left_out_tokens == (0 if middle else len(made.tokens))


@pytest.mark.parametrize(("last", "spans"), [(9, [[1, 10]]), (10, []), (11, [])])
def test_a_mention_that_ends_in_the_next_sequence_is_cut(last, spans):
    """Its last token would be the separator."""
    made = document([0] * 12 + [1] * 4, mentions=[(0, last)])
    cutting = packer(max_length=12, pack=False)
    first, _ = cutting.pack([made])
    assert first.mentions[:, :2].tolist() == spans
    assert cutting.counts.n_cut == 1 - len(spans)


def test_of_mentions_with_equal_scores_the_first_stay():
    made = document(EACH, mentions=[(k, k) for k in range(0, 20, 2)])
    made.scores[[1, 8]] = 0.5, 2.0
    [sequence] = packer(max_length=30, max_mentions=4).pack([made])
    assert (sequence.mentions[:, 0] - 1).tolist() == [0, 4, 6, 16]


@st.composite
def documents(draw, index=0):
    words = np.cumsum(draw(st.lists(st.integers(0, 1), min_size=1, max_size=40)))
    positions = sorted(draw(st.sets(st.integers(0, len(words) - 1), max_size=8)))
    mentions = [(positions[k], positions[k + 1]) for k in range(0, len(positions) - 1, 2)]
    inside = {position for first, last in mentions for position in range(first + 1, last + 1)}
    sentences = draw(st.sets(st.integers(1, max(1, len(words) - 1)), max_size=4))
    kept = sorted(s for s in sentences if s not in inside and s < len(words))
    return document(words - words[0], mentions, kept, index)


@settings(deadline=None)
@given(st.lists(documents(), max_size=5), st.integers(8, 30), st.booleans())
def test_packing_keeps_every_token_and_counts_every_mention(made, max_length, pack):
    config = AnnotatedTextConfig(shards="x", max_length=max_length, pack=pack, max_mentions=3)
    packer = Packer(config, 1, 2)
    sequences = list(packer.pack(made))
    tokens = [t for s in sequences for t in s.tokens.tolist() if t not in (1, 2)]
    assert tokens == [t for each in made for t in each.tokens.tolist()]
    counts = packer.counts
    n_mentions = sum(len(each.mentions) for each in made)
    assert counts.n_mentions + counts.n_cut + counts.n_beyond == n_mentions
    assert counts.n_mentions == sum(len(s.mentions) for s in sequences)
    lengths = {(m[1] - m[0], int(each.tokens[m[0]])) for each in made for m in each.mentions}
    for sequence in sequences:
        assert len(sequence.tokens) <= max_length
        assert len(sequence.mentions) <= 3
        for first, last, _ in sequence.mentions:
            assert (last - first, int(sequence.tokens[first])) in lengths
            assert (np.diff(sequence.tokens[first : last + 1]) == 1).all()
