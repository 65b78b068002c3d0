"""Optimisers: steps equal to torch's, and sparse where they should be."""

import numpy as np
import pytest

from biograft.graph import OptimiserConfig
from biograft.graph.embedding.loops import make_moments, make_update_rule, step_table

ROWS = np.array([[3, 1, 3, -1], [0, 1, -1, 3], [-1, -1, 5, 0]], np.int32)


def run_steps(kind, table, slots, bound="none"):
    """Make one step for each line of ROWS."""
    table = table.copy()
    config = OptimiserConfig(kind=kind, learning_rate=0.05)
    moments, group_of = make_moments(table, config), np.full(len(table), -1, np.int32)
    for k, (rows, gradients) in enumerate(zip(ROWS, slots, strict=True)):
        rule = make_update_rule(config, k + 1, bound)
        step_table(table, rows, gradients.copy(), moments, rule, group_of)
        assert (group_of == -1).all()
    return table


@pytest.fixture
def random_table():
    rng = np.random.default_rng(0)
    return rng.normal(size=(7, 4)), rng.normal(size=(*ROWS.shape, 4))


@pytest.mark.parametrize(
    ("kind", "name"), [("adam", "Adam"), ("adagrad", "Adagrad"), ("lazy-adam", "SparseAdam")]
)
def test_steps_equal_torchs(kind, name, random_table):
    torch = pytest.importorskip("torch")
    table, slots = random_table
    weight = torch.nn.Parameter(torch.tensor(table))
    optimiser = getattr(torch.optim, name)([weight], lr=0.05, eps=1e-8)
    for rows, gradients in zip(ROWS, slots, strict=True):
        used = rows >= 0
        group_of = torch.tensor(rows[used]).long()[None]
        gradient = torch.sparse_coo_tensor(
            group_of, torch.tensor(gradients[used]), weight.shape, check_invariants=False
        ).coalesce()
        weight.grad = gradient if name == "SparseAdam" else gradient.to_dense()
        optimiser.step()
    # torch's SparseAdam adds epsilon before it corrects the moments
    tolerance = 1e-5 if name == "SparseAdam" else 1e-9
    np.testing.assert_allclose(
        run_steps(kind, table, slots), weight.detach().numpy(), rtol=tolerance
    )


def test_row_wise_adagrad_is_its_formula(random_table):
    table, slots = random_table
    expected, sums = table.copy(), np.zeros(len(table))
    for rows, gradients in zip(ROWS, slots, strict=True):
        for row in set(rows[rows >= 0].tolist()):
            gradient = gradients[rows == row].sum(axis=0)
            sums[row] += (gradient**2).mean()
            expected[row] -= 0.05 * gradient / (sums[row] ** 0.5 + 1e-8)
    np.testing.assert_allclose(run_steps("row-adagrad", table, slots), expected, rtol=1e-9)


@pytest.mark.parametrize("kind", ["lazy-adam", "adagrad", "row-adagrad"])
def test_rows_without_gradients_stay(kind, random_table):
    table, slots = random_table
    moved = (run_steps(kind, table, slots) != table).any(axis=1)
    assert moved.tolist() == [True, True, False, True, False, True, False]


def test_adam_leaves_rows_that_never_had_a_gradient(random_table):
    """Normalising them again rounded them at each step: they moved without a triple."""
    table, slots = random_table[0].astype(np.float32), random_table[1].astype(np.float32)
    table /= np.linalg.norm(table, axis=1, keepdims=True)
    table[[2, 4, 6]] *= np.float32(1 + 1e-6)
    moved = (run_steps("adam", table, slots, "unit") != table).any(axis=1)
    assert moved.tolist() == [True, True, False, True, False, True, False]


@pytest.mark.parametrize("beta1", [0.0, 0.9])
def test_adam_decays_the_moments_of_rows_without_new_gradients(beta1, random_table):
    """Also without momentum, where only the second moment is left."""
    table, slots = random_table
    config = OptimiserConfig(kind="adam", learning_rate=0.05, beta1=beta1)
    moments, group_of = make_moments(table, config), np.full(len(table), -1, np.int32)
    for k, rows in enumerate(([5], [0], [0], [0])):
        gradient, rule = slots[0, :1].copy(), make_update_rule(config, k + 1, "none")
        step_table(table, np.array(rows, np.int32), gradient, moments, rule, group_of)
    np.testing.assert_allclose(moments.second[5], 0.001 * 0.999**3 * slots[0, 0] ** 2)


def test_bounds_hold(random_table):
    table, slots = random_table
    table = table / np.linalg.norm(table, axis=1, keepdims=True)
    unit = np.linalg.norm(run_steps("adam", table, slots, "unit"), axis=1)
    ball = np.linalg.norm(run_steps("adam", table * 0.4, slots, "ball"), axis=1)
    np.testing.assert_allclose(unit, 1)
    assert ball.max() <= 1 + 1e-12
    assert ball.min() < 0.9
    # steps that lead out of the ball end on its surface
    ball = np.linalg.norm(run_steps("adam", table, slots, "ball"), axis=1)
    assert ball.max() == pytest.approx(1, abs=1e-12)
    assert ball.min() < 0.999
