"""TransE and TransR: distances, losses and gradients against PyKEEN, formulas and plain loops."""

from __future__ import annotations

import math

import numpy as np
import pytest

from biograft.graph import GraphRecipe, LossConfig, ModelConfig
from biograft.graph.embedding import loops
from biograft.graph.embedding.loops import (
    L1,
    L2,
    L2_SQUARED,
    LossRules,
    Tables,
    TripleBatch,
    batch_gradients,
    clip_norm,
    distance,
    loss_gradients,
    make_buffers,
    make_loss_rules,
    project,
    projection_gradients,
)
from biograft.graph.embedding.steps import new_run


@pytest.mark.parametrize("size", [1, 4, 7, 100])
def test_distances_are_plain_sums(size):
    head, relation, tail = np.random.default_rng(size).normal(size=(3, size))
    gaps = [h + r - t for h, r, t in zip(head, relation, tail, strict=True)]
    assert distance(head, relation, tail, L1) == pytest.approx(sum(map(abs, gaps)))
    assert distance(head, relation, tail, L2) == pytest.approx(sum(g * g for g in gaps) ** 0.5)
    assert distance(head, relation, tail, L2_SQUARED) == pytest.approx(sum(g * g for g in gaps))


def score(tables, setting, triple):
    head, relation, tail = triple
    norm = {"l1": L1, "l2": L2, "norm": L2, "squared": L2_SQUARED}[setting.split("_")[1]]
    if setting.startswith("transe"):
        entity, vectors = tables["entity"], tables["relation"]
        return -distance(entity[head], vectors[relation], entity[tail], norm)
    ends = []
    for row in (head, tail):
        ends.append(np.empty(5))
        project(tables["entity"][row], np.array(tables["projection"][relation]), ends[-1])
        if setting.endswith("clamped"):
            clip_norm(ends[-1])
    return -distance(ends[0], tables["relation_transr"][relation], ends[1], norm)


SETTINGS = (
    "transe_l1",
    "transe_l2",
    "transr_norm",
    "transr_squared",
    "transr_norm_clamped",
    "transr_squared_clamped",
)


@pytest.mark.parametrize("setting", SETTINGS)
def test_scores_and_margin_losses_equal_pykeens(setting, pykeen):
    tables, expected = pykeen
    scores = {
        kind: np.array([score(tables, setting, triple) for triple in tables[kind]])
        for kind in ("positive", "negative")
    }
    for kind, values in scores.items():
        np.testing.assert_allclose(values, tables[f"{setting}.{kind}"], rtol=1e-9)
    rules, scratch = LossRules(L2, True, 0, 1.0, 1.0), np.empty(2)
    pairs = zip(scores["positive"], scores["negative"], strict=True)
    mean = sum(loss_gradients(np.array(pair), scratch, 20, rules) for pair in pairs)
    assert mean == pytest.approx(expected["losses"][setting]["mean"], rel=1e-9)


def rules_of(kind, **options):
    return make_loss_rules(ModelConfig(), LossConfig(kind=kind, **options))


def test_margin_ranking_is_the_mean_over_pairs():
    scores, gradients = np.array([-1.0, -1.5, -3.0, -0.5]), np.empty(4)
    loss = loss_gradients(scores, gradients, 2, rules_of("margin", margin=1.0))
    assert loss == pytest.approx((0.5 + 0 + 1.5) / 3 / 2)
    np.testing.assert_allclose(gradients, [-2 / 6, 1 / 6, 0, 1 / 6])


def test_the_self_adversarial_loss_is_its_formula():
    scores, gradients = np.array([-1.0, -1.5, -3.0]), np.empty(3)
    loss = loss_gradients(
        scores, gradients, 1, rules_of("self-adversarial", margin=2.0, temperature=0.5)
    )
    weights = [math.exp(0.5 * score) for score in scores[1:]]
    of = [weight / sum(weights) for weight in weights]
    logs = [math.log(1 / (1 + math.exp(score + 2))) for score in scores[1:]]
    true = math.log(1 / (1 + math.exp(-(2 - 1))))
    assert loss == pytest.approx(-(true + sum(w * g for w, g in zip(of, logs, strict=True))) / 2)


def test_nan_is_preserved():
    loss = loss_gradients(np.array([-1.0, np.nan]), np.empty(2), 1, rules_of("margin"))
    assert math.isnan(loss)


STEP = 1e-6


def make_batch(n=7, n_negatives=3, seed=1):
    rng = np.random.default_rng(seed)
    int32 = np.int32
    return TripleBatch(
        rng.integers(0, 12, n, int32),
        np.sort(rng.integers(0, 3, n, int32)),
        rng.integers(0, 12, n, int32),
        rng.integers(0, 12, (n, n_negatives), int32),
        rng.integers(0, 2, (n, n_negatives), np.uint8),
    )


def sum_by_row(tables, batch, buffers):
    """Sum gradients by row, in plain loops."""
    entity, relation = np.zeros_like(tables.entity), np.zeros_like(tables.relation)
    for i, relation_row in enumerate(batch.relations):
        if buffers.rows[i, 0] >= 0:
            relation[relation_row] += buffers.relation[i]
        for slot, row in enumerate(buffers.rows[i]):
            if row >= 0:
                entity[row] += buffers.entity[i, slot]
    projection = np.zeros_like(tables.projection)
    if len(projection):
        starts = np.flatnonzero(np.diff(batch.relations, prepend=-1, append=-1))
        out = np.empty((len(starts) - 1, *projection.shape[1:]))
        projection_gradients(tables, starts, buffers, out)
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
def test_gradients_equal_finite_differences(random_graph, model, norm, loss):
    recipe = GraphRecipe(model=ModelConfig(norm=norm, **model), loss=LossConfig(**loss))
    # longer, so that some projections are clipped and some are not
    tables = Tables(*(1.7 * table for table in new_run(random_graph(), recipe, np.float64).tables))
    batch, rules = make_batch(), make_loss_rules(recipe.model, recipe.loss)
    buffers = make_buffers(tables, 7, 3)
    batch_gradients(tables, batch, rules, buffers)
    totals, scratch = sum_by_row(tables, batch, buffers), make_buffers(tables, 7, 3)
    for table, gradients in zip(tables, totals, strict=True):
        expected = np.zeros_like(table)
        for index in np.ndindex(table.shape):
            values = []
            for change in (STEP, -STEP):
                table[index] += change
                values.append(batch_gradients(tables, batch, rules, scratch))
                table[index] -= change
            expected[index] = (values[0] - values[1]) / (2 * STEP)
        np.testing.assert_allclose(gradients, expected, atol=1e-7)
    assert np.abs(totals.entity).max() > 0.01


def test_results_do_not_depend_on_threads(random_graph, monkeypatch):
    recipe, batch = GraphRecipe(model=ModelConfig(dim=8)), make_batch(300, 4)
    tables = new_run(random_graph(), recipe).tables
    results = []
    for workers in (1, 3):
        monkeypatch.setattr(loops, "n_cores", lambda workers=workers: workers)
        loops.thread_pool.cache_clear()
        buffers = make_buffers(tables, 300, 4)
        loss = batch_gradients(tables, batch, make_loss_rules(recipe.model, recipe.loss), buffers)
        results.append((loss, buffers))
    loops.thread_pool.cache_clear()
    assert results[0][0] == results[1][0]
    for one, other in zip(results[0][1], results[1][1], strict=True):
        np.testing.assert_array_equal(one, other)


def test_a_true_triple_without_loss_leaves_its_negatives_their_gradients(random_graph):
    """Values of the previous batch were taken for the gradients of negatives."""
    recipe = GraphRecipe(
        model=ModelConfig(dim=6, entity_bound="none"),
        loss=LossConfig(kind="self-adversarial", margin=900.0, temperature=0.0),
    )
    tables = new_run(random_graph(), recipe, np.float64).tables
    batch, rules, buffers = make_batch(), make_loss_rules(recipe.model, recipe.loss), None
    buffers = make_buffers(tables, 7, 3)
    for values in buffers:
        values.fill(77)
    batch_gradients(tables, batch, rules, buffers)
    assert (buffers.weights[:, 0] == 0).all()
    assert (buffers.weights[:, 1:] > 0).all()
    totals, expected = sum_by_row(tables, batch, buffers), np.zeros_like(tables.entity)
    for i in range(7):
        for k in range(3):
            head, tail = batch.heads[i], batch.tails[i]
            head, tail = (
                (batch.entities[i, k], tail)
                if batch.sides[i, k] == 0
                else (head, batch.entities[i, k])
            )
            gap = tables.entity[head] + tables.relation[batch.relations[i]] - tables.entity[tail]
            gradient = gap / np.linalg.norm(gap) / 7 / 3 / 2  # of the mean of both terms
            expected[head] -= gradient
            expected[tail] += gradient
    np.testing.assert_allclose(totals.entity, expected, atol=1e-12)
