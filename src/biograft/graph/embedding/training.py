"""Train embeddings of a graph: one loop over epochs and batches in plain sight.

Which triples a batch holds and which false ones are drawn follows from seed and epoch alone, so
that a run that was stopped and resumed gives the same numbers as one that was not.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from biograft.artifacts import Kind, file_sizes, new_folder, remove_abandoned, sole_writer
from biograft.errors import InputError, OutputError, StoreError
from biograft.graph.embedding.config import EmbeddingRecipe, ModelConfig
from biograft.graph.embedding.embeddings import (
    EMBEDDINGS,
    read_tensors,
    write_embeddings,
    write_tensors,
)
from biograft.graph.embedding.gradients import (
    Batch,
    batch_slopes,
    make_rules,
    make_slots,
    matrix_slopes,
)
from biograft.graph.embedding.negatives import Sampler, draw_batch, make_sampler, stir
from biograft.graph.embedding.optimiser import (
    Groups,
    Moments,
    Rule,
    group_rows,
    make_moments,
    make_rule,
    step_table,
)
from biograft.graph.embedding.ranking import predict_links
from biograft.graph.embedding.scoring import Floats, Tables, all_numbers
from biograft.graph.triples import SPLITS, Triples, graph_fingerprint, read_triples
from biograft.kb import KnowledgeBase
from biograft.progress import Progress


@dataclass
class Run:
    """A training between two epochs: all that the next one depends on."""

    tables: Tables
    moments: tuple[Moments, ...]
    epoch: int = 0
    step: int = 0
    losses: list[float] = field(default_factory=list)
    looks: list[tuple[int, float]] = field(default_factory=list)
    """MRR on the valid part, by epoch."""
    best: Tables | None = None
    seconds: list[float] = field(default_factory=list)

    @property
    def best_epoch(self) -> int:
        """The epoch whose vectors are kept."""
        if not self.looks:
            return self.epoch
        return max(self.looks, key=lambda look: (look[1], -look[0]))[0]

    @property
    def kept(self) -> Tables:
        """The vectors to be kept: the best on the valid part, or the last."""
        return self.best or self.tables

    def n_bytes(self) -> int:
        """Count the bytes of vectors and of what the optimiser remembers."""
        arrays = [*self.tables, *(part for moments in self.moments for part in moments)]
        return sum(array.nbytes for array in arrays + list(self.best or ()))


def begin(train: Triples, recipe: EmbeddingRecipe, dtype: type = np.float32) -> Run:
    """Draw the vectors to begin with."""
    n_relations = len(train.relation_names)
    tables = first_tables((train.n_entities, n_relations), recipe.model, recipe.training.seed)
    tables = Tables(*(table.astype(dtype, copy=False) for table in tables))
    return Run(tables, tuple(make_moments(table, recipe.optimiser) for table in tables))


def first_tables(sizes: tuple[int, int], config: ModelConfig, seed: int) -> Tables:
    """Draw vectors of length 1 in any direction; projections as the configuration says."""
    draw = np.random.default_rng(seed)
    n_entities, n_relations = sizes
    entity = _directions(draw, n_entities, config.dim)
    relation = _directions(draw, n_relations, config.width)
    shape = (n_relations, config.dim, config.width)
    if config.kind == "transe":
        projection = np.zeros((0, config.dim, config.width), np.float32)
    elif config.projection == "identity":
        projection = np.broadcast_to(np.eye(*shape[1:], dtype=np.float32), shape).copy()
    else:
        span = np.sqrt(6 / (config.dim + config.width))
        projection = draw.uniform(-span, span, shape).astype(np.float32)
    return Tables(entity, relation, projection)


def _directions(draw: np.random.Generator, n_rows: int, size: int) -> Floats:
    rows = draw.random((n_rows, size), np.float32)
    rows *= 2
    rows -= 1
    rows /= np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12)
    return rows


def with_inverse(triples: Triples) -> Triples:
    """Add every triple the other way round, by a second relation."""
    names = triples.relation_names
    back = triples.relations + np.int32(len(names))
    return Triples(
        np.concatenate([triples.heads, triples.tails]),
        np.concatenate([triples.relations, back]),
        np.concatenate([triples.tails, triples.heads]),
        np.concatenate([triples.splits, triples.splits]),
        triples.n_entities,
        (*names, *(f"{name} (inverse)" for name in names)),
    )


def train_epochs(
    train: Triples,
    recipe: EmbeddingRecipe,
    run: Run,
    after_epoch: Callable[[Run], bool],
    progress: Progress | None = None,
) -> Run:
    """Train until all epochs are done or ``after_epoch`` says to stop."""
    if not len(train):
        raise InputError("holds no relations to learn from", path="graph")
    progress = progress or Progress(enabled=False)
    worker = _Worker(train, recipe, run)
    progress.start("training", run.epoch / recipe.training.epochs)
    while run.epoch < recipe.training.epochs:
        start = time.perf_counter()
        loss = worker.epoch(progress)
        run.epoch += 1
        if not (np.isfinite(loss) and all_numbers(run.tables)):
            raise InputError(
                f"the loss or a vector of epoch {run.epoch} is no number",
                path="graph",
                remedy="lower optimiser.learning_rate, or bound the vectors",
            )
        run.losses.append(loss)
        run.seconds.append(time.perf_counter() - start)
        if after_epoch(run):
            break
    progress.finish()
    return run


class _Worker:
    """The triples and the room that all batches share."""

    def __init__(self, train: Triples, recipe: EmbeddingRecipe, run: Run) -> None:
        self.train, self.recipe, self.run = train, recipe, run
        self.sampler: Sampler = make_sampler(train, recipe.sampling)
        self.size = min(recipe.training.batch, len(train))
        self.rules = make_rules(recipe.model, recipe.loss)
        tables = run.tables
        self.slots = make_slots(tables, self.size, recipe.sampling.negatives)
        self.places = [np.full(len(table), -1, np.int32) for table in tables]
        n_runs = min(self.size, len(tables.projection))
        self.matrices = np.zeros((n_runs, *tables.projection.shape[1:]), tables.entity.dtype)

    def epoch(self, progress: Progress) -> float:
        """Go through all triples once; give the mean loss."""
        n, seed, epoch = len(self.train), self.recipe.training.seed, self.run.epoch
        n_epochs = self.recipe.training.epochs
        order = np.random.default_rng([seed, epoch]).permutation(n)
        drawn = np.uint64(stir(np.uint64(stir(np.uint64(seed))) ^ np.uint64(epoch)))
        total = 0.0
        for first in range(0, n, self.size):
            chosen = order[first : first + self.size]
            if len(self.run.tables.projection):
                chosen = chosen[np.argsort(self.train.relations[chosen], kind="stable")]
            batch = self._draw(chosen, first, drawn)
            total += self._step(batch) * len(chosen)
            progress.advance(len(chosen), (epoch + min(1.0, (first + self.size) / n)) / n_epochs)
        return total / n

    def _draw(self, chosen: npt.NDArray[np.int64], first: int, seed: np.uint64) -> Batch:
        train = self.train
        true = train.heads[chosen], train.relations[chosen], train.tails[chosen]
        places = np.arange(first, first + len(chosen), dtype=np.int64)
        false = draw_batch(self.sampler, true, places, seed, self.recipe.sampling.negatives)
        return Batch(*true, *false)

    def _step(self, batch: Batch) -> float:
        run, model, n = self.run, self.recipe.model, len(batch.heads)
        run.step += 1
        loss = batch_slopes(run.tables, batch, self.rules, self.slots)
        rows = self.slots.rows[:n]
        entity = self.slots.entity[:n].reshape(-1, model.dim)
        spoken = np.where(rows[:, 0] >= 0, batch.relations, np.int32(-1))
        by_entity = group_rows(rows.reshape(-1), self.places[0])
        by_relation = group_rows(spoken, self.places[1])
        rules = [
            make_rule(self.recipe.optimiser, run.step, bound)
            for bound in (model.entity_bound, model.relation_bound, "none")
        ]
        if len(run.tables.projection):
            self._step_matrices(batch, rules[2])
        tables, moments, places = run.tables, run.moments, self.places
        step_table(tables.entity, entity, by_entity, moments[0], rules[0], places[0])
        relation = self.slots.relation[:n]
        step_table(tables.relation, relation, by_relation, moments[1], rules[1], places[1])
        return loss

    def _step_matrices(self, batch: Batch, rule: Rule) -> None:
        starts = np.flatnonzero(np.diff(batch.relations, prepend=-1)).astype(np.int64)
        relations = batch.relations[starts]
        matrices = self.matrices[: len(relations)]
        ends = np.append(starts, len(batch.heads)).astype(np.int64)
        matrix_slopes(self.run.tables, ends, self.slots, matrices)
        each = np.arange(len(relations) + 1, dtype=np.int32)
        groups = Groups(relations, each, each[:-1])
        table = self.run.tables.projection.reshape(len(self.places[2]), -1)
        flat = matrices.reshape(len(relations), -1)
        step_table(table, flat, groups, self.run.moments[2], rule, self.places[2])


STATE = Kind(
    format="biograft-embedding-state",
    version=1,
    called="saved state of embeddings",
    remedy="begin anew with --overwrite",
    file="state.json",
    keys=("recipe", "graph", "epoch", "step", "losses", "looks", "seconds", "files"),
)
_STATE, _TENSORS = "state", "state.safetensors"


@dataclass(frozen=True, slots=True)
class EmbeddingResult:
    """What a training came to."""

    folder: Path
    n_triples: dict[str, int]
    run: Run

    def to_json(self) -> dict[str, Any]:
        """Give the figures as plain values."""
        run = self.run
        return {
            "embeddings": str(self.folder),
            "n_triples": self.n_triples,
            "n_entities": len(run.tables.entity),
            "dim": run.tables.entity.shape[1],
            "epochs": run.epoch,
            "loss": run.losses[-1],
            "valid_mrr": [[epoch, round(100 * mrr, 4)] for epoch, mrr in run.looks],
            "kept_epoch": run.best_epoch,
            "seconds": round(sum(run.seconds), 3),
            "tables_gib": round(run.n_bytes() / 2**30, 4),
        }


def embed_graph(
    base: KnowledgeBase,
    recipe: EmbeddingRecipe,
    out: str | Path,
    *,
    resume: bool = False,
    overwrite: bool = False,
    progress: Progress | None = None,
) -> EmbeddingResult:
    """Train embeddings of a store's relations and write them as a folder."""
    out = Path(out)
    with sole_writer(out):
        _check_place(out, resume=resume, overwrite=overwrite)
        return _embed(base, recipe, out, resume=resume, progress=progress)


def _embed(
    base: KnowledgeBase,
    recipe: EmbeddingRecipe,
    out: Path,
    *,
    resume: bool,
    progress: Progress | None,
) -> EmbeddingResult:
    triples = read_triples(base)
    _check_graph(base, triples, recipe)
    train = triples.of_split("train")
    if recipe.model.inverse:
        train = with_inverse(train)
    fingerprint = graph_fingerprint(base)
    if resume and (out / _STATE).exists():
        run = _load_state(out / _STATE, recipe, fingerprint)
    else:
        run = begin(train, recipe)

    def after_epoch(run: Run) -> bool:
        done = _look(run, recipe, triples)
        if not done and run.epoch % recipe.training.save_every == 0:
            _save_state(out / _STATE, run, recipe, fingerprint)
        return done

    if not _is_over(run, recipe):
        train_epochs(train, recipe, run, after_epoch, progress)
    result = EmbeddingResult(out, {name: len(triples.of_split(name)) for name in SPLITS}, run)
    _write_result(result, base, recipe)
    return result


def _write_result(result: EmbeddingResult, base: KnowledgeBase, recipe: EmbeddingRecipe) -> None:
    told = {key: value for key, value in result.to_json().items() if key != "embeddings"}
    with new_folder(result.folder, overwrite=True) as folder:
        content = {"recipe": recipe.to_json(), "training": {**told, "losses": result.run.losses}}
        write_embeddings(folder, result.run.kept, base, content)


def _check_place(out: Path, *, resume: bool, overwrite: bool) -> None:
    """Refuse what is another's, and what is finished or begun, unless told what to do with it."""
    remove_abandoned(out / _STATE)
    ours = EMBEDDINGS.is_at(out) or STATE.is_at(out / _STATE)
    if out.exists() and not ours and _holds_another(out):
        raise OutputError(f"{out}: holds no embeddings; choose another place")
    begun = STATE.is_at(out / _STATE)
    if resume and not begun and EMBEDDINGS.is_at(out):
        raise OutputError(f"{out}: is finished; --overwrite trains anew")
    if ours and not resume and not overwrite:
        what = "was stopped there; --resume goes on" if begun else "is finished there"
        raise OutputError(f"{out}: a run {what}; --overwrite trains anew")
    if overwrite and not resume:
        shutil.rmtree(out / _STATE, ignore_errors=True)


def _holds_another(out: Path) -> bool:
    """Whether there is more than a first state that a killed run did not finish writing."""
    unfinished = f".{_STATE}."
    return not out.is_dir() or any(not path.name.startswith(unfinished) for path in out.iterdir())


def _check_graph(base: KnowledgeBase, triples: Triples, recipe: EmbeddingRecipe) -> None:
    if not len(triples.of_split("train")):
        raise InputError("holds no relations to learn from", path=base.folder)
    if recipe.training.evaluate_every and not len(triples.of_split("valid")):
        raise InputError(
            "holds no valid triples to choose by",
            path=base.folder,
            remedy="build it from files called train, valid and test, or leave "
            "training.evaluate_every at 0",
        )


def _look(run: Run, recipe: EmbeddingRecipe, triples: Triples) -> bool:
    """Rank the valid part if it is time to; keep the best; say whether to stop.

    The test part is not looked at, not even to filter by it.
    """
    every = recipe.training.evaluate_every
    if not every or (run.epoch % every and run.epoch < recipe.training.epochs):
        return False
    both = triples.of_split("train", "valid")
    mrr = predict_links(run.tables, recipe.model, both, "valid").metrics()["mrr"]
    if not run.looks or mrr > max(value for _, value in run.looks):
        run.best = Tables(*(table.copy() for table in run.tables))
    run.looks.append((run.epoch, mrr))
    return _is_over(run, recipe)


def _is_over(run: Run, recipe: EmbeddingRecipe) -> bool:
    if run.epoch >= recipe.training.epochs:
        return True
    if not run.looks:
        return False
    values = [value for _, value in run.looks]
    return len(values) - 1 - int(np.argmax(values)) >= recipe.training.patience


def _arrays(run: Run) -> dict[str, Any]:
    arrays = dict(run.tables._asdict())
    for name, moments in zip(run.tables._fields, run.moments, strict=True):
        arrays |= {f"{name}.{part}": array for part, array in moments._asdict().items()}
    arrays |= {f"best.{k}": array for k, array in (run.best._asdict() if run.best else {}).items()}
    return arrays


def _save_state(folder: Path, run: Run, recipe: EmbeddingRecipe, fingerprint: str) -> None:
    with new_folder(folder, overwrite=True) as work:
        write_tensors(work / _TENSORS, _arrays(run))
        content = {
            "recipe": recipe.to_json(),
            "graph": fingerprint,
            "epoch": run.epoch,
            "step": run.step,
            "losses": run.losses,
            "looks": run.looks,
            "seconds": run.seconds,
            "files": file_sizes(work),
        }
        STATE.write(work, content)


def _load_state(folder: Path, recipe: EmbeddingRecipe, fingerprint: str) -> Run:
    """Take up a run where its state was saved."""
    state = STATE.read(folder)
    STATE.check_files(folder, state)
    if state["recipe"] != recipe.to_json() or state["graph"] != fingerprint:
        what = "knowledge base" if state["graph"] != fingerprint else "recipe"
        raise StoreError(
            f"{folder}: saved with another {what}; give the same again, or --overwrite"
        )
    try:
        arrays = {name: np.array(array) for name, array in read_tensors(folder / _TENSORS).items()}
        best = None
        if "best.entity" in arrays:
            best = Tables(*(arrays[f"best.{name}"] for name in Tables._fields))
        return Run(
            Tables(*(arrays[name] for name in Tables._fields)),
            tuple(_moments_of(arrays, name) for name in Tables._fields),
            epoch=state["epoch"],
            step=state["step"],
            losses=state["losses"],
            looks=[(epoch, mrr) for epoch, mrr in state["looks"]],
            best=best,
            seconds=state["seconds"],
        )
    except (ValueError, KeyError) as error:
        raise STATE.damaged(folder / _TENSORS, error) from error


def _moments_of(arrays: dict[str, Any], name: str) -> Moments:
    return Moments(*(arrays[f"{name}.{part}"] for part in Moments._fields))
