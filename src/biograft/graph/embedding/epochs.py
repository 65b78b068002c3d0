"""Epochs of training graph embeddings: batches, negatives, and steps on one device.

Batches and negatives follow from seed and epoch alone, so that a resumed run gives the same
results as an uninterrupted one, and all devices train on the same ones.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from biograft.config import check_choice
from biograft.errors import ConfigError, InputError
from biograft.graph.embedding.config import GraphRecipe, OptimiserConfig
from biograft.graph.embedding.negatives import (
    NegativeSampler,
    make_sampler,
    sample_negatives,
    splitmix64,
)
from biograft.graph.embedding.optimiser import (
    RowGroups,
    UpdateRule,
    group_rows,
    make_update_rule,
    step_table,
)
from biograft.graph.embedding.state import EmbeddingRun, Rows
from biograft.graph.embedding.translation import (
    TripleBatch,
    all_finite,
    batch_gradients,
    make_buffers,
    make_loss_rules,
    projection_gradients,
)
from biograft.graph.triples import Triples
from biograft.progress import Progress, in_units

DEVICES = ("auto", "cpu", "cuda")
MANY_ENTITIES = 200_000
"""Entities above which ``auto`` means a GPU as device, and lazy Adam as optimiser."""


class EmbeddingSteps(Protocol):
    """Makes the steps of a run on one device."""

    def step(self, batch: TripleBatch) -> Any:
        """Make one step and return the loss, a number or a tensor of the device."""

    def take(self) -> None:
        """Bring the vectors and moments of the device into the run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbeddingExecution:
    """Execution of a training; results do not depend on it, on a GPU up to rounding.

    ``device`` is ``auto``, ``cpu`` or ``cuda`` (TransE only). ``announce`` receives an estimate of
    time and memory after the first steps.
    """

    device: str = "cpu"
    announce: Callable[[TrainingEstimate], None] | None = None
    progress: Progress | None = None

    def __post_init__(self) -> None:
        check_choice("device", self.device, DEVICES)


def choose_device(device: str, recipe: GraphRecipe, n_entities: int) -> str:
    """Return ``cpu`` or ``cuda``: with ``auto`` a GPU that torch can use, for TransE.

    For a graph of up to ``MANY_ENTITIES``, ``auto`` does not even load torch.
    """
    small = recipe.model.kind != "transe" or n_entities <= MANY_ENTITIES
    if device == "cpu" or (device == "auto" and small):
        return "cpu"
    if recipe.model.kind != "transe":
        raise ConfigError(
            f"device: {recipe.model.kind} is trained by compiled loops of the processor only; "
            "leave --device out"
        )
    try:
        import torch
    except ModuleNotFoundError:
        available = False
    else:
        available = torch.cuda.is_available()
    if device == "cuda" and not available:
        raise ConfigError(
            "device: torch finds no GPU here; install a CUDA build of torch (biograft[models]), or "
            "leave --device out"
        )
    return "cuda" if available else "cpu"


def make_steps(run: EmbeddingRun, recipe: GraphRecipe, size: int, device: str) -> EmbeddingSteps:
    """Return the steps of a run: compiled loops on ``cpu``, else torch."""
    if device == "cpu":
        return CompiledSteps(run, recipe, size)
    from biograft.graph.embedding.torch_steps import TorchSteps

    return TorchSteps(run, recipe, device)


class CompiledSteps:
    """Steps in compiled loops, with buffers for the largest batch."""

    def __init__(self, run: EmbeddingRun, recipe: GraphRecipe, size: int) -> None:
        self.run, self.recipe = run, recipe
        self.rules = make_loss_rules(recipe.model, recipe.loss)
        tables = run.tables
        self.buffers = make_buffers(tables, size, recipe.sampling.negatives)
        self.group_of = [np.full(len(table), -1, np.int32) for table in tables]
        n_runs = min(size, len(tables.projection))
        self.matrices = np.zeros((n_runs, *tables.projection.shape[1:]), tables.entity.dtype)

    def take(self) -> None:
        """Do nothing: the steps change the run itself."""

    def step(self, batch: TripleBatch) -> float:
        """Make one step and return the loss."""
        run, model, n = self.run, self.recipe.model, len(batch.heads)
        run.step += 1
        loss = batch_gradients(run.tables, batch, self.rules, self.buffers)
        rows = self.buffers.rows[:n]
        entity = self.buffers.entity[:n].reshape(-1, model.dim)
        used_relations = np.where(rows[:, 0] >= 0, batch.relations, np.int32(-1))
        by_entity = group_rows(rows.reshape(-1), self.group_of[0])
        by_relation = group_rows(used_relations, self.group_of[1])
        rules = [
            make_update_rule(self.recipe.optimiser, run.step, bound)
            for bound in (model.entity_bound, model.relation_bound, "none")
        ]
        if len(run.tables.projection):
            self._step_matrices(batch, rules[2])
        tables, moments, group_of = run.tables, run.moments, self.group_of
        step_table(tables.entity, entity, by_entity, moments[0], rules[0], group_of[0])
        relation = self.buffers.relation[:n]
        step_table(tables.relation, relation, by_relation, moments[1], rules[1], group_of[1])
        return loss

    def _step_matrices(self, batch: TripleBatch, rule: UpdateRule) -> None:
        starts = np.flatnonzero(np.diff(batch.relations, prepend=-1)).astype(np.int64)
        relations = batch.relations[starts]
        matrices = self.matrices[: len(relations)]
        ends = np.append(starts, len(batch.heads)).astype(np.int64)
        projection_gradients(self.run.tables, ends, self.buffers, matrices)
        row_range = np.arange(len(relations) + 1, dtype=np.int32)
        groups = RowGroups(relations, row_range, row_range[:-1])
        table = self.run.tables.projection.reshape(len(self.group_of[2]), -1)
        flat = matrices.reshape(len(relations), -1)
        step_table(table, flat, groups, self.run.moments[2], rule, self.group_of[2])


def train_epochs(
    train: Triples,
    recipe: GraphRecipe,
    run: EmbeddingRun,
    after_epoch: Callable[[EmbeddingRun], bool],
    execution: EmbeddingExecution | None = None,
) -> EmbeddingRun:
    """Train until all epochs are done or ``after_epoch`` returns True."""
    if not len(train):
        raise InputError("holds no relations to learn from", path="graph")
    execution = execution or EmbeddingExecution()
    progress = execution.progress or Progress(enabled=False)
    worker = _EpochTrainer(train, recipe, run, execution)
    progress.start("training", run.epoch / recipe.training.epochs)
    while run.epoch < recipe.training.epochs:
        start = time.perf_counter()
        loss = worker.epoch(progress)
        run.epoch += 1
        if not (np.isfinite(loss) and all_finite(run.tables)):
            raise InputError(
                f"the loss or a vector of epoch {run.epoch} is not finite",
                path="graph",
                remedy="lower optimiser.learning_rate, or bound the vectors",
            )
        run.losses.append(loss)
        run.seconds.append(time.perf_counter() - start)
        if after_epoch(run):
            break
    progress.finish()
    return run


class _EpochTrainer:
    """Trains single epochs; holds the triples and the sampler."""

    def __init__(
        self,
        train: Triples,
        recipe: GraphRecipe,
        run: EmbeddingRun,
        execution: EmbeddingExecution,
    ) -> None:
        self.train, self.recipe, self.run = train, recipe, run
        self.device = choose_device(execution.device, recipe, train.n_entities)
        self.announce = execution.announce
        self.sampler: NegativeSampler = make_sampler(train, recipe.sampling)
        self.size = min(recipe.training.batch, len(train))
        self.steps = make_steps(run, recipe, self.size, self.device)

    def epoch(self, progress: Progress) -> float:
        """Train on all triples once; return the mean loss."""
        n, epoch, n_epochs = len(self.train), self.run.epoch, self.recipe.training.epochs
        order, seed = self._order(epoch)
        total: Any = 0.0
        started, n_timed = time.perf_counter(), 0
        for first in range(0, n, self.size):
            batch = self._make_batch(order, first, seed)
            total += self.steps.step(batch) * len(batch.heads)
            done = (epoch + min(1.0, (first + self.size) / n)) / n_epochs
            progress.advance(len(batch.heads), done)
            if self.announce is not None:
                n_timed += 1
                if n_timed == 1 and n > self.size:
                    started = time.perf_counter()  # the first step compiles
                if n_timed == 1 + _N_MEASURED or first + self.size >= n:
                    float(total)  # waits for a GPU
                    seconds = (time.perf_counter() - started) / max(1, n_timed - 1)
                    self.announce(self._estimate(seconds * -(-n // self.size)))
                    self.announce = None
        self.steps.take()
        return float(total) / n

    def _order(self, epoch: int) -> tuple[Rows, np.uint64]:
        """Return the order of the triples in an epoch, and the seed of its negatives."""
        seed = self.recipe.training.seed
        order = np.random.default_rng([seed, epoch]).permutation(len(self.train))
        return order, np.uint64(
            splitmix64(np.uint64(splitmix64(np.uint64(seed))) ^ np.uint64(epoch))
        )

    def _make_batch(self, order: Rows, first: int, seed: np.uint64) -> TripleBatch:
        rows, train = order[first : first + self.size], self.train
        if len(self.run.tables.projection):
            rows = rows[np.argsort(train.relations[rows], kind="stable")]
        true = train.heads[rows], train.relations[rows], train.tails[rows]
        positions = np.arange(first, first + len(rows), dtype=np.int64)
        false = sample_negatives(
            self.sampler, true, positions, seed, self.recipe.sampling.negatives
        )
        return TripleBatch(*true, *false)

    def _estimate(self, seconds: float) -> TrainingEstimate:
        """Estimate time and memory from the seconds of an epoch."""
        n_left = self.recipe.training.epochs - self.run.epoch
        tables, n_bytes = self.run.tables, self.run.n_bytes()
        width = tables.entity.shape[1] + 3 * tables.relation.shape[1] * (len(tables.projection) > 0)
        n_slots = self.size * (2 + self.recipe.sampling.negatives)
        n_bytes += n_slots * width * tables.entity.itemsize
        n_bytes += sum(column.nbytes for column in (self.train.heads, *self.sampler[:3])) * 2
        if self.recipe.training.evaluate_every and self.run.best is None:
            n_bytes += sum(table.nbytes for table in tables)
        return TrainingEstimate(
            device=self.device,
            optimiser=self.recipe.optimiser.kind,
            n_epochs=n_left,
            seconds=n_left * seconds,
            n_bytes=n_bytes,
        )


_N_MEASURED = 20
"""Steps whose time is measured, after the first, unless the first epoch has fewer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingEstimate:
    """Estimated time and memory of a training, without evaluations and saved states."""

    device: str
    optimiser: str
    n_epochs: int
    """Epochs that are still to be trained."""
    seconds: float
    n_bytes: int

    def __str__(self) -> str:
        amount, unit = in_units(self.seconds)
        return (
            f"about {amount:.3g} {unit} for {self.n_epochs} epochs and "
            f"{self.n_bytes / 2**30:.2f} GiB ({self.optimiser} on {self.device})"
        )


def resolve_optimiser(recipe: GraphRecipe, n_entities: int) -> GraphRecipe:
    """Replace the optimiser ``auto``: Adam, or above ``MANY_ENTITIES`` lazy Adam."""
    if recipe.optimiser.kind != "auto":
        return recipe
    kind = "lazy-adam" if n_entities > MANY_ENTITIES else "adam"
    optimiser: OptimiserConfig = replace(recipe.optimiser, kind=kind)
    return replace(recipe, optimiser=optimiser)
