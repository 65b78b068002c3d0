"""The bank: which texts it holds, which are right for whom, and that none meets itself."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from biograft.errors import StoreError
from biograft.kb.names import normalise
from biograft.linking import LabelledMention
from biograft.training.linkers import EpochOrder, Shard, make_examples
from biograft.training.linkers.encoder import BankBatches, NameBank


@pytest.fixture
def bank_of(clinic, config_of):
    def make(mentions=clinic.mentions, encoder=None, **options):
        config, encoder = config_of(loss="bank", **options), encoder or clinic.load()
        return NameBank(make_examples(clinic.kb, encoder, mentions, config), encoder, config)

    return make


def meaning(clinic, mentions=()):
    """Say by plain loops which concepts each text names."""
    found = {}
    for name in clinic.kb.table("names").to_pylist():
        found.setdefault(name["text"].lower(), set()).add(name["concept"])
    for mention in mentions:
        rows = {clinic.kb.row(concept) for concept in mention.concepts}
        found.setdefault(mention.text, set()).update(rows)
    return found


def test_all_names_and_all_mentions_are_in_it_once(clinic, bank_of):
    bank = bank_of(refresh="full")
    assert sorted(bank.texts) == sorted(meaning(clinic, clinic.mentions))
    assert len(set(bank.texts)) == len(bank)


def test_the_reachable_are_the_names_of_gold_concepts_and_the_lexically_nearest(clinic, bank_of):
    mentions = [LabelledMention("my dental pains", frozenset({"C4"}))]
    bank = bank_of(mentions, refresh="reachable", reach=1)
    assert sorted(bank.texts) == ["cephalgia", "dental pain", "headache", "my dental pains"]


def test_what_is_right_is_what_names_the_concept_and_is_not_the_text_itself(clinic, bank_of):
    mentions = [*clinic.mentions, LabelledMention("Headache", frozenset({"C4"}))]
    bank, known = bank_of(mentions, refresh="full"), meaning(clinic, clinic.mentions)
    data = bank.data.examples
    batch = bank.batch(torch.zeros(len(bank), 2), 0, range(len(data)))
    assert len(batch) == len(data)
    assert len(batch.texts) == len(data) + len(batch.arrays["fresh"])
    assert batch.texts[len(batch) :] == tuple(bank.texts[row] for row in batch.arrays["fresh"])
    for line, text in enumerate(batch.texts):
        concepts = set(data[line].concepts) if line < len(batch) else known[text]
        for row, name in enumerate(bank.texts):
            itself = normalise(name) == normalise(text)
            assert batch.arrays["withheld"][line, row] == itself
            assert batch.arrays["gold"][line, row] == (bool(known[name] & concepts) and not itself)


def test_partners_are_correct_names_sampled_anew_each_epoch(bank_of):
    bank = bank_of(refresh="full", partners=2)
    data = bank.data.examples
    for index, example in enumerate(data):
        sampled = bank.sample(0, [index])
        batch = bank.batch(torch.zeros(len(bank), 2), 0, [index])
        assert len(sampled) == min(2, batch.arrays["gold"][0].sum())
        assert batch.arrays["gold"][0, sampled].all(), example.text
        assert (bank.sample(0, [index]) == sampled).all()
    epochs = {tuple(bank.sample(epoch, range(len(data))).tolist()) for epoch in range(5)}
    assert len(epochs) > 1


def test_a_text_of_no_other_name_teaches_nothing(clinic, bank_of):
    bank = bank_of([*clinic.mentions, LabelledMention("x", frozenset({"C7"}))], refresh="full")
    index = len(bank.data) - 1
    assert bank.batch(torch.zeros(len(bank), 2), 0, [index]).arrays["gold"][0].sum() == 2
    assert not bank.batch(torch.zeros(len(bank), 2), 0, []).arrays["gold"].any()


def test_within_an_epoch_the_vectors_are_those_of_its_start(clinic, bank_of, tmp_path):
    encoder = clinic.load()
    bank = bank_of(encoder=encoder)
    order = EpochOrder(len(bank.data), 3, 1, Shard())
    source = BankBatches(bank, tmp_path / "bank", order)
    whole = list(source.batches(0))
    expected = bank.encode().astype(np.float32)
    np.testing.assert_array_equal(whole[0].arrays["bank"].numpy(), expected)
    np.testing.assert_allclose(np.linalg.norm(expected, axis=1), 1, atol=2e-3)
    for weight in encoder.model.parameters():
        weight.data.mul_(-0.5)
    for batch, again in zip(whole[1:], source.batches(0, 1), strict=True):
        assert batch.texts == again.texts
        np.testing.assert_array_equal(batch.arrays["bank"], again.arrays["bank"])
    anew = next(source.batches(1))
    assert (anew.arrays["bank"] != whole[0].arrays["bank"]).any()
    with pytest.raises(StoreError, match="epoch-0007: missing, damaged"):
        next(source.batches(7, 1))


def test_only_one_process_writes(bank_of, tmp_path):
    second = BankBatches(bank_of(), tmp_path / "bank", EpochOrder(8, 3, 1, Shard(1, 2)))
    assert len(list(second.batches(0))) == 2
    assert not (tmp_path / "bank").exists()
