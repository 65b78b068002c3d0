"""Entity prediction: the corruption of entities, and the loss against plain loops."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from graph_examples import (
    Reader,
    batches,
    random_graph,
    random_table,
    sequence,
    setting,
    text_states,
    visible,
)

from biograft.training.objectives import (
    IGNORED,
    VISIBLE_ENTITIES,
    EntityPrediction,
    EntityPredictionConfig,
    TensorBatch,
    TextBatch,
    set_visible_entities,
)

NAME = "entity_prediction"
MENTIONS = [(0, 1, 5), (2, 2, 9), (4, 6, 0), (7, 7, -1), (8, 8, 9), (9, 9, 13)]
COUNTS = np.ones(20, np.int64)


def objective(**options):
    return EntityPrediction(EntityPredictionConfig(**options), setting(entity_counts=COUNTS))


def test_entities_are_kept_or_corrupted_and_predicted():
    made = objective(withheld_ratio=0.3, replaced_ratio=0.2)
    own = [entity if entity >= 0 else None for _, _, entity in MENTIONS]
    n_withheld = n_replaced = n_kept = 0
    others = []
    for k in range(1500):
        example = made.prepare(sequence(MENTIONS), np.random.default_rng([7, k]))
        predicted = [None if row == IGNORED else int(row) for row in example.mention_labels[NAME]]
        for entity, received, label in zip(own, visible(example), predicted, strict=True):
            assert label in (None, entity)
            if entity is None:
                assert received is label is None
            elif received is None:
                assert label == entity
                n_withheld += 1
            elif label is None:
                assert received == entity
                n_kept += 1
            else:
                n_replaced += 1
                others.append(received)
    n = 1500 * 5
    assert n_withheld / n == pytest.approx(0.3, abs=0.02)
    assert n_replaced / n == pytest.approx(0.2, abs=0.02)
    assert n_kept / n == pytest.approx(0.5, abs=0.02)
    counts = np.bincount(others, minlength=20)
    assert len(counts) == 20
    assert ((counts - len(others) / 20) ** 2).sum() / (len(others) / 20) < 19 + 4 * math.sqrt(38)


def test_an_example_is_prepared_once_and_the_given_one_stays():
    made = objective(withheld_ratio=0.5, replaced_ratio=0.5)
    given = sequence(MENTIONS)
    once = made.prepare(given, np.random.default_rng(0))
    assert made.prepare(once, np.random.default_rng(1)) is once
    assert not given.mention_labels
    again = made.prepare(given, np.random.default_rng(0))
    assert visible(again) == visible(once)
    assert visible(made.prepare(sequence([]), np.random.default_rng(0))) == []


def test_entities_that_are_not_visible_are_not_corrupted():
    given = set_visible_entities(sequence(MENTIONS, masked=(2, 4, 5, 6)), "masked", None)
    made = objective(withheld_ratio=1.0, replaced_ratio=0.0)
    example = made.prepare(given, np.random.default_rng(0))
    assert example.mention_labels[NAME].tolist() == [IGNORED, 9, 0, IGNORED, IGNORED, IGNORED]
    assert visible(example) == [None] * 6
    assert visible(given) == [None, 9, 0, None, None, None]
    assert made.order > 1


def labelled(labels, entities):
    """A batch of two sequences whose mentions, at the first tokens, have these labels."""
    n = len(entities)
    empty = np.zeros((2, 12), np.int64)
    return TextBatch(
        tokens=empty,
        mask=empty + 1,
        segments=empty,
        mentions=np.array([(k % 2, k, k) for k in range(n)], np.int64).reshape(-1, 3),
        entities=np.array(entities, np.int64),
        token_labels={},
        mention_labels=dict.fromkeys((NAME, VISIBLE_ENTITIES), np.array(labels, np.int64)),
        labels={},
    )


@pytest.mark.parametrize("weight", [1.0, 3.0])
def test_the_loss_is_that_of_plain_loops_over_the_entities_of_the_batch(weight):
    entities = [5, 9, -1, 0, 9, 13]
    labels = [5, IGNORED, IGNORED, 0, 9, IGNORED]
    made, table, reader = objective(weight=weight), random_table(), Reader()
    text = labelled(labels, entities)
    states = text_states(2, table, reader)
    loss, stats = made.loss(states, TensorBatch.of(text))
    losses, n_right, rows = [], 0, table.tolist()
    for (row, first, last), label in zip(text.mentions.tolist(), labels, strict=True):
        if label == IGNORED:
            continue
        vector = reader(states.final, torch.tensor([[row, first, last]]))[0].tolist()
        scores = {
            entity: sum(a * b for a, b in zip(vector, rows[entity], strict=True))
            for entity in (0, 5, 9, 13)
        }
        losses.append(math.log(sum(map(math.exp, scores.values()))) - scores[label])
        n_right += max(scores, key=lambda entity: scores[entity]) == label
    assert made.count(text) == 3
    assert stats == {"loss": pytest.approx(sum(losses) / 3), "accuracy": pytest.approx(n_right / 3)}
    assert float(loss.detach()) == pytest.approx(weight * sum(losses) / 3, rel=1e-9)


def test_random_entities_come_from_the_counts_or_from_the_graph():
    config = EntityPredictionConfig(withheld_ratio=0.0, replaced_ratio=1.0)
    graph = random_graph(n_entities=3)
    counted = {"entity_counts": np.ones(2, np.int64)}
    for given, n in ((setting(graph), 3), (setting(graph, **counted), 3), (setting(**counted), 2)):
        made = EntityPrediction(config, given)
        received = {
            row
            for k in range(50)
            for row in visible(made.prepare(sequence(MENTIONS[:2]), np.random.default_rng(k)))
        }
        assert received == set(range(n))
    text, _ = batches(
        EntityPrediction(EntityPredictionConfig(replaced_ratio=0.0), setting()),
        [sequence(MENTIONS)],
    )
    assert set(text.mention_labels) == {VISIBLE_ENTITIES, NAME}
