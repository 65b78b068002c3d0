"""Steps of TransE in torch, for a GPU: the losses and updates of the compiled loops.

The vectors stay on the device during an epoch. Only the vectors of a batch are gathered, get
gradients and are updated, except by dense Adam. Sums run in another order than in the compiled
loops, and on a GPU in a changing one, so that runs agree up to rounding.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.nn.functional import logsigmoid

from biograft.graph.embedding.config import GraphRecipe, OptimiserConfig
from biograft.graph.embedding.state import EmbeddingRun, Rows
from biograft.graph.embedding.transe import TripleBatch


class DeviceBatch(NamedTuple):
    """A batch on the device; entities are rows of the table, or positions among some rows."""

    heads: Tensor  # (batch,)
    relations: Tensor  # (batch,)
    tails: Tensor  # (batch,)
    entities: Tensor  # (batch, negatives)
    heads_replaced: Tensor  # (batch, negatives)


class TorchSteps:
    """Steps of a run of TransE on a device of torch."""

    def __init__(self, run: EmbeddingRun, recipe: GraphRecipe, device: str) -> None:
        self.run, self.recipe, self.device = run, recipe, torch.device(device)
        self.tables = [self._to_device(table) for table in run.tables[:2]]
        self.moments = [[self._to_device(part) for part in moments] for moments in run.moments[:2]]

    def take(self) -> None:
        """Copy the vectors and moments of the device into the run."""
        for table, moments, given, state in zip(
            self.tables, self.moments, self.run.tables, self.run.moments, strict=False
        ):
            for tensor, array in zip((table, *moments), (given, *state), strict=True):
                array[...] = tensor.cpu().numpy()

    def keep(self, rows: tuple[Rows, Rows, Rows]) -> Callable[[], None]:
        """Copy rows of the tables and their moments; return what puts them back."""
        kept = []
        for table, moments, some in zip(self.tables, self.moments, rows, strict=False):
            chosen = self._to_device(some)
            kept += [(t, chosen, t[chosen].clone()) for t in (table, *moments) if len(t)]

        def put_back() -> None:
            for tensor, chosen, values in kept:
                tensor[chosen] = values

        return put_back

    def step(self, batch: TripleBatch) -> Tensor:
        """Make one step and return the loss."""
        self.run.step += 1
        found = self._move(batch)
        entities, entity_of = _unique(found.heads, found.tails, found.entities)
        relations, (relation_of,) = _unique(found.relations)
        local = found._replace(
            heads=entity_of[0], tails=entity_of[1], entities=entity_of[2], relations=relation_of
        )
        vectors = [
            table[rows].requires_grad_()
            for table, rows in zip(self.tables, (entities, relations), strict=True)
        ]
        scores = triple_scores(vectors[0], vectors[1], local, self.recipe.model.norm)
        scores.retain_grad()
        loss = batch_loss(scores, self.recipe)
        loss.backward()  # type: ignore[no-untyped-call]
        touched = _touched(scores.grad, local, len(entities), len(relations))
        model = self.recipe.model
        bounds = (model.entity_bound, model.relation_bound)
        for k, rows in enumerate((entities, relations)):
            gradient = vectors[k].grad
            if gradient is not None:
                update = _Update(self.recipe.optimiser, self.run.step, bounds[k])
                update(self.tables[k], self.moments[k], rows[touched[k]], gradient[touched[k]])
        return loss.detach()

    def _move(self, batch: TripleBatch) -> DeviceBatch:
        heads, relations, tails, entities = (
            self._to_device(column.astype(np.int64)) for column in batch[:4]
        )
        replaced = self._to_device(batch.sides == 0)
        return DeviceBatch(heads, relations, tails, entities, replaced)

    def _to_device(self, array: npt.NDArray[np.generic]) -> Tensor:
        return torch.tensor(np.ascontiguousarray(array), device=self.device)


def _unique(*columns: Tensor) -> tuple[Tensor, list[Tensor]]:
    """Return the distinct rows of some columns, and the positions of each column among them."""
    flat = torch.cat([column.reshape(-1) for column in columns])
    rows, positions = torch.unique(flat, return_inverse=True)
    parts = positions.split([column.numel() for column in columns])
    return rows, [part.view(c.shape) for part, c in zip(parts, columns, strict=True)]


def triple_scores(entity: Tensor, relation: Tensor, batch: DeviceBatch, norm: str) -> Tensor:
    """Score the true triples and their corrupted ones: (batch, 1 + negatives)."""
    head, tail, between = entity[batch.heads], entity[batch.tails], relation[batch.relations]
    corrupted = entity[batch.entities]  # (batch, negatives, dim)
    gaps = torch.where(
        batch.heads_replaced[..., None],
        corrupted + between[:, None] - tail[:, None],
        (head + between)[:, None] - corrupted,
    )
    gaps = torch.cat([(head + between - tail)[:, None], gaps], 1)
    if norm == "l1":
        return -gaps.abs().sum(-1)
    if norm == "l2":
        length: Tensor = torch.linalg.vector_norm(gaps, dim=-1)  # its gradient at 0 is 0
        return -length
    return -gaps.square().sum(-1)


def batch_loss(scores: Tensor, recipe: GraphRecipe) -> Tensor:
    """Compute the loss of a batch, the mean over its triples, in 64 bits."""
    loss = recipe.loss
    true, false = scores[:, :1].double(), scores[:, 1:].double()
    if loss.kind == "margin":
        return (loss.margin + false - true).relu().mean()
    weights = (loss.temperature * false.detach()).softmax(1)
    negative = (weights * logsigmoid(-(loss.margin + false))).sum(1)
    return -0.5 * (logsigmoid(loss.margin + true[:, 0]) + negative).mean()


def _touched(
    gradient: Tensor | None, batch: DeviceBatch, n_entities: int, n_relations: int
) -> tuple[Tensor, Tensor]:
    """Return which entities and relations occur in triples that have a gradient.

    The ends of a true triple without one still occur in its corrupted triples.
    """
    if gradient is None:
        raise RuntimeError("the loss has no gradient by the scores")
    active, used = (gradient != 0).any(1), gradient[:, 1:] != 0
    entities = torch.zeros(n_entities, dtype=torch.bool, device=gradient.device)
    relations = torch.zeros(n_relations, dtype=torch.bool, device=gradient.device)
    for rows in (batch.heads[active], batch.tails[active], batch.entities[used]):
        entities[rows] = True
    relations[batch.relations[active]] = True
    return entities, relations


class _Update(NamedTuple):
    """One optimiser step of a table, as in the compiled loops."""

    config: OptimiserConfig
    step: int
    bound: str

    def __call__(
        self, table: Tensor, moments: list[Tensor], rows: Tensor, gradient: Tensor
    ) -> None:
        """Update a table with the gradients of some rows."""
        if self.config.kind == "adam":
            self._dense_adam(table, moments, rows, gradient)
            return
        values, second = table[rows], moments[1][rows]
        if self.config.kind == "lazy-adam":
            first = moments[0][rows]
            self._adam(values, first, second, gradient)
            moments[0][rows] = first
        elif self.config.kind == "adagrad":
            second += gradient.square()
            values -= self.config.learning_rate * gradient / (second.sqrt() + self.config.epsilon)
        else:
            second += gradient.square().mean(1, keepdim=True)
            values -= self.config.learning_rate * gradient / (second.sqrt() + self.config.epsilon)
        self._normalise(values)
        table[rows], moments[1][rows] = values, second

    def _dense_adam(
        self, table: Tensor, moments: list[Tensor], rows: Tensor, gradient: Tensor
    ) -> None:
        """Update every row that ever had a gradient, also those without one in this step."""
        whole = torch.zeros_like(table)
        whole[rows] = gradient
        changed = (moments[0] != 0).any(1) | (moments[1] != 0).any(1)
        changed[rows] = True
        values = table.clone()
        self._adam(values, moments[0], moments[1], whole)
        self._normalise(values)
        table.copy_(torch.where(changed[:, None], values, table))

    def _adam(self, values: Tensor, first: Tensor, second: Tensor, gradient: Tensor) -> None:
        config = self.config
        first.mul_(config.beta1).add_(gradient, alpha=1 - config.beta1)
        second.mul_(config.beta2).addcmul_(gradient, gradient, value=1 - config.beta2)
        root = (second.sqrt() / (1 - config.beta2**self.step) ** 0.5).add_(config.epsilon)
        values -= config.learning_rate / (1 - config.beta1**self.step) * first / root

    def _normalise(self, values: Tensor) -> None:
        if self.bound == "none":
            return
        length = values.square().sum(1, keepdim=True).sqrt()
        longer = length > (1 if self.bound == "ball" else 0)
        values.copy_(torch.where(longer, values / length, values))
