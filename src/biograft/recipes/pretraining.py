"""Run a recipe: pairs from a knowledge base, an encoder, the loop, an encoder to take away."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from biograft.errors import MissingExtraError
from biograft.kb import KnowledgeBase
from biograft.progress import Progress
from biograft.recipes.recipe import Recipe
from biograft.runs import hash_file
from biograft.streams import PairBatches, PairCounts, SynonymPairs

try:
    from biograft.nn import TextEncoder
    from biograft.recipes.alignment import Alignment, Embedder
    from biograft.training import Task, TrainingResult, train
    from biograft.training.processes import join_processes
except ModuleNotFoundError as error:
    raise MissingExtraError("models", "training an encoder") from error

EVALUATED_PAIRS = 256
"""How many pairs, the same ones each time, show how near names are before and after."""


@dataclass(frozen=True, slots=True)
class PretrainResult:
    """What a run of a recipe gave."""

    run: Path
    encoder: Path
    """Folder of the trained encoder; transformers and sentence-transformers load it."""
    counts: PairCounts
    training: TrainingResult

    def to_json(self) -> dict[str, Any]:
        """Give the result as plain values."""
        trained = self.training
        return {
            "run": str(self.run),
            "encoder": str(self.encoder),
            "pairs": self.counts.to_json(),
            "step": trained.step,
            "n_steps": trained.n_steps,
            "finished": trained.finished,
            "loss": trained.loss,
            "seconds": round(trained.seconds, 3),
        }


def pretrain(
    recipe: Recipe,
    kb: KnowledgeBase | None,
    out: str | Path,
    *,
    resume: bool = False,
    progress: Progress | None = None,
) -> PretrainResult:
    """Train the encoder of a recipe in the folder ``out``, or go on where a run stopped there.

    The encoder is written to ``out/encoder`` also when the time of the session was over before
    the last step; ``training.finished`` says so.
    """
    progress, run = progress or Progress(enabled=False), Path(out)
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
    return PretrainResult(run, run / "encoder", pairs.counts, trained)


def _load_encoder(recipe: Recipe) -> TextEncoder:
    config = recipe.encoder
    lower = config.lower
    if lower is None and recipe.stream.lowercase:
        lower = True  # what learnt from lower case is to be asked in lower case
    return TextEncoder.from_pretrained(
        config.name, pooling=config.pooling, max_length=config.max_length, lower=lower
    )


def _provenance(
    recipe: Recipe, kb: KnowledgeBase | None, encoder: TextEncoder, pairs: SynonymPairs
) -> dict[str, Any]:
    """Say what a run is made from, by hashes."""
    extra = recipe.stream.extra_pairs
    return {
        "kb": _hash_store(kb) if kb is not None else None,
        "extra_pairs": hash_file(extra) if extra else None,
        "encoder": encoder.fingerprint(),
        "pairs": pairs.counts.to_json(),
    }


def _hash_store(kb: KnowledgeBase) -> str:
    files = json.dumps(kb.manifest["files"], sort_keys=True)
    return hashlib.sha256(files.encode()).hexdigest()
