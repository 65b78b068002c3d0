"""Candidates against their definition, mention by mention."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from biograft.errors import ConfigError, StoreError
from biograft.kb.names import normalise
from biograft.linking import LabelledMention
from biograft.training.linkers import EpochOrder, Shard
from biograft.training.linkers.encoder import (
    CandidateBatches,
    EpochCandidates,
    path_of,
)


def mention(text, *concepts):
    return LabelledMention(text, frozenset(concepts))


def expected(finder, clinic, index, k, add):
    """Half by lexical search, the rest by cosine, gold behind: by plain sorting of everything."""
    names, example = finder.data.names, finder.data.examples[index]
    every = list(range(len(names)))
    scores = finder._lexical.score([example.text], names.first_rows[None])[0]
    rows = names.first_rows
    lexical = sorted((t for t in every if scores[t] > 0), key=lambda t: (-scores[t], rows[t]))
    vectors = finder._encoder.encode(names.take(np.arange(len(names))), precision="fp32")
    query = finder._encoder.encode([example.text], precision="fp32")[0].astype(np.float64)
    cosines = [np.float32(np.dot(query, vector)) for vector in vectors.astype(np.float64)]
    by_encoder = sorted(every, key=lambda t: (-cosines[t], t))
    chosen = lexical[: k // 2]
    chosen += [t for t in by_encoder if t not in chosen][: k - len(chosen)]
    found = any(t in example.gold for t in chosen)
    if not found and add:
        chosen[-1] = min(example.gold, key=lambda t: (-max(scores[t], 0), t))
    return chosen, found


@pytest.mark.parametrize("missing_gold", ["add", "skip"])
@pytest.mark.parametrize("k", [2, 5, 6])
def test_candidates_are_those_of_the_definition(clinic, k, missing_gold):
    finder = clinic.finder(k=k, reach=20, refresh="full", missing_gold=missing_gold)
    candidates = finder.find(None)
    for index, example in enumerate(finder.data.examples):
        chosen, found = expected(finder, clinic, index, k, missing_gold == "add")
        assert candidates.texts[index].tolist() == chosen
        assert bool(candidates.gold_found[index]) == found
        assert candidates.gold[index].tolist() == [text in example.gold for text in chosen]
    assert candidates.gold.any(1).all() == (missing_gold == "add")
    assert not candidates.gold_found.all()


def test_lexical_scores_are_those_of_the_index(clinic):
    finder = clinic.finder()
    candidates = finder.find(None)
    rows = finder.data.names.first_rows[candidates.texts]
    again = finder._lexical.score([example.text for example in finder.data.examples], rows)
    np.testing.assert_array_equal(candidates.lexical, np.where(np.isfinite(again), again, 0))
    assert candidates.lexical.max() > 0.3


def test_gold_is_never_among_the_negatives(clinic):
    finder = clinic.finder(k=8)
    candidates = finder.find(None)
    concepts = clinic.kb.table("names").column("concept").to_pylist()
    texts = [clinic.kb.name(row).text.lower() for row in range(clinic.kb.n_names)]
    for index, example in enumerate(finder.data.examples):
        right = {t for t, c in zip(texts, concepts, strict=True) if c in example.concepts}
        for number, is_gold in zip(candidates.texts[index], candidates.gold[index], strict=True):
            if number >= 0:
                assert bool(is_gold) == (finder.data.names.text(int(number)) in right)


def test_a_store_smaller_than_k_gives_padding(clinic):
    finder = clinic.finder(k=40)
    candidates = finder.find(None)
    n_texts = len(finder.data.names)
    assert (candidates.texts >= 0).sum(1).tolist() == [n_texts] * len(finder.data)
    assert not candidates.gold[candidates.texts < 0].any()
    assert not candidates.lexical[candidates.texts < 0].any()


def test_the_mention_itself_is_withheld_on_request(store_of, clinic):
    kb = store_of(
        [
            {"id": "A", "name": "abdominal pain", "names": ["Belly-Ache"]},
            {"id": "B", "name": "belly ache", "names": ["navel pain"]},
            {"id": "C", "name": "fatigue"},
        ],
        "own",
    )
    mentions = [mention("belly ache", "A"), mention("tired", "C")]
    for exclude in (False, True):
        finder = clinic.finder(mentions, kb=kb, k=5, exclude_own_mention=exclude)
        found = finder.find(None)
        names = [finder.data.names.text(int(t)) for t in found.texts[0] if t >= 0]
        own = [name for name in names if normalise(name) == "belly ache"]
        assert len(own) == (0 if exclude else 2)
        assert len(names) == (3 if exclude else 5)
        assert found.gold[0].any()


def test_the_encoder_looks_among_all_names_or_those_in_reach(clinic):
    full = clinic.finder(refresh="full")
    everything = list(range(len(full.data.names)))
    assert full.pool(None).tolist() == everything
    assert full.pool(full.find(None)).tolist() == everything
    some = [mention("sore muscles", "C2")]
    near = clinic.finder(some, reach=2, k=4, first_full=False)
    lexical = set(near._lexical_names[0])
    gold = near.data.examples[0].gold
    assert set(near.pool(None).tolist()) == lexical | gold
    assert len(near.pool(None)) < len(everything)
    first = clinic.finder(some, reach=2, k=4, first_full=True)
    assert first.pool(None).tolist() == everything
    last = first.find(None)
    assert set(first.pool(last).tolist()) == lexical | gold | set(last.texts[0].tolist())


def test_candidates_follow_the_encoder(clinic):
    encoder = clinic.load()
    finder = clinic.finder(encoder=encoder, refresh="full")
    before, again = finder.find(None), finder.find(None)
    np.testing.assert_array_equal(before.texts, again.texts)
    np.testing.assert_array_equal(before.lexical, again.lexical)
    generator = torch.Generator().manual_seed(5)
    for weight in encoder.model.parameters():
        weight.data += 0.3 * torch.randn(weight.shape, generator=generator)
    after = finder.find(before)
    assert (before.texts != after.texts).any()
    for line, first, second in zip(finder._lexical_names, before.texts, after.texts, strict=True):
        n_lexical = min(len(line), 3)
        assert first[:n_lexical].tolist() == second[:n_lexical].tolist() == line[:3]


def order(n_examples=8, batch_size=3, seed=1, rank=0, world=1):
    return EpochOrder(n_examples, batch_size, seed, Shard(rank, world))


def test_an_epoch_has_every_example_once_in_an_order_of_its_own():
    first = [indices.tolist() for indices in order().batches(0, 0)]
    assert [len(indices) for indices in first] == [3, 3, 2]
    assert len(order()) == 3
    assert sorted(index for indices in first for index in indices) == list(range(8))
    assert first == [indices.tolist() for indices in order().batches(0, 0)]
    assert first != [indices.tolist() for indices in order().batches(1, 0)]
    assert first != [indices.tolist() for indices in order(seed=2).batches(0, 0)]
    assert first[1:] == [indices.tolist() for indices in order().batches(0, 1)]


def test_processes_share_an_epoch():
    parts = [np.concatenate([*order(11, 2, 1, rank, 3).batches(4, 0)]) for rank in range(3)]
    assert [len(part) for part in parts] == [3, 3, 3]
    assert len(np.unique(np.concatenate(parts))) == 9
    with pytest.raises(ConfigError, match="mentions: 2 are too few for 3 processes"):
        order(2, 2, 1, 0, 3)


def mentions_of(batch):
    return batch.texts[: len(batch)]


def names_of(batch):
    return batch.texts[len(batch) :]


def test_a_batch_holds_what_its_mentions_need(clinic, tmp_path):
    finder = clinic.finder()
    source = CandidateBatches(finder, tmp_path / "c", order())
    candidates, names = finder.find(None), finder.data.names
    assert len(source) == 3
    batches = list(source.batches(0))
    for batch, rows in zip(batches, order().batches(0, 0), strict=True):
        assert mentions_of(batch) == tuple(finder.data.examples[row].text for row in rows)
        assert len(batch) == len(rows)
        texts, arrays = names_of(batch), batch.arrays
        assert len(set(texts)) == len(texts)
        for index, row in enumerate(rows):
            wanted = [names.text(int(t)) if t >= 0 else "" for t in candidates.texts[row]]
            found = [texts[p] if p >= 0 else "" for p in arrays["names"][index]]
            assert found == wanted
        np.testing.assert_array_equal(arrays["gold"], candidates.gold[rows])
        np.testing.assert_array_equal(arrays["lexical"], candidates.lexical[rows])
        np.testing.assert_array_equal(arrays["gold_found"], candidates.gold_found[rows])
    assert [*map(mentions_of, source.batches(0, 1))] == [*map(mentions_of, batches[1:])]


def test_within_an_epoch_the_candidates_are_those_of_its_start(clinic, tmp_path):
    encoder = clinic.load()
    finder = clinic.finder(encoder=encoder)
    source = CandidateBatches(finder, tmp_path / "c", order())
    whole = list(source.batches(0))
    for weight in encoder.model.parameters():
        weight.data.mul_(-0.5)
    for batch, again in zip(whole[1:], source.batches(0, 1), strict=True):
        assert batch.texts == again.texts
        np.testing.assert_array_equal(batch.arrays["names"], again.arrays["names"])
    anew = CandidateBatches(finder, tmp_path / "d", order())
    assert [*map(names_of, anew.batches(0))] != [*map(names_of, whole)]


def test_only_one_process_writes(clinic, tmp_path):
    second = CandidateBatches(clinic.finder(), tmp_path / "c", order(rank=1, world=2))
    assert len(list(second.batches(0))) == 2
    assert not (tmp_path / "c").exists()


@pytest.fixture
def candidates():
    return EpochCandidates(
        texts=np.array([[3, 1, -1], [0, 2, 5]]),
        lexical=np.array([[0.5, 0.25, 0], [0.1, 0, 0.9]], np.float32),
        gold=np.array([[True, False, False], [False, False, True]]),
        gold_found=np.array([True, False]),
    )


def test_what_is_read_is_what_was_written(tmp_path, candidates):
    candidates.save(tmp_path / "c", 12)
    candidates.save(tmp_path / "c", 12)  # a resumed run writes again
    assert [path.name for path in (tmp_path / "c").iterdir()] == ["epoch-0012"]
    found = EpochCandidates.load(tmp_path / "c", 12, 2)
    for name in ("texts", "lexical", "gold", "gold_found"):
        wanted = getattr(candidates, name)
        np.testing.assert_array_equal(getattr(found, name), wanted)
        assert getattr(found, name).dtype == wanted.dtype


def test_what_cannot_be_read_is_said(tmp_path, candidates):
    with pytest.raises(StoreError, match="epoch-0001: missing, damaged or of other mentions"):
        EpochCandidates.load(tmp_path, 1, 2)
    candidates.save(tmp_path, 1)
    with pytest.raises(StoreError, match="of other mentions"):
        EpochCandidates.load(tmp_path, 1, 3)
    path = path_of(tmp_path, 1) / "texts.npy"
    path.write_bytes(path.read_bytes()[:-7])
    with pytest.raises(StoreError, match="damaged"):
        EpochCandidates.load(tmp_path, 1, 2)
    np.save(path, np.zeros((2, 2), np.int64))  # as many names as the others have
    with pytest.raises(StoreError, match="damaged"):
        EpochCandidates.load(tmp_path, 1, 2)
