"""Train a re-ranker: collect candidates of mentions, train a cross-encoder, fit the mix.

The candidates must be like those of a new document. A first ranking that was trained on these
mentions puts the correct concept first and leaves nothing to learn from the context: collect the
candidates with a linker that was not trained on them.

The loss is that of a softmax over each mention's candidates and NIL. It marginalises over correct
answers: the negative log of the softmax probability of all correct candidates, or of NIL if no
candidate is correct.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence

from biograft.errors import ConfigError
from biograft.kb import KnowledgeBase
from biograft.kb.fingerprints import store_fingerprint
from biograft.linking.candidates import Candidate
from biograft.linking.linker import Linker
from biograft.linking.queries import Context, GoldQuery, Query, check_texts
from biograft.linking.rerank import (
    CandidatePairReader,
    CrossEncoder,
    MentionCandidates,
    Mix,
    RerankerMetadata,
    ScoredMention,
    first_concepts,
    fit_mix,
    nil_flags,
    write_reranker,
)
from biograft.linking.trained_configs import RerankConfig
from biograft.progress import Progress
from biograft.training import Task, train
from biograft.training.linkers.recipes import (
    LinkerRecipe,
    LinkerTrainingData,
    Outcome,
    TrainedLinker,
)
from biograft.training.objectives.synonym_marginal import marginal_loss
from biograft.training.processes import join_processes

_NAMES_PER_CONCEPT = 4
"""Names retrieved per concept, since several names may belong to one concept."""
_CHUNK = 512


class QueryRanker(Protocol):
    """Ranks candidates for the parts of queries, such as a linker."""

    def rank(self, queries: Sequence[Query], k: int) -> list[list[list[Candidate]]]:
        """Return k candidates for each part of each query."""


@dataclass(frozen=True, slots=True)
class RerankExample:
    """A mention with its candidates, one per concept; ``right`` ends with NIL."""

    mention: MentionCandidates
    right: tuple[bool, ...]


@dataclass(frozen=True, slots=True)
class RerankCounts:
    """Numbers of mentions, by what they were used for."""

    given: int = 0
    composite: int = 0
    """Skipped: it is unknown which part refers to which concept."""
    nil: int = 0
    missed: int = 0
    """The correct concept is not among the candidates; the label is NIL."""


@dataclass(frozen=True, slots=True)
class RerankData:
    """Training examples, held-out examples on which the mix is fitted, and the first ranking."""

    kb: KnowledgeBase
    train: tuple[RerankExample, ...]
    held_out: tuple[RerankExample, ...]
    counts: RerankCounts
    first_ranking: str
    """Score source of the candidates."""
    weights: Mapping[str, float]
    """Weights of its generators; empty if another ranker made the ranking."""

    def provenance(self) -> dict[str, Any]:
        """Return hashes of the examples."""
        digest = hashlib.sha256()
        for example in (*self.train, *self.held_out):
            candidates = [(c.concept, c.name, c.score) for c in example.mention.candidates]
            digest.update(repr((*example.mention[:2], candidates, example.right)).encode())
        return {
            "kb": store_fingerprint(self.kb),
            "examples": digest.hexdigest(),
            "counts": asdict(self.counts),
            "first_ranking": self.first_ranking,
        }


def collect_examples(
    kb: KnowledgeBase,
    ranker: QueryRanker,
    queries: Iterable[GoldQuery],
    config: RerankConfig,
    dev: Iterable[GoldQuery] | None = None,
) -> RerankData:
    """Collect the candidates of mentions; without ``dev``, some documents are held out."""
    examples, counts = _examples(kb, ranker, list(queries), config)
    if dev is not None:
        train = [example for example, _ in examples]
        held_out = [example for example, _ in _examples(kb, ranker, list(dev), config)[0]]
    else:
        dev_documents = _hold_out({document for _, document in examples}, config)
        train = [example for example, document in examples if document not in dev_documents]
        held_out = [example for example, document in examples if document in dev_documents]
    if not any(any(example.right[:-1]) for example in train):
        raise ConfigError(
            f"training mentions: of {counts.given:,} given, {len(train):,} are left to learn from, "
            "and none has a correct candidate; are their ids those of this store?"
        )
    linker = ranker if isinstance(ranker, Linker) else None
    search = linker.search if linker and not linker.ranker else None
    return RerankData(
        kb=kb,
        train=tuple(train),
        held_out=tuple(held_out),
        counts=counts,
        first_ranking=linker.score_source if linker else type(ranker).__name__,
        weights=dict(search.weights) if search else {},
    )


def _examples(
    kb: KnowledgeBase, ranker: QueryRanker, queries: Sequence[GoldQuery], config: RerankConfig
) -> tuple[list[tuple[RerankExample, str]], RerankCounts]:
    """Return examples, each with the name of its document, and their counts."""
    simple = [query for query in queries if len(query.parts) == 1]
    examples, nil, missed = [], 0, 0
    for start in range(0, len(simple), _CHUNK):
        chunk = simple[start : start + _CHUNK]
        ranked = ranker.rank(chunk, config.n_candidates * _NAMES_PER_CONCEPT)
        for query, (names,) in zip(chunk, ranked, strict=True):
            candidates = first_concepts(names, config.n_candidates)
            gold = kb.ids_of(query.gold)
            right = [candidate.concept in gold for candidate in candidates]
            nil, missed = nil + (not query.gold), missed + (bool(query.gold) and not any(right))
            context = Context(query.context, query.start or 0, query.end or 0)
            mention = MentionCandidates(query.parts[0], context, tuple(candidates))
            example = RerankExample(mention, (*right, not any(right)))
            examples.append((example, query.document or query.context or query.parts[0]))
    return examples, RerankCounts(len(queries), len(queries) - len(simple), nil, missed)


def _hold_out(documents: set[str], config: RerankConfig) -> set[str]:
    """Choose held-out documents by the seed, at least one if there are two."""
    seed = config.training.seed
    ordered = sorted(documents, key=lambda name: hashlib.sha256(f"{seed} {name}".encode()).digest())
    n_held_out = max(1, round(config.held_out * len(ordered))) if len(ordered) > 1 else 0
    return set(ordered[:n_held_out])


MODEL = "model"
_SCORED = 64
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
        for start in range(0, len(self.data.held_out), _SCORED):
            chunk = self.data.held_out[start : start + _SCORED]
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


def train_by_recipe(recipe: LinkerRecipe, data: LinkerTrainingData) -> Outcome:
    """Train a re-ranker into ``out/model``, on candidates of the index and the given model.

    Args:
        recipe: Settings.
        data: Mentions in their texts, and the linker that finds their candidates.

    Returns:
        The folder of the re-ranker, and the metrics.
    """
    config: RerankConfig = recipe.config
    if config.context_characters:
        remedy = "give --text, the documents of the gold, or set config.context_characters=0"
        check_texts(data.train, "training mentions", remedy)
        check_texts(data.dev or (), "held-out mentions", remedy)
    join_processes()  # before the linker's encoder is loaded
    data.progress.start("candidates")
    linker = Linker.open(data.kb, data.index, data.model)
    examples = collect_examples(data.kb, linker, data.train, config, data.dev)
    return train_reranker(
        examples,
        config,
        data.out,
        ranker=data.model,
        resume=data.resume,
        progress=data.progress,
    ).outcome()
