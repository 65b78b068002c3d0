"""Train a generative linker (GenBioEL), and evaluate it on held-out mentions.

A training example is a mention in its context, with a name of its concept. Several names may be
the target. ``similar`` chooses the name with the highest TF-IDF cosine of character trigrams with
the mention. Ties go to the shortest name, then to the first one in the store.

Recall is computed over names, as in the paper: the correct concept is among those of the first
name, or of the first five distinct names. Mentions without a gold concept are skipped.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from biograft.errors import ConfigError
from biograft.kb import KnowledgeBase
from biograft.kb.fingerprints import store_fingerprint
from biograft.linking.candidates import Rows, Scores
from biograft.linking.config import LinkerConfig
from biograft.linking.forms import MentionForms
from biograft.linking.fusion import CandidatePool, FusedSearch, empty_pool
from biograft.linking.generative import (
    HeldOutScores,
    Ints,
    LinkerMetadata,
    Mixing,
    NameTrie,
    Selection,
    Seq2SeqLinker,
    fit_weight,
    make_input,
    search_pool,
    select_names,
    write_linker,
)
from biograft.linking.index import open_search
from biograft.linking.lexical import LexicalConfig, LexicalIndex
from biograft.linking.queries import GoldQuery, check_not_names, check_texts, overlapping
from biograft.linking.trained_configs import GenerativeConfig
from biograft.models.seq2seq import Seq2SeqModel
from biograft.progress import Progress
from biograft.training import Task, train
from biograft.training.linkers.recipes import (
    LinkerRecipe,
    LinkerTrainingData,
    Outcome,
    TrainedLinker,
)
from biograft.training.objectives.name_examples import NameBatches, NameExample, NameExamples
from biograft.training.objectives.name_generation import NameGenerationTraining
from biograft.training.pretraining.stream_configs import NameTemplatesConfig
from biograft.training.pretraining.templates import NameTemplates
from biograft.training.processes import join_processes

PLAIN = LexicalConfig(steps="unicode,case,hyphens", synonym_substitution=False)
"""Names are compared by their characters, but for case and punctuation."""
_CHOSEN = 256
Floats = npt.NDArray[np.float32]


class TargetChooser:
    """Chooses the target among the names of the correct concepts by a rule."""

    def __init__(self, kb: KnowledgeBase, selected: Selection, rule: str, seed: int) -> None:
        self._selected, self._rule, self._seed = selected, rule, seed
        self._lengths = selected.lengths
        self._index = LexicalIndex.build(kb, PLAIN) if rule == "similar" else None
        self._rows = np.flatnonzero(selected.numbers >= 0)  # ascending by concept, as in the store
        n_concepts = int(selected.concepts.max(initial=-1)) + 1
        self._ends = np.searchsorted(selected.concepts[self._rows], np.arange(n_concepts), "right")

    def names_of(self, concepts: Sequence[int]) -> Ints:
        """Return the rows of the names of some concepts that may be generated, ascending."""
        n = len(self._ends)
        parts = [
            self._rows[self._ends[concept - 1] if concept else 0 : self._ends[concept]]
            for concept in sorted(concepts)
            if concept < n
        ]
        return np.concatenate([np.zeros(0, np.int64), *parts])

    def text_of(self, row: int) -> str:
        """Return a name as it is generated."""
        return self._selected.texts[int(self._selected.numbers[row])]

    def choose(self, mentions: Sequence[str], names: Sequence[Ints]) -> list[int]:
        """Choose a row for each mention among its names, of which there is at least one."""
        chosen: list[int] = []
        for start in range(0, len(mentions), _CHOSEN):
            chunk = names[start : start + _CHOSEN]
            scores = self._score(mentions[start : start + _CHOSEN], chunk, start)
            for rows, score in zip(chunk, scores, strict=True):
                lengths = self._lengths[self._selected.numbers[rows]]
                chosen.append(int(rows[np.lexsort((rows, lengths, -score[: len(rows)]))[0]]))
        return chosen

    def _score(self, mentions: Sequence[str], names: Sequence[Ints], start: int) -> Floats:
        """Score the names of mentions, (mentions, max names); ties are resolved by length."""
        rows = np.full((len(names), max(map(len, names))), -1, np.int64)
        for line, name_rows in enumerate(names):
            rows[line, : len(name_rows)] = name_rows
        if self._index is not None:
            return self._index.score(mentions, rows)
        scores = np.zeros(rows.shape, np.float32)
        if self._rule == "random":
            for line, name_rows in enumerate(names):
                rng = np.random.default_rng([self._seed, start + line])
                scores[line, rng.integers(len(name_rows))] = 1
        return scores


T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class GenerationCounts:
    """Numbers of mentions, by what they were used for."""

    given: int = 0
    composite: int = 0
    """Skipped: it is unknown which part refers to which concept."""
    nil: int = 0
    unknown: int = 0
    """Skipped: no concept of the store has the id, or none of its names may be generated."""
    overlapping: int = 0
    """Skipped if ``drop_overlapping`` is set."""
    used: int = 0
    without_text: int = 0
    """Used mentions whose text is missing."""


@dataclass(frozen=True, slots=True)
class GenerationExamples:
    """Training examples, the same in every epoch."""

    examples: tuple[NameExample, ...]
    counts: GenerationCounts

    def __len__(self) -> int:
        return len(self.examples)

    def example(self, epoch: int, index: int) -> NameExample:
        """Return an example by its index."""
        return self.examples[index]

    def provenance(self) -> dict[str, Any]:
        """Return the counts and a hash of the examples."""
        digest = hashlib.sha256()
        for example in self.examples:
            digest.update(repr((example.source, example.prompt, example.target)).encode())
        return {"examples": digest.hexdigest(), "mentions": asdict(self.counts)}


_DEFINITION_WORDS = 16


class ExamplesWithNames:
    """Mentions, and in each epoch other names of the store in sentences about their concepts.

    A fraction ``config.names_ratio`` of the examples are names, sampled among those that may be
    generated; none is repeated before all have been seen.
    """

    def __init__(
        self,
        mentions: GenerationExamples,
        kb: KnowledgeBase,
        selected: Selection,
        config: GenerativeConfig,
    ) -> None:
        stream = NameTemplatesConfig(
            lower=config.names.lower,
            languages=config.names.languages,
            prompt=config.prompt,
            definition_words=config.context_words or _DEFINITION_WORDS,
            seed=config.training.seed,
        )
        self._mentions, self._seed = mentions, config.training.seed
        self._templates = NameTemplates(kb, stream)
        self._names = np.flatnonzero(selected.numbers[self._templates.concept_texts.names] >= 0)
        ratio = config.names_ratio
        self.n_names = max(1, round(len(mentions) * ratio / (1 - ratio)))
        """The number of names in an epoch."""
        self._order: tuple[int, Ints] = (-1, self._names)

    def __len__(self) -> int:
        return len(self._mentions) + self.n_names

    def example(self, epoch: int, index: int) -> NameExample:
        """Return an example as it is in an epoch: the mentions come first, then names."""
        if index < len(self._mentions):
            return self._mentions.example(epoch, index)
        position = epoch * self.n_names + index - len(self._mentions)
        turn, row = divmod(position, len(self._names))
        if self._order[0] != turn:
            rng = np.random.default_rng([self._seed, turn, 2])  # 1 orders batches
            self._order = (turn, rng.permutation(self._names))
        return self._templates.example(turn, int(self._order[1][row]))


def collect_mentions(
    kb: KnowledgeBase,
    chooser: TargetChooser,
    queries: Sequence[GoldQuery],
    config: GenerativeConfig,
) -> GenerationExamples:
    """Make an example of each mention of one concept of the store (or of one among several)."""
    mentions = list(queries)
    skipped = {"composite": _is_composite, "nil": _is_nil}
    counts = {"given": len(mentions)}
    if config.drop_overlapping:
        flags = overlapping(mentions)
        mentions = [query for query, flag in zip(mentions, flags, strict=True) if not flag]
        counts["overlapping"] = sum(flags)
    for name, matches in skipped.items():
        counts[name] = sum(map(matches, mentions))
        mentions = [query for query in mentions if not matches(query)]
    names = [chooser.names_of(kb.rows_of(query.gold)) for query in mentions]
    nameable = [len(rows) > 0 for rows in names]
    mentions, names = _only(mentions, nameable), _only(names, nameable)
    counts |= {"unknown": len(nameable) - len(mentions), "used": len(mentions)}
    forms = MentionForms(kb, abbreviations=True, composites=False).of_queries(mentions)
    counts["without_text"] = sum(not q.context or q.start is None for q in mentions)
    rows = chooser.choose([form for form, _ in forms], names)
    examples = tuple(
        NameExample(*make_input(form, context, config), chooser.text_of(row))
        for (form, context), row in zip(forms, rows, strict=True)
    )
    return GenerationExamples(examples, GenerationCounts(**counts))


def _is_composite(query: GoldQuery) -> bool:
    return len(query.needed) > 1 or len(query.parts) > 1


def _is_nil(query: GoldQuery) -> bool:
    return not query.gold


def _only(values: Sequence[T], flags: Sequence[bool]) -> list[T]:
    return [value for value, flag in zip(values, flags, strict=True) if flag]


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


def train_by_recipe(recipe: LinkerRecipe, data: LinkerTrainingData) -> Outcome:
    """Train a generative linker into ``out/model``; the index is for its weight in the mix.

    Args:
        recipe: Settings.
        data: Mentions in their texts, and the index of the search, if one is mixed in.

    Returns:
        The folder of the linker, and the metrics.

    Raises:
        ConfigError: An index is given that is not searched.
    """
    config: GenerativeConfig = recipe.config
    searches = config.fit_weight or config.generation_weight < 1 or not config.generate
    if data.index is not None and not searches:
        raise ConfigError(
            "index: generation alone does not search an index; leave it out, or set "
            "config.fit_weight=true"
        )
    join_processes()  # before the encoder of the index is loaded
    data.progress.start("index")
    names = LinkerConfig(languages=config.names.languages)
    search = open_search(data.kb, data.index, names).search if searches else None
    mentions = Mentions(train=data.train, held_out=data.dev or (), search=search)
    return train_generative(
        data.kb, mentions, config, data.out, resume=data.resume, progress=data.progress
    ).outcome()
