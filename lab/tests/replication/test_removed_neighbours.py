"""Removed neighbours: what is left of the graph, and that the queries leak nothing."""

from __future__ import annotations

import numpy as np
import pytest

from biograft.errors import ConfigError
from biograft.graph.triples import Triples
from biograft_lab.replication.differences import Arms, find_difference
from biograft_lab.replication.removed_neighbours import (
    RemovedNeighbourSettings,
    make_queries,
    measure,
)


def graph(n=60, n_triples=900, seed=0):
    rng = np.random.default_rng(seed)
    heads, tails = rng.integers(0, n, (2, n_triples)).astype(np.int32)
    relations = rng.integers(0, 2, n_triples).astype(np.int32)
    return Triples(heads, relations, tails, np.zeros(n_triples, np.uint8), n, ("a", "b"))


@pytest.fixture
def asked():
    triples = graph()
    settings = RemovedNeighbourSettings(remove_ratio=0.2, n_queries=100, n_candidates=5)
    return triples, make_queries(triples, settings)


def pairs(triples):
    return {
        frozenset(pair) for pair in zip(triples.heads.tolist(), triples.tails.tolist(), strict=True)
    }


def test_a_removed_pair_is_in_no_triple_that_is_left(asked):
    """Otherwise the answer could be read off another relation, or the other direction."""
    _, queries = asked
    left = pairs(queries.rest)
    for head, candidates in zip(queries.heads, queries.candidates, strict=True):
        assert frozenset((int(head), int(candidates[0]))) not in left


def test_only_the_right_candidate_was_a_neighbour(asked):
    triples, queries = asked
    known = pairs(triples)
    tails = {
        relation: set(triples.tails[triples.relations == relation].tolist()) for relation in (0, 1)
    }
    assert len(queries.heads) > 20
    for head, relation, row in zip(
        queries.heads.tolist(), queries.relations.tolist(), queries.candidates.tolist(), strict=True
    ):
        assert [frozenset((head, each)) in known for each in row] == [True] + [False] * 4
        assert len(set(row)) == 5
        assert set(row) <= tails[relation]


def test_ties_are_wrong_and_documents_are_heads(asked):
    _, queries = asked
    n = len(queries.heads)
    scores = np.zeros((n, 5))
    assert measure(queries, scores)["acc@1"] == 0
    scores[0, 0] = 1
    row = measure(queries, scores)
    assert row["right"] == "1" + "0" * (n - 1)
    sizes = [int(size) for size in row["documents"].split()]
    assert (sum(sizes), len(sizes)) == (n, len(set(queries.heads.tolist())))
    assert row["mrr"] == pytest.approx(100 * (1 + (n - 1) / 5) / n)


@pytest.mark.long
def test_encoders_answer_once_a_seed_of_pretraining(smoke_rows):
    """An encoder that is the same for all seeds would look like several equal ones."""
    rows = smoke_rows("removed-neighbours-encoders")
    seeds = {}
    for row in rows:
        seeds.setdefault(row["config"], []).append(row.get("seed"))
    assert seeds["start"] == seeds["start, masked"] == [None]
    assert seeds["SMedBERT"] == seeds["SMedBERT, masked"] == seeds["lexical"] == [1, 2]
    arms = Arms(set="medical-kg", of="SMedBERT, masked", against="lexical")
    assert find_difference(arms, {"rows": rows}, {"rows": rows}).n_seeds == 2
    arms = Arms(set="medical-kg", of="SMedBERT", against="start")
    assert find_difference(arms, {"rows": rows}, {"rows": rows}).n_seeds == 2


@pytest.mark.parametrize("sentence", ["{head} joins.", "{head} joins {tail} {tail}."])
def test_a_sentence_without_its_places_is_refused(sentence):
    with pytest.raises(ConfigError, match=r"wording\.joins"):
        RemovedNeighbourSettings(wording={"joins": sentence})
