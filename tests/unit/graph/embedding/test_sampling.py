"""False triples: never known ones where filtered, ends as often as Bernoulli says."""

import numpy as np
import pytest

from biograft.graph.embedding.config import SamplingConfig
from biograft.graph.embedding.negatives import bernoulli_shares, draw_batch, make_sampler


def sample(triples, n_negatives=40, seed=3, **options):
    sampler = make_sampler(triples, SamplingConfig(negatives=n_negatives, **options))
    true = triples.heads, triples.relations, triples.tails
    places = np.arange(len(triples))
    entities, sides = draw_batch(sampler, true, places, np.uint64(seed), n_negatives)
    made = []
    for i, triple in enumerate(zip(*(map(int, column) for column in true), strict=True)):
        for entity, side in zip(entities[i], sides[i], strict=True):
            false = list(triple)
            false[0 if side == 0 else 2] = int(entity)
            made.append((triple, tuple(false), int(side)))
    return made


@pytest.mark.parametrize("kind", ["uniform", "bernoulli"])
def test_filtered_triples_are_never_known(drawn_graph, kind):
    triples = drawn_graph(120)
    known = set(zip(triples.heads, triples.relations, triples.tails, strict=True))
    unfiltered = sample(triples, kind=kind)
    assert any(false in known for _, false, _ in unfiltered)
    assert not any(false in known for _, false, _ in sample(triples, kind=kind, filtered=True))


def test_one_end_is_replaced_and_by_another(drawn_graph):
    for true, false, side in sample(drawn_graph()):
        assert [a == b for a, b in zip(true, false, strict=True)] == [side == 1, True, side == 0]


def test_a_side_on_which_all_is_true_is_left_for_the_other(graph):
    triples = graph([(0, 0, k) for k in range(5)], n_entities=5, n_relations=1)
    assert {side for _, _, side in sample(triples, filtered=True)} == {0}


def test_where_nothing_is_false_drawing_ends(graph):
    triples = graph([(h, 0, t) for h in range(3) for t in range(3)], n_entities=3, n_relations=1)
    assert len(sample(triples, filtered=True)) == 360


def test_bernoulli_shares_are_their_definition(graph):
    triples = graph([(0, 0, 1), (0, 0, 2), (0, 0, 3), (4, 0, 3), (1, 1, 2)])
    tails_a_head, heads_a_tail = 4 / 2, 4 / 3
    shares = bernoulli_shares(triples)
    np.testing.assert_allclose(shares[0], tails_a_head / (tails_a_head + heads_a_tail))
    np.testing.assert_allclose(shares[1:], 0.5)  # one to one, and one without triples


def test_sides_are_drawn_as_often_as_they_should_be(graph):
    triples = graph([(0, 0, k) for k in range(1, 10)], n_relations=1)
    share = bernoulli_shares(triples)[0]
    sides = [side for _, _, side in sample(triples, 2000, kind="bernoulli")]
    assert np.mean(np.array(sides) == 0) == pytest.approx(share, abs=0.01)
    assert np.mean([side for _, _, side in sample(triples, 2000)]) == pytest.approx(0.5, abs=0.01)


def test_all_entities_are_drawn_alike(graph):
    triples = graph([(0, 0, 1), (2, 0, 3), (4, 0, 5)], n_entities=9)
    drawn = [false[2] for _, false, side in sample(triples, 6000) if side == 1]
    counts = np.bincount(drawn, minlength=9)
    assert counts[6:].sum() == 0  # entities without triples are not drawn
    assert counts[[0, 2, 4]].min() / counts[[0, 2, 4]].max() > 0.95


def test_draws_follow_from_the_seed(drawn_graph):
    triples = drawn_graph()
    assert sample(triples) == sample(triples)
    assert sample(triples) != sample(triples, seed=4)
