"""Batches: each lesson once an epoch, with its own candidates, to be taken up anywhere."""

from __future__ import annotations

import numpy as np
import pytest

from biograft.errors import ConfigError
from biograft.linking.finetuning.candidates import CandidateBatches, EpochOrder, Shard


def order(n_examples=8, batch_size=3, seed=1, rank=0, world=1):
    return EpochOrder(n_examples, batch_size, seed, Shard(rank, world))


def test_an_epoch_has_every_lesson_once_in_an_order_of_its_own():
    first = [places.tolist() for places in order().batches(0, 0)]
    assert [len(places) for places in first] == [3, 3, 2]
    assert len(order()) == 3
    assert sorted(place for places in first for place in places) == list(range(8))
    assert first == [places.tolist() for places in order().batches(0, 0)]
    assert first != [places.tolist() for places in order().batches(1, 0)]
    assert first != [places.tolist() for places in order(seed=2).batches(0, 0)]
    assert first[1:] == [places.tolist() for places in order().batches(0, 1)]


def test_processes_share_an_epoch():
    parts = [np.concatenate([*order(11, 2, 1, rank, 3).batches(4, 0)]) for rank in range(3)]
    assert [len(part) for part in parts] == [3, 3, 3]
    assert len(np.unique(np.concatenate(parts))) == 9
    with pytest.raises(ConfigError, match="mentions: 2 are too few for 3 processes"):
        order(2, 2, 1, 0, 3)


def test_a_batch_holds_what_its_mentions_need(clinic, tmp_path):
    finder = clinic.finder()
    source = CandidateBatches(finder, tmp_path / "c", order())
    candidates, names = finder.find(None), finder.lessons.names
    assert len(source) == 3
    batches = list(source.batches(0))
    for batch, rows in zip(batches, order().batches(0, 0), strict=True):
        assert batch.mentions == tuple(finder.lessons.lessons[row].text for row in rows)
        assert len(batch) == len(rows)
        assert len(set(batch.names)) == len(batch.names)
        for place, row in enumerate(rows):
            wanted = [names.text(int(t)) if t >= 0 else "" for t in candidates.texts[row]]
            found = [batch.names[p] if p >= 0 else "" for p in batch.places[place]]
            assert found == wanted
        np.testing.assert_array_equal(batch.gold, candidates.gold[rows])
        np.testing.assert_array_equal(batch.lexical, candidates.lexical[rows])
        np.testing.assert_array_equal(batch.found, candidates.found[rows])
    assert [batch.mentions for batch in source.batches(0, 1)] == [b.mentions for b in batches[1:]]


def test_within_an_epoch_the_candidates_are_those_of_its_start(clinic, tmp_path):
    encoder = clinic.load()
    finder = clinic.finder(encoder=encoder)
    source = CandidateBatches(finder, tmp_path / "c", order())
    whole = list(source.batches(0))
    for weight in encoder.model.parameters():
        weight.data.mul_(-0.5)
    for batch, again in zip(whole[1:], source.batches(0, 1), strict=True):
        assert batch.names == again.names
        np.testing.assert_array_equal(batch.places, again.places)
    anew = CandidateBatches(finder, tmp_path / "d", order())
    assert [b.names for b in anew.batches(0)] != [b.names for b in whole]


def test_only_one_process_writes(clinic, tmp_path):
    second = CandidateBatches(clinic.finder(), tmp_path / "c", order(rank=1, world=2))
    assert len(list(second.batches(0))) == 2
    assert not (tmp_path / "c").exists()
