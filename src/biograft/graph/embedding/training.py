"""Training of graph embeddings: one loop over epochs and batches, with exact resume.

Batches and negatives follow from seed and epoch alone, so that a resumed run gives the same
results as an uninterrupted one.
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

from biograft.artifacts import ArtifactKind, file_sizes, new_folder, remove_abandoned, sole_writer
from biograft.errors import InputError, OutputError, StoreError
from biograft.graph.embedding.config import GraphRecipe, ModelConfig
from biograft.graph.embedding.embeddings import (
    EMBEDDINGS,
    Embeddings,
    read_tensors,
    start_tables,
    write_embeddings,
    write_tensors,
)
from biograft.graph.embedding.negatives import (
    NegativeSampler,
    make_sampler,
    sample_negatives,
    splitmix64,
)
from biograft.graph.embedding.optimiser import (
    Moments,
    RowGroups,
    UpdateRule,
    group_rows,
    make_moments,
    make_update_rule,
    step_table,
)
from biograft.graph.embedding.ranking import predict_links
from biograft.graph.embedding.transe import (
    Floats,
    Tables,
    TripleBatch,
    all_finite,
    make_buffers,
    make_loss_rules,
)
from biograft.graph.embedding.transr import batch_gradients, projection_gradients
from biograft.graph.triples import SPLITS, Triples, graph_fingerprint, read_triples
from biograft.kb import KnowledgeBase
from biograft.progress import Progress


@dataclass
class EmbeddingRun:
    """State of a training between two epochs: all that the next one depends on."""

    tables: Tables
    moments: tuple[Moments, ...]
    epoch: int = 0
    step: int = 0
    losses: list[float] = field(default_factory=list)
    valid_mrr: list[tuple[int, float]] = field(default_factory=list)
    """MRR on the valid split, by epoch."""
    best: Tables | None = None
    seconds: list[float] = field(default_factory=list)

    @property
    def best_epoch(self) -> int:
        """The epoch of the final vectors."""
        if not self.valid_mrr:
            return self.epoch
        return max(self.valid_mrr, key=lambda look: (look[1], -look[0]))[0]

    @property
    def final_tables(self) -> Tables:
        """The final vectors: the best on the valid split, or the last."""
        return self.best or self.tables

    def n_bytes(self) -> int:
        """Return the bytes of vectors and optimiser state."""
        arrays = [*self.tables, *(part for moments in self.moments for part in moments)]
        return sum(array.nbytes for array in arrays + list(self.best or ()))


def new_run(
    train: Triples, recipe: GraphRecipe, dtype: type = np.float32, start: Tables | None = None
) -> EmbeddingRun:
    """Return the state before the first epoch, with the vectors of ``start`` instead of random."""
    n_relations = len(train.relation_names)
    tables = initial_tables((train.n_entities, n_relations), recipe.model, recipe.training.seed)
    if start is not None:
        projection = start.projection if len(start.projection) else tables.projection
        tables = Tables(start.entity, start.relation, projection)
    tables = Tables(*(table.astype(dtype, copy=False) for table in tables))
    return EmbeddingRun(tables, tuple(make_moments(table, recipe.optimiser) for table in tables))


def initial_tables(sizes: tuple[int, int], config: ModelConfig, seed: int) -> Tables:
    """Sample random vectors of norm 1; initialise projections as configured."""
    rng = np.random.default_rng(seed)
    n_entities, n_relations = sizes
    entity = _directions(rng, n_entities, config.dim)
    relation = _directions(rng, n_relations, config.width)
    shape = (n_relations, config.dim, config.width)
    if config.kind == "transe":
        projection = np.zeros((0, config.dim, config.width), np.float32)
    elif config.projection == "identity":
        projection = np.broadcast_to(np.eye(*shape[1:], dtype=np.float32), shape).copy()
    else:
        span = np.sqrt(6 / (config.dim + config.width))
        projection = rng.uniform(-span, span, shape).astype(np.float32)
    return Tables(entity, relation, projection)


def _directions(rng: np.random.Generator, n_rows: int, size: int) -> Floats:
    rows = rng.random((n_rows, size), np.float32)
    rows *= 2
    rows -= 1
    rows /= np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12)
    return rows


def with_inverse(triples: Triples) -> Triples:
    """Add the inverse of every triple, with a relation of its own."""
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
    recipe: GraphRecipe,
    run: EmbeddingRun,
    after_epoch: Callable[[EmbeddingRun], bool],
    progress: Progress | None = None,
) -> EmbeddingRun:
    """Train until all epochs are done or ``after_epoch`` returns True."""
    if not len(train):
        raise InputError("holds no relations to learn from", path="graph")
    progress = progress or Progress(enabled=False)
    worker = _EpochTrainer(train, recipe, run)
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
    """Trains single epochs; holds the triples and the buffers of all batches."""

    def __init__(self, train: Triples, recipe: GraphRecipe, run: EmbeddingRun) -> None:
        self.train, self.recipe, self.run = train, recipe, run
        self.sampler: NegativeSampler = make_sampler(train, recipe.sampling)
        self.size = min(recipe.training.batch, len(train))
        self.rules = make_loss_rules(recipe.model, recipe.loss)
        tables = run.tables
        self.buffers = make_buffers(tables, self.size, recipe.sampling.negatives)
        self.group_of = [np.full(len(table), -1, np.int32) for table in tables]
        n_runs = min(self.size, len(tables.projection))
        self.matrices = np.zeros((n_runs, *tables.projection.shape[1:]), tables.entity.dtype)

    def epoch(self, progress: Progress) -> float:
        """Train on all triples once; return the mean loss."""
        n, seed, epoch = len(self.train), self.recipe.training.seed, self.run.epoch
        n_epochs = self.recipe.training.epochs
        order = np.random.default_rng([seed, epoch]).permutation(n)
        epoch_seed = np.uint64(
            splitmix64(np.uint64(splitmix64(np.uint64(seed))) ^ np.uint64(epoch))
        )
        total = 0.0
        for first in range(0, n, self.size):
            rows = order[first : first + self.size]
            if len(self.run.tables.projection):
                rows = rows[np.argsort(self.train.relations[rows], kind="stable")]
            batch = self._make_batch(rows, first, epoch_seed)
            total += self._step(batch) * len(rows)
            progress.advance(len(rows), (epoch + min(1.0, (first + self.size) / n)) / n_epochs)
        return total / n

    def _make_batch(self, rows: npt.NDArray[np.int64], first: int, seed: np.uint64) -> TripleBatch:
        train = self.train
        true = train.heads[rows], train.relations[rows], train.tails[rows]
        positions = np.arange(first, first + len(rows), dtype=np.int64)
        false = sample_negatives(
            self.sampler, true, positions, seed, self.recipe.sampling.negatives
        )
        return TripleBatch(*true, *false)

    def _step(self, batch: TripleBatch) -> float:
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


STATE = ArtifactKind(
    format="biograft-embedding-state",
    version=1,
    called="saved state of embeddings",
    remedy="begin anew with --overwrite",
    file="state.json",
    keys=("recipe", "graph", "start", "epoch", "step", "losses", "valid_mrr", "seconds", "files"),
)
_STATE, _TENSORS = "state", "state.safetensors"


@dataclass(frozen=True, slots=True)
class EmbeddingResult:
    """Result of a training: folder, sizes and final state."""

    folder: Path
    n_triples: dict[str, int]
    run: EmbeddingRun

    def to_json(self) -> dict[str, Any]:
        """Return the results as plain values."""
        run = self.run
        return {
            "embeddings": str(self.folder),
            "n_triples": self.n_triples,
            "n_entities": len(run.tables.entity),
            "dim": run.tables.entity.shape[1],
            "epochs": run.epoch,
            "loss": run.losses[-1],
            "valid_mrr": [[epoch, round(100 * mrr, 4)] for epoch, mrr in run.valid_mrr],
            "best_epoch": run.best_epoch,
            "seconds": round(sum(run.seconds), 3),
            "tables_gib": round(run.n_bytes() / 2**30, 4),
        }


def embed_graph(  # noqa: PLR0913 - data, recipe and output of a run
    base: KnowledgeBase,
    recipe: GraphRecipe,
    out: str | Path,
    *,
    start_from: str | Path | None = None,
    resume: bool = False,
    overwrite: bool = False,
    progress: Progress | None = None,
) -> EmbeddingResult:
    """Train embeddings of a store's relations and write them as a folder.

    ``start_from`` is a folder of embeddings of the same store whose vectors training starts with,
    as TransR starts with those of TransE.
    """
    out = Path(out)
    start = Embeddings.open(start_from) if start_from is not None else None
    with sole_writer(out):
        _check_folder(out, resume=resume, overwrite=overwrite)
        return _embed(base, recipe, out, start=start, resume=resume, progress=progress)


def _embed(
    base: KnowledgeBase,
    recipe: GraphRecipe,
    out: Path,
    *,
    start: Embeddings | None,
    resume: bool,
    progress: Progress | None,
) -> EmbeddingResult:
    triples = read_triples(base)
    _check_graph(base, triples, recipe)
    train = triples.of_split("train")
    if recipe.model.inverse:
        train = with_inverse(train)
    fingerprint = graph_fingerprint(base)
    made_from = {"graph": fingerprint, "start": start.fingerprint if start else ""}
    if resume and (out / _STATE).exists():
        run = _load_state(out / _STATE, recipe, made_from)
    else:
        tables = start_tables(start, recipe.model, fingerprint) if start else None
        run = new_run(train, recipe, start=tables)

    def after_epoch(run: EmbeddingRun) -> bool:
        done = _evaluate(run, recipe, triples)
        if not done and run.epoch % recipe.training.save_every == 0:
            _save_state(out / _STATE, run, recipe, made_from)
        return done

    if not _is_over(run, recipe):
        train_epochs(train, recipe, run, after_epoch, progress)
    result = EmbeddingResult(out, {name: len(triples.of_split(name)) for name in SPLITS}, run)
    _write_result(result, base, recipe, start)
    return result


def _write_result(
    result: EmbeddingResult, base: KnowledgeBase, recipe: GraphRecipe, start: Embeddings | None
) -> None:
    metadata = {key: value for key, value in result.to_json().items() if key != "embeddings"}
    with new_folder(result.folder, overwrite=True) as folder:
        content = {
            "recipe": recipe.to_json(),
            "training": {**metadata, "losses": result.run.losses},
        }
        if start is not None:
            content["start_from"] = {
                "folder": str(start.folder.resolve()),
                "sha256": start.fingerprint,
            }
        write_embeddings(folder, result.run.final_tables, base, content)


def _check_folder(out: Path, *, resume: bool, overwrite: bool) -> None:
    """Refuse foreign folders, and finished or unfinished runs without resume or overwrite."""
    remove_abandoned(out / _STATE)
    ours = EMBEDDINGS.is_at(out) or STATE.is_at(out / _STATE)
    if out.exists() and not ours and _holds_another(out):
        raise OutputError(f"{out}: holds no embeddings; choose another folder")
    begun = STATE.is_at(out / _STATE)
    if resume and not begun and EMBEDDINGS.is_at(out):
        raise OutputError(f"{out}: is finished; --overwrite trains anew")
    if ours and not resume and not overwrite:
        status = "was stopped there; --resume goes on" if begun else "is finished there"
        raise OutputError(f"{out}: a run {status}; --overwrite trains anew")
    if overwrite and not resume:
        shutil.rmtree(out / _STATE, ignore_errors=True)


def _holds_another(out: Path) -> bool:
    """Whether there are other files than an unfinished first state of a killed run."""
    unfinished = f".{_STATE}."
    return not out.is_dir() or any(not path.name.startswith(unfinished) for path in out.iterdir())


def _check_graph(base: KnowledgeBase, triples: Triples, recipe: GraphRecipe) -> None:
    if not len(triples.of_split("train")):
        raise InputError("holds no relations to learn from", path=base.folder)
    if recipe.training.evaluate_every and not len(triples.of_split("valid")):
        raise InputError(
            "holds no valid triples to choose by",
            path=base.folder,
            remedy="build it from files called train, valid and test, or leave "
            "training.evaluate_every at 0",
        )


def _evaluate(run: EmbeddingRun, recipe: GraphRecipe, triples: Triples) -> bool:
    """Evaluate on the valid split if it is due; keep the best vectors; return whether to stop.

    The test split is not used, not even as a filter.
    """
    every = recipe.training.evaluate_every
    if not every or (run.epoch % every and run.epoch < recipe.training.epochs):
        return False
    both = triples.of_split("train", "valid")
    mrr = predict_links(run.tables, recipe.model, both, "valid").metrics()["mrr"]
    if not run.valid_mrr or mrr > max(value for _, value in run.valid_mrr):
        run.best = Tables(*(table.copy() for table in run.tables))
    run.valid_mrr.append((run.epoch, mrr))
    return _is_over(run, recipe)


def _is_over(run: EmbeddingRun, recipe: GraphRecipe) -> bool:
    if run.epoch >= recipe.training.epochs:
        return True
    if not run.valid_mrr:
        return False
    values = [value for _, value in run.valid_mrr]
    return len(values) - 1 - int(np.argmax(values)) >= recipe.training.patience


def _arrays(run: EmbeddingRun) -> dict[str, Any]:
    arrays = dict(run.tables._asdict())
    for name, moments in zip(run.tables._fields, run.moments, strict=True):
        arrays |= {f"{name}.{part}": array for part, array in moments._asdict().items()}
    arrays |= {f"best.{k}": array for k, array in (run.best._asdict() if run.best else {}).items()}
    return arrays


def _save_state(
    folder: Path, run: EmbeddingRun, recipe: GraphRecipe, made_from: dict[str, str]
) -> None:
    with new_folder(folder, overwrite=True) as work:
        write_tensors(work / _TENSORS, _arrays(run))
        content = {
            "recipe": recipe.to_json(),
            **made_from,
            "epoch": run.epoch,
            "step": run.step,
            "losses": run.losses,
            "valid_mrr": run.valid_mrr,
            "seconds": run.seconds,
            "files": file_sizes(work),
        }
        STATE.write(work, content)


def _load_state(folder: Path, recipe: GraphRecipe, made_from: dict[str, str]) -> EmbeddingRun:
    """Resume a run from its saved state."""
    state = STATE.read(folder)
    STATE.check_files(folder, state)
    wanted = {
        "graph": (made_from["graph"], "knowledge base"),
        "start": (made_from["start"], "--start-from"),
        "recipe": (recipe.to_json(), "recipe"),
    }
    for key, (value, called) in wanted.items():
        if state[key] != value:
            raise StoreError(
                f"{folder}: saved with another {called}; give the same again, or --overwrite"
            )
    try:
        arrays = {name: np.array(array) for name, array in read_tensors(folder / _TENSORS).items()}
        best = None
        if "best.entity" in arrays:
            best = Tables(*(arrays[f"best.{name}"] for name in Tables._fields))
        return EmbeddingRun(
            Tables(*(arrays[name] for name in Tables._fields)),
            tuple(_moments_of(arrays, name) for name in Tables._fields),
            epoch=state["epoch"],
            step=state["step"],
            losses=state["losses"],
            valid_mrr=[(epoch, mrr) for epoch, mrr in state["valid_mrr"]],
            best=best,
            seconds=state["seconds"],
        )
    except (ValueError, KeyError) as error:
        raise STATE.damaged(folder / _TENSORS, error) from error


def _moments_of(arrays: dict[str, Any], name: str) -> Moments:
    return Moments(*(arrays[f"{name}.{part}"] for part in Moments._fields))
