"""What each loss asks of the training loop: a model, the batches, and the loss of one."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from biograft.linking.finetuning.bank import BankBatch, BankBatches, NameBank
from biograft.linking.finetuning.batches import (
    CandidateBatch,
    CandidateBatches,
    EpochOrder,
    Share,
)
from biograft.linking.finetuning.candidates import CandidateFinder
from biograft.linking.finetuning.config import FinetuneConfig
from biograft.linking.finetuning.lessons import Lessons
from biograft.linking.finetuning.pairs import MentionPairBatches, MentionPairs
from biograft.linking.lexical.index import LexicalIndex
from biograft.nn import TextEncoder
from biograft.objectives.synonym_marginal.objective import (
    BankScorer,
    NameScorer,
    cut_in_pieces,
    marginal_loss,
)
from biograft.recipes.alignment import Alignment, Embedder
from biograft.training import Task
from biograft.training.processes import join_processes


def make_task(
    encoder: TextEncoder, lessons: Lessons, config: FinetuneConfig, run: Path
) -> Task[Any]:
    """Make what the configured loss asks; what an epoch begins with is kept in ``run``."""
    makers = {"marginal": _marginal, "bank": _bank, "contrastive": _contrastive}
    return makers[config.loss](encoder, lessons, config, run)


def _marginal(
    encoder: TextEncoder, lessons: Lessons, config: FinetuneConfig, run: Path
) -> Task[Any]:
    lexical = LexicalIndex.build(lessons.kb, config.lexical)
    finder = CandidateFinder(lessons, lexical, encoder, config)
    return Task(
        model=NameScorer(encoder, config.marginal),
        source=CandidateBatches(finder, run / "candidates", _order(len(lessons), config)),
        compute_loss=partial(_marginal_loss, encoder),
    )


def _marginal_loss(
    encoder: TextEncoder, model: nn.Module, batch: CandidateBatch
) -> tuple[Tensor, dict[str, float]]:
    """Score the candidates of a batch, all its texts in one pass, and give the loss."""
    pieces = cut_in_pieces(encoder, [*batch.mentions, *batch.names])
    places, lexical = torch.from_numpy(batch.places), torch.from_numpy(batch.lexical)
    scores = model(pieces, places, lexical)
    loss, statistics = marginal_loss(scores, torch.from_numpy(batch.gold).to(scores.device))
    return loss, {**statistics, "gold_found": float(batch.found.mean())}


def _bank(encoder: TextEncoder, lessons: Lessons, config: FinetuneConfig, run: Path) -> Task[Any]:
    bank, order = NameBank(lessons, encoder, config), _order(len(lessons), config)
    return Task(
        model=BankScorer(encoder, config.marginal),
        source=BankBatches(bank, run / "bank", order),
        compute_loss=partial(_bank_loss, encoder),
    )


def _bank_loss(
    encoder: TextEncoder, model: nn.Module, batch: BankBatch
) -> tuple[Tensor, dict[str, float]]:
    """Score the whole bank for mentions, and for the names encoded with them."""
    pieces = cut_in_pieces(encoder, batch.texts)
    fresh, withheld = torch.from_numpy(batch.fresh), torch.from_numpy(batch.withheld)
    scores = model(pieces, batch.bank, fresh, withheld)
    loss, statistics = marginal_loss(scores, torch.from_numpy(batch.gold).to(scores.device))
    return loss, dict(statistics)


def _contrastive(
    encoder: TextEncoder, lessons: Lessons, config: FinetuneConfig, _: Path
) -> Task[Any]:
    pairs = MentionPairs(lessons, config.training.seed)
    alignment = Alignment(encoder, {"synonym_alignment": config.contrastive.build()})
    return Task(
        model=Embedder(encoder),
        source=MentionPairBatches(pairs, _order(len(pairs), config)),
        compute_loss=alignment.loss,
    )


def _order(n_lessons: int, config: FinetuneConfig) -> EpochOrder:
    processes, training = join_processes(), config.training
    share = Share(processes.process_index, processes.num_processes)
    return EpochOrder(n_lessons, training.batch_size, training.seed, share)
