"""Pairs of mentions and what else is said of their concepts."""

from __future__ import annotations

import pytest

from biograft.errors import ConfigError
from biograft.linking.finetuning.candidates import EpochOrder, Shard
from biograft.linking.finetuning.encoder import MentionPairBatches, MentionPairs
from biograft.linking.finetuning.training_data import make_examples
from biograft.linking.queries import LabelledMention


def mention(text, *concepts):
    return LabelledMention(text, frozenset(concepts))


@pytest.fixture
def pairs_of(clinic, config_of):
    def make(mentions, seed=0, kb=clinic.kb):
        config = config_of(loss="contrastive")
        return MentionPairs(make_examples(kb, clinic.load(), mentions, config), seed)

    return make


def test_partners_are_all_else_that_is_said_of_the_concept(pairs_of, clinic):
    pairs = pairs_of(clinic.mentions)
    place = [lesson.text for lesson in pairs.paired].index("belly ache")
    drawn = {pairs.draw(epoch, [place]).right[0] for epoch in range(80)}
    assert drawn == {"abdominal pain", "pain of abdomen", "my belly hurts"}
    assert pairs.draw(3, [place]).right == pairs.draw(3, [place]).right
    other = pairs_of(clinic.mentions, seed=1)
    every = list(range(len(pairs)))
    assert any(pairs.draw(e, every).right != other.draw(e, every).right for e in range(3))


def test_a_mention_is_not_its_own_partner(pairs_of, store_of):
    kb = store_of([{"id": "A", "name": "Belly-Ache"}, {"id": "B", "name": "navel"}], "alone")
    pairs = pairs_of([mention("belly ache", "A"), mention("the belly", "B")], kb=kb)
    assert [lesson.text for lesson in pairs.paired] == ["the belly"]
    with pytest.raises(ConfigError, match="none of 1 has a partner"):
        pairs_of([mention("BELLY ACHE", "A")], kb=kb)


def test_concepts_that_are_meant_together_are_no_negatives(pairs_of):
    pairs = pairs_of(
        [mention("a", "C0", "C1"), mention("b", "C1", "C2"), mention("c", "C3"), mention("d", "C2")]
    )
    labels = pairs.draw(0, [0, 1, 2, 3]).labels.tolist()
    assert labels[0] == labels[1] == labels[3] != labels[2]


def test_batches_can_be_taken_up(pairs_of, clinic):
    pairs = pairs_of(clinic.mentions)
    source = MentionPairBatches(pairs, EpochOrder(len(pairs), 3, 0, Shard()))
    batches = list(source.batches(2))
    assert len(source) == len(batches) == 3
    assert sorted(t for b in batches for t in b.left) == sorted(m.text for m in clinic.mentions)
    for batch, again in zip(batches[1:], source.batches(2, 1), strict=True):
        assert (batch.left, batch.right) == (again.left, again.right)
