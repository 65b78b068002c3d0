"""Pairs of names from small stores: which there are, and what becomes of the rest."""

from __future__ import annotations

from collections import Counter
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, strategies as st

from biograft.config import from_mapping
from biograft.errors import ConfigError, EncodingError, FormatError, InputError
from biograft.pretraining import STREAMS, PairBatches, SynonymPairs, SynonymPairsConfig
from biograft.pretraining.synonym_pairs import count_partners, sample_pairs


def pairs_of(kb, **options):
    """The pairs as (label, {name, name}), sorted."""
    pairs = SynonymPairs(kb, SynonymPairsConfig(**options))
    return sorted(
        (int(label), *sorted((pairs.text(left), pairs.text(right))))
        for (left, right), label in zip(pairs.rows.tolist(), pairs.labels, strict=True)
    ), pairs.counts


def test_all_unordered_pairs_and_no_singletons(store):
    kb = store({"A": ["one", "two", "three"], "B": ["alone"], "C": ["x", "y"]})
    found, counts = pairs_of(kb)
    expected = [(0, *sorted(pair)) for pair in combinations(["one", "two", "three"], 2)]
    assert found == sorted([*expected, (2, "x", "y")])
    assert counts.to_json() == {
        "n_concepts": 2,
        "n_singletons": 1,
        "n_names": 6,
        "n_capped": 0,
        "n_pairs": 4,
        "n_extra": 0,
    }


def test_names_that_differ_in_case_are_one(store):
    kb = store({"A": ["Flu", "flu", "FLU", "grippe"], "B": ["Cold", "cold"]})
    found, counts = pairs_of(kb)
    assert found == [(0, "flu", "grippe")]
    assert counts.n_singletons == 1
    as_given, _ = pairs_of(kb, lowercase=False)
    assert (1, "Cold", "cold") in as_given
    assert len(as_given) == 7


def test_the_cap_samples(store):
    kb = store({"A": [f"name {k}" for k in range(20)], "B": ["x", "y"]})
    found, counts = pairs_of(kb, max_pairs=10)
    assert len(found) == 11
    assert counts.n_capped == 1
    assert pairs_of(kb, max_pairs=10)[0] == found
    assert pairs_of(kb, max_pairs=10, seed=1)[0] != found
    assert len(pairs_of(kb, max_pairs=0)[0]) == 191


def test_languages(store):
    kb = store({"A": ["pain", ("Schmerz", "de"), ("dolor", "es"), "ache"], "B": ["flu", "grippe"]})
    assert pairs_of(kb, languages=("en",))[0] == [(0, "ache", "pain"), (1, "flu", "grippe")]
    crossed, counts = pairs_of(kb, cross_language=True)
    assert ("ache", "pain") not in {pair[1:] for pair in crossed}
    assert len(crossed) == 5
    assert counts.n_singletons == 1
    assert pairs_of(kb, cross_language=True, languages=("de", "es"))[0] == [(0, "dolor", "schmerz")]
    with pytest.raises(ConfigError, match=r"languages: .* no names in 'fr'; .*en"):
        pairs_of(kb, languages=("fr",))


@pytest.mark.parametrize("relation", ["has_tradename", "tradename_of"])
def test_trade_names_are_lent_both_ways(store, relation):
    names = {"A": ["ibuprofen"], "B": ["Advil", "advil 200"], "C": ["aspirin"]}
    kb = store(names, [("A", relation, "B"), ("C", "treats", "A")])
    assert pairs_of(kb)[0] == [(1, "advil", "advil 200")]
    found, counts = pairs_of(kb, trade_names=True)
    triples = list(combinations(["advil", "advil 200", "ibuprofen"], 2))
    assert found == [(0, *pair) for pair in triples] + [(1, *pair) for pair in triples]
    assert counts.n_singletons == 1


def test_trade_names_in_a_store_without_such_relations(store):
    kb = store({"A": ["x", "y"]}, [])
    assert pairs_of(kb, trade_names=True)[0] == [(0, "x", "y")]


def test_extra_pairs_of_a_file(store, write):
    kb = store({"A": ["one", "two"], "B": ["alone"]})
    path = write("pairs.txt", "B||alone||Lonely\n\nZ||zwei||二\nZ || 2 || zwei\n")
    found, counts = pairs_of(kb, extra_pairs=path)
    assert found == [(0, "one", "two"), (1, "alone", "lonely"), (3, "2", "zwei"), (3, "zwei", "二")]
    assert (counts.n_extra, counts.n_pairs, counts.n_concepts) == (3, 4, 1)
    alone, _ = pairs_of(None, extra_pairs=path)
    assert [label for label, *_ in alone] == [0, 1, 1]


@pytest.mark.parametrize(
    ("content", "error", "message"),
    [
        ("A||x||y\nA||x\n", FormatError, r"pairs.txt:2: expected id\|\|name\|\|name.*'A\|\|x'"),
        ("A||x||y||z\n", FormatError, "pairs.txt:1: expected"),
        ("A||||y\n", FormatError, "pairs.txt:1: expected"),
        ("\n\n", InputError, "holds no pairs"),
        (b"A||\xff||y\n", EncodingError, "is not UTF-8"),
    ],
)
def test_a_bad_file_of_pairs_is_refused(write, content, error, message):
    path = write("pairs.txt", content)
    with pytest.raises(error, match=message):
        SynonymPairs(None, SynonymPairsConfig(extra_pairs=path))


def test_a_missing_file_of_pairs(tmp_path):
    with pytest.raises(InputError, match="cannot be read"):
        SynonymPairs(None, SynonymPairsConfig(extra_pairs=tmp_path / "none"))


def test_nothing_to_pair(store):
    with pytest.raises(ConfigError, match="no concept has two names"):
        SynonymPairs(store({"A": ["one"], "B": ["two"]}))
    with pytest.raises(ConfigError, match="neither a knowledge base nor extra_pairs"):
        SynonymPairs(None)


def test_lengths_are_of_the_longer_name(store, write):
    kb = store({"A": ["a", "abcd"]})
    path = write("pairs.txt", "Z||二三||x\n")
    pairs = SynonymPairs(kb, SynonymPairsConfig(extra_pairs=path))
    assert pairs.lengths().tolist() == [4, 6]


@pytest.mark.parametrize("name", ["max_pairs", "bucket_batches", "seed"])
def test_a_wrong_configuration_is_refused(name):
    with pytest.raises(ConfigError, match=f"{name}: expected at least 0, found -1"):
        from_mapping(SynonymPairsConfig, {name: -1})


def test_every_registered_stream_is_there_and_pairs_have_defaults():
    for name in STREAMS:
        assert STREAMS.load(name)
        assert STREAMS.help()[name]
    assert STREAMS.load("synonym_pairs")() == SynonymPairsConfig()


NAMES = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 2)), max_size=30).map(sorted)


def arrays(names):
    groups = np.array([group for group, _ in names], np.int64)
    return groups, np.array([block for _, block in names], np.int64)


def plain_pairs(names, cross):
    return {
        (i, j)
        for i, j in combinations(range(len(names)), 2)
        if names[i][0] == names[j][0] and not (cross and names[i][1] == names[j][1])
    }


@given(names=NAMES, cross=st.booleans())
def test_all_pairs_are_those_of_itertools(names, cross):
    groups, blocks = arrays(names)
    partners = count_partners(groups, blocks if cross else None)
    pairs, n_capped = sample_pairs(groups, partners, 0, np.random.default_rng(0))
    assert sorted(map(tuple, pairs.tolist())) == sorted(plain_pairs(names, cross))
    assert n_capped == 0


@given(names=NAMES, cross=st.booleans(), cap=st.integers(1, 6), seed=st.integers(0, 9))
def test_a_sample_limits_only_large_groups(names, cross, cap, seed):
    groups, blocks = arrays(names)
    partners = count_partners(groups, blocks if cross else None)
    pairs, n_capped = sample_pairs(groups, partners, cap, np.random.default_rng(seed))
    found, possible = list(map(tuple, pairs.tolist())), plain_pairs(names, cross)
    assert len(set(found)) == len(found)
    assert set(found) <= possible
    sizes = Counter(names[i][0] for i, _ in possible)
    assert Counter(names[i][0] for i, _ in found) == {g: min(n, cap) for g, n in sizes.items()}
    assert n_capped == sum(n > cap for n in sizes.values())


def test_every_pair_is_equally_likely():
    groups = np.zeros(6, np.int64)
    partners, rng = count_partners(groups), np.random.default_rng(1)
    sampled = Counter(
        tuple(pair) for _ in range(3000) for pair in sample_pairs(groups, partners, 5, rng)[0]
    )
    assert len(sampled) == 15
    assert all(count == pytest.approx(1000, abs=120) for count in sampled.values())


def test_the_same_seed_samples_the_same():
    groups = np.repeat(np.arange(4), 20)
    partners = count_partners(groups)
    one, two, other = (
        sample_pairs(groups, partners, 9, np.random.default_rng(seed))[0] for seed in (1, 1, 2)
    )
    assert one.tolist() == two.tolist()
    assert one.tolist() != other.tolist()


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
def test_batches_resume_at_any_position(pairs, bucket):
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


def test_buckets_hold_names_of_similar_length(pairs):
    def spread(bucket):
        batches = PairBatches(pairs(bucket_batches=bucket), 6, seed=1).batches(0)
        return sum(max(map(len, b.left)) - min(map(len, b.left)) for b in batches)

    assert spread(9) < spread(0) / 2
