"""How much generation counts beside a search: the mixed score, the fitted share, refusals."""

from __future__ import annotations

import numpy as np
import pytest
from generative_store import Query, ask_in

from biograft.errors import ConfigError, StoreError
from biograft.linking.fusion import CandidatePool, FusedSearch, empty_pool, extend_pool
from biograft.linking.generative import GenerativeConfig, Mixing, NameTrie, Seq2SeqLinker
from biograft.linking.generative.folder import (
    GENERATION_WEIGHTS,
    HeldOutScores,
    accuracy,
    fit_weight,
)
from biograft.linking.generative.training import fit_mixing, measure
from biograft.linking.lexical import LexicalIndex
from biograft.nn.generation import BeamConfig

NOT = -np.inf


def scored(generated, *searched, names=("lexical", "dense")):
    n = len(generated)
    scores = np.array([*searched, generated], np.float32)[:, None, :]
    ranks = np.zeros(scores.shape, np.int32)
    return CandidatePool((*names[: len(searched)], "generative"), np.arange(n)[None], scores, ranks)


def test_the_score_is_the_sum_of_both_by_their_shares():
    one = scored([0.5, NOT, 0.25], [0.8, 0.4, NOT])
    assert Mixing(0.25)(one)[0] == pytest.approx([0.725, 0.3, 0.0625])
    assert Mixing(1.0)(one)[0].tolist() == [0.5, NOT, 0.25]
    assert Mixing(0.0)(one)[0] == pytest.approx([0.8, 0.4, 0.0])
    two = scored([0.5, NOT], [0.8, 0.4], [0.2, NOT])
    weights = {"lexical": 3.0, "dense": 1.0}
    assert Mixing(0.5, weights=weights)(two)[0] == pytest.approx([0.25 + 0.325, 0.15])
    assert Mixing(0.5)(two)[0] == pytest.approx([0.25 + 0.25, 0.1])


def test_where_nothing_was_searched_generation_counts_its_share():
    assert Mixing(0.5)(scored([0.5, NOT]))[0] == pytest.approx([0.25, 0.0])


def test_a_place_without_a_name_has_no_score():
    one = scored([0.5, NOT], [0.8, NOT])
    one = CandidatePool(one.generators, np.array([[4, -1]]), one.scores, one.ranks)
    assert Mixing(0.5)(one)[0].tolist() == [pytest.approx(0.65), NOT]


def test_a_share_fitted_beside_another_search_is_refused():
    with pytest.raises(StoreError, match="was fitted beside lexical, the index has dense and lex"):
        Mixing(0.5, weights={"lexical": 1.0})(scored([0.5], [0.8], [0.2]))


@pytest.mark.parametrize("values", [{"share": 1.5}, {"share": -0.1}, {"rescore": -1}])
def test_what_no_mixing_is(values):
    with pytest.raises(ValueError, match="expected a share from 0 to 1"):
        Mixing(**values)


def held(query, generated, searched, right):
    arrays = (np.array(values, np.float32) for values in (generated, searched))
    return HeldOutScores(query, *arrays, np.array(right))


def test_the_fitted_share_is_that_of_the_most_right_answers():
    mentions = [
        held(0, [0.9, 0.1], [0.0, 0.3], [True, False]),  # generation is right
        held(1, [0.5, 0.4], [0.1, 0.9], [False, True]),  # the search is right
        held(2, [0.5, NOT], [NOT, 0.4], [True, False]),
        held(3, [], [], []),  # nothing found: wrong whatever the share
    ]
    share, told = fit_weight(mentions)
    by_hand = {s: accuracy(mentions, s) for s in GENERATION_WEIGHTS}
    assert by_hand[share] == max(by_hand.values()) == 0.75
    assert share == max(s for s in GENERATION_WEIGHTS if by_hand[s] == 0.75)
    assert told == {"searched": 0.25, "generative": 0.5, "mixed": 0.75}
    assert GENERATION_WEIGHTS[0] == 0
    assert GENERATION_WEIGHTS[-1] == 1


def test_all_parts_of_a_mention_have_to_be_right():
    parts = [held(0, [1.0], [0.0], [True]), held(0, [1.0], [0.0], [False])]
    assert accuracy(parts, 1.0) == 0
    assert accuracy([parts[0], parts[0]], 1.0) == 1


def test_of_equal_scores_the_lower_row_comes_first():
    assert accuracy([held(0, [0.5, 0.5], [0.0, 0.0], [False, True])], 1.0) == 0


def test_without_mentions_there_is_nothing_to_fit():
    with pytest.raises(ConfigError, match="fit_share: there is no mention held out"):
        fit_weight([])


# ---- room for further names


def test_names_are_added_to_what_was_gathered():
    rows = np.array([[2, 5, -1], [0, 7, 9]])
    scores = np.array([[[0.2, 0.5, NOT], [0.0, 0.7, 0.9]]], np.float32)
    ranks = np.array([[[1, 2, 0], [1, 2, 3]]], np.int32)
    wider = extend_pool(CandidatePool(("g",), rows, scores, ranks), np.array([[5, 1], [-1, -1]]))
    assert wider.rows.tolist() == [[1, 2, 5], [0, 7, 9]]
    assert wider.scores[0, 0].tolist() == pytest.approx([NOT, 0.2, 0.5])
    assert wider.ranks[0].tolist() == [[0, 1, 2], [1, 2, 3]]
    assert wider.scores[0, 1].tolist() == pytest.approx([0.0, 0.7, 0.9])


def test_nothing_gathered_can_be_widened():
    wider = extend_pool(empty_pool(2), np.array([[3, -1], [1, 0]]))
    assert wider.rows.tolist() == [[3, -1], [0, 1]]
    assert wider.scores.shape == wider.ranks.shape == (0, 2, 2)
    assert len(empty_pool(3)) == 3


# ---- measured on mentions held out

QUERIES = [
    ask_in("a cold day", "cold", "D7"),
    Query(("ovarian cancer",), frozenset({"D3"})),
    Query(("heart attak",), frozenset({"D4"})),
    Query(("breast cancer", "ovarian cancer"), frozenset({"D2", "D3"})),
    Query(("mi",), frozenset({"D8"})),
    Query(("none of these",)),
    Query(("unknown",), frozenset({"D999"})),
]


@pytest.fixture
def ranker(named, seq2seq):
    config = GenerativeConfig(beam=BeamConfig(beams=30))
    return Seq2SeqLinker(named, seq2seq, NameTrie.build(named, seq2seq), config)


def test_recall_counts_names_and_a_shared_name_is_right_by_any_of_its_concepts(ranker):
    told = measure(ranker, None, QUERIES)
    asked = [query for query in QUERIES if query.gold]
    hits = {1: 0, 5: 0}
    for query in asked:
        firsts = []
        for part in query.parts:
            context = [(query.context, query.start or 0, query.end or 0)]
            sequences = ranker.generate([part], context).sequences[0].tolist()
            ids = [
                {_id_of_row(ranker.kb, row) for row in ranker.names.rows_of(s)} for s in sequences
            ]
            right = [place for place, own in enumerate(ids) if own & query.gold]
            firsts.append(min(right, default=99))
        for k in hits:
            hits[k] += max(firsts) < k
    assert told == {"n": 6, "recall@1": hits[1] / 6, "recall@5": hits[5] / 6}
    assert measure(ranker, None, [QUERIES[5]]) == {"n": 0, "recall@1": 0.0, "recall@5": 0.0}


def _id_of_row(kb, row):
    return kb.id_at(kb.table("names").column("concept")[row].as_py())


def test_a_share_is_fitted_beside_a_search(ranker, named):
    search = FusedSearch([LexicalIndex.build(named)])
    mixing, told = fit_mixing(ranker, search, QUERIES)
    # a random model knows nothing, letters find nearly all
    assert told["searched"] > told["generative"]
    assert told["mixed"] >= told["searched"]
    assert told["generation_weight"] == mixing.share < 1
    assert mixing.weights == {"lexical": 1.0}
    both = Seq2SeqLinker(named, ranker.seq2seq, ranker.names, ranker.config, mixing)
    assert measure(both, search, QUERIES)["recall@1"] >= measure(ranker, None, QUERIES)["recall@1"]
