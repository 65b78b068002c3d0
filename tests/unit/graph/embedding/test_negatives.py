"""Negative sampling: no known triples if filtered, ends by the Bernoulli rule."""

import numpy as np
import pytest

from biograft.graph import SamplingConfig, make_sampler
from biograft.graph.embedding.loops import bernoulli_probabilities, sample_negatives


def sample(triples, n_negatives=40, seed=3, **options):
    sampler = make_sampler(triples, SamplingConfig(negatives=n_negatives, **options))
    true = triples.heads, triples.relations, triples.tails
    positions = np.arange(len(triples))
    batch = sample_negatives(sampler, true, positions, np.uint64(seed), n_negatives)
    entities, sides = batch.entities, batch.sides
    samples = []
    for i, triple in enumerate(zip(*(map(int, column) for column in true), strict=True)):
        for entity, side in zip(entities[i], sides[i], strict=True):
            false = list(triple)
            false[0 if side == 0 else 2] = int(entity)
            samples.append((triple, tuple(false), int(side)))
    return samples


@pytest.mark.parametrize("kind", ["uniform", "bernoulli"])
def test_filtered_triples_are_never_known(random_graph, kind):
    triples = random_graph(120)
    known = set(zip(triples.heads, triples.relations, triples.tails, strict=True))
    unfiltered = sample(triples, kind=kind)
    assert any(false in known for _, false, _ in unfiltered)
    assert not any(false in known for _, false, _ in sample(triples, kind=kind, filtered=True))


def test_a_side_without_negatives_is_left_for_the_other(graph):
    triples = graph([(0, 0, k) for k in range(5)], n_entities=5, n_relations=1)
    assert {side for _, _, side in sample(triples, filtered=True)} == {0}


def test_sampling_ends_where_no_negative_exists(graph):
    triples = graph([(h, 0, t) for h in range(3) for t in range(3)], n_entities=3, n_relations=1)
    assert len(sample(triples, filtered=True)) == 360


def test_bernoulli_probabilities_follow_their_definition(graph):
    triples = graph([(0, 0, 1), (0, 0, 2), (0, 0, 3), (4, 0, 3), (1, 1, 2)])
    tails_a_head, heads_a_tail = 4 / 2, 4 / 3
    probabilities = bernoulli_probabilities(triples)
    np.testing.assert_allclose(probabilities[0], tails_a_head / (tails_a_head + heads_a_tail))
    np.testing.assert_allclose(probabilities[1:], 0.5)  # one to one, and one without triples


def test_sides_are_sampled_with_their_probability(graph):
    triples = graph([(0, 0, k) for k in range(1, 10)], n_relations=1)
    probability = bernoulli_probabilities(triples)[0]
    sides = [side for _, _, side in sample(triples, 2000, kind="bernoulli")]
    assert np.mean(np.array(sides) == 0) == pytest.approx(probability, abs=0.01)
    assert np.mean([side for _, _, side in sample(triples, 2000)]) == pytest.approx(0.5, abs=0.01)


def test_entities_are_sampled_uniformly(graph):
    triples = graph([(0, 0, 1), (2, 0, 3), (4, 0, 5)], n_entities=9)
    sampled = [false[2] for _, false, side in sample(triples, 6000) if side == 1]
    counts = np.bincount(sampled, minlength=9)
    assert counts[6:].sum() == 0  # entities without triples are not sampled
    assert counts[[0, 2, 4]].min() / counts[[0, 2, 4]].max() > 0.95
