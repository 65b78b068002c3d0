"""Counts, chance level and overlap of splits, against plain enumeration."""

from __future__ import annotations

from itertools import permutations

import pytest

from biograft.text import (
    Answer,
    ClassExample,
    PairExample,
    RankingExample,
    RelationExample,
    overlap,
    summarise,
)
from biograft.text.documents import Mention
from biograft.text.tasks.summary import first_right, reciprocal_rank


def ranking(*relevances):
    return RankingExample("q", tuple(Answer(str(k), r) for k, r in enumerate(relevances)))


@pytest.mark.parametrize(
    "relevances", [(1,), (0,), (1, 0), (0, 2, 0), (1, 1, 0, 0, 0), (1, 1, 1), (0, 1, 0, 3, 0, 1)]
)
def test_chance_of_a_ranking_is_the_mean_over_all_orders(relevances):
    orders = list(permutations(relevances))
    first = sum(order[0] > 0 for order in orders) / len(orders)
    ranks = [next((1 / k for k, r in enumerate(order, 1) if r), 0.0) for order in orders]
    assert first_right(ranking(*relevances)) == pytest.approx(first)
    assert reciprocal_rank(ranking(*relevances)) == pytest.approx(sum(ranks) / len(ranks))


def test_summary_of_rankings():
    result = summarise([ranking(1, 0, 0), ranking(0), ranking(1)])
    assert (result.kind, result.labels) == ("ranking", {"0": 3, "1": 2})
    assert result.extra == {
        "n_candidates": 5,
        "max_candidates": 3,
        "n_without_answer": 1,
        "n_with_one_answer": 2,
        "n_decidable": 1,
    }
    assert result.chance["acc@1"] == pytest.approx((1 / 3 + 0 + 1) / 3)
    assert result.chance["acc@1 (decidable)"] == pytest.approx(1 / 3)


def relation(first, second, label="1", text="a b c d"):
    spans = [Mention(start, end, text[start:end]) for start, end in (first, second)]
    return RelationExample(text, spans[0], spans[1], label)


def test_summary_of_relations():
    result = summarise([relation((0, 1), (2, 3)), relation((0, 3), (2, 3), "0")])
    assert result.extra == {"n_documents": 0, "n_with_gaps": 0, "n_overlapping": 1}
    assert result.to_json()["n_overlapping"] == 1
    touching = summarise([relation((0, 2), (2, 3)), relation((2, 3), (0, 2))])
    assert touching.extra["n_overlapping"] == 0


def test_pairs_seen_in_either_order_and_answered_otherwise():
    train = [PairExample("a", "b", "1"), PairExample("c", "d", "0")]
    test = [PairExample("b", "a", "0"), PairExample("a", "x", "1"), PairExample("y", "z", "1")]
    result = overlap(train, test)
    assert (result.n_examples, result.n_seen, result.n_contradicted) == (3, 1, 1)
    assert (result.n_texts, result.n_texts_seen) == (5, 2)


def test_relations_differ_by_their_mentions():
    train = [relation((0, 1), (2, 3))]
    assert overlap(train, [relation((2, 3), (0, 1))]).n_seen == 1
    assert overlap(train, [relation((0, 1), (4, 5))]).n_seen == 0


def test_classes_differ_by_their_context():
    train = [ClassExample("it helps", ("1",), "about aspirin")]
    assert overlap(train, [ClassExample("it helps", ("1",), "about tea")]).n_seen == 0
    assert overlap(train, [ClassExample("it helps", ("0",), "about aspirin")]).n_seen == 1


def test_judgements_seen():
    train = [RankingExample("q", (Answer("a", 1), Answer("b")))]
    test = [
        RankingExample("q", (Answer("a", 1), Answer("c"))),
        RankingExample("q", (Answer("b"), Answer("a", 1))),
    ]
    result = overlap(train, test)
    assert (result.n_seen, result.n_contradicted, result.n_judgements_seen) == (1, 0, 3)
