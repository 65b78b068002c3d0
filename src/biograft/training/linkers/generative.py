"""Train a generative linker (GenBioEL), and evaluate it on held-out mentions.

A training example is a mention in its context, with a name of its concept. Several names may be
the target. ``similar`` chooses the name with the highest TF-IDF cosine of character trigrams with
the mention. Ties go to the shortest name, then to the first one in the store.

Recall is computed over names, as in the paper: the correct concept is among those of the first
name, or of the first five distinct names. Mentions without a gold concept are skipped.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from difflib import SequenceMatcher
from functools import lru_cache, partial
from itertools import chain
from math import hypot, log
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
from biograft.linking.generative import (
    GENERATIVE,
    Flags,
    Ints,
    Mixing,
    NameTrie,
    Selection,
    Seq2SeqLinker,
    make_input,
    search_pool,
    select_names,
)
from biograft.linking.index import open_search
from biograft.linking.queries import GoldQuery, check_not_names, check_texts, overlapping
from biograft.linking.trained_configs import GenerativeConfig
from biograft.models.seq2seq import Seq2SeqModel
from biograft.progress import Progress
from biograft.text.mention_text import clean_name
from biograft.training import train
from biograft.training.batches import EpochOrder, OrderedBatches
from biograft.training.linkers.recipes import (
    LinkerRecipe,
    LinkerTrainingData,
    Outcome,
    TrainedLinker,
)
from biograft.training.objectives.examples import Setting
from biograft.training.objectives.model import ObjectiveModel
from biograft.training.objectives.name_examples import NameBatches, NameExample
from biograft.training.objectives.name_generation import NameGeneration, NameReader
from biograft.training.pretraining.generation import NameTemplates
from biograft.training.pretraining.recipe import NameTemplatesConfig
from biograft.training.processes import join_processes


class TrigramSimilarity:
    """Cosine of TF-IDF vectors of character trigrams within words.

    Equal to scikit-learn's ``TfidfVectorizer(analyzer="char_wb", ngram_range=(3, 3))``, which
    scispaCy uses, fitted to the names that may be generated.

    Args:
        texts: Names that the frequencies are counted in.
    """

    def __init__(self, texts: Sequence[str]) -> None:
        counts = Counter[str]()
        for text in texts:
            counts.update(_trigrams(text).keys())
        self._idf = {gram: log((1 + len(texts)) / (1 + n)) + 1 for gram, n in counts.items()}
        self._vector = lru_cache(1 << 16)(self._weigh)

    def __call__(self, text: str, other: str) -> float:
        """Return the cosine of two texts.

        Args:
            text: A text.
            other: Another one.
        """
        weights, others = self._vector(text), self._vector(other)
        return sum(weight * others.get(gram, 0.0) for gram, weight in weights.items())

    def _weigh(self, text: str) -> dict[str, float]:
        counts = _trigrams(clean_name(text))
        weights = {gram: n * self._idf[gram] for gram, n in counts.items() if gram in self._idf}
        norm = hypot(*weights.values()) or 1.0
        return {gram: weight / norm for gram, weight in weights.items()}


def _trigrams(text: str) -> Counter[str]:
    words = [f" {word} " for word in text.lower().split()]
    return Counter(word[i : i + 3] for word in words for i in range(len(word) - 2))


class TargetChooser:
    """Chooses the target among the names of the correct concepts by a rule.

    Args:
        selected: Names that may be generated.
        rule: How a target is chosen, as ``config.target``.
        seed: Seed of a random choice.
    """

    def __init__(self, selected: Selection, rule: str, seed: int) -> None:
        self._selected, self._rule, self._seed = selected, rule, seed
        self._lengths = selected.lengths
        self._similarity = TrigramSimilarity(selected.texts) if rule == "similar" else None
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
        """Choose a row for each mention among its names, of which there is at least one.

        Args:
            mentions: Mentions.
            names: Rows of the names of each.
        """
        chosen: list[int] = []
        for index, (mention, rows) in enumerate(zip(mentions, names, strict=True)):
            lengths = self._lengths[self._selected.numbers[rows]]
            scores = self._score(mention, rows, index)
            chosen.append(int(rows[np.lexsort((rows, lengths, -scores))[0]]))
        return chosen

    def _score(self, mention: str, rows: Ints, index: int) -> npt.NDArray[np.float64]:
        """Score the names of a mention; ties are resolved by length.

        Names of the same words in another order have the same trigrams: among these, the one whose
        characters are in the order of the mention is more similar.
        """
        scores = np.zeros(len(rows))
        if self._similarity is not None:
            names = [self.text_of(row) for row in rows]
            scores = np.array([self._similarity(mention, name) for name in names])
            scores = scores.round(6)  # equal but for the order of a sum
            best = scores.max()
            tied = np.flatnonzero((scores == best) & (best > 0))
            for n in tied if len(tied) > 1 else ():
                order = SequenceMatcher(None, mention.lower(), names[n].lower(), autojunk=False)
                scores[n] += 1e-7 * order.ratio()
        elif self._rule == "random":
            scores[np.random.default_rng([self._seed, index]).integers(len(rows))] = 1
        return scores


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
    """Mentions in context, each with a name to generate."""
    counts: GenerationCounts
    """Number of mentions used and left out."""

    def __len__(self) -> int:
        return len(self.examples)

    def example(self, epoch: int, index: int) -> NameExample:
        """Return an example by its index.

        Args:
            epoch: Number of the epoch.
            index: Index of the example.
        """
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

    Args:
        mentions: Mentions with their targets.
        kb: Knowledge base of the names.
        selected: Names that may be generated.
        config: Settings of the training.
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
            prompt=config.prompt == "mention",
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
    """Make an example of each mention of one concept of the store (or of one among several).

    Args:
        kb: The store.
        chooser: Chooses the target of each mention.
        queries: Mentions with their correct concepts.
        config: Inputs, and whether overlapping mentions are dropped.

    Returns:
        The examples, and numbers of mentions.
    """
    kept = _disjoint(queries, config)
    simple = [query for query in kept if len(query.needed) <= 1 and len(query.parts) <= 1]
    with_gold = [query for query in simple if query.gold]
    mentions, names = [], []
    for query in with_gold:
        rows = chooser.names_of(kb.rows_of(query.gold))
        if len(rows):
            mentions.append(query)
            names.append(rows)
    counts = GenerationCounts(
        given=len(queries),
        composite=len(kept) - len(simple),
        nil=len(simple) - len(with_gold),
        unknown=len(with_gold) - len(mentions),
        overlapping=len(queries) - len(kept),
        used=len(mentions),
        without_text=sum(not query.context or query.start is None for query in mentions),
    )
    forms = MentionForms(kb, abbreviations=True, composites=False).of_queries(mentions)
    targets = chooser.choose([form for form, _ in forms], names)
    examples = tuple(
        NameExample(*make_input(form, context, config), chooser.text_of(row))
        for (form, context), row in zip(forms, targets, strict=True)
    )
    return GenerationExamples(examples, counts)


def _disjoint(queries: Sequence[GoldQuery], config: GenerativeConfig) -> list[GoldQuery]:
    flags = overlapping(queries) if config.drop_overlapping else [False] * len(queries)
    return [query for query, flag in zip(queries, flags, strict=True) if not flag]


def known_mentions(
    kb: KnowledgeBase, queries: Sequence[GoldQuery], config: GenerativeConfig
) -> list[GoldQuery]:
    """Leave out test mentions as the paper does: without a concept of the store, or overlapping.

    Args:
        kb: The store.
        queries: Mentions with their correct concepts.
        config: Whether overlapping mentions are dropped.
    """
    return [query for query in _disjoint(queries, config) if kb.rows_of(query.gold)]


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
    """Compute the recall at 1 and 5 names of mentions that have a gold concept.

    Args:
        ranker: The linker.
        search: Search beside it; used if the linker needs one.
        queries: Mentions with gold concepts.
    """
    queries = [query for query in queries if query.gold]
    search = search if ranker.needs_search else None
    hits = {k: np.ones(len(queries), np.bool_) for k in CUTOFFS}
    for part in _parts(ranker, search, queries):
        first = _first_right(ranker, part, ranker.mixing(part.scored)[0])
        for k in CUTOFFS:
            hits[k][part.query] &= first < k
    recall = {f"recall@{k}": float(hits[k].mean()) if queries else 0.0 for k in CUTOFFS}
    return {"n": len(queries), **recall}


GENERATION_WEIGHTS = tuple(step / 20 for step in range(21))
"""The weights that are tried."""


class HeldOutScores(NamedTuple):
    """The names of one held-out text: both scores, and which names are correct."""

    query: int
    """The query that the text is a part of; a query is correct if all its parts are."""
    generated: Scores
    searched: Scores
    right: Flags


def fit_weight(held_out: Sequence[HeldOutScores]) -> tuple[float, dict[str, float]]:
    """Choose the weight of generation with the highest accuracy; also return the accuracies.

    Ties go to the higher weight.
    """
    if not held_out:
        raise ConfigError("fit_weight: there is no held-out mention to fit it on; give --dev")
    results = {weight: accuracy(held_out, weight) for weight in GENERATION_WEIGHTS}
    best = max(GENERATION_WEIGHTS, key=lambda weight: (results[weight], weight))
    return best, {"searched": results[0.0], GENERATIVE: results[1.0], "mixed": results[best]}


def accuracy(held_out: Sequence[HeldOutScores], weight: float) -> float:
    """Compute the ratio of queries whose parts all have a correct name first.

    Args:
        held_out: Scores of the names of held-out mentions.
        weight: Weight of the generation beside the search.
    """
    right: dict[int, bool] = {}
    mixing = Mixing(weight)
    for item in held_out:
        valid = np.ones(len(item.right), np.bool_)
        scores = mixing.mix(item.generated, item.searched, valid)
        first = bool(len(scores)) and bool(item.right[int(np.argmax(scores))])
        right[item.query] = right.get(item.query, True) and first
    return sum(right.values()) / len(right)


def fit_mixing(
    ranker: Seq2SeqLinker, search: FusedSearch, queries: Sequence[GoldQuery]
) -> tuple[Mixing, dict[str, float]]:
    """Fit the weight of generation beside a search.

    Args:
        ranker: The linker that generates.
        search: The search.
        queries: Held-out mentions with their correct concepts.

    Returns:
        The mixing, and the accuracies of search, generation and both.

    Raises:
        ConfigError: There is no mention, or the mentions are names of the store.
    """
    queries = [query for query in queries if query.gold]
    check_not_names(ranker.kb, queries)
    rescore, weights = ranker.config.rescore, dict(search.weights)
    mixing = Mixing(0.5, rescore, weights)
    both = Seq2SeqLinker(ranker.kb, ranker.seq2seq, ranker.names, ranker.config, mixing)
    held_out = []
    for part in _parts(both, search, queries):
        searched = mixing.search_scores(search_pool(part.scored))[0]
        generated = part.scored.scores[-1][0]
        held_out.append(HeldOutScores(part.query, generated, searched, part.right))
    weight, accuracies = fit_weight(held_out)
    used = weights if weight < 1 or not ranker.config.generate else {}
    return Mixing(weight, rescore, used), {"generation_weight": weight, **accuracies}


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


EVALUATED = 256
"""Maximum number of held-out mentions for the loss in evaluations during training."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mentions:
    """Training mentions, held-out mentions, and the search beside which to evaluate."""

    train: Sequence[GoldQuery]
    """Mentions to train on."""
    held_out: Sequence[GoldQuery] = ()
    """Mentions to choose on."""
    test: Sequence[GoldQuery] = ()
    """Mentions to evaluate at the end, as the paper does: see ``known_mentions``."""
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
    """Train in the folder ``out``, or resume the run there; write ``out/model``.

    Args:
        kb: The store whose names are learned.
        mentions: Mentions with their correct concepts, and the search beside generation.
        config: Model, inputs, objective and training.
        out: Folder of the run.
        resume: Continue the run in ``out``.
        progress: Where progress is shown; None shows none.

    Returns:
        The folder of the linker, counts of mentions and names, and held-out metrics.

    Raises:
        ConfigError: Settings and mentions do not fit each other, or no mention can be learned from.
    """
    progress, run, processes = progress or Progress(), Path(out), join_processes()
    search = mentions.search
    _check(kb, config, mentions)
    progress.start("names")
    selection = select_names(kb, config.names)
    chooser = TargetChooser(selection, config.target, config.training.seed)
    data = collect_mentions(kb, chooser, mentions.train, config)
    if not data:
        raise ConfigError(
            f"training mentions: of {data.counts.given:,} given none is left to learn from; are "
            "their ids those of this store?"
        )
    held_out = collect_mentions(kb, chooser, mentions.held_out[:EVALUATED], config)
    progress.start("model")
    if config.model or config.new is None:
        seq2seq = Seq2SeqModel.from_pretrained(
            config.model,
            max_source=config.max_source,
            max_target=config.max_target,
            dropout=config.dropout,
            decoder=config.decoder,
            lora=config.lora,
        )
    else:  # with a vocabulary of the names and texts
        words = (text for example in data.examples for text in (example.source, example.prompt))
        new = config.new.create(chain(selection.texts, words), config.training.seed)
        seq2seq = Seq2SeqModel(
            new.model,
            new.tokenizer,
            new.name,
            max_source=config.max_source,
            max_target=config.max_target,
        )
    provenance = {
        "kb": store_fingerprint(kb),
        "model": seq2seq.fingerprint(),
        "search": str(search) if search else None,
        **data.provenance(),
    }
    build = partial(NameTrie.build, kb, seq2seq, config.names, progress)
    names = build() if config.objective.unlikelihood else None
    width = seq2seq.model.get_decoder().config.hidden_size
    setting = Setting(width=width, kb=kb, trie=names.trie if names else None)
    objectives = {NameGeneration.name: config.objective.build(setting)}
    encode = partial(objectives[NameGeneration.name].encode, seq2seq)
    batches = NameBatches(
        ExamplesWithNames(data, kb, selection, config) if config.names_ratio else data, encode
    )
    order = EpochOrder.for_training(
        len(batches),
        config.training,
        lengths=batches.lengths,
        bucket_batches=config.bucket_batches,
        called="stream: examples:",
    )
    size = order.batch_size
    encoded = [
        encode(held_out.examples[start : start + size]) for start in range(0, len(held_out), size)
    ]
    model = ObjectiveModel(NameReader(seq2seq, objectives), objectives)
    task = model.task(
        OrderedBatches(order, batches.batch),
        evaluate=partial(model.evaluate, encoded, config.training.precision) if encoded else None,
        described=asdict(config),
        provenance=provenance,
    )
    trained = train(task, config.training, run, resume=resume, progress=progress)
    report: dict[str, Any] = {"mentions": asdict(data.counts)}
    if processes.is_main_process:
        names, weight = names or build(), config.generation_weight
        searches = search is not None and (weight < 1 or not config.generate)
        mixing = Mixing(weight, config.rescore, dict(search.weights) if search and searches else {})
        ranker = Seq2SeqLinker(kb, seq2seq, names, config, mixing)
        report |= {
            "n_names": names.trie.n_sequences,
            "n_names_cut": names.n_cut,
            "trie_bytes": names.nbytes,
        }
        if trained.finished and mentions.held_out:
            progress.start("held-out mentions")
            if config.fit_weight and search is not None:
                ranker.mixing, report["weight"] = fit_mixing(ranker, search, mentions.held_out)
            report["held_out"] = measure(ranker, search, mentions.held_out)
        if trained.finished and mentions.test:
            progress.start("test")
            test = known_mentions(kb, mentions.test, config)
            report["test"] = {"given": len(mentions.test), **measure(ranker, search, test)}
        progress.finish()
        ranker.save(run / "model", report, provenance)
    return TrainedLinker(run, run / "model", trained, report)


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
        check_texts(mentions.test, "test mentions", remedy)
    if not config.generate and mentions.search is None:
        raise ConfigError("generate: false ranks the names of a search, and none is given")
    if config.fit_weight:
        if not (mentions.held_out and mentions.search):
            raise ConfigError("fit_weight: there is no held-out mention to fit it on; give --dev")
        check_not_names(kb, [query for query in mentions.held_out if query.gold])


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
    mentions = Mentions(
        train=data.train, held_out=data.dev or (), test=data.test or (), search=search
    )
    return train_generative(
        data.kb, mentions, config, data.out, resume=data.resume, progress=data.progress
    ).outcome()
