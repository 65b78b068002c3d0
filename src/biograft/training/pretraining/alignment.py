"""Pre-train an encoder by synonym alignment: pairs of names of a knowledge base (SapBERT)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, distributed, nn

from biograft.artifacts import hash_file, new_folder
from biograft.kb import KnowledgeBase, fingerprint
from biograft.kb.tables import SCHEMAS
from biograft.models import TextEncoder
from biograft.models.model_card import ModelCard, write_card
from biograft.models.precision import autocast_in
from biograft.progress import Progress
from biograft.training import Task, train
from biograft.training.objectives.synonym_alignment import SynonymAlignment, cosine_histogram
from biograft.training.pretraining.recipe import PretrainingRecipe
from biograft.training.pretraining.run import PretrainResult
from biograft.training.pretraining.synonym_pairs import PairBatch, PairBatches, SynonymPairs
from biograft.training.processes import join_processes


class Embedder(nn.Module):
    """An encoder as one module, so that several processes can share its gradients."""

    def __init__(self, encoder: TextEncoder) -> None:
        super().__init__()
        self.model: nn.Module = encoder.model
        self._encoder = encoder

    def forward(self, batch: Mapping[str, Tensor]) -> Tensor:
        """Compute the pooled vectors of a tokenised batch."""
        return self._encoder.embed(batch)


def gather_rows(embeddings: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
    """Gather the embeddings and labels of all processes, in the order of their ranks.

    Processes may hold different numbers of rows. The values are those of all processes, in each of
    them. A gradient flows only to a process's own rows, times the number of processes: their mean,
    which DDP takes, is then the gradient of the loss of all rows.
    """
    if not distributed.is_initialized() or distributed.get_world_size() == 1:
        return embeddings, labels
    rank, world = distributed.get_rank(), distributed.get_world_size()
    counts = [torch.zeros(1, dtype=torch.int64, device=labels.device) for _ in range(world)]
    distributed.all_gather(counts, torch.tensor([len(labels)], device=labels.device))
    sizes = [int(count) for count in counts]
    fixed = embeddings.detach()
    all_embeddings = _gather_padded(fixed, sizes)
    all_embeddings[rank] = fixed + world * (embeddings - fixed)
    return torch.cat(all_embeddings), torch.cat(_gather_padded(labels, sizes))


def _gather_padded(rows: Tensor, sizes: Sequence[int]) -> list[Tensor]:
    """Gather the rows of each process, padded to one number of rows on the way."""
    padded = rows.new_zeros((max(sizes), *rows.shape[1:]))
    padded[: len(rows)] = rows
    gathered = [torch.empty_like(padded) for _ in sizes]
    distributed.all_gather(gathered, padded)
    return [each[:size] for each, size in zip(gathered, sizes, strict=True)]


class AlignmentTraining:
    """Loss and evaluation of name pairs, for ``training.Task``; both names in one pass.

    Of several processes each computes the loss over the names of all, mined together.
    """

    def __init__(self, encoder: TextEncoder, objectives: Mapping[str, SynonymAlignment]) -> None:
        self.encoder, self.objectives = encoder, objectives

    def loss(self, model: nn.Module, batch: PairBatch) -> tuple[Tensor, dict[str, float]]:
        """Compute the sum of the objectives' losses, and their statistics."""
        embeddings, labels = gather_rows(*self._embed(model, batch))
        total, statistics = embeddings.new_zeros((), dtype=torch.float32), {}
        for name, objective in self.objectives.items():
            loss, stats = objective.loss(embeddings, {"labels": labels})
            prefix = f"{name}." if len(self.objectives) > 1 else ""
            total = total + loss
            statistics.update({f"{prefix}{key}": value for key, value in stats.items()})
        return total, statistics

    def evaluate(self, model: nn.Module, batch: PairBatch, precision: str) -> dict[str, Any]:
        """Compute the losses of a batch, and the histograms of its cosines."""
        with autocast_in(precision, self.encoder.device):
            embeddings, labels = self._embed(model, batch)
        results = {}
        for name, objective in self.objectives.items():
            loss, stats = objective.loss(embeddings, {"labels": labels})
            cosines = cosine_histogram(embeddings, labels, objective.miner)
            results[name] = {"loss": float(loss), **stats, "cosines": cosines}
        return results

    def _embed(self, model: nn.Module, batch: PairBatch) -> tuple[Tensor, Tensor]:
        tokens = self.encoder.tokenize([*batch.left, *batch.right])
        embeddings: Tensor = model(tokens)  # (2 pairs, width)
        labels = torch.from_numpy(batch.labels).to(embeddings.device)
        return embeddings, labels.repeat(2)


EVALUATED_PAIRS = 256
"""The number of pairs of an evaluation, the same ones each time."""


def pretrain_alignment(
    recipe: PretrainingRecipe,
    kb: KnowledgeBase | None,
    run: Path,
    *,
    resume: bool,
    progress: Progress,
) -> PretrainResult:
    """Train an encoder on synonym pairs; it is written to ``run/encoder``."""
    processes, config = join_processes(), recipe.training
    progress.start("pairs")
    pairs = SynonymPairs(kb, recipe.stream)
    source = PairBatches(
        pairs,
        config.plan_batch(processes.num_processes).size,
        seed=config.seed,
        rank=processes.process_index,
        world=processes.num_processes,
    )
    progress.start("encoder")
    encoder = _load_encoder(recipe)
    alignment = AlignmentTraining(
        encoder, {name: c.build() for name, c in recipe.objectives.items()}
    )
    evaluated = next(PairBatches(pairs, EVALUATED_PAIRS, seed=config.seed).batches(0))
    model = Embedder(encoder)
    task = Task(
        model=model,
        source=source,
        compute_loss=alignment.loss,
        evaluate=partial(alignment.evaluate, model, evaluated, config.precision),
        described=recipe.to_json(),
        provenance=_provenance(recipe, kb, encoder, pairs),
        may_shard=True,
    )
    trained = train(task, config, run, resume=resume, progress=progress)
    counts = pairs.counts
    if processes.is_main_process:
        card = ModelCard(
            base_model=str(recipe.encoder.name),
            method=f"Synonym alignment (recipe {recipe.name})",
            data=counts.to_json(),
            metrics=trained.metrics(),
            sources=tuple(kb.manifest["sources"]) if kb is not None else (),
        )
        with new_folder(run / "encoder", overwrite=True) as work:
            encoder.save_pretrained(work)
            write_card(work, card, encoder.settings)
    training_data = f"{counts.n_pairs:,} pairs of names of {counts.n_concepts:,} concepts"
    return PretrainResult(run, run / "encoder", training_data, {"pairs": counts.to_json()}, trained)


def _load_encoder(recipe: PretrainingRecipe) -> TextEncoder:
    lower = recipe.encoder.lower
    if lower is None and recipe.stream.lowercase:
        lower = True  # queries must be lowercased like the training data
    return replace(recipe.encoder, lower=lower).load()


def _provenance(
    recipe: PretrainingRecipe, kb: KnowledgeBase | None, encoder: TextEncoder, pairs: SynonymPairs
) -> dict[str, Any]:
    """Describe the inputs of a run, by hashes."""
    extra = recipe.stream.extra_pairs
    return {
        "kb": fingerprint(kb, tuple(SCHEMAS)) if kb is not None else None,
        "extra_pairs": hash_file(extra) if extra else None,
        "encoder": encoder.fingerprint(),
        "pairs": pairs.counts.to_json(),
    }
