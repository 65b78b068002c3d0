"""Train the embeddings of a store into a folder, from the start or from where a run stopped."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from biograft.errors import InputError, OutputError, StoreError
from biograft.graph.embedding.config import EmbeddingRecipe
from biograft.graph.embedding.folder import EMBEDDINGS, write_embeddings
from biograft.graph.embedding.link_prediction import predict_links
from biograft.graph.embedding.optimising import Moments
from biograft.graph.embedding.scoring import Tables
from biograft.graph.embedding.tensors import read_tensors, write_tensors
from biograft.graph.embedding.training import Run, begin, train_epochs, with_inverse
from biograft.graph.triples import SPLITS, Triples, graph_fingerprint, read_triples
from biograft.kb import KnowledgeBase
from biograft.manifests import Kind, file_sizes
from biograft.progress import Progress
from biograft.runs import new_folder, remove_abandoned, sole_writer

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
