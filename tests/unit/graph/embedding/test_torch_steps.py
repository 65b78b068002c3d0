"""TransE in torch: the losses, gradients and updates of the compiled loops, on equal negatives."""

from __future__ import annotations

import numpy as np
import pytest

from biograft.graph import EmbeddingExecution, GraphRecipe
from biograft.graph.embedding.epochs import _EpochTrainer
from biograft.graph.embedding.state import new_run
from biograft.graph.embedding.torch_steps import TorchSteps
from biograft.progress import Progress

LOSSES = {
    "margin": ["loss.kind=margin", "loss.margin=1.5", "sampling.negatives=3"],
    "self-adversarial": ["sampling.negatives=5"],
}


def trainers(triples, changes, dtype=np.float64):
    """The same training in compiled loops and in torch."""
    base = ["model.dim=6", "training.batch=16", "training.seed=4", *changes]
    recipe = GraphRecipe.load("transe", base)
    both = [
        _EpochTrainer(triples, recipe, new_run(triples, recipe, dtype), EmbeddingExecution())
        for _ in range(2)
    ]
    both[1].steps = TorchSteps(both[1].run, recipe, "cpu")
    return both


def train(trainer, n_epochs=4):
    losses = []
    for _ in range(n_epochs):
        losses.append(trainer.epoch(Progress(enabled=False)))
        trainer.run.epoch += 1
    return losses


@pytest.mark.parametrize("norm", ["l1", "l2", "l2-squared"])
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("optimiser", ["adam", "lazy-adam", "adagrad", "row-adagrad"])
def test_losses_and_vectors_are_those_of_the_compiled_loops(random_graph, norm, loss, optimiser):
    rate = 0.01 if "adam" in optimiser else 0.1
    changes = [f"model.norm={norm}", f"optimiser.kind={optimiser}", *LOSSES[loss]]
    compiled, torch = trainers(random_graph(), [*changes, f"optimiser.learning_rate={rate}"])
    assert train(compiled) == pytest.approx(train(torch), rel=1e-6)
    for ours, theirs in zip(compiled.run.tables, torch.run.tables, strict=True):
        np.testing.assert_allclose(theirs, ours, rtol=1e-6, atol=1e-9)
    for ours, theirs in zip(compiled.run.moments[:2], torch.run.moments[:2], strict=True):
        for a, b in zip(ours, theirs, strict=True):
            np.testing.assert_allclose(b, a, rtol=1e-6, atol=1e-12)


@pytest.mark.parametrize("bound", ["unit", "ball"])
@pytest.mark.parametrize("optimiser", ["adam", "lazy-adam", "adagrad"])
def test_norms_are_bounded_alike(random_graph, bound, optimiser):
    changes = [f"model.entity_bound={bound}", f"optimiser.kind={optimiser}", "loss.kind=margin"]
    compiled, torch = trainers(random_graph(), changes)
    assert train(compiled, 2) == pytest.approx(train(torch, 2), rel=1e-6)
    np.testing.assert_allclose(torch.run.tables.entity, compiled.run.tables.entity, rtol=1e-6)


def test_a_row_is_touched_only_by_triples_with_a_loss(random_graph):
    """Lazy Adam would else decay the moments of rows without a gradient."""
    changes = ["loss.kind=margin", "loss.margin=0.01", "optimiser.kind=lazy-adam"]
    compiled, torch = trainers(random_graph(), changes)
    train(compiled, 6), train(torch, 6)
    np.testing.assert_allclose(
        torch.run.moments[0].second, compiled.run.moments[0].second, atol=1e-12
    )
