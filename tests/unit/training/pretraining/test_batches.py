"""Batches of every stream: each example once an epoch, shared by processes, resumed anywhere."""

from __future__ import annotations

import numpy as np
import pytest
from annotated_texts import TEXTS

from biograft.errors import ConfigError
from biograft.training.batches import EpochOrder, OrderedBatches, Shard
from biograft.training.objectives import OBJECTIVES, NameBatches, NameExample, Setting
from biograft.training.pretraining import (
    AnnotatedTextConfig,
    SynonymPairs,
    SynonymPairsConfig,
    TextSequences,
    open_packed,
)


def ordered(made, size, lengths=None, bucket=0, seed=4, rank=0, world=1, indices=None):
    rows = len(made) if indices is None else indices
    order = EpochOrder(rows, size, seed, Shard(rank, world), lengths=lengths, bucket_batches=bucket)
    return OrderedBatches(order, made.batch)


class Numbered:
    """Examples of uneven length that hold their number; counts the examples built."""

    n_made = 0

    def __len__(self):
        return 53

    def example(self, epoch, number):
        self.n_made += 1
        return NameExample(f"{epoch}:{number}", "x" * (7 * number % 13), "")


@pytest.fixture(params=["names", "pairs", "text"])
def make(request, store, shards, tokenizer):
    """Make batches of a stream: ``make(8, bucket=3, seed=1)``, and what there is to batch."""
    if request.param == "names":

        def names(size, bucket=0, **options):
            made = NameBatches(Numbered(), list)
            return ordered(made, size, made.lengths, bucket, **options)

        return names, 53
    if request.param == "pairs":
        concepts = {f"C{k}": [f"{'x' * (7 * k % 13)} {k} {n}" for n in range(4)] for k in range(9)}
        stream = SynonymPairs(store(concepts), SynonymPairsConfig())

        def pairs(size, bucket=0, **options):
            return ordered(stream, size, stream.lengths(), bucket, **options)

        return pairs, 54
    packed = open_packed(
        AnnotatedTextConfig(shards=shards([*TEXTS] * 4), pack=False, max_length=64), tokenizer
    )
    setting = Setting.of(tokenizer, width=4)
    masked = OBJECTIVES.load("masked_tokens")().build(setting)
    sequences = TextSequences(packed, (masked,), seed=4)

    def text(size, bucket=0, indices=None, **options):
        rows = np.arange(len(packed)) if indices is None else indices
        return ordered(sequences, size, packed.lengths, bucket, indices=rows, **options)

    return text, 20


def rows(batch):
    """The examples of a batch, each as a text."""
    if hasattr(batch, "left"):
        return [str(row) for row in zip(batch.left, batch.right, batch.labels, strict=True)]
    if hasattr(batch, "tokens"):
        found = []
        for row, mask in enumerate(batch.mask == 1):
            labels = [values[row][mask].tolist() for values in batch.token_labels.values()]
            own = batch.mentions[:, 0] == row
            mentions = batch.mentions[own, 1:].tolist(), batch.entities[own].tolist()
            found.append(str((batch.tokens[row][mask].tolist(), labels, mentions)))
        return found
    return [each.source + each.prompt for each in batch]


def listed(batches):
    return [rows(batch) for batch in batches]


def flat(batches):
    return [row for batch in listed(batches) for row in batch]


@pytest.mark.parametrize("bucket", [0, 1, 3])
def test_every_example_once_an_epoch_in_an_order_of_its_own(make, bucket):
    make, n = make
    source = make(8, bucket)
    batches = listed(source.batches(0))
    assert [len(batch) for batch in batches] == [8] * (n // 8) + [n % 8]
    assert len(batches) == len(source)
    whole = sorted(flat(make(n).batches(0)))
    assert len(whole) == n
    assert sorted(flat(source.batches(0))) == whole
    assert flat(source.batches(0)) == flat(make(8, bucket).batches(0))
    assert flat(source.batches(0)) != flat(source.batches(1))
    assert flat(source.batches(0)) != flat(make(8, bucket, seed=5).batches(0))


@pytest.mark.parametrize("bucket", [0, 1, 3])
def test_batches_resume_at_any_position(make, bucket):
    make, _ = make
    whole = listed(make(4, bucket).batches(2))
    for position in range(len(whole) + 1):
        assert listed(make(4, bucket).batches(2, position)) == whole[position:]


@pytest.mark.parametrize("world", [2, 3])
def test_processes_share_the_examples_evenly(make, world):
    make, n = make
    parts = [make(3, rank=rank, world=world) for rank in range(world)]
    assert len({len(part) for part in parts}) == 1
    seen = [row for part in parts for row in flat(part.batches(0))]
    assert len(seen) == n // world * world
    one = flat(make(3 * world).batches(0))
    assert not set(seen) - set(one)
    with pytest.raises(ConfigError, match=r"are too few for \d+ processes"):
        make(3, world=n + 1)


def test_buckets_hold_examples_of_similar_length(make):
    make, _ = make

    def padding(bucket):
        widths = [[len(row) for row in batch] for batch in listed(make(4, bucket).batches(0))]
        return sum(max(batch) * len(batch) - sum(batch) for batch in widths)

    assert padding(6) < padding(0)


@pytest.mark.parametrize("make", ["names", "text"], indirect=True)
def test_indices_choose_the_examples(make):
    make, _ = make
    source = make(3, indices=np.array([3, 5, 7, 11]))
    assert len(source) == 2
    assert len(set(flat(source.batches(0)))) == 4


@pytest.mark.parametrize("world", [2, 3])
def test_batches_of_several_processes_are_those_of_one_with_larger_batches(make, world):
    """Guards: each process grouped its own examples by length, so that a step mixed lengths."""
    make, _ = make
    whole = listed(make(4 * world, 3).batches(1))
    parts = [listed(make(4, 3, rank=rank, world=world).batches(1)) for rank in range(world)]
    for one, step in zip(whole, zip(*parts, strict=True), strict=False):
        together = [row for rows in step for row in rows]
        assert together == one[: len(together)]
        assert len(one) - len(together) < world
    assert 0 <= len(whole) - len(parts[0]) <= 1  # fewer examples than processes are left out
