"""Slopes of whole batches: against differences of the loss, in 64 bits."""

import numpy as np
import pytest

from biograft.graph.embedding.config import EmbeddingRecipe, LossConfig, ModelConfig
from biograft.graph.embedding.gradients import Batch, batch_slopes, make_slots, matrix_slopes
from biograft.graph.embedding.losses import make_rules
from biograft.graph.embedding.scoring import Tables
from biograft.graph.embedding.training import begin

STEP = 1e-6


def make_batch(n=7, n_negatives=3, seed=1):
    draw = np.random.default_rng(seed)
    whole = np.int32
    return Batch(
        draw.integers(0, 12, n, whole),
        np.sort(draw.integers(0, 3, n, whole)),
        draw.integers(0, 12, n, whole),
        draw.integers(0, 12, (n, n_negatives), whole),
        draw.integers(0, 2, (n, n_negatives), np.uint8),
    )


def add_up(tables, batch, slots):
    """Bring what stands in slots together by row, in plain loops."""
    entity, relation = np.zeros_like(tables.entity), np.zeros_like(tables.relation)
    for i, number in enumerate(batch.relations):
        if slots.rows[i, 0] >= 0:
            relation[number] += slots.relation[i]
        for slot, row in enumerate(slots.rows[i]):
            if row >= 0:
                entity[row] += slots.entity[i, slot]
    projection = np.zeros_like(tables.projection)
    if len(projection):
        starts = np.flatnonzero(np.diff(batch.relations, prepend=-1, append=-1))
        out = np.empty((len(starts) - 1, *projection.shape[1:]))
        matrix_slopes(tables, starts, slots, out)
        projection[batch.relations[starts[:-1]]] = out
    return Tables(entity, relation, projection)


@pytest.mark.parametrize("norm", ["l1", "l2", "l2-squared"])
@pytest.mark.parametrize(
    "model",
    [
        {"kind": "transe", "dim": 6},
        {"kind": "transr", "dim": 6, "relation_dim": 5, "projection": "xavier"},
        {"kind": "transr", "dim": 9, "relation_dim": 3, "projection": "xavier", "clamp": False},
    ],
    ids=["transe", "transr", "transr free"],
)
@pytest.mark.parametrize(
    "loss", [{"margin": 1.0}, {"kind": "self-adversarial", "margin": 2.0, "temperature": 0.0}]
)
def test_slopes_are_differences(drawn_graph, model, norm, loss):
    recipe = EmbeddingRecipe(model=ModelConfig(norm=norm, **model), loss=LossConfig(**loss))
    # longer, so that some projections are shortened and some are not
    tables = Tables(*(1.7 * table for table in begin(drawn_graph(), recipe, np.float64).tables))
    batch, rules = make_batch(), make_rules(recipe.model, recipe.loss)
    slots = make_slots(tables, 7, 3)
    batch_slopes(tables, batch, rules, slots)
    found, room = add_up(tables, batch, slots), make_slots(tables, 7, 3)
    for table, slopes in zip(tables, found, strict=True):
        expected = np.zeros_like(table)
        for place in np.ndindex(table.shape):
            values = []
            for change in (STEP, -STEP):
                table[place] += change
                values.append(batch_slopes(tables, batch, rules, room))
                table[place] -= change
            expected[place] = (values[0] - values[1]) / (2 * STEP)
        np.testing.assert_allclose(slopes, expected, atol=1e-7)
    assert np.abs(found.entity).max() > 0.01


def test_threads_change_nothing(drawn_graph, monkeypatch):
    from biograft.graph.embedding import threads

    recipe, batch = EmbeddingRecipe(model=ModelConfig(dim=8)), make_batch(300, 4)
    tables = begin(drawn_graph(), recipe).tables
    results = []
    for workers in (1, 3):
        monkeypatch.setattr(threads, "n_threads", lambda workers=workers: workers)
        threads._crew.cache_clear()
        slots = make_slots(tables, 300, 4)
        loss = batch_slopes(tables, batch, make_rules(recipe.model, recipe.loss), slots)
        results.append((loss, slots))
    threads._crew.cache_clear()
    assert results[0][0] == results[1][0]
    for one, other in zip(results[0][1], results[1][1], strict=True):
        np.testing.assert_array_equal(one, other)
