"""Training of graph embeddings: epochs on one device, saved states with exact resume, evaluation.

Batches and negatives follow from seed and epoch alone, so that a resumed run gives the same
results as an uninterrupted one, and all devices train on the same ones.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from biograft.artifacts import (
    ArtifactKind,
    check_length,
    describe_files,
    new_folder,
    remove_abandoned,
    sole_writer,
)
from biograft.config import check_choice
from biograft.errors import ConfigError, InputError, OutputError, StoreError
from biograft.graph.config import COMPILED, PROJECTED, GraphRecipe
from biograft.graph.embedding.embeddings import (
    EMBEDDINGS,
    Embeddings,
    read_tensors,
    start_tables,
    write_embeddings,
    write_tensors,
)
from biograft.graph.embedding.loops import (
    NegativeSampler,
    Tables,
    TripleBatch,
    all_finite,
    make_sampler,
    sample_negatives,
    splitmix64,
)
from biograft.graph.embedding.ranking import predict_links
from biograft.graph.embedding.steps import CompiledSteps, EmbeddingRun, new_run
from biograft.graph.triples import SPLITS, Triples, graph_fingerprint, read_triples
from biograft.kb import KnowledgeBase
from biograft.progress import Progress, in_units

if TYPE_CHECKING:
    from biograft.graph.embedding.torch_steps import TorchSteps

DEVICES = ("auto", "cpu", "cuda")
MANY_ENTITIES = 200_000
"""Entities above which ``auto`` means a GPU as device, and lazy Adam as optimiser."""
_N_MEASURED = 20
"""Steps whose time is measured, after the first, unless the first epoch has fewer."""
STATE = ArtifactKind(
    format="biograft-embedding-state",
    version=1,
    called="saved state of embeddings",
    remedy="begin anew with --overwrite",
    file="state.json",
    keys=("recipe", "graph", "start", "epoch", "step", "losses", "valid_mrr", "seconds", "files"),
)
_STATE, _TENSORS = "state", "state.safetensors"


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


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbeddingExecution:
    """Execution of a training; results do not depend on it, on a GPU up to rounding.

    ``device`` is ``auto``, ``cpu`` or ``cuda`` (TransE only). ``announce`` receives an estimate of
    time and memory after the first steps.
    """

    device: str = "cpu"
    announce: Callable[[TrainingEstimate], None] | None = None
    progress: Progress | None = None
    """Receives the progress; default: no report."""

    def __post_init__(self) -> None:
        check_choice("device", self.device, DEVICES)


def choose_device(device: str, recipe: GraphRecipe, n_entities: int) -> str:
    """Choose where a model is trained; small graphs do not even load torch.

    Args:
        device: ``auto``, ``cpu`` or ``cuda``.
        recipe: its model decides; TransR is not trained on a GPU.
        n_entities: the size of the graph; ``auto`` is the processor up to ``MANY_ENTITIES``.

    Returns:
        ``cpu`` or ``cuda``.

    Raises:
        ConfigError: if the device is a GPU that cannot be used.
    """
    only_compiled = recipe.model.kind == PROJECTED
    if device == "cpu" or (device == "auto" and (only_compiled or n_entities <= MANY_ENTITIES)):
        return "cpu"
    if only_compiled:
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


def train_epochs(
    train: Triples,
    recipe: GraphRecipe,
    run: EmbeddingRun,
    after_epoch: Callable[[EmbeddingRun], bool] = lambda _: False,
    execution: EmbeddingExecution | None = None,
    steps: CompiledSteps | TorchSteps | None = None,
) -> EmbeddingRun:
    """Train until all epochs are done.

    Args:
        train: the training triples.
        recipe: the whole configuration.
        run: the state to start with, changed in place.
        after_epoch: called after each epoch; training stops if it returns True.
        execution: device, estimate and progress.
        steps: what makes the steps; default: compiled loops, or torch on a GPU.

    Returns:
        the run.

    Raises:
        InputError: without triples, or if the vectors become infinite or NaN.
    """
    if not len(train):
        raise InputError("holds no relations to learn from", path="graph")
    execution = execution or EmbeddingExecution()
    device = choose_device(execution.device, recipe, train.n_entities)
    size = min(recipe.training.batch, len(train))
    if steps is None and device == "cpu" and recipe.model.kind in COMPILED:
        steps = CompiledSteps(run, recipe, size)
    elif steps is None:
        from biograft.graph.embedding.torch_steps import TorchSteps

        steps = TorchSteps(run, recipe, device)
    sampler = make_sampler(train, recipe.sampling)
    progress = execution.progress or Progress()
    announce, n_batches = execution.announce, -(-len(train) // size)
    last_measured = min(_N_MEASURED, n_batches - 1)
    progress.start("training", run.epoch / recipe.training.epochs)
    while run.epoch < recipe.training.epochs:
        start = measured_from = time.perf_counter()
        total: Any = 0.0
        for k, batch in enumerate(_make_batches(train, recipe, sampler, run.epoch)):
            total += steps.step(batch) * len(batch.heads)
            done = run.epoch + (k + 1) / n_batches
            progress.advance(len(batch.heads), done / recipe.training.epochs)
            if announce is not None and k in (0, last_measured):
                float(total)  # waits for a GPU
                now = time.perf_counter()
                if k == last_measured:
                    seconds = (now - measured_from) / max(1, k) * n_batches
                    announce(_estimate(train, recipe, run, sampler, device, seconds))
                    announce = None
                measured_from = now  # the first step compiles
        steps.to_host()
        loss = float(total) / len(train)
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


def _make_batches(
    train: Triples, recipe: GraphRecipe, sampler: NegativeSampler, epoch: int
) -> Iterator[TripleBatch]:
    """Yield the batches of an epoch, each triple once; those of TransR are ordered by relation."""
    seed = recipe.training.seed
    order = np.random.default_rng([seed, epoch]).permutation(len(train))
    mixed = np.uint64(splitmix64(np.uint64(splitmix64(np.uint64(seed))) ^ np.uint64(epoch)))
    for first in range(0, len(train), recipe.training.batch):
        rows = order[first : first + recipe.training.batch]
        if recipe.model.kind == PROJECTED:
            rows = rows[np.argsort(train.relations[rows], kind="stable")]
        true = train.heads[rows], train.relations[rows], train.tails[rows]
        positions = np.arange(first, first + len(rows), dtype=np.int64)
        yield sample_negatives(sampler, true, positions, mixed, recipe.sampling.negatives)


def _estimate(
    train: Triples,
    recipe: GraphRecipe,
    run: EmbeddingRun,
    sampler: NegativeSampler,
    device: str,
    seconds: float,
) -> TrainingEstimate:
    """Estimate time and memory from the seconds of an epoch."""
    n_left = recipe.training.epochs - run.epoch
    tables, n_bytes = run.tables, run.n_bytes()
    width = tables.entity.shape[1] + 3 * tables.relation.shape[1] * (len(tables.projection) > 0)
    n_slots = min(recipe.training.batch, len(train)) * (2 + recipe.sampling.negatives)
    n_bytes += n_slots * width * tables.entity.itemsize
    n_bytes += sum(column.nbytes for column in (train.heads, *sampler[:3])) * 2
    if recipe.training.evaluate_every and run.best is None:
        n_bytes += sum(table.nbytes for table in tables)
    return TrainingEstimate(
        device=device,
        optimiser=recipe.optimiser.kind,
        n_epochs=n_left,
        seconds=n_left * seconds,
        n_bytes=n_bytes,
    )


@dataclass(frozen=True, slots=True)
class EmbeddingResult:
    """Result of a training: folder, sizes and final state."""

    folder: Path
    """Folder with the vectors."""
    n_triples: dict[str, int]
    """Number of triples by split."""
    run: EmbeddingRun
    """State at the end: vectors, losses and best epoch."""

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


def embed_graph(
    base: KnowledgeBase,
    recipe: GraphRecipe,
    out: str | Path,
    *,
    start_from: str | Path | None = None,
    resume: bool = False,
    overwrite: bool = False,
    execution: EmbeddingExecution | None = None,
) -> EmbeddingResult:
    """Train embeddings of a knowledge base's relations and write them as a folder.

    Args:
        base: the knowledge base.
        recipe: the whole configuration.
        out: the folder to write.
        start_from: a folder of embeddings of the same knowledge base whose vectors training starts
            with, as TransR starts with those of TransE.
        resume: go on from the saved state of an interrupted run.
        overwrite: replace embeddings or a saved state.
        execution: device, estimate and progress.

    Returns:
        sizes and final state.

    Raises:
        InputError: without relations to learn from, or to choose the best vectors by.
        OutputError: if there is something in the folder already.
        StoreError: if the saved state is damaged or of another training.
    """
    out = Path(out)
    if recipe.optimiser.kind == "auto":
        kind = "lazy-adam" if len(base) > MANY_ENTITIES else "adam"
        recipe = replace(recipe, optimiser=replace(recipe.optimiser, kind=kind))
    start = Embeddings.open(start_from) if start_from is not None else None
    with sole_writer(out):
        _check_folder(out, resume=resume, overwrite=overwrite)
        triples = read_triples(base)
        _check_graph(base, triples, recipe)
        train = triples.of_split("train")
        if recipe.model.inverse:
            train = train.with_inverse()
        made_from: dict[str, Any] = {
            "graph": graph_fingerprint(base),
            "start": start.fingerprint if start else "",
            "recipe": recipe.to_json(),
        }
        if resume and (out / _STATE).exists():
            run = _load_state(out / _STATE, recipe, made_from, train)
        else:
            tables = start_tables(start, recipe.model, made_from["graph"]) if start else None
            run = new_run(train, recipe, start=tables)

        def after_epoch(run: EmbeddingRun) -> bool:
            done = _evaluate(run, recipe, triples)
            if not done and run.epoch % recipe.training.save_every == 0:
                _save_state(out / _STATE, run, made_from)
            return done

        if not _is_over(run, recipe):
            train_epochs(train, recipe, run, after_epoch, execution)
        result = EmbeddingResult(out, {name: len(triples.of_split(name)) for name in SPLITS}, run)
        metadata = {key: value for key, value in result.to_json().items() if key != "embeddings"}
        content = {"recipe": recipe.to_json(), "training": {**metadata, "losses": run.losses}}
        if start is not None:
            folder = str(start.folder.resolve())
            content["start_from"] = {"folder": folder, "sha256": start.fingerprint}
        with new_folder(out, overwrite=True) as work:
            write_embeddings(work, run.best or run.tables, base, content)
        return result


def _check_folder(out: Path, *, resume: bool, overwrite: bool) -> None:
    """Refuse foreign folders, and finished or unfinished runs without resume or overwrite."""
    remove_abandoned(out / _STATE)
    begun = STATE.is_at(out / _STATE)
    finished = EMBEDDINGS.is_at(out)
    # an unfinished first state of a killed run may be there
    unfinished = out.is_dir() and all(p.name.startswith(f".{_STATE}.") for p in out.iterdir())
    if out.exists() and not (begun or finished or unfinished):
        raise OutputError(f"{out}: holds no embeddings; choose another folder")
    if resume and finished and not begun:
        raise OutputError(f"{out}: is finished; --overwrite trains anew")
    if (begun or finished) and not resume and not overwrite:
        status = "was stopped there; --resume goes on" if begun else "is finished there"
        raise OutputError(f"{out}: a run {status}; --overwrite trains anew")
    if overwrite and not resume:
        shutil.rmtree(out / _STATE, ignore_errors=True)


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
    stride = recipe.training.evaluate_every
    if not stride or (run.epoch % stride and run.epoch < recipe.training.epochs):
        return False
    both = triples.of_split("train", "valid")
    mrr = predict_links(run.tables, recipe.model, both, "valid").metrics()["mrr"]
    if mrr > max((value for _, value in run.valid_mrr), default=-1.0):
        run.best = Tables(*(table.copy() for table in run.tables))
    run.valid_mrr.append((run.epoch, mrr))
    return _is_over(run, recipe)


def _is_over(run: EmbeddingRun, recipe: GraphRecipe) -> bool:
    """Return True after the last epoch, or if the valid split has long been worse than before."""
    n_worse = sum(epoch > run.best_epoch for epoch, _ in run.valid_mrr)
    return run.epoch >= recipe.training.epochs or n_worse >= recipe.training.patience


def _save_state(folder: Path, run: EmbeddingRun, made_from: dict[str, Any]) -> None:
    with new_folder(folder, overwrite=True) as work:
        write_tensors(work / _TENSORS, run.arrays())
        content = {
            **made_from,
            "epoch": run.epoch,
            "step": run.step,
            "losses": run.losses,
            "valid_mrr": run.valid_mrr,
            "seconds": run.seconds,
            "files": describe_files(work),
        }
        STATE.write(work, content)


def _load_state(
    folder: Path, recipe: GraphRecipe, made_from: dict[str, Any], train: Triples
) -> EmbeddingRun:
    """Resume a run from its saved state."""
    state = STATE.read(folder)
    STATE.check_files(folder, state, hashes=True)
    names = {"graph": "knowledge base", "start": "--start-from", "recipe": "recipe"}
    for key, name in names.items():
        if state[key] != made_from[key]:
            raise StoreError(
                f"{folder}: saved with another {name}; give the same again, or --overwrite"
            )
    run = new_run(train, recipe)
    run.epoch, run.step, run.losses = state["epoch"], state["step"], state["losses"]
    run.seconds = state["seconds"]
    try:
        run.valid_mrr = [(epoch, mrr) for epoch, mrr in state["valid_mrr"]]
        saved = read_tensors(folder / _TENSORS)
        if "best.entity" in saved:
            run.best = Tables(*(table.copy() for table in run.tables))
        for name, array in run.arrays().items():
            if saved[name].dtype != array.dtype:
                raise ValueError(f"{name}: expected {array.dtype}, found {saved[name].dtype}")
            check_length(name, saved[name], *array.shape)
            array[...] = saved[name]
    except (ValueError, KeyError) as error:
        raise STATE.damaged(folder / _TENSORS, error) from error
    return run
