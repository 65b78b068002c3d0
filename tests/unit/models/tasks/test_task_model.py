"""Training batches: all items once an epoch, in the order of a seed, of similar length."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain

import numpy as np
import pytest

from biograft.models.tasks import LengthBatches


@dataclass(frozen=True)
class Item:
    tokens: tuple[int, ...]
    positions: tuple[int, ...] = (0,)


@pytest.fixture
def items():
    lengths = np.random.default_rng(0).integers(1, 60, 500)
    return [Item((number,) * int(length)) for number, length in enumerate(lengths)]


def numbers(batches):
    return [[item.tokens[0] for item in batch] for batch in batches]


def test_an_epoch_has_each_item_once_and_another_order_than_the_next(items):
    source = LengthBatches(items, 16, seed=3)
    first, second = (numbers(source.batches(epoch)) for epoch in (0, 1))
    assert len(first) == len(source) == 32
    assert sorted(chain(*first)) == sorted(chain(*second)) == list(range(500))
    assert first != second
    assert first == numbers(LengthBatches(items, 16, seed=3).batches(0))


def test_batches_can_be_taken_up_anywhere(items):
    source = LengthBatches(items, 16, seed=3)
    assert numbers(source.batches(1, 7)) == numbers(source.batches(1))[7:]


@pytest.mark.parametrize("n", [500, 481])
def test_processes_take_their_parts_of_the_same_batches(items, n):
    """One item of 481 is left over."""
    whole = numbers(LengthBatches(items[:n], 16, seed=3).batches(0))
    parts = [
        numbers(LengthBatches(items[:n], 8, seed=3, rank=rank, world=2).batches(0))
        for rank in (0, 1)
    ]
    together = [sorted(a + b) for a, b in zip(*parts, strict=True)]
    if n == 500:
        assert together == [sorted(batch) for batch in whole]
    else:
        assert [len(batch) for batch in together] == [16] * 30
    assert [len(a) for a in parts[0]] == [len(b) for b in parts[1]]
