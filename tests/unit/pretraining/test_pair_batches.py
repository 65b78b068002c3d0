"""Batches: every pair once an epoch, a new order each, taken up exactly where it was left."""

from __future__ import annotations

import pytest

from biograft.errors import ConfigError
from biograft.pretraining.stream_configs import SynonymPairsConfig
from biograft.pretraining.synonym_pairs import PairBatches, SynonymPairs


@pytest.fixture
def pairs(store):
    names = {f"C{k}": ["x" * (1 + 7 * k % 13) + f" {k} {n}" for n in range(4)] for k in range(9)}
    kb = store(names)

    def of(**options):
        return SynonymPairs(kb, SynonymPairsConfig(**options))

    return of


def listed(batches):
    return [(b.left, b.right, b.labels.tolist()) for b in batches]


def flat(batches):
    return sorted(pair for b in batches for pair in zip(b.left, b.right, strict=True))


@pytest.mark.parametrize("bucket", [0, 3])
def test_every_pair_once_an_epoch(pairs, bucket):
    source = PairBatches(pairs(bucket_batches=bucket), 8)
    batches = list(source.batches(0))
    assert [len(batch) for batch in batches] == [8] * 6 + [6]
    assert len(source) == 7
    expected = pairs()
    assert flat(batches) == sorted(
        (expected.text(left), expected.text(right)) for left, right in expected.rows.tolist()
    )
    for batch in batches:
        for left, right, label in zip(batch.left, batch.right, batch.labels, strict=True):
            assert left.split()[1] == right.split()[1] == str(label)


@pytest.mark.parametrize("bucket", [0, 3])
def test_resuming_gives_the_batches_that_were_left(pairs, bucket):
    source = PairBatches(pairs(bucket_batches=bucket), 8, seed=4)
    whole = listed(source.batches(2))
    for position in range(len(source) + 1):
        again = PairBatches(pairs(bucket_batches=bucket), 8, seed=4)
        assert listed(again.batches(2, position)) == whole[position:]


def test_epochs_and_seeds_have_their_own_order(pairs):
    source = PairBatches(pairs(), 8, seed=4)
    assert listed(source.batches(0)) != listed(source.batches(1))
    assert listed(source.batches(0)) != listed(PairBatches(pairs(), 8, seed=5).batches(0))


@pytest.mark.parametrize("world", [2, 4, 5])
def test_processes_share_the_pairs_evenly(pairs, world):
    parts = [PairBatches(pairs(), 3, rank=rank, world=world) for rank in range(world)]
    assert len({len(part) for part in parts}) == 1
    read = [pair for part in parts for pair in flat(part.batches(0))]
    assert len(read) == len(set(read)) == 54 // world * world


def test_too_many_processes_are_refused(pairs):
    with pytest.raises(ConfigError, match="54 pairs are too few for 60 processes"):
        PairBatches(pairs(), 8, world=60)


def test_buckets_hold_names_of_like_length(pairs):
    def spread(bucket):
        batches = PairBatches(pairs(bucket_batches=bucket), 6, seed=1).batches(0)
        return sum(max(map(len, b.left)) - min(map(len, b.left)) for b in batches)

    assert spread(9) < spread(0) / 2
