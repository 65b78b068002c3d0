"""Fine-tune an encoder on labelled mentions, with a marginal, memory bank or contrastive loss."""

from __future__ import annotations

import filecmp
import json
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from biograft.artifacts import new_folder
from biograft.errors import ConfigError, MissingExtraError

try:
    import torch
    from torch import Tensor, nn
except ModuleNotFoundError as error:
    raise MissingExtraError("models", "fine-tuning an encoder") from error
from biograft.kb import KnowledgeBase
from biograft.kb.fingerprints import store_fingerprint
from biograft.kb.names import normalise
from biograft.linking.index import WEIGHTS, write_weights
from biograft.linking.lexical.index import LexicalIndex
from biograft.linking.queries import LabelledMention
from biograft.models import TextEncoder
from biograft.models.model_card import ModelCard, write_card
from biograft.progress import Progress
from biograft.training import Task, TrainingResult, train
from biograft.training.checkpoint import MODEL
from biograft.training.linkers.finetuning.bank import BankBatch, BankBatches, NameBank
from biograft.training.linkers.finetuning.candidates import (
    CandidateBatch,
    CandidateBatches,
    CandidateFinder,
    EpochOrder,
    Shard,
)
from biograft.training.linkers.finetuning.config import FinetuneConfig
from biograft.training.linkers.finetuning.training_data import (
    FinetuneData,
    MentionExample,
    MentionExampleCounts,
    make_examples,
)
from biograft.training.objectives.synonym_marginal import (
    BankScorer,
    NameScorer,
    marginal_loss,
    tokenize_in_batches,
)
from biograft.training.pretraining.alignment import AlignmentTraining, Embedder, gather_rows
from biograft.training.pretraining.synonym_pairs import PairBatch
from biograft.training.processes import join_processes


class MentionPairs:
    """Pairs of every mention and a random partner: a mention or name of the same concept.

    A partner is sampled anew each epoch. It differs from the mention by more than case and
    punctuation; mentions without a partner are dropped.
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

    def sample(self, epoch: int, indices: list[int]) -> PairBatch:
        """Return some mentions with their partners in an epoch."""
        chosen = [self.paired[index] for index in indices]
        return PairBatch(
            left=tuple(example.text for example in chosen),
            right=tuple(self._sample_partner(epoch, index) for index in indices),
            labels=np.array([self._group[example.concepts[0]] for example in chosen]),
        )

    def partners(self, example: MentionExample) -> list[str]:
        """Return the mentions and names of an example's concepts, in a fixed order."""
        if example.concepts not in self._partners:
            names = self._data.names
            texts = {names.text(int(n)) for c in example.concepts for n in names.of_concept(c)}
            for concept in example.concepts:
                texts |= self._mentions[concept]
            self._partners[example.concepts] = sorted(texts)
        return self._partners[example.concepts]

    def _sample_partner(self, epoch: int, index: int) -> str:
        """Sample a partner; if it equals the mention, take the next one."""
        example = self.paired[index]
        partners, form = self.partners(example), normalise(example.text)
        first = int(np.random.default_rng([self.seed, epoch, index]).integers(len(partners)))
        rotated = (*partners[first:], *partners[:first])
        return next(text for text in rotated if normalise(text) != form)

    def _has_partner(self, example: MentionExample) -> bool:
        form = normalise(example.text)
        return any(normalise(text) != form for text in self.partners(example))


class MentionPairBatches:
    """Batches of pairs that can resume at any epoch and position."""

    def __init__(self, pairs: MentionPairs, order: EpochOrder) -> None:
        self.pairs, self.order = pairs, order

    def __len__(self) -> int:
        return len(self.order)

    def batches(self, epoch: int, position: int = 0) -> Iterator[PairBatch]:
        """Yield the batches of an epoch from a position on."""
        return self.every(1, epoch, position)

    def every(self, step: int, epoch: int, position: int) -> Iterator[PairBatch]:
        """Yield every ``step``-th batch of an epoch from a position on."""
        for indices in self.order.batches(epoch, position, step):
            yield self.pairs.sample(epoch, indices.tolist())


def _mentions_of_concepts(data: FinetuneData) -> dict[int, set[str]]:
    mentions: dict[int, set[str]] = {}
    for example in data.examples:
        for concept in example.concepts:
            mentions.setdefault(concept, set()).add(example.text)
    return mentions


def _group_concepts(data: FinetuneData) -> dict[int, int]:
    """Group concepts that share an ambiguous mention (union-find); return the group of each.

    Otherwise two mentions of one concept would be negatives if one of them is ambiguous.
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
    """Build the training task of the configured loss; the state of an epoch is kept in ``run``."""
    builders = {"marginal": _marginal, "bank": _bank, "contrastive": _contrastive}
    return builders[config.loss](encoder, data, config, run)


def _marginal(
    encoder: TextEncoder, data: FinetuneData, config: FinetuneConfig, run: Path
) -> Task[Any]:
    lexical = LexicalIndex.build(data.kb, config.lexical)
    finder = CandidateFinder(data, lexical, encoder, config)
    return Task(
        model=NameScorer(encoder, config.marginal),
        source=CandidateBatches(finder, run / "candidates", _order(len(data), config)),
        compute_loss=partial(_marginal_loss, encoder),
        counts=_count_with_gold,
    )


def _count_with_gold(batch: CandidateBatch) -> dict[str, int]:
    """Count the mentions with a gold candidate; the others have no loss."""
    return {"with_gold": int(batch.gold.any(1).sum())}


def _marginal_loss(
    encoder: TextEncoder,
    model: nn.Module,
    batch: CandidateBatch,
    multipliers: Mapping[str, float],
) -> tuple[Tensor, dict[str, float]]:
    """Compute the loss of a batch of candidates, encoding all texts in one pass."""
    tokens = tokenize_in_batches(encoder, [*batch.mentions, *batch.names])
    columns, lexical = torch.from_numpy(batch.columns), torch.from_numpy(batch.lexical)
    scores = model(tokens, columns, lexical)
    loss, statistics = marginal_loss(scores, torch.from_numpy(batch.gold).to(scores.device))
    weight = multipliers["with_gold"]
    return weight * loss, {
        "with_gold": statistics["with_gold"],
        "gold_probability": weight * statistics["gold_probability"],
        "gold_first": weight * statistics["gold_first"],
        "gold_found": float(batch.gold_found.mean()),
    }


def _bank(encoder: TextEncoder, data: FinetuneData, config: FinetuneConfig, run: Path) -> Task[Any]:
    bank, order = NameBank(data, encoder, config), _order(len(data), config)
    shard = order.shard
    return Task(
        model=BankScorer(encoder, config.marginal, partial(_gather_texts, shard)),
        source=BankBatches(bank, run / "bank", order),
        compute_loss=partial(_bank_loss, encoder, shard),
    )


def _gather_texts(shard: Shard, vectors: Tensor) -> Tensor:
    """Gather the vectors of all processes, each of which encodes every ``world``-th text."""
    places = torch.arange(len(vectors), device=vectors.device) * shard.world + shard.rank
    gathered, places = gather_rows(vectors, places)
    return gathered[places.argsort()]


def _bank_loss(
    encoder: TextEncoder, shard: Shard, model: nn.Module, batch: BankBatch
) -> tuple[Tensor, dict[str, float]]:
    """Compute the loss of mentions, and of the names encoded with them, over the whole bank.

    Each process encodes its part of the texts and computes the loss of all of them.
    """
    tokens = tokenize_in_batches(encoder, batch.texts[shard.rank :: shard.world])
    fresh, withheld = torch.from_numpy(batch.fresh), torch.from_numpy(batch.withheld)
    scores = model(tokens, batch.bank, fresh, withheld)
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
    shard = Shard(processes.process_index, processes.num_processes)
    size = training.plan_batch(shard.world).size
    return EpochOrder(n_examples, size, training.seed, shard)


@dataclass(frozen=True, slots=True)
class FinetuneResult:
    """The result of fine-tuning an encoder."""

    run: Path
    encoder: Path
    """Folder of the encoder, which transformers and sentence-transformers can load."""
    counts: MentionExampleCounts
    training: TrainingResult
    lexical_weight: float | None
    """Weight of lexical search relative to the encoder's 1; None if it is not learned."""

    def to_json(self) -> dict[str, Any]:
        """Return the result as plain values."""
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


def finetune_encoder(
    kb: KnowledgeBase,
    encoder: TextEncoder,
    mentions: Sequence[LabelledMention],
    config: FinetuneConfig,
    out: str | Path,
    *,
    resume: bool = False,
    progress: Progress | None = None,
) -> FinetuneResult:
    """Train an encoder, in place, in the folder ``out``, or resume the run there.

    To resume, give the encoder that the run started from. The encoder is written to
    ``out/encoder``, also if training stops before the last step; with the marginal loss, the
    learned lexical weight is written beside it.
    """
    progress, run, processes = progress or Progress(enabled=False), Path(out), join_processes()
    progress.start("mentions")
    data = make_examples(kb, encoder, mentions, config)
    base_model = str(encoder.folder or encoder.name)
    provenance = {
        "kb": store_fingerprint(kb),
        "encoder": encoder.fingerprint(),
        "mentions": data.fingerprint(),
    }
    described = json.loads(json.dumps(asdict(config)))
    progress.start("lexical candidates")
    task = make_task(encoder, data, config, run)
    task = replace(task, described=described, provenance=provenance)
    trained = train(task, config.training, run, resume=resume, progress=progress)
    if trained.finished:
        shutil.rmtree(run / "bank", ignore_errors=True)  # large, and no longer needed
    scorer = task.model if isinstance(task.model, NameScorer) else None
    weight = scorer.lexical_weight.item() if scorer is not None else None
    if processes.is_main_process:
        card = ModelCard(
            base_model=base_model,
            method=f"Fine-tuned on labelled mentions with the {config.loss} loss",
            data=data.counts.to_json(),
            metrics=trained.metrics(),
            sources=tuple(kb.manifest["sources"]),
        )
        _save(encoder, run / "encoder", weight, {**described, "provenance": provenance}, card)
    encoder.folder = run / "encoder"
    return FinetuneResult(run, run / "encoder", data.counts, trained, weight)


def _save(
    encoder: TextEncoder,
    folder: Path,
    weight: float | None,
    described: Mapping[str, Any],
    card: ModelCard,
) -> None:
    """Write the encoder with its lexical weight and its card."""
    with new_folder(folder, overwrite=True) as work:
        encoder.save_pretrained(work)
        write_card(work, card, encoder.settings)
        if weight is not None:
            config = {key: described[key] for key in ("marginal", "lexical", "provenance")}
            write_weights(work, weight, config, similarity=described["marginal"]["similarity"])
        elif (fitted := folder / WEIGHTS.file).exists() and _is_equal(work, folder):
            shutil.copy2(fitted, work)  # the run is resumed after its end: they are of this encoder


def _is_equal(a: Path, b: Path) -> bool:
    """Whether two encoders have the same weights."""
    files = a / MODEL, b / MODEL
    return files[1].exists() and filecmp.cmp(*files, shallow=False)
