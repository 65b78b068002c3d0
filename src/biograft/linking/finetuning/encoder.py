"""Mentions in pairs with another mention, or a name, of the same concept."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from biograft.artifacts import new_folder
from biograft.errors import ConfigError, MissingExtraError
from biograft.kb import KnowledgeBase
from biograft.linking.finetuning.bank import BankBatch, BankBatches, NameBank
from biograft.linking.finetuning.candidates import (
    CandidateBatch,
    CandidateBatches,
    CandidateFinder,
    EpochOrder,
    Shard,
)
from biograft.linking.finetuning.config import FinetuneConfig
from biograft.linking.finetuning.training_data import FinetuneData, MentionExample
from biograft.linking.index import write_weights
from biograft.linking.lexical.index import LexicalIndex
from biograft.linking.provenance import store_fingerprint
from biograft.linking.queries import LabelledMention
from biograft.nn import TextEncoder
from biograft.objectives.synonym_marginal import (
    BankScorer,
    NameScorer,
    marginal_loss,
    tokenize_in_batches,
)
from biograft.pretraining.alignment import AlignmentTraining, Embedder
from biograft.pretraining.synonym_pairs import PairBatch
from biograft.progress import Progress
from biograft.text import normalise
from biograft.training import Task
from biograft.training.processes import join_processes


class MentionPairs:
    """Every mention once an epoch, with a partner that is drawn anew each time.

    A partner is never the mention itself, up to case and signs. Mentions that have none are
    partners of none either, and are left out.
    """

    def __init__(self, data: FinetuneData, seed: int) -> None:
        self.seed, self._data = seed, data
        self._mentions = _mentions_of_concepts(data)
        self._partners: dict[tuple[int, ...], list[str]] = {}
        self._group = _group_concepts(data)
        self.paired = [example for example in data.examples if self._has_partner(example)]
        data.counts.n_nameless += len(data) - len(self.paired)
        data.counts.n_examples = len(self.paired)
        if not self.paired:
            raise ConfigError(
                f"mentions: none of {len(data)} has a partner: another mention, or a name, of "
                "the same concept; give more mentions or a knowledge base with more names"
            )

    def __len__(self) -> int:
        return len(self.paired)

    def rng(self, epoch: int, places: list[int]) -> PairBatch:
        """Pair some mentions with the partners that they have in an epoch."""
        chosen = [self.paired[place] for place in places]
        return PairBatch(
            left=tuple(example.text for example in chosen),
            right=tuple(self._draw(epoch, place) for place in places),
            labels=np.array([self._group[example.concepts[0]] for example in chosen]),
        )

    def partners(self, example: MentionExample) -> list[str]:
        """Give the mentions and names of what a example's mention means, in a fixed order."""
        if example.concepts not in self._partners:
            names = self._data.names
            found = {names.text(int(n)) for c in example.concepts for n in names.of_concept(c)}
            for concept in example.concepts:
                found |= self._mentions[concept]
            self._partners[example.concepts] = sorted(found)
        return self._partners[example.concepts]

    def _draw(self, epoch: int, place: int) -> str:
        """Draw at random, and take the next if that is the mention itself."""
        example = self.paired[place]
        partners, own = self.partners(example), normalise(example.text)
        first = int(np.random.default_rng([self.seed, epoch, place]).integers(len(partners)))
        turned = (*partners[first:], *partners[:first])
        return next(text for text in turned if normalise(text) != own)

    def _has_partner(self, example: MentionExample) -> bool:
        own = normalise(example.text)
        return any(normalise(text) != own for text in self.partners(example))


class MentionPairBatches:
    """Batches of pairs that can be taken up at any epoch and position."""

    def __init__(self, pairs: MentionPairs, order: EpochOrder) -> None:
        self.pairs, self.order = pairs, order

    def __len__(self) -> int:
        return len(self.order)

    def batches(self, epoch: int, position: int = 0) -> Iterator[PairBatch]:
        """Give the batches of an epoch from a position on."""
        for places in self.order.batches(epoch, position):
            yield self.pairs.rng(epoch, places.tolist())


def _mentions_of_concepts(data: FinetuneData) -> dict[int, set[str]]:
    found: dict[int, set[str]] = {}
    for example in data.examples:
        for concept in example.concepts:
            found.setdefault(concept, set()).add(example.text)
    return found


def _group_concepts(data: FinetuneData) -> dict[int, int]:
    """Number concepts so that those which any mention means together have one number.

    Otherwise two mentions of one concept, one of which may mean another too, would be negatives.
    """
    group: dict[int, int] = {}

    def root(concept: int) -> int:
        while group.setdefault(concept, concept) != concept:
            concept = group[concept]
        return concept

    for example in data.examples:
        first, *others = sorted({root(concept) for concept in example.concepts})
        for other in others:
            group[other] = first
    return {concept: root(concept) for concept in list(group)}


def make_task(
    encoder: TextEncoder, data: FinetuneData, config: FinetuneConfig, run: Path
) -> Task[Any]:
    """Make what the configured loss asks; what an epoch begins with is kept in ``run``."""
    makers = {"marginal": _marginal, "bank": _bank, "contrastive": _contrastive}
    return makers[config.loss](encoder, data, config, run)


def _marginal(
    encoder: TextEncoder, data: FinetuneData, config: FinetuneConfig, run: Path
) -> Task[Any]:
    lexical = LexicalIndex.build(data.kb, config.lexical)
    finder = CandidateFinder(data, lexical, encoder, config)
    return Task(
        model=NameScorer(encoder, config.marginal),
        source=CandidateBatches(finder, run / "candidates", _order(len(data), config)),
        compute_loss=partial(_marginal_loss, encoder),
    )


def _marginal_loss(
    encoder: TextEncoder, model: nn.Module, batch: CandidateBatch
) -> tuple[Tensor, dict[str, float]]:
    """Score the candidates of a batch, all its texts in one pass, and give the loss."""
    pieces = tokenize_in_batches(encoder, [*batch.mentions, *batch.names])
    places, lexical = torch.from_numpy(batch.places), torch.from_numpy(batch.lexical)
    scores = model(pieces, places, lexical)
    loss, statistics = marginal_loss(scores, torch.from_numpy(batch.gold).to(scores.device))
    return loss, {**statistics, "gold_found": float(batch.found.mean())}


def _bank(
    encoder: TextEncoder, data: FinetuneData, config: FinetuneConfig, run: Path
) -> Task[Any]:
    bank, order = NameBank(data, encoder, config), _order(len(data), config)
    return Task(
        model=BankScorer(encoder, config.marginal),
        source=BankBatches(bank, run / "bank", order),
        compute_loss=partial(_bank_loss, encoder),
    )


def _bank_loss(
    encoder: TextEncoder, model: nn.Module, batch: BankBatch
) -> tuple[Tensor, dict[str, float]]:
    """Score the whole bank for mentions, and for the names encoded with them."""
    pieces = tokenize_in_batches(encoder, batch.texts)
    fresh, withheld = torch.from_numpy(batch.fresh), torch.from_numpy(batch.withheld)
    scores = model(pieces, batch.bank, fresh, withheld)
    loss, statistics = marginal_loss(scores, torch.from_numpy(batch.gold).to(scores.device))
    return loss, dict(statistics)


def _contrastive(
    encoder: TextEncoder, data: FinetuneData, config: FinetuneConfig, _: Path
) -> Task[Any]:
    pairs = MentionPairs(data, config.training.seed)
    alignment = AlignmentTraining(encoder, {"synonym_alignment": config.contrastive.build()})
    return Task(
        model=Embedder(encoder),
        source=MentionPairBatches(pairs, _order(len(pairs), config)),
        compute_loss=alignment.loss,
    )


def _order(n_examples: int, config: FinetuneConfig) -> EpochOrder:
    processes, training = join_processes(), config.training
    share = Shard(processes.process_index, processes.num_processes)
    return EpochOrder(n_examples, training.batch_size, training.seed, share)


try:
    from biograft.linking.finetuning.training_data import MentionExampleCounts, make_examples
    from biograft.nn import TextEncoder
    from biograft.objectives.synonym_marginal import NameScorer
    from biograft.training import TrainingResult, train
    from biograft.training.processes import join_processes
except ModuleNotFoundError as error:
    raise MissingExtraError("models", "fine-tuning an encoder") from error


@dataclass(frozen=True, slots=True)
class FinetuneResult:
    """What fine-tuning gave."""

    run: Path
    encoder: Path
    """Folder of the encoder; transformers and sentence-transformers load it."""
    counts: MentionExampleCounts
    training: TrainingResult
    lexical_weight: float | None
    """How much letters count beside the encoder, which counts 1; none if that is not learned."""

    def to_json(self) -> dict[str, Any]:
        """Give the result as plain values."""
        trained = self.training
        return {
            "run": str(self.run),
            "encoder": str(self.encoder),
            "mentions": self.counts.to_json(),
            "lexical_weight": self.lexical_weight,
            "step": trained.step,
            "n_steps": trained.n_steps,
            "finished": trained.finished,
            "loss": trained.loss,
            "seconds": round(trained.seconds, 3),
        }


def finetune_encoder(  # noqa: PLR0913 - what learns from what, how, and where to
    kb: KnowledgeBase,
    encoder: TextEncoder,
    mentions: Sequence[LabelledMention],
    config: FinetuneConfig,
    out: str | Path,
    *,
    resume: bool = False,
    progress: Progress | None = None,
) -> FinetuneResult:
    """Train an encoder, in place, in the folder ``out``, or go on where a run stopped there.

    To resume, give the encoder that the run began with. The encoder is written to
    ``out/encoder``, after the marginal loss with the weight of letters in it, also when the time
    of the session was over before the last step.
    """
    progress, run = progress or Progress(enabled=False), Path(out)
    progress.start("mentions")
    data = make_examples(kb, encoder, mentions, config)
    provenance = {
        "kb": store_fingerprint(kb),
        "encoder": encoder.fingerprint(),
        "mentions": data.fingerprint(),
    }
    described = json.loads(json.dumps(asdict(config)))
    progress.start("candidates by letters")
    made = make_task(encoder, data, config, run)
    task = replace(made, described=described, provenance=provenance)
    trained = train(task, config.training, run, resume=resume, progress=progress)
    if trained.finished:
        shutil.rmtree(run / "bank", ignore_errors=True)  # large, and of no use any more
    scorer = task.model if isinstance(task.model, NameScorer) else None
    weight = scorer.lexical_weight.item() if scorer is not None else None
    if join_processes().is_main_process:
        _save(encoder, run / "encoder", weight, {**described, "provenance": provenance})
    encoder.folder = run / "encoder"
    return FinetuneResult(run, run / "encoder", data.counts, trained, weight)


def _save(
    encoder: TextEncoder, folder: Path, weight: float | None, described: Mapping[str, Any]
) -> None:
    """Write the encoder, and with it the weight of letters.

    A weight beside inner products of any length says nothing to a search, which goes by cosines.
    """
    with new_folder(folder, overwrite=True) as work:
        encoder.save_pretrained(work)
        if weight is not None and described["marginal"]["similarity"] == "cosine":
            told = {key: described[key] for key in ("marginal", "lexical", "provenance")}
            write_weights(work, weight, told)
