"""Distances: equal to plain sums and to PyKEEN's."""

import numpy as np
import pytest

from biograft.graph.embedding.gradients import Rules, cost_slopes
from biograft.graph.embedding.scoring import (
    L1,
    L2,
    L2_SQUARED,
    distance,
    project,
    project_back,
    shorten,
)


@pytest.mark.parametrize("size", [1, 4, 7, 100])
def test_distances_are_plain_sums(size):
    head, relation, tail = np.random.default_rng(size).normal(size=(3, size))
    gaps = [h + r - t for h, r, t in zip(head, relation, tail, strict=True)]
    assert distance(head, relation, tail, L1) == pytest.approx(sum(map(abs, gaps)))
    assert distance(head, relation, tail, L2) == pytest.approx(sum(g * g for g in gaps) ** 0.5)
    assert distance(head, relation, tail, L2_SQUARED) == pytest.approx(sum(g * g for g in gaps))


@pytest.mark.parametrize("shape", [(1, 1), (5, 3), (8, 5), (11, 16)])
def test_projections_are_products(shape):
    draw = np.random.default_rng(0)
    vector, matrix, slope = (
        draw.normal(size=shape[0]),
        draw.normal(size=shape),
        draw.normal(size=shape[1]),
    )
    out, back = np.empty(shape[1]), np.empty(shape[0])
    project(vector, matrix, out)
    project_back(slope, matrix, back)
    np.testing.assert_allclose(out, vector @ matrix, rtol=1e-12)
    np.testing.assert_allclose(back, matrix @ slope, rtol=1e-12)


def test_only_long_vectors_are_shortened():
    long, short = np.array([3.0, 4.0]), np.array([0.3, 0.4])
    assert shorten(long) == 5
    assert shorten(short) == 0
    np.testing.assert_allclose(long, [0.6, 0.8])
    np.testing.assert_allclose(short, [0.3, 0.4])


def score(tables, form, triple):
    head, relation, tail = triple
    norm = {"l1": L1, "l2": L2, "norm": L2, "squared": L2_SQUARED}[form.split("_")[1]]
    if form.startswith("transe"):
        entity, vectors = tables["entity"], tables["relation"]
        return -distance(entity[head], vectors[relation], entity[tail], norm)
    ends = []
    for row in (head, tail):
        ends.append(np.empty(5))
        project(tables["entity"][row], np.array(tables["projection"][relation]), ends[-1])
        if form.endswith("clamped"):
            shorten(ends[-1])
    return -distance(ends[0], tables["relation_transr"][relation], ends[1], norm)


FORMS = ("transe_l1", "transe_l2", "transr_norm", "transr_squared",
         "transr_norm_clamped", "transr_squared_clamped")  # fmt: skip


@pytest.mark.parametrize("form", FORMS)
def test_scores_and_margin_losses_are_pykeens(form, pykeen):
    tables, told = pykeen
    scores = {
        part: np.array([score(tables, form, triple) for triple in tables[part]])
        for part in ("positive", "negative")
    }
    for part, values in scores.items():
        np.testing.assert_allclose(values, tables[f"{form}.{part}"], rtol=1e-9)
    rules, room = Rules(L2, True, 0, 1.0, 1.0), np.empty(2)
    pairs = zip(scores["positive"], scores["negative"], strict=True)
    mean = sum(cost_slopes(np.array(pair), room, 20, rules) for pair in pairs)
    assert mean == pytest.approx(told["losses"][form]["mean"], rel=1e-9)
