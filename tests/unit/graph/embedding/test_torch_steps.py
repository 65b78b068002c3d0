"""TransE in torch: the losses, gradients and updates of the compiled loops, on equal negatives."""

from __future__ import annotations

import numpy as np
import pytest

from biograft.graph import GraphRecipe
from biograft.graph.embedding.steps import new_run
from biograft.graph.embedding.torch_steps import TorchSteps
from biograft.graph.embedding.training import train_epochs

LOSSES = {
    "margin": ["loss.kind=margin", "loss.margin=1.5", "sampling.negatives=3"],
    "self-adversarial": ["sampling.negatives=5"],
}


def train_both(triples, changes, n_epochs=4):
    """Train the same vectors in compiled loops and in torch."""
    base = ["model.dim=6", "training.batch=16", "training.seed=4", f"training.epochs={n_epochs}"]
    recipe = GraphRecipe.load("transe", [*base, *changes])
    compiled, torch = (new_run(triples, recipe, np.float64) for _ in range(2))
    train_epochs(triples, recipe, compiled)
    train_epochs(triples, recipe, torch, steps=TorchSteps(torch, recipe, "cpu"))
    assert compiled.losses == pytest.approx(torch.losses, rel=1e-6)
    return compiled, torch


@pytest.mark.parametrize("norm", ["l1", "l2", "l2-squared"])
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("optimiser", ["adam", "lazy-adam", "adagrad", "row-adagrad"])
def test_losses_and_vectors_are_those_of_the_compiled_loops(random_graph, norm, loss, optimiser):
    rate = 0.01 if "adam" in optimiser else 0.1
    changes = [f"model.norm={norm}", f"optimiser.kind={optimiser}", *LOSSES[loss]]
    compiled, torch = train_both(random_graph(), [*changes, f"optimiser.learning_rate={rate}"])
    for ours, theirs in zip(compiled.tables, torch.tables, strict=True):
        np.testing.assert_allclose(theirs, ours, rtol=1e-6, atol=1e-9)
    for ours, theirs in zip(compiled.moments[:2], torch.moments[:2], strict=True):
        for a, b in zip(ours, theirs, strict=True):
            np.testing.assert_allclose(b, a, rtol=1e-6, atol=1e-12)


@pytest.mark.parametrize("bound", ["unit", "ball"])
@pytest.mark.parametrize("optimiser", ["adam", "lazy-adam", "adagrad"])
def test_norms_are_bounded_alike(random_graph, bound, optimiser):
    changes = [f"model.entity_bound={bound}", f"optimiser.kind={optimiser}", "loss.kind=margin"]
    compiled, torch = train_both(random_graph(), changes, 2)
    np.testing.assert_allclose(torch.tables.entity, compiled.tables.entity, rtol=1e-6)


def test_a_row_is_touched_only_by_triples_with_a_loss(random_graph):
    """Lazy Adam would else decay the moments of rows without a gradient."""
    changes = ["loss.kind=margin", "loss.margin=0.01", "optimiser.kind=lazy-adam"]
    compiled, torch = train_both(random_graph(), changes, 6)
    np.testing.assert_allclose(torch.moments[0].second, compiled.moments[0].second, atol=1e-12)
