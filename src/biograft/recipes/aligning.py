"""Run a recipe of synonym alignment: pairs of names of a knowledge base, an encoder, the loop."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from biograft.kb import KnowledgeBase, fingerprint
from biograft.kb.layout import SCHEMAS
from biograft.nn import TextEncoder
from biograft.progress import Progress
from biograft.recipes.alignment import Alignment, Embedder
from biograft.recipes.pretraining import PretrainResult
from biograft.recipes.recipe import Recipe
from biograft.runs import hash_file
from biograft.streams import PairBatches, SynonymPairs
from biograft.training import Task, train
from biograft.training.processes import join_processes

EVALUATED_PAIRS = 256
"""How many pairs, the same ones each time, show how near names are before and after."""


def align(
    recipe: Recipe, kb: KnowledgeBase | None, run: Path, *, resume: bool, progress: Progress
) -> PretrainResult:
    """Bring the names of a concept together; the encoder is written to ``run/encoder``."""
    progress.start("pairs")
    pairs = SynonymPairs(kb, recipe.stream)
    processes, config = join_processes(), recipe.training
    source = PairBatches(
        pairs,
        config.batch_size,
        seed=config.seed,
        rank=processes.process_index,
        world=processes.num_processes,
    )
    progress.start("encoder")
    encoder = _load_encoder(recipe)
    alignment = Alignment(encoder, {name: c.build() for name, c in recipe.objectives.items()})
    shown = next(PairBatches(pairs, EVALUATED_PAIRS, seed=config.seed).batches(0))
    model = Embedder(encoder)
    task = Task(
        model=model,
        source=source,
        compute_loss=alignment.loss,
        evaluate=partial(alignment.evaluate, model, shown, config.precision),
        described=recipe.to_json(),
        provenance=_provenance(recipe, kb, encoder, pairs),
    )
    trained = train(task, config, run, resume=resume, progress=progress)
    if processes.is_main_process:
        encoder.save(run / "encoder", overwrite=True)
    counts = pairs.counts
    learned = f"{counts.n_pairs:,} pairs of names of {counts.n_concepts:,} concepts"
    return PretrainResult(run, run / "encoder", learned, {"pairs": counts.to_json()}, trained)


def _load_encoder(recipe: Recipe) -> TextEncoder:
    lower = recipe.encoder.lower
    if lower is None and recipe.stream.lowercase:
        lower = True  # what learnt from lower case is to be asked in lower case
    return replace(recipe.encoder, lower=lower).load()


def _provenance(
    recipe: Recipe, kb: KnowledgeBase | None, encoder: TextEncoder, pairs: SynonymPairs
) -> dict[str, Any]:
    """Say what a run is made from, by hashes."""
    extra = recipe.stream.extra_pairs
    return {
        "kb": fingerprint(kb, tuple(SCHEMAS)) if kb is not None else None,
        "extra_pairs": hash_file(extra) if extra else None,
        "encoder": encoder.fingerprint(),
        "pairs": pairs.counts.to_json(),
    }
