"""Training of graph embeddings for a store: folders, saved states with exact resume, evaluation."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from biograft.artifacts import (
    ArtifactKind,
    check_length,
    describe_files,
    new_folder,
    remove_abandoned,
    sole_writer,
)
from biograft.errors import InputError, OutputError, StoreError
from biograft.graph.embedding.config import GraphRecipe
from biograft.graph.embedding.embeddings import (
    EMBEDDINGS,
    Embeddings,
    read_tensors,
    start_tables,
    tables_of,
    write_embeddings,
    write_tensors,
)
from biograft.graph.embedding.epochs import EmbeddingExecution, resolve_optimiser, train_epochs
from biograft.graph.embedding.optimiser import Moments, make_moments
from biograft.graph.embedding.ranking import predict_links
from biograft.graph.embedding.state import EmbeddingRun, new_run, with_inverse
from biograft.graph.embedding.translation import Tables
from biograft.graph.triples import SPLITS, Triples, graph_fingerprint, read_triples
from biograft.kb import KnowledgeBase

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
    """Train embeddings of a store's relations and write them as a folder.

    ``start_from`` is a folder of embeddings of the same store whose vectors training starts with,
    as TransR starts with those of TransE.
    """
    out, recipe = Path(out), resolve_optimiser(recipe, len(base))
    start = Embeddings.open(start_from) if start_from is not None else None
    with sole_writer(out):
        _check_folder(out, resume=resume, overwrite=overwrite)
        return _embed(base, recipe, out, start=start, resume=resume, execution=execution)


def _embed(
    base: KnowledgeBase,
    recipe: GraphRecipe,
    out: Path,
    *,
    start: Embeddings | None,
    resume: bool,
    execution: EmbeddingExecution | None,
) -> EmbeddingResult:
    triples = read_triples(base)
    _check_graph(base, triples, recipe)
    train = triples.of_split("train")
    if recipe.model.inverse:
        train = with_inverse(train)
    fingerprint = graph_fingerprint(base)
    made_from = {"graph": fingerprint, "start": start.fingerprint if start else ""}
    if resume and (out / _STATE).exists():
        run = _load_state(out / _STATE, recipe, made_from, train)
    else:
        tables = start_tables(start, recipe.model, fingerprint) if start else None
        run = new_run(train, recipe, start=tables)

    def after_epoch(run: EmbeddingRun) -> bool:
        done = _evaluate(run, recipe, triples)
        if not done and run.epoch % recipe.training.save_every == 0:
            _save_state(out / _STATE, run, recipe, made_from)
        return done

    if not _is_over(run, recipe):
        train_epochs(train, recipe, run, after_epoch, execution)
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
            "files": describe_files(work),
        }
        STATE.write(work, content)


def _load_state(
    folder: Path, recipe: GraphRecipe, made_from: dict[str, str], train: Triples
) -> EmbeddingRun:
    """Resume a run from its saved state."""
    state = STATE.read(folder)
    STATE.check_files(folder, state, hashes=True)
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
        sizes = train.n_entities, len(train.relation_names)
        tables, best = tables_of(arrays, sizes, recipe.model), None
        if "best.entity" in arrays:
            best = tables_of(arrays, sizes, recipe.model, of="best.")
        return EmbeddingRun(
            tables,
            tuple(
                _moments_of(arrays, name, make_moments(table, recipe.optimiser))
                for name, table in tables._asdict().items()
            ),
            epoch=state["epoch"],
            step=state["step"],
            losses=state["losses"],
            valid_mrr=[(epoch, mrr) for epoch, mrr in state["valid_mrr"]],
            best=best,
            seconds=state["seconds"],
        )
    except (ValueError, KeyError) as error:
        raise STATE.damaged(folder / _TENSORS, error) from error


def _moments_of(arrays: dict[str, Any], name: str, new: Moments) -> Moments:
    """Return the optimiser state of a table; ``ValueError`` if it is not as large as a new one."""
    moments = Moments(*(arrays[f"{name}.{part}"] for part in Moments._fields))
    for part, found, expected in zip(Moments._fields, moments, new, strict=True):
        if found.dtype != expected.dtype:
            raise ValueError(f"{name}.{part}: expected {expected.dtype}, found {found.dtype}")
        check_length(f"{name}.{part}", found, *expected.shape)
    return moments
