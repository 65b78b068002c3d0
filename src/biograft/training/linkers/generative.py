"""Train a generative linker (GenBioEL), and evaluate it on held-out mentions.

Recall is computed over names, as in the paper: the correct concept is among those of the first
name, or of the first five distinct names. Mentions without a gold concept are skipped.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from biograft.errors import ConfigError
from biograft.kb import KnowledgeBase
from biograft.kb.fingerprints import store_fingerprint
from biograft.linking.candidates import Rows, Scores
from biograft.linking.config import LinkerConfig
from biograft.linking.forms import MentionForms
from biograft.linking.fusion import CandidatePool, FusedSearch, empty_pool
from biograft.linking.generative.config import GenerativeConfig
from biograft.linking.generative.folder import (
    HeldOutScores,
    LinkerMetadata,
    Mixing,
    fit_weight,
    search_pool,
    write_linker,
)
from biograft.linking.generative.names import NameTrie, Selection, select_names
from biograft.linking.generative.ranker import Seq2SeqLinker
from biograft.linking.queries import GoldQuery, check_not_names, check_texts
from biograft.models.seq2seq import Seq2SeqModel
from biograft.progress import Progress
from biograft.training import Task, train
from biograft.training.linkers.generative_examples import (
    ExamplesWithNames,
    GenerationExamples,
    TargetChooser,
    collect_mentions,
)
from biograft.training.linkers.recipes import TrainedLinker
from biograft.training.objectives.name_examples import NameBatches, NameExamples
from biograft.training.objectives.name_generation import NameGenerationTraining
from biograft.training.processes import join_processes

CUTOFFS = (1, 5)
_DEPTH = LinkerConfig.depth
"""Number of names retrieved from each generator, as in a linker."""
_CHUNK = 512


class _Part(NamedTuple):
    """The names of one part of a query, with the scores of both methods."""

    query: int
    rows: Rows
    scored: CandidatePool  # of this part alone
    right: npt.NDArray[np.bool_]


def measure(
    ranker: Seq2SeqLinker, search: FusedSearch | None, queries: Sequence[GoldQuery]
) -> dict[str, float]:
    """Compute the recall at 1 and 5 names of mentions that have a gold concept."""
    queries = [query for query in queries if query.gold]
    search = search if ranker.needs_search else None
    hits = {k: np.ones(len(queries), np.bool_) for k in CUTOFFS}
    for part in _parts(ranker, search, queries):
        first = _first_right(ranker, part, ranker.mixing(part.scored)[0])
        for k in CUTOFFS:
            hits[k][part.query] &= first < k
    recall = {f"recall@{k}": float(hits[k].mean()) if queries else 0.0 for k in CUTOFFS}
    return {"n": len(queries), **recall}


def fit_mixing(
    ranker: Seq2SeqLinker, search: FusedSearch, queries: Sequence[GoldQuery]
) -> tuple[Mixing, dict[str, float]]:
    """Fit the weight of generation beside a search; also return the accuracies."""
    queries = [query for query in queries if query.gold]
    check_not_names(ranker.kb, queries)
    rescore, weights = ranker.config.rescore, dict(search.weights)
    both = Seq2SeqLinker(
        ranker.kb, ranker.seq2seq, ranker.names, ranker.config, Mixing(0.5, rescore, weights)
    )
    held_out = [
        HeldOutScores(
            part.query,
            part.scored.scores[-1][0],
            both.mixing.search_scores(search_pool(part.scored))[0],
            part.right,
        )
        for part in _parts(both, search, queries)
    ]
    weight, accuracies = fit_weight(held_out)
    used = weight < 1 or not ranker.config.generate
    return Mixing(weight, rescore, weights if used else {}), {
        "generation_weight": weight,
        **accuracies,
    }


def _parts(
    ranker: Seq2SeqLinker, search: FusedSearch | None, queries: Sequence[GoldQuery]
) -> Iterator[_Part]:
    """Score the names of each part of each query."""
    forms = MentionForms(ranker.kb, abbreviations=True, composites=False).of_queries(queries)
    owners = [index for index, query in enumerate(queries) for _ in query.parts]
    gold = [ranker.kb.rows_of(query.gold) for query in queries]
    concepts = ranker.kb.table("names").column("concept").to_numpy()
    for start in range(0, len(forms), _CHUNK):
        chunk = forms[start : start + _CHUNK]
        texts, contexts = [form for form, _ in chunk], [context for _, context in chunk]
        pool = search.collect(texts, _DEPTH) if search else empty_pool(len(texts))
        scored = ranker.score(texts, pool, contexts)
        for line in range(len(chunk)):
            valid = scored.rows[line] >= 0
            pool = CandidatePool(
                scored.generators,
                scored.rows[line : line + 1, valid],
                scored.scores[:, line : line + 1, valid],
                scored.ranks[:, line : line + 1, valid],
            )
            query = owners[start + line]
            right = np.isin(concepts[pool.rows[0]], gold[query])
            yield _Part(query, pool.rows[0], pool, right)


def _first_right(ranker: Seq2SeqLinker, part: _Part, scores: Scores) -> float:
    """Return the number of distinct names before the first correct one; infinity if none is."""
    before: set[int] = set()
    order = np.lexsort((part.rows, -scores))
    sequences = ranker.names.numbers[part.rows]
    # a name that cannot be generated is distinct from all others
    names = np.where(sequences >= 0, sequences, -1 - part.rows)
    best: float = float("inf")
    for index in order.tolist():
        if not np.isfinite(scores[index]):
            break
        name = int(names[index])
        if part.right[index]:
            best = min(best, len(before - {name}))
            break
        before.add(name)
    return best


MODEL = "model"
EVALUATED = 256
"""Maximum number of held-out mentions for the loss in evaluations during training."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mentions:
    """Training mentions, held-out mentions, and the search beside which to evaluate."""

    train: Sequence[GoldQuery]
    held_out: Sequence[GoldQuery] = ()
    search: FusedSearch | None = None
    """The search with which generation is mixed on held-out mentions."""


def train_generative(
    kb: KnowledgeBase,
    mentions: Mentions,
    config: GenerativeConfig,
    out: str | Path,
    *,
    resume: bool = False,
    progress: Progress | None = None,
) -> TrainedLinker:
    """Train in the folder ``out``, or resume the run there; write ``out/model``."""
    progress, run, processes = progress or Progress(enabled=False), Path(out), join_processes()
    _check(kb, config, mentions)
    progress.start("names")
    selection = select_names(kb, config.names)
    chooser = TargetChooser(kb, selection, config.target, config.training.seed)
    data = collect_mentions(kb, chooser, mentions.train, config)
    if not data:
        raise ConfigError(
            f"training mentions: of {data.counts.given:,} given none is left to learn from; are "
            "their ids those of this store?"
        )
    held_out = collect_mentions(kb, chooser, mentions.held_out[:EVALUATED], config)
    progress.start("model")
    seq2seq = _start(config, selection, data)
    provenance = {
        "kb": store_fingerprint(kb),
        "model": seq2seq.fingerprint(),
        "search": str(mentions.search) if mentions.search else None,
        **data.provenance(),
    }
    build = partial(NameTrie.build, kb, seq2seq, config.names, progress)
    names = build() if config.objective.unlikelihood else None
    learning = NameGenerationTraining(
        seq2seq, config.objective.build(), names.trie if names else None
    )
    examples: NameExamples = data
    if config.names_ratio:
        examples = ExamplesWithNames(data, kb, selection, config)
    task = _task(learning, examples, held_out, config, provenance)
    trained = train(task, config.training, run, resume=resume, progress=progress)
    report: dict[str, Any] = {"mentions": asdict(data.counts)}
    if processes.is_main_process:
        names = names or build()
        ranker = Seq2SeqLinker(kb, seq2seq, names, config, _mixing(config, mentions.search))
        report |= {
            "n_names": names.trie.n_sequences,
            "n_names_cut": names.n_cut,
            "trie_bytes": names.nbytes,
        }
        if trained.finished:
            report |= _measure(ranker, mentions, progress)
        metadata = LinkerMetadata(
            config=config, mixing=ranker.mixing, report=report, provenance=provenance
        )
        write_linker(run / MODEL, names, metadata)
    return TrainedLinker(run, run / MODEL, trained, report)


def _check(kb: KnowledgeBase, config: GenerativeConfig, mentions: Mentions) -> None:
    if not config.model and config.new is None:
        raise ConfigError(
            "model: none named; give the folder or name of a BART or T5 (config.model, "
            "--encoder), or say how to make one (a table [config.new])"
        )
    if config.context_words:
        remedy = "give --text, the documents of the gold, or set config.context_words=0"
        check_texts(mentions.train, "training mentions", remedy)
        check_texts(mentions.held_out, "held-out mentions", remedy)
    if not config.generate and mentions.search is None:
        raise ConfigError("generate: false ranks the names of a search, and none is given")
    if config.fit_weight and not (mentions.held_out and mentions.search):
        raise ConfigError("fit_weight: there is no held-out mention to fit it on; give --dev")
    if config.fit_weight:
        check_not_names(kb, [query for query in mentions.held_out if query.gold])


def _start(
    config: GenerativeConfig, selection: Selection, data: GenerationExamples
) -> Seq2SeqModel:
    """Load the model to start from, or build one with a vocabulary of the names and texts."""
    if config.model:
        return Seq2SeqModel.from_pretrained(
            config.model,
            max_source=config.max_source,
            max_target=config.max_target,
            dropout=config.dropout,
            decoder=config.decoder,
        )
    if config.new is None:
        raise ConfigError("model: none named")
    new = config.new.create(_texts(selection, data), config.training.seed)
    return Seq2SeqModel(
        new.model,
        new.tokenizer,
        new.name,
        max_source=config.max_source,
        max_target=config.max_target,
    )


def _texts(selection: Selection, data: GenerationExamples) -> Iterator[str]:
    yield from selection.texts
    for example in data.examples:
        yield example.source
        yield example.prompt


def _task(
    learning: NameGenerationTraining,
    data: NameExamples,
    held_out: GenerationExamples,
    config: GenerativeConfig,
    provenance: Mapping[str, Any],
) -> Task[Any]:
    processes = join_processes()
    plan = config.training.plan_batch(processes.num_processes)
    batches = NameBatches(
        data,
        plan.size,
        seed=config.training.seed,
        rank=processes.process_index,
        world=processes.num_processes,
        bucket_batches=config.bucket_batches,
        accumulate=plan.accumulate,
    )
    evaluate = None
    if held_out:
        size = plan.size
        encoded = [learning.encode(held_out.examples[start : start + size])
                   for start in range(0, len(held_out), size)]  # fmt: skip
        evaluate = partial(learning.evaluate, encoded, config.training.precision)
    return Task(
        model=learning.model,
        source=learning.source(batches),
        compute_loss=learning.loss,
        counts=learning.counts,
        evaluate=evaluate,
        described=asdict(config),
        provenance=provenance,
    )


def _mixing(config: GenerativeConfig, search: FusedSearch | None) -> Mixing:
    """Return the configured weight of generation beside a search."""
    weight = config.generation_weight
    used = search is not None and (weight < 1 or not config.generate)
    weights = dict(search.weights) if search is not None and used else {}
    return Mixing(weight, config.rescore, weights)


def _measure(ranker: Seq2SeqLinker, mentions: Mentions, progress: Progress) -> dict[str, Any]:
    """Fit the weight of generation if configured, and evaluate on held-out mentions."""
    queries, search = mentions.held_out, mentions.search
    if not queries:
        return {}
    progress.start("held-out mentions")
    results: dict[str, Any] = {}
    if ranker.config.fit_weight and search is not None:
        ranker.mixing, results["weight"] = fit_mixing(ranker, search, queries)
    results["held_out"] = measure(ranker, search, queries)
    progress.finish()
    return results
