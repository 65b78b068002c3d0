"""The lenient and the strict rule, against hand-made cases, plain loops and all tie orders."""

from __future__ import annotations

from itertools import permutations, product

import numpy as np
import pytest
from hypothesis import given, strategies as st

from biograft.metrics import (
    Counts,
    Judgements,
    Metric,
    RankedAnswer,
    lenient,
    nil_counts,
    split_composite,
    strict,
)


def answers(*pairs: tuple[str, float]) -> list[RankedAnswer]:
    """Concepts whose only id is their name, with scores: ``answers(("A", 1.0))``."""
    return [RankedAnswer(concept, frozenset({concept}), score) for concept, score in pairs]


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("a|b", ("a", "b")),
        ("D1|D2+D3", ("D1", "D2", "D3")),
        ("a+b lesion", ("a", "b lesion")),
        ("a | b", ("a ", " b")),
        ("nad+", ("nad", "")),
    ],
)
def test_parts_of_a_mention_keep_whitespace_and_empty_parts(text, parts):
    assert split_composite(text) == parts


@given(
    st.lists(st.lists(st.frozensets(st.sampled_from("ABCD"), min_size=1), max_size=4), max_size=3),
    st.frozensets(st.sampled_from("ABCD"), min_size=1),
)
def test_lenient_agrees_with_plain_loops(parts, gold):
    right, recall = lenient(parts, gold, 4)
    for k in range(1, 5):
        hits = []
        for names in parts:
            hit = False
            for name in names[:k]:
                hit = hit or len(name & gold) > 0
            hits.append(hit)
        assert right[k - 1] == (len(hits) > 0 and all(hits))
        assert recall[k - 1] == pytest.approx(sum(hits) / len(hits) if hits else 0)


def test_strict_without_answers_is_wrong():
    for parts in ([], [[]]):
        assert strict(parts, [frozenset("A")], 2)[0].tolist() == [0, 0]


def orders(ranked):
    """All orders of distinct concepts that the scores allow, each equally likely."""
    best = {}
    for answer in ranked:
        best[answer.concept] = max(best.get(answer.concept, -1), answer.score)
    levels = sorted(set(best.values()), reverse=True)
    tied = [[c for c in best if best[c] == level] for level in levels]
    for choice in product(*(permutations(level) for level in tied)):
        yield [concept for level in choice for concept in level]


def by_brute_force(parts, needed, k):
    """Judge every combination of tie orders of all parts."""
    right, recall_sum, n = 0, 0.0, 0
    for orders_of_parts in product(*(list(orders(ranked)) for ranked in parts)):
        first = [set(order[:k]) for order in orders_of_parts]
        covered = [any(group & part for part in first) for group in needed]
        each = all(any(group & part for group in needed) for part in first)
        right += each and all(covered)
        recall_sum += sum(covered) / len(covered)
        n += 1
    return right / n, recall_sum / n


RANKED = st.lists(
    st.tuples(st.sampled_from("ABCDE"), st.sampled_from([1.0, 2.0])), min_size=1, max_size=5
)


@given(
    st.lists(RANKED, min_size=1, max_size=2),
    st.lists(st.frozensets(st.sampled_from("ABCF"), min_size=1), min_size=1, max_size=3),
)
def test_strict_is_the_mean_over_all_tie_orders(parts, needed):
    ranked = [answers(*part) for part in parts]
    right, recall = strict(ranked, needed, 4)
    for k in range(1, 5):
        expected = by_brute_force(ranked, needed, k)
        assert (right[k - 1], recall[k - 1]) == pytest.approx(expected)


@given(
    st.lists(RANKED, min_size=1, max_size=2),
    st.lists(st.frozensets(st.sampled_from("ABCF"), min_size=1), min_size=1, max_size=3),
)
def test_strict_with_many_concepts_in_doubt_is_estimated(parts, needed):
    """The mean of random orders is near to that of all orders."""
    ranked = [answers(*part) for part in parts]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("biograft.metrics.linking._COUNTED", 0)
        right, _ = strict(ranked, needed, 3)
    for k in range(1, 4):
        assert right[k - 1] == pytest.approx(by_brute_force(ranked, needed, k)[0], abs=0.08)


def test_strict_with_forty_gold_concepts_ends():
    """Guards: its time doubled with each gold concept; 20 took 26 s for one number of answers."""
    needed = [frozenset({f"G{n}"}) for n in range(40)]
    ranked = answers(*((f"G{n}", 1.0) for n in range(40)), ("other", 1.0))
    right, recall = strict([ranked], needed, 41)
    assert (right[38], right[40], recall[40]) == (0.0, 1.0, 1.0)
    assert right[39] == pytest.approx(1 / 41, abs=0.02)


def judgements(right):
    right = np.asarray(right, dtype=float)
    n = len(right)
    no = np.zeros(n, dtype=bool)
    return Judgements(right, right, no, no, np.full(n, np.nan), ("d",) * n)


def test_reciprocal_rank_by_hand():
    assert Metric.parse("mrr")(judgements([[0, 1, 1], [0, 0, 0], [1, 1, 1]])) == pytest.approx(0.5)
    assert Metric.parse("mrr")(judgements([[0.5, 1, 1]])) == pytest.approx(0.75)


@given(st.lists(st.tuples(st.booleans(), st.booleans())))
def test_nil_counts_agree_with_plain_loops(pairs):
    gold = np.array([a for a, _ in pairs], dtype=bool)
    answered = np.array([b for _, b in pairs], dtype=bool)
    counts = nil_counts(gold, answered)
    right = wrong = missed = 0
    for a, b in pairs:
        right += a and b
        wrong += b and not a
        missed += a and not b
    assert counts == Counts(right, wrong, missed)
    assert 0 <= counts.f1 <= 1
