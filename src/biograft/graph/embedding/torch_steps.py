"""Steps in torch, for a GPU and for models of others: the losses and updates of compiled loops.

The vectors stay on the device during an epoch. Only the vectors of a batch are gathered, get
gradients and are updated, except by dense Adam. Sums run in another order than in the compiled
loops, and on a GPU in a changing one, so that runs agree up to rounding. On a processor this takes
two to three times as long as the compiled loops.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.nn.functional import logsigmoid

from biograft.graph.config import GRAPH_MODELS, GraphRecipe
from biograft.graph.embedding.loops import TripleBatch
from biograft.graph.embedding.steps import EmbeddingRun


class TransE:
    """A relation is the translation from head to tail (Bordes et al., 2013)."""

    @staticmethod
    def tails(heads: Tensor, relations: Tensor) -> Tensor:
        """Return where the tails are expected: heads + relations.

        Args:
            heads: (..., dim)
            relations: (..., dim)
        """
        return heads + relations

    @staticmethod
    def heads(tails: Tensor, relations: Tensor) -> Tensor:
        """Return where the heads are expected: tails - relations.

        Args:
            tails: (..., dim)
            relations: (..., dim)
        """
        return tails - relations


class TorchSteps:
    """Steps of a run on a device of torch.

    Args:
        run: the vectors and moments.
        recipe: model, loss and optimiser.
        device: a device of torch.
    """

    def __init__(self, run: EmbeddingRun, recipe: GraphRecipe, device: str) -> None:
        self.run, self.recipe, self.device = run, recipe, device
        self.tables = [self._to_device(table) for table in run.tables[:2]]
        self.moments = [[self._to_device(part) for part in moments] for moments in run.moments[:2]]

    def to_host(self) -> None:
        """Copy the vectors and moments of the device into the run."""
        for k in range(2):
            arrays = self.run.tables[k], *self.run.moments[k]
            for tensor, array in zip((self.tables[k], *self.moments[k]), arrays, strict=True):
                array[...] = tensor.cpu().numpy()

    def step(self, batch: TripleBatch) -> Tensor:
        """Make one step.

        Args:
            batch: true and corrupted triples.

        Returns:
            the loss, on the device.
        """
        self.run.step += 1
        model = self.recipe.model
        ends = self._to_device(np.column_stack([batch.heads, batch.tails, batch.entities])).long()
        relations = self._to_device(batch.relations).long()
        heads_replaced = self._to_device(batch.sides == 0)[..., None]
        entity = self.tables[0][ends].requires_grad_()  # (batch, 2 + negatives, dim)
        relation = self.tables[1][relations].requires_grad_()
        head, tail, corrupted = entity[:, :1], entity[:, 1:2], entity[:, 2:]
        pairs = [
            torch.cat([true, torch.where(replaced, corrupted, true)], 1)
            for true, replaced in ((head, heads_replaced), (tail, ~heads_replaced))
        ]
        expected = GRAPH_MODELS.load(model.kind).tails(pairs[0], relation[:, None])
        gaps = expected - pairs[1]  # (batch, 1 + negatives, dim)
        if model.norm == "l1":
            scores = -gaps.abs().sum(-1)
        elif model.norm == "l2":
            scores = -torch.linalg.vector_norm(gaps, dim=-1)  # its gradient at 0 is 0
        else:
            scores = -gaps.square().sum(-1)
        loss = batch_loss(scores, self.recipe)
        by_score, by_entity, by_relation = torch.autograd.grad(loss, (scores, entity, relation))
        used = by_score != 0  # (batch, 1 + negatives)
        active = used.any(1)  # the ends of a true triple without loss occur in corrupted ones
        slots = torch.cat([active[:, None], active[:, None], used[:, 1:]], 1)
        self._update(0, ends[slots], by_entity[slots], model.entity_bound)
        self._update(1, relations[active], by_relation[active], model.relation_bound)
        return loss.detach()

    def _to_device(self, array: npt.NDArray[np.generic]) -> Tensor:
        return torch.tensor(np.ascontiguousarray(array), device=self.device)

    def _update(self, k: int, slots: Tensor, gradients: Tensor, bound: str) -> None:
        """Make one optimiser step of a table, as in the compiled loops."""
        config, table, (first, second) = self.recipe.optimiser, self.tables[k], self.moments[k]
        rows, groups = torch.unique(slots, return_inverse=True)
        gradient = table.new_zeros(len(rows), table.shape[1]).index_add_(0, groups, gradients)
        if config.kind == "adam":  # every row that ever had a gradient
            changed = (first != 0).any(1) | (second != 0).any(1)
            changed[rows] = True
            gradient = torch.zeros_like(table).index_copy_(0, rows, gradient)[changed]
            rows = changed.nonzero()[:, 0]
        values, squares = table[rows], second[rows]
        if config.kind in ("adam", "lazy-adam"):
            means = first[rows].lerp_(gradient, 1 - config.beta1)
            squares.mul_(config.beta2).addcmul_(gradient, gradient, value=1 - config.beta2)
            root = (squares.sqrt() / (1 - config.beta2**self.run.step) ** 0.5) + config.epsilon
            values -= config.learning_rate / (1 - config.beta1**self.run.step) * means / root
            first[rows] = means
        else:
            grown = gradient.square()
            squares += grown.mean(1, keepdim=True) if config.kind == "row-adagrad" else grown
            values -= config.learning_rate * gradient / (squares.sqrt() + config.epsilon)
        if bound != "none":
            length = torch.linalg.vector_norm(values, dim=1, keepdim=True)
            longer = length > (1 if bound == "ball" else 0)
            values = torch.where(longer, values / length, values)
        table[rows], second[rows] = values, squares


def batch_loss(scores: Tensor, recipe: GraphRecipe) -> Tensor:
    """Compute the loss of a batch in 64 bits.

    Args:
        scores: those of the true triples, then of their corrupted ones, (batch, 1 + negatives).
        recipe: the loss.

    Returns:
        the mean over the triples.
    """
    loss = recipe.loss
    true, false = scores[:, :1].double(), scores[:, 1:].double()
    if loss.kind == "margin":
        return (loss.margin + false - true).relu().mean()
    weights = (loss.temperature * false.detach()).softmax(1)
    negative = (weights * logsigmoid(-(loss.margin + false))).sum(1)
    return -0.5 * (logsigmoid(loss.margin + true[:, 0]) + negative).mean()
