"""Batches of name examples: one pass an epoch, ranks, resume, lengths."""

from __future__ import annotations

import numpy as np
import pytest

from biograft.errors import ConfigError
from biograft.objectives import NameBatches, NameExample


class Numbered:
    """Examples of uneven length that hold their index; counts the examples built."""

    def __init__(self, n):
        self.n, self.n_made = n, 0

    def __len__(self):
        return self.n

    def example(self, epoch, number):
        self.n_made += 1
        return NameExample(f"{epoch}:{number}", "x" * (7 * number % 13), "")


def numbers(batches):
    return [[int(each.source.partition(":")[2]) for each in batch] for batch in batches]


def flat(lists):
    return [each for some in lists for each in some]


@pytest.mark.parametrize("bucket", [0, 1, 3, 100])
def test_every_example_once_an_epoch(bucket):
    source = NameBatches(Numbered(53), 8, seed=4, bucket_batches=bucket)
    for epoch in range(3):
        batches = list(source.batches(epoch))
        assert [len(batch) for batch in batches] == [8] * 6 + [5]
        assert len(batches) == len(source) == 7
        assert all(each.source.startswith(f"{epoch}:") for batch in batches for each in batch)
        assert sorted(flat(numbers(batches))) == list(range(53))


@pytest.mark.parametrize("bucket", [0, 1, 3])
def test_batches_resume_at_any_position(bucket):
    source = NameBatches(Numbered(53), 8, seed=4, bucket_batches=bucket)
    whole = list(source.batches(2))
    for position in range(len(source) + 1):
        again = NameBatches(Numbered(53), 8, seed=4, bucket_batches=bucket)
        assert list(again.batches(2, position)) == whole[position:]


def test_only_requested_examples_are_built():
    examples = Numbered(1000)
    next(NameBatches(examples, 8, seed=4).batches(0, 100))
    assert examples.n_made == 8


def test_epochs_and_seeds_have_their_own_order():
    first = numbers(NameBatches(Numbered(53), 8, seed=4).batches(0))
    assert first != numbers(NameBatches(Numbered(53), 8, seed=4).batches(1))
    assert first != numbers(NameBatches(Numbered(53), 8, seed=5).batches(0))


@pytest.mark.parametrize("world", [2, 4, 5])
def test_ranks_share_the_examples(world):
    parts = [
        numbers(NameBatches(Numbered(53), 8, seed=4, rank=rank, world=world).batches(1))
        for rank in range(world)
    ]
    assert {len(part) for part in parts} == {len(parts[0])}
    together = numbers(NameBatches(Numbered(53), 8 * world, seed=4).batches(1))
    for step, batches in enumerate(zip(*parts, strict=True)):
        seen = sorted(flat(batches))
        assert len(seen) == len(set(seen))
        assert set(seen) <= set(together[step])
    assert sum(map(len, flat(parts))) == 53 // world * world


def test_batches_of_similar_length():
    lengths = {}

    def by_prompt(examples):
        return [len(each.prompt) for each in examples]

    for bucket in (0, 100):
        source = NameBatches(
            Numbered(160), 8, seed=4, bucket_batches=bucket, lengths=by_prompt if bucket else None
        )
        lengths[bucket] = [max(map(len, (e.prompt for e in b))) for b in source.batches(0)]
    assert sum(lengths[100]) < 0.7 * sum(lengths[0])
    assert lengths[100] != sorted(lengths[100])


def test_indices_choose_the_examples():
    chosen = np.array([3, 5, 7, 11])
    source = NameBatches(Numbered(53), 3, seed=4, indices=chosen)
    assert sorted(flat(numbers(source.batches(0)))) == chosen.tolist()
    with pytest.raises(ConfigError, match="4 examples are too few for 5 processes"):
        NameBatches(Numbered(53), 3, seed=4, indices=chosen, world=5)
