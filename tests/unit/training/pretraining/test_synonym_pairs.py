"""Pairs of names from small stores: which there are, and what becomes of the rest."""

from __future__ import annotations

import json
from collections import Counter
from itertools import combinations

import numpy as np
import pytest

from biograft.errors import ConfigError, EncodingError, FormatError, InputError
from biograft.kb import BuildConfig, KnowledgeBase, build_store
from biograft.kb.sources import SourceConfig
from biograft.training.pretraining import SynonymPairs, SynonymPairsConfig


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


@pytest.fixture(scope="module")
def grouped(tmp_path_factory):
    """Concepts of 1 to 6 names in up to three languages, and the pairs that they have."""
    rng, languages = np.random.default_rng(3), ("en", "de", "es")
    concepts = [
        [(f"name {concept} {k}", languages[rng.integers(3)]) for k in range(1 + concept % 6)]
        for concept in range(24)
    ]
    lines = [
        {"id": f"C{row}", "names": [{"text": text, "language": lang} for text, lang in names]}
        for row, names in enumerate(concepts)
    ]
    folder = tmp_path_factory.mktemp("grouped")
    (folder / "c.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    build_store(BuildConfig(sources=(SourceConfig(path=folder / "c.jsonl"),)), folder / "kb")
    return KnowledgeBase.open(folder / "kb"), concepts


@pytest.mark.parametrize("cross", [False, True])
@pytest.mark.parametrize("cap", [0, 1, 4])
def test_pairs_are_those_of_itertools_and_a_cap_limits_only_large_groups(grouped, cross, cap):
    kb, concepts = grouped
    possible = {
        (a, b)
        for names in concepts
        for (a, one), (b, other) in combinations(sorted(names), 2)
        if not (cross and one == other)
    }
    for seed in range(3):
        found, counts = pairs_of(kb, cross_language=cross, max_pairs=cap, seed=seed)
        pairs = [pair for _, *pair in found]
        assert len(set(map(tuple, pairs))) == len(pairs)
        assert set(map(tuple, pairs)) <= possible
        sizes = Counter(first.split()[1] for first, _ in possible)
        expected = {group: min(n, cap or n) for group, n in sizes.items()}
        assert Counter(first.split()[1] for first, _ in pairs) == expected
        assert counts.n_capped == sum(n > cap > 0 for n in sizes.values())


def test_every_pair_is_equally_likely(grouped):
    kb, _ = grouped
    sampled = Counter(
        tuple(pair) for seed in range(150) for pair in pairs_of(kb, max_pairs=5, seed=seed)[0]
    )
    of_six = [n for (_, first, _), n in sampled.items() if int(first.split()[1]) % 6 == 5]
    assert len(of_six) == 4 * 15
    assert min(of_six) > 25
    assert max(of_six) < 80
