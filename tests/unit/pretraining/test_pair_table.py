"""Numbering and sampling of pairs, against itertools."""

from __future__ import annotations

from collections import Counter
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, strategies as st

from biograft.pretraining.synonym_pairs import count_partners, sample_pairs

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
def test_a_sample_keeps_small_groups_and_cuts_large_ones_to_the_cap(names, cross, cap, seed):
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
    drawn = Counter(
        tuple(pair) for _ in range(3000) for pair in sample_pairs(groups, partners, 5, rng)[0]
    )
    assert len(drawn) == 15
    assert all(count == pytest.approx(1000, abs=120) for count in drawn.values())


def test_the_same_seed_draws_the_same():
    groups = np.repeat(np.arange(4), 20)
    partners = count_partners(groups)
    one, two, other = (
        sample_pairs(groups, partners, 9, np.random.default_rng(seed))[0] for seed in (1, 1, 2)
    )
    assert one.tolist() == two.tolist()
    assert one.tolist() != other.tolist()
