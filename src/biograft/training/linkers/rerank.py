"""Train a re-ranker: collect candidates of mentions, train a cross-encoder, fit the mix.

The candidates must be like those of a new document. A first ranking that was trained on these
mentions puts the correct concept first and leaves nothing to learn from the context: collect the
candidates with a linker that was not trained on them.

The loss is that of a softmax over each mention's candidates and NIL. It marginalises over correct
answers: the negative log of the softmax probability of all correct candidates, or of NIL if no
candidate is correct.

The mix of both scores maximises the likelihood of the correct answers on held-out mentions, with a
Gaussian prior towards the context alone, so that few mentions give no extremes.
"""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence

from biograft.arrays import Flags, Floats
from biograft.errors import ConfigError
from biograft.kb import KnowledgeBase
from biograft.kb.fingerprints import store_fingerprint
from biograft.linking.candidates import Candidate, Context, Query
from biograft.linking.linker import Linker
from biograft.linking.queries import GoldQuery, check_texts
from biograft.linking.rerank import (
    RANKER,
    RERANKER,
    CandidatePairReader,
    CrossEncoder,
    MentionCandidates,
    Mix,
    first_concepts,
)
from biograft.linking.trained_configs import RerankConfig
from biograft.progress import Progress
from biograft.training import Task, train
from biograft.training.batches import EpochOrder, OrderedBatches
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
"""Mentions whose candidates are searched at once."""
_SCORED = 64
"""Mentions that are scored at once in evaluation."""
_PRIOR = 1.0
"""Strength of the prior, in mentions."""
_STEPS, _TOLERANCE = 200, 1e-12


class QueryRanker(Protocol):
    """Ranks candidates for the parts of queries, such as a linker."""

    def rank(self, queries: Sequence[Query], k: int) -> list[list[list[Candidate]]]:
        """Return k candidates for each part of each query.

        Args:
            queries: Queries.
            k: Number of candidates.
        """


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
    """Knowledge base to link to."""
    train: tuple[RerankExample, ...]
    """Examples to train on."""
    held_out: tuple[RerankExample, ...]
    """Examples on which the mix is fitted."""
    counts: RerankCounts
    """Number of mentions used and left out."""
    first_ranking: str
    """Score source of the candidates."""
    weights: Mapping[str, float]
    """Weights of its generators; empty if another ranker made the ranking."""


def collect_examples(
    kb: KnowledgeBase,
    ranker: QueryRanker,
    queries: Iterable[GoldQuery],
    config: RerankConfig,
    dev: Iterable[GoldQuery] | None = None,
) -> RerankData:
    """Collect the candidates of mentions.

    Args:
        kb: The store that is linked to.
        ranker: Finds the candidates, such as a linker.
        queries: Mentions with their correct concepts.
        config: Number of candidates, and the fraction of documents to hold out.
        dev: Held-out mentions; None: some documents of ``queries`` are held out.

    Returns:
        Training examples, and held-out ones.

    Raises:
        ConfigError: No mention has a correct candidate.
    """
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

    Args:
        data: Mentions with their candidates.
        config: Encoder, inputs and training.
        out: Folder of the run.
        ranker: Folder of the trained linker that made the candidates, if one did. It is copied
            into the folder of the re-ranker, which needs it for the first ranking.
        resume: Continue the run in ``out``.
        progress: Where progress is shown; None shows none.

    Returns:
        The folder of the re-ranker, and its accuracy on held-out mentions.

    Raises:
        ConfigError: A trained linker made the candidates, and its folder is not given.
    """
    if ranker is None and not data.weights:
        raise ConfigError(
            f"ranker: the candidates were ranked by {data.first_ranking}; give the folder of that "
            "trained linker, which is copied into the re-ranker"
        )
    progress, run, processes = progress or Progress(), Path(out), join_processes()
    progress.start("encoder")
    model = CrossEncoder.start(config)
    reader = CandidatePairReader(data.kb, model, config)
    examples = hashlib.sha256()
    for example in (*data.train, *data.held_out):
        candidates = [(c.concept, c.name, c.score) for c in example.mention.candidates]
        examples.update(repr((*example.mention[:2], candidates, example.right)).encode())
    provenance = {
        "kb": store_fingerprint(data.kb),
        "examples": examples.hexdigest(),
        "counts": asdict(data.counts),
        "first_ranking": data.first_ranking,
        "encoder": model.encoder.fingerprint(),
    }

    def evaluate() -> dict[str, Any]:
        """Compute the accuracy of the cross-encoder alone on held-out mentions."""
        scored = _score(reader, data.held_out)
        return {"n": len(scored), "context": _accuracy(scored, Mix())}

    order = EpochOrder.for_training(len(data.train), config.training)
    task = Task(
        model=model,
        source=OrderedBatches(order, partial(sample_examples, data.train, config)),
        compute_loss=partial(_loss, reader),
        evaluate=evaluate if config.training.eval_every else None,
        described=asdict(config),
        provenance=provenance,
    )
    trained = train(task, config.training, run, resume=resume, progress=progress)
    progress.start("mixing")
    scored = _score(reader, data.held_out)
    mix = fit_mix(scored)
    report = {
        "mentions": asdict(data.counts),
        "n_train": len(data.train),
        "n_held_out": len(scored),
        "held_out": {
            "first_ranking": _accuracy(scored, None),
            "context": _accuracy(scored, Mix()),
            "mixed": _accuracy(scored, mix),
        },
        "first_ranking_weight": mix.ranker_weight,
    }
    progress.finish()
    folder = run / "model"
    if processes.is_main_process:
        content = {
            "config": asdict(config),
            "mix": asdict(mix),
            "weights": dict(data.weights),
            "report": report,
            "provenance": provenance,
        }
        with RERANKER.new(folder, content, overwrite=True) as work:
            model.save(work)
            if ranker is not None:
                shutil.copytree(ranker, work / RANKER)
    return TrainedLinker(run, folder, trained, report)


def sample_examples(
    examples: Sequence[RerankExample], config: RerankConfig, epoch: int, rows: Sequence[int]
) -> list[RerankExample]:
    """Return some examples with all their correct candidates, and random others.

    Args:
        examples: All examples.
        config: Number of candidates in training, and the seed.
        epoch: Number of the epoch.
        rows: Indices of the examples wanted.

    Returns:
        The examples, each with the wanted number of candidates where that is possible.
    """
    n, sampled = config.n_train_candidates, []
    for row in rows:
        mention, right = examples[row].mention, examples[row].right
        wrong = [i for i, flag in enumerate(right[:-1]) if not flag]
        n_left_out = min(len(right) - 1 - n, len(wrong))
        if not n or n_left_out <= 0:
            sampled.append(examples[row])
            continue
        rng = np.random.default_rng([config.training.seed, epoch, row])
        left_out = set(rng.choice(wrong, n_left_out, replace=False).tolist())
        kept = [i for i in range(len(right) - 1) if i not in left_out]
        candidates = tuple(mention.candidates[i] for i in kept)
        flags = (*(right[i] for i in kept), right[-1])
        sampled.append(RerankExample(mention._replace(candidates=candidates), flags))
    return sampled


def _loss(
    reader: CandidatePairReader, model: nn.Module, batch: Sequence[RerankExample]
) -> tuple[Tensor, dict[str, float]]:
    """Compute the loss of a batch of mentions, and their accuracy."""
    pairs, is_nil = reader.read([example.mention for example in batch])
    scores: Tensor = model(reader.model.pairs.pad(pairs), torch.from_numpy(is_nil))
    right = torch.tensor([flag for example in batch for flag in example.right])
    sizes = [len(example.right) for example in batch]
    return listwise_loss(scores, right.to(scores.device), sizes)


def listwise_loss(
    scores: Tensor, right: Tensor, sizes: list[int]
) -> tuple[Tensor, dict[str, float]]:
    """Compute the loss of concatenated lists.

    Args:
        scores: Scores of all pairs: (pairs,).
        right: Which pairs are correct: (pairs,).
        sizes: Length of each list.

    Returns:
        The mean loss of the lists, and their accuracy.
    """
    lists, flags = list(torch.split(scores, sizes)), list(torch.split(right, sizes))
    loss, statistics = marginal_loss(
        pad_sequence(lists, batch_first=True, padding_value=-torch.inf),
        pad_sequence(flags, batch_first=True),
    )
    return loss, {"accuracy": statistics["gold_first"]}


@dataclass(frozen=True, slots=True)
class ScoredMention:
    """Both scores of a mention's candidates, and which are correct; NIL comes last."""

    ranker: Floats  # (candidates,)
    context: Floats  # (candidates + 1,)
    right: Flags  # (candidates + 1,)


def _score(reader: CandidatePairReader, examples: Sequence[RerankExample]) -> list[ScoredMention]:
    scored: list[ScoredMention] = []
    for start in range(0, len(examples), _SCORED):
        chunk = examples[start : start + _SCORED]
        mentions = [example.mention for example in chunk]
        results = reader.score(mentions, reader.config.training.precision)
        for example, scores in zip(chunk, results, strict=True):
            first = np.array([c.score for c in example.mention.candidates], np.float64)
            scored.append(ScoredMention(first, scores, np.array(example.right)))
    return scored


def _accuracy(scored: Sequence[ScoredMention], mix: Mix | None) -> float | None:
    """Compute the accuracy, NIL included; without a mix, that of the first ranking."""
    if not scored:
        return None
    n_right = 0
    for mention in scored:
        first = 0
        if mix is not None:
            nil = mix.nil_logit(float(mention.context[-1]))
            logits = mix.logits(mention.ranker, mention.context[:-1])
            first = int(np.argmax(np.append(logits, nil)))
        n_right += bool(mention.right[first])
    return n_right / len(scored)


def fit_mix(mentions: Sequence[ScoredMention]) -> Mix:
    """Fit the mix to held-out mentions.

    Args:
        mentions: Mentions that neither ranking was trained on.

    Returns:
        The parameters with the highest likelihood of the correct answers.

    Raises:
        ConfigError: The scores of the first ranking are not finite.
    """
    mentions = [mention for mention in mentions if mention.right.any()]
    scores = np.concatenate([m.ranker for m in mentions]) if mentions else np.zeros(0)
    if not np.isfinite(scores).all():
        raise ConfigError("ranker: its scores are not finite; use another")
    mean, deviation = (float(scores.mean()), float(scores.std())) if scores.size else (0.0, 1.0)
    deviation = deviation if deviation > 1e-9 else 1.0
    widest = max((len(m.context) for m in mentions), default=1)
    features = torch.zeros((len(mentions), widest, 3), dtype=torch.float64)
    valid = torch.zeros((len(mentions), widest), dtype=torch.bool)
    right = torch.zeros_like(valid)
    for row, mention in enumerate(mentions):
        n = len(mention.ranker)
        features[row, :n, 0] = torch.from_numpy((mention.ranker - mean) / deviation)
        features[row, : n + 1, 1] = torch.from_numpy(mention.context)
        features[row, n, 2] = 1
        valid[row, : n + 1] = True
        right[row, : n + 1] = torch.from_numpy(mention.right)
    free = [0, 1, 2]
    while True:
        fitted = _maximise(features[..., free], right, valid, [float(i == 1) for i in free])
        parameters = dict(zip(free, fitted, strict=True))
        # a ranking with a negative weight is left out, not inverted
        free = [i for i in free if i == 2 or parameters[i] > 0]
        if all(value >= 0 for i, value in parameters.items() if i < 2):
            ranker, context, nil = (parameters.get(i, 0.0) for i in range(3))
            return Mix(ranker, context, nil, mean, deviation)


def _maximise(features: Tensor, right: Tensor, valid: Tensor, prior: list[float]) -> list[float]:
    """Find the parameters with the highest likelihood: features (mentions, candidates, n)."""
    centre = torch.tensor(prior, dtype=torch.float64)
    parameters = centre.clone().requires_grad_()
    optimiser = torch.optim.LBFGS(
        [parameters],
        max_iter=_STEPS,
        tolerance_grad=_TOLERANCE,
        tolerance_change=0,
        line_search_fn="strong_wolfe",
    )

    def loss() -> float:
        optimiser.zero_grad()
        logits = features @ parameters
        of_right, of_all = (
            logits.masked_fill(~mask, -torch.inf).logsumexp(1).sum() for mask in (right, valid)
        )
        value = of_all - of_right + _PRIOR / 2 * (parameters - centre).square().sum()
        value.backward()  # type: ignore[no-untyped-call]
        return float(value.detach())

    optimiser.step(loss)  # type: ignore[no-untyped-call]
    values: list[float] = parameters.tolist()
    return values


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
    result = train_reranker(
        examples,
        config,
        data.out,
        ranker=data.model,
        resume=data.resume,
        progress=data.progress,
    )
    return result.outcome()
