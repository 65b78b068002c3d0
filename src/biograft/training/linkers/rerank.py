"""Train a re-ranker: a softmax over each mention's candidates and NIL, then fit the mix.

The loss marginalises over correct answers: the negative log of the softmax probability of all
correct candidates, or of NIL if no candidate is correct.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence

from biograft.errors import ConfigError
from biograft.linking.rerank.config import RerankConfig
from biograft.linking.rerank.folder import (
    Mix,
    RerankerMetadata,
    ScoredMention,
    fit_mix,
    write_reranker,
)
from biograft.linking.rerank.model import CrossEncoder
from biograft.linking.rerank.reranker import CandidatePairReader, nil_flags
from biograft.progress import Progress
from biograft.training import Task, train
from biograft.training.linkers.recipes import TrainedLinker
from biograft.training.linkers.rerank_examples import RerankData, RerankExample
from biograft.training.objectives.synonym_marginal import marginal_loss
from biograft.training.processes import join_processes

MODEL = "model"
_CHUNK = 64
"""Mentions that are scored at once in evaluation."""


def train_reranker(
    data: RerankData,
    config: RerankConfig,
    out: str | Path,
    *,
    ranker: Path | None = None,
    resume: bool = False,
    progress: Progress | None = None,
) -> TrainedLinker:
    """Train in the folder ``out``, or resume the run there; write ``out/model``.

    ``ranker`` is the folder of the trained linker that made the candidates, if one did. It is
    copied into the folder of the re-ranker, which needs it for the first ranking.
    """
    if ranker is None and not data.weights:
        raise ConfigError(
            f"ranker: the candidates were ranked by {data.first_ranking}; give the folder of that "
            "trained linker, which is copied into the re-ranker"
        )
    progress, run, processes = progress or Progress(enabled=False), Path(out), join_processes()
    progress.start("encoder")
    trainer = _RerankTrainer(data, config)
    source = ExampleBatches(
        data.train, config, rank=processes.process_index, world=processes.num_processes
    )
    provenance = {**data.provenance(), "encoder": trainer.model.encoder.fingerprint()}
    task = Task(
        model=trainer.model,
        source=source,
        compute_loss=trainer.loss,
        evaluate=trainer.evaluate if config.training.eval_every else None,
        described=asdict(config),
        provenance=provenance,
    )
    trained = train(task, config.training, run, resume=resume, progress=progress)
    progress.start("mixing")
    mix, report = trainer.finish()
    progress.finish()
    if processes.is_main_process:
        metadata = RerankerMetadata(
            config=config,
            mix=mix,
            weights=data.weights,
            report=report,
            provenance=provenance,
        )
        write_reranker(run / MODEL, trainer.model, metadata, ranker)
    return TrainedLinker(run, run / MODEL, trained, report)


class ExampleBatches:
    """Batches of examples, shuffled each epoch, that can resume at any position.

    Each process reads an equal part of an epoch; the remainder is dropped.
    """

    def __init__(
        self,
        examples: Sequence[RerankExample],
        config: RerankConfig,
        *,
        rank: int = 0,
        world: int = 1,
    ) -> None:
        self._examples, self._size = examples, config.training.plan_batch(world).size
        self._seed, self._rank, self._world = config.training.seed, rank, world
        self._n_candidates = config.n_train_candidates
        self._n_own = len(examples) // world
        if not self._n_own:
            raise ConfigError(f"{len(examples)} mentions are too few for {world} processes")

    def __len__(self) -> int:
        return (self._n_own + self._size - 1) // self._size

    def batches(self, epoch: int, position: int = 0) -> Iterator[list[RerankExample]]:
        """Yield the batches of an epoch from a position on."""
        return self.every(1, epoch, position)

    def every(self, step: int, epoch: int, position: int) -> Iterator[list[RerankExample]]:
        """Yield every ``step``-th batch of an epoch from a position on."""
        order = np.random.default_rng([self._seed, epoch]).permutation(len(self._examples))
        rows = order[self._rank : self._n_own * self._world : self._world].tolist()
        for start in range(position * self._size, len(rows), step * self._size):
            yield [self._sample(epoch, row) for row in rows[start : start + self._size]]

    def _sample(self, epoch: int, row: int) -> RerankExample:
        """Return an example with some of its candidates: all correct ones, and random others."""
        example, n = self._examples[row], self._n_candidates
        wrong = [i for i, right in enumerate(example.right[:-1]) if not right]
        n_wrong = max(n - len(example.right[:-1]) + len(wrong), 0)
        if not n or len(wrong) <= n_wrong:
            return example
        rng = np.random.default_rng([self._seed, epoch, row])
        left_out = set(rng.choice(wrong, len(wrong) - n_wrong, replace=False).tolist())
        kept = [i for i in range(len(example.right) - 1) if i not in left_out]
        candidates = tuple(example.mention.candidates[i] for i in kept)
        right = (*(example.right[i] for i in kept), example.right[-1])
        return RerankExample(example.mention._replace(candidates=candidates), right)


class _RerankTrainer:
    """Loss and evaluation of the training loop, and the mix that is fitted after it."""

    def __init__(self, data: RerankData, config: RerankConfig) -> None:
        self.data, self.config = data, config
        self.model = CrossEncoder.start(config)
        self._reader = CandidatePairReader(data.kb, self.model, config)

    def loss(
        self, model: nn.Module, batch: Sequence[RerankExample]
    ) -> tuple[Tensor, dict[str, float]]:
        """Compute the loss of a batch of mentions, and their accuracy."""
        mentions = [example.mention for example in batch]
        pairs = self.model.pairs.pad(self._reader.read(mentions))
        scores: Tensor = model(pairs, torch.from_numpy(nil_flags(mentions)))
        right = torch.tensor([flag for example in batch for flag in example.right])
        sizes = [len(example.right) for example in batch]
        return listwise_loss(scores, right.to(scores.device), sizes)

    def evaluate(self) -> dict[str, Any]:
        """Compute the accuracy of the cross-encoder alone on held-out mentions."""
        return {"n": len(self.data.held_out), "context": _accuracy(self._scored(), Mix())}

    def finish(self) -> tuple[Mix, dict[str, Any]]:
        """Fit the mix, and report accuracies on held-out mentions."""
        scored = self._scored()
        mix = fit_mix(scored)
        report = {
            "mentions": asdict(self.data.counts),
            "n_train": len(self.data.train),
            "n_held_out": len(scored),
            "held_out": {
                "first_ranking": _accuracy(scored, None),
                "context": _accuracy(scored, Mix()),
                "mixed": _accuracy(scored, mix),
            },
            "first_ranking_weight": mix.ranker_weight,
        }
        return mix, report

    def _scored(self) -> list[ScoredMention]:
        scored: list[ScoredMention] = []
        for start in range(0, len(self.data.held_out), _CHUNK):
            chunk = self.data.held_out[start : start + _CHUNK]
            precision = self.config.training.precision
            results = self._reader.score([example.mention for example in chunk], precision)
            for example, scores in zip(chunk, results, strict=True):
                first = np.array([c.score for c in example.mention.candidates], np.float64)
                scored.append(ScoredMention(first, scores, np.array(example.right)))
        return scored


def listwise_loss(
    scores: Tensor, right: Tensor, sizes: list[int]
) -> tuple[Tensor, dict[str, float]]:
    """Compute the loss of concatenated lists: scores and flags are (pairs,)."""
    lists, flags = list(torch.split(scores, sizes)), list(torch.split(right, sizes))
    loss, statistics = marginal_loss(
        pad_sequence(lists, batch_first=True, padding_value=-torch.inf),
        pad_sequence(flags, batch_first=True),
    )
    return loss, {"accuracy": statistics["gold_first"]}


def _logits(mention: ScoredMention, mix: Mix) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    candidates = mix.logits(mention.ranker, mention.context[:-1])
    return np.append(candidates, mix.nil_logit(float(mention.context[-1])))


def _accuracy(scored: Sequence[ScoredMention], mix: Mix | None) -> float | None:
    """Compute the accuracy, NIL included; without a mix, that of the first ranking."""
    if not scored:
        return None
    first = [0 if mix is None else int(np.argmax(_logits(mention, mix))) for mention in scored]
    right = [bool(mention.right[index]) for mention, index in zip(scored, first, strict=True)]
    return sum(right) / len(right)
