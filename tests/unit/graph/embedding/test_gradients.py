"""Slopes of whole batches: against differences of the loss, in 64 bits."""

import numpy as np
import pytest

from biograft.graph.embedding.config import EmbeddingRecipe, LossConfig, ModelConfig
from biograft.graph.embedding.gradients import (
    Batch,
    batch_slopes,
    make_rules,
    make_slots,
    matrix_slopes,
)
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
    from biograft.graph.embedding import scoring as threads

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


def test_a_true_triple_that_costs_nothing_leaves_its_false_ones_their_slopes(drawn_graph):
    """What stood in the slots from the batch before was taken for the slopes of false triples."""
    recipe = EmbeddingRecipe(
        model=ModelConfig(dim=6, entity_bound="none"),
        loss=LossConfig(kind="self-adversarial", margin=900.0, temperature=0.0),
    )
    tables = begin(drawn_graph(), recipe, np.float64).tables
    batch, rules, slots = make_batch(), make_rules(recipe.model, recipe.loss), None
    slots = make_slots(tables, 7, 3)
    for values in slots:
        values.fill(77)
    batch_slopes(tables, batch, rules, slots)
    assert (slots.weights[:, 0] == 0).all()
    assert (slots.weights[:, 1:] > 0).all()
    found, expected = add_up(tables, batch, slots), np.zeros_like(tables.entity)
    for i in range(7):
        for k in range(3):
            head, tail = batch.heads[i], batch.tails[i]
            head, tail = (
                (batch.entities[i, k], tail) if batch.sides[i, k] == 0
                else (head, batch.entities[i, k])
            )  # fmt: skip
            gap = tables.entity[head] + tables.relation[batch.relations[i]] - tables.entity[tail]
            slope = gap / np.linalg.norm(gap) / 7 / 3 / 2  # of the mean of both parts
            expected[head] -= slope
            expected[tail] += slope
    np.testing.assert_allclose(found.entity, expected, atol=1e-12)


@pytest.mark.parametrize("norm", ["l1", "l2", "l2-squared"])
@pytest.mark.parametrize("clamp", [True, False])
def test_a_step_of_transr_is_that_of_plain_loops(norm, clamp, drawn_graph):
    """Scores, margin loss and slopes written down again, a number at a time."""
    model = ModelConfig(kind="transr", dim=5, relation_dim=4, projection="xavier", norm=norm,
                        clamp=clamp)  # fmt: skip
    recipe = EmbeddingRecipe(model=model, loss=LossConfig(margin=2.0))
    tables = Tables(*(1.6 * table for table in begin(drawn_graph(), recipe, np.float64).tables))
    batch, slots = make_batch(n_negatives=2), make_slots(tables, 7, 2)
    loss = batch_slopes(tables, batch, make_rules(model, recipe.loss), slots)
    found, (expected, plain) = add_up(tables, batch, slots), plain_step(tables, batch, model, 2.0)
    assert loss == pytest.approx(plain, rel=1e-12)
    for name in Tables._fields:
        np.testing.assert_allclose(getattr(found, name), expected[name], atol=1e-12)


def plain_step(tables, batch, model, margin):
    """Give the slopes of the margin loss by all vectors, and the loss, in plain Python."""
    out = {name: np.zeros_like(table) for name, table in tables._asdict().items()}
    n, n_negatives = batch.entities.shape
    total = 0.0
    for i in range(n):
        true = [int(column[i]) for column in (batch.heads, batch.relations, batch.tails)]
        for k in range(n_negatives):
            false = list(true)
            false[0 if batch.sides[i, k] == 0 else 2] = int(batch.entities[i, k])
            cost = margin + plain_far(tables, true, model) - plain_far(tables, false, model)
            if cost > 0:
                total += cost / (n * n_negatives)
                plain_far(tables, true, model, out, 1 / (n * n_negatives))
                plain_far(tables, false, model, out, -1 / (n * n_negatives))
    return out, total


def plain_far(tables, triple, model, out=None, factor=0.0):
    """Measure one triple; with ``out``, add ``factor`` times the slopes of its distance."""
    head, relation, tail = triple
    matrix, dims, widths = tables.projection[relation], range(5), range(4)
    ends, lengths = [], []
    for row in (head, tail):
        there = [sum(tables.entity[row][a] * matrix[a][b] for a in dims) for b in widths]
        length = sum(x * x for x in there) ** 0.5
        lengths.append(length if model.clamp and length > 1 else 1.0)
        ends.append([x / lengths[-1] for x in there])
    gaps = [ends[0][b] + tables.relation[relation][b] - ends[1][b] for b in widths]
    squared = sum(gap * gap for gap in gaps)
    far = {"l1": sum(map(abs, gaps)), "l2": squared**0.5, "l2-squared": squared}[model.norm]
    if out is None:
        return far
    by_gap = {
        "l1": [1.0 if gap > 0 else -1.0 for gap in gaps],
        "l2": [gap / far for gap in gaps],
        "l2-squared": [2 * gap for gap in gaps],
    }[model.norm]
    for row, sign, end, length in ((head, 1, ends[0], lengths[0]), (tail, -1, ends[1], lengths[1])):
        by_end = [sign * factor * slope for slope in by_gap]
        if length > 1:  # d(x / |x|): what goes along x falls away
            along = sum(s * x for s, x in zip(by_end, end, strict=True))
            by_end = [(s - along * x) / length for s, x in zip(by_end, end, strict=True)]
        for a in dims:
            for b in widths:
                out["entity"][row][a] += by_end[b] * matrix[a][b]
                out["projection"][relation][a][b] += by_end[b] * tables.entity[row][a]
    for b in widths:
        out["relation"][relation][b] += factor * by_gap[b]
    return far
