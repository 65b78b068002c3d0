"""Batches of packed text: order, ranks, resume, lengths, random next segments."""

from __future__ import annotations

from itertools import zip_longest

import numpy as np
import pytest
from annotated_texts import TEXTS

from biograft.training.batches import EpochOrder, OrderedBatches, Shard
from biograft.training.objectives import OBJECTIVES, SPECIAL, Setting
from biograft.training.pretraining import AnnotatedTextConfig, TextSequences, open_packed


@pytest.fixture
def packed(shards, tokenizer):
    """Sequences of one document each, enough for some batches."""
    return open_packed(
        AnnotatedTextConfig(shards=shards([*TEXTS] * 4), pack=False, max_length=64), tokenizer
    )


@pytest.fixture
def pairs(shards, tokenizer):
    """The same in two segments."""
    config = AnnotatedTextConfig(
        shards=shards([*TEXTS] * 2), pack=False, two_segments=True, max_length=64
    )
    return open_packed(config, tokenizer)


@pytest.fixture
def objectives(tokenizer):
    """The objectives of KeBioLM."""
    setting = Setting.of(tokenizer, width=4)
    names = ("masked_tokens", "entity_detection", "entity_linking")
    return tuple(OBJECTIVES.load(name)().build(setting) for name in names)


def second_segment(example):
    """The tokens of the second segment."""
    return example.tokens[example.segments == 1].tolist()


def rows(batch):
    """The sequences of a batch without padding, as plain lists."""
    found = []
    for row in range(len(batch)):
        held = batch.mask[row] == 1
        mentions = batch.mentions[batch.mentions[:, 0] == row, 1:]
        labels = [values[row][held].tolist() for values in batch.token_labels.values()]
        entities = batch.entities[batch.mentions[:, 0] == row]
        found.append(
            (
                batch.tokens[row][held].tolist(),
                mentions.tolist(),
                entities.tolist(),
                labels,
                [int(values[row]) for values in batch.labels.values()],
            )
        )
    return found


@pytest.mark.parametrize("n", [20, 13, 9])
@pytest.mark.parametrize("world", [2, 3])
def test_ranks_together_read_the_batches_of_one_process(packed, objectives, n, world):
    indices = np.arange(n)
    sequences = TextSequences(packed, objectives)
    whole = EpochOrder(indices, 2 * world, 33)
    one = list(OrderedBatches(whole, sequences.batch).batches(1))
    ranks = [
        OrderedBatches(EpochOrder(indices, 2, 33, Shard(rank, world)), sequences.batch)
        for rank in range(world)
    ]
    assert len({len(source) for source in ranks}) == 1
    updates = list(zip_longest(*[source.batches(1) for source in ranks]))
    assert len(updates) == len(ranks[0])
    for alone, together in zip(one, updates, strict=False):
        seen = [row for batch in together for row in rows(batch)]
        assert seen == rows(alone)[: len(seen)]
        assert len(rows(alone)) - len(seen) < world
    assert sum(len(batch) for update in updates for batch in update) == n - n % world


def test_half_of_the_next_segments_are_random(pairs):
    source = TextSequences(pairs, random_next_probability=0.5)
    follows = []
    for epoch in range(40):
        for number in range(len(pairs)):
            made, own = source.example(number, epoch), pairs.example(number)
            second = int(np.argmax(own.segments))
            assert made.tokens[:second].tolist() == own.tokens[:second].tolist()
            same = made.tokens.tolist() == own.tokens.tolist()
            follows.append(made.labels["follows"])
            if follows[-1]:
                assert same
                assert made.mentions.tolist() == own.mentions.tolist()
    assert np.mean(follows) == pytest.approx(0.5, abs=0.1)
    assert "follows" not in TextSequences(pairs).example(0, 0).labels


def test_random_next_segments_come_from_the_same_indices(pairs):
    """Guard against held-out sequences in training as next segments of others."""
    indices = np.array([0, 1])
    source = TextSequences(pairs, random_next_probability=1.0, indices=indices)
    starts = {str(second_segment(pairs.example(number))[:3]) for number in (0, 1)}
    assert len({str(second_segment(pairs.example(n))[:3]) for n in range(len(pairs))}) > len(starts)
    made = [source.example(int(number), epoch) for epoch in range(20) for number in indices]
    assert {example.labels["follows"] for example in made} == {0}
    assert {str(second_segment(example)[:3]) for example in made} == starts


@pytest.mark.parametrize("max_length", [64, 30, 26])
def test_a_random_next_segment_keeps_its_mentions_and_loses_whole_words(
    shards, tokenizer, max_length
):
    config = AnnotatedTextConfig(
        shards=shards(TEXTS[:2]), pack=False, two_segments=True, max_length=max_length
    )
    pairs = open_packed(config, tokenizer)
    for first in range(len(pairs)):
        for epoch in range(8):
            own = pairs.example(first)
            source = TextSequences(pairs, random_next_probability=1.0)
            made = source.example(first, epoch)
            if made.labels["follows"]:  # no other document was found
                continue
            second = int(np.argmax(made.segments))
            taken = made.tokens[second:-1].tolist()
            (theirs, start), *_ = [
                (pairs.example(n), int(np.argmax(pairs.example(n).segments)))
                for n in range(len(pairs))
                if second_segment(pairs.example(n))[: len(taken)] == taken
            ]
            assert len(made.tokens) <= max_length
            assert made.tokens[-1] == tokenizer.sep_token_id
            end = start + len(taken)
            if end < len(theirs.tokens) - 1:
                one_word = theirs.words[end - 1] == theirs.words[start]  # longer than the room
                assert theirs.words[end] != theirs.words[end - 1] or one_word
            expected = [
                [a + second - start, b + second - start, row]
                for a, b, row in theirs.mentions.tolist()
                if start <= a and b < end
            ]
            kept = [m for m in own.mentions.tolist() if m[1] < second]
            assert made.mentions.tolist() == kept + expected
            ordinary = made.words[made.words != SPECIAL]
            assert set(np.diff(ordinary)) <= {0, 1}
            assert len(made.segments) == len(made.words) == len(made.tokens)
