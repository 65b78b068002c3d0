"""Prediction of removed neighbours: can what is left of a graph tell them from other entities.

Some pairs of neighbours are removed from a graph. Everything that learns from the graph sees the
rest. A query is a removed triple: its tail stands among tails of other triples of the same
relation, sampled as often as they occur, so that frequency alone is no better than chance. None of
them is a neighbour of the head in the whole graph.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt

from biograft.config import Above, AtLeast, Choice, Range, check_fields
from biograft.errors import ConfigError, InputError
from biograft.graph.config import GraphRecipe
from biograft.graph.embedding.loops import Tables
from biograft.graph.embedding.steps import new_run
from biograft.graph.embedding.training import train_epochs
from biograft.graph.pepr import build_adjacency, solve
from biograft.graph.triples import SPLITS, Triples, read_triples
from biograft.kb import KnowledgeBase
from biograft_lab.probing.similarity.lexical import lexical_similarity
from biograft_lab.probing.similarity.report import QueryNames, Scores
from biograft_lab.replication.experiment import Experiment
from biograft_lab.replication.pretrained_arms import (
    check_arms,
    check_same_start,
    find_arm,
    has_seeds,
)
from biograft_lab.replication.results import Row, pack_flags, pack_sizes
from biograft_lab.replication.runner import (
    ExperimentJob,
    check_names,
    parse_settings,
    parse_variants,
)
from biograft_lab.replication.toy_files import RELATIONS

Ints = npt.NDArray[np.int64]
_TRIES = 8
"""Samples for each candidate; a query with too few different ones is left out."""
OF_ENCODER = ("encoder", "masked")
SCORES = ("chance", "frequency", "lexical", "pepr", "untrained", "graph", *OF_ENCODER)


@dataclass(frozen=True, slots=True, kw_only=True)
class RemovedNeighbourSettings:
    """The graph, how much of it is removed, and how its embeddings are trained.

    ``remove_ratio`` of the pairs of neighbours are removed, with all their triples; ``n_queries``
    of them are asked, each among ``n_candidates`` entities. ``changes`` are those of ``recipe``.
    ``wording`` has a sentence for each relation, with ``{head}`` and ``{tail}``, for ``masked``.
    """

    kb: str = "kb"
    remove_ratio: Annotated[float, Range(above=0, below=1)] = 0.1
    n_queries: Annotated[int, AtLeast(1)] = 2000
    n_candidates: Annotated[int, AtLeast(2)] = 20
    recipe: str = "transr"
    changes: tuple[str, ...] = ()
    damping: Annotated[float, Above(0)] = 0.15
    wording: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        check_fields(self)
        for relation, sentence in self.wording.items():
            if any(sentence.count(part) != 1 for part in ("{head}", "{tail}")):
                raise ConfigError(f"wording.{relation}: expected {{head}} and {{tail}}, each once")


@dataclass(frozen=True, slots=True, kw_only=True)
class NeighbourVariant:
    """A scorer of candidates.

    ``graph`` is the distance of trained embeddings, ``untrained`` that of their random start,
    ``pepr`` the personalised PageRank from the head, ``lexical`` the similarity of names,
    ``encoder`` the cosine of their vectors, ``masked`` how much more probable a masked language
    model finds a name in the sentence than in those of other heads, ``frequency`` the degree.
    ``recipe`` and ``changes`` replace those of the settings. An encoder is INPUT/PATH, with
    ``{seed}`` in it for each seed of pre-training; entity inputs are given ``with_entities``.
    """

    score: Annotated[str, Choice(*SCORES)]
    encoder: str = ""
    with_entities: bool = False
    recipe: str = ""
    changes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        check_fields(self)
        if (self.score in OF_ENCODER) != bool(self.encoder):
            raise ConfigError("score: 'encoder' and 'masked' need an encoder, and only they")


@dataclass(frozen=True, slots=True)
class NeighbourQueries:
    """The graph that is left, and the queries: the first candidate of each is the right one."""

    rest: Triples
    heads: Ints
    relations: Ints
    candidates: Ints
    """(queries, candidates): rows of the store."""


class RemovedNeighbours:
    """Runs experiments of kind ``removed_neighbours``."""

    def check(self, experiment: Experiment) -> None:
        """Refuse settings, inputs and variants that are not known."""
        settings = parse_settings(experiment, RemovedNeighbourSettings)
        check_names("settings", [settings.kb], [*experiment.inputs])
        check_arms(experiment, _encoders(experiment).values())

    def small(self, experiment: Experiment) -> Experiment:
        """Return the experiment at the size of toy data."""
        wording = dict.fromkeys(RELATIONS, "{head}，{tail}。")
        sizes = {"n_queries": 20, "n_candidates": 4, "wording": wording}
        changes = {"changes": ("training.epochs=2", "model.dim=8", "model.relation_dim=8")}
        return experiment.smaller(sizes, changes, n_seeds=2)

    def run(self, job: ExperimentJob) -> None:
        """Ask all queries of every variant, with every seed of training."""
        check_same_start(job, _encoders(job.experiment))
        results, settings = job.results(), parse_settings(job.experiment, RemovedNeighbourSettings)
        variants = parse_variants(job.experiment, NeighbourVariant)
        base = KnowledgeBase.open(job.input(settings.kb))
        queries = make_queries(read_triples(base), settings)
        for key in _keys(job.experiment, variants):
            if not results.has(key):
                started, variant, seed = (
                    time.perf_counter(),
                    variants[key["config"]],
                    key.get("seed"),
                )
                scores = _Scorer(base, queries, settings, variant, job, seed or 0)()
                seconds = round(time.perf_counter() - started, 1)
                job.add(results, key, {**measure(queries, scores), "seconds": seconds})


def _encoders(experiment: Experiment) -> dict[str, str]:
    variants = parse_variants(experiment, NeighbourVariant)
    return {label: variant.encoder for label, variant in variants.items() if variant.encoder}


def _keys(
    experiment: Experiment, variants: Mapping[str, NeighbourVariant]
) -> Iterator[dict[str, Any]]:
    """Yield the key of every row; an encoder of which there is one only is asked once."""
    for name in experiment.sets:
        for number, seed in enumerate(experiment.seeds_of(name)):
            for label, variant in variants.items():
                if not variant.encoder or has_seeds(variant.encoder):
                    yield {"set": name, "config": label, "seed": seed}
                elif number == 0:
                    yield {"set": name, "config": label}


def remove_pairs(triples: Triples, ratio: float) -> npt.NDArray[np.bool_]:
    """Choose a ratio of the pairs of neighbours; return which triples join them.

    It is the same in every run. A store with a test split has its own choice.
    """
    held_out = triples.splits == SPLITS.index("test")
    if held_out.any():
        return np.asarray(held_out)
    heads, tails = triples.heads.astype(np.int64), triples.tails.astype(np.int64)
    keys = np.minimum(heads, tails) * triples.n_entities + np.maximum(heads, tails)
    pairs, number = np.unique(keys, return_inverse=True)
    return np.asarray(np.random.default_rng(0).random(len(pairs))[number] < ratio)


def make_queries(triples: Triples, settings: RemovedNeighbourSettings) -> NeighbourQueries:
    """Remove pairs of neighbours and sample the queries; both are the same in every run."""
    removed, rng = remove_pairs(triples, settings.remove_ratio), np.random.default_rng(1)
    n = triples.n_entities
    heads, tails = triples.heads.astype(np.int64), triples.tails.astype(np.int64)
    pairs = np.unique(np.minimum(heads, tails) * n + np.maximum(heads, tails))
    asked = np.flatnonzero(removed & (heads != tails))
    asked = rng.permutation(asked)[: settings.n_queries]
    if not len(asked):
        raise InputError("has too few triples to remove some", path="graph")
    asked = asked[np.argsort(heads[asked], kind="stable")]
    candidates = np.empty((len(asked), settings.n_candidates), np.int64)
    of_relation = {
        relation: tails[triples.relations == relation]
        for relation in np.unique(triples.relations[asked]).tolist()
    }
    kept = []
    for row, triple in enumerate(asked.tolist()):
        head, tail = int(heads[triple]), int(tails[triple])
        pool = of_relation[int(triples.relations[triple])]
        pool = pool[rng.integers(0, len(pool), _TRIES * settings.n_candidates)]
        pool = pool[np.sort(np.unique(pool, return_index=True)[1])]  # the first of each
        keys = np.minimum(pool, head) * n + np.maximum(pool, head)
        at = np.minimum(np.searchsorted(pairs, keys), len(pairs) - 1)
        others = pool[(pairs[at] != keys) & (pool != head)][: settings.n_candidates - 1]
        if len(others) == settings.n_candidates - 1:
            candidates[row] = [tail, *others]
            kept.append(row)
    chosen = asked[kept]
    return NeighbourQueries(
        rest=triples.where(~removed),
        heads=heads[chosen],
        relations=triples.relations[chosen].astype(np.int64),
        candidates=candidates[kept],
    )


def measure(queries: NeighbourQueries, scores: Scores) -> Row:
    """Return accuracy, mean reciprocal rank and the answers; ties are as wrong as can be."""
    rank = 1 + (scores[:, 1:] >= scores[:, :1]).sum(1)
    right = rank == 1
    _, sizes = np.unique(queries.heads, return_counts=True)
    return {
        "split": "test",
        "n": len(right),
        "acc@1": 100 * float(right.mean()),
        "mrr": 100 * float((1 / rank).mean()),
        "right": pack_flags(right),
        "documents": pack_sizes(sizes.tolist()),
    }


@dataclass(frozen=True, slots=True)
class _Scorer:
    base: KnowledgeBase
    queries: NeighbourQueries
    settings: RemovedNeighbourSettings
    variant: NeighbourVariant
    job: ExperimentJob
    seed: int

    def __call__(self) -> Scores:
        """Score the candidates of every query."""
        scores: Scores = getattr(self, f"_{self.variant.score}")()
        return scores

    def _chance(self) -> Scores:
        return np.random.default_rng(self.seed).random(self.queries.candidates.shape)

    def _frequency(self) -> Scores:
        rest = self.queries.rest
        counts = np.bincount(rest.heads, minlength=rest.n_entities)
        counts += np.bincount(rest.tails, minlength=rest.n_entities)
        noise = 1e-6 * self._chance()  # equal ones at random
        return np.asarray(counts[self.queries.candidates] + noise)

    def _names(self) -> QueryNames:
        rows = np.column_stack([self.queries.heads, self.queries.candidates])
        known, numbers = np.unique(rows, return_inverse=True)
        texts = [self.base.name_at(row) for row in known.tolist()]
        return QueryNames(texts, numbers.reshape(rows.shape))

    def _lexical(self) -> Scores:
        return np.asarray(lexical_similarity(self._names()) + 1e-6 * self._chance())

    def _encoder(self) -> Scores:
        from biograft_lab.probing.similarity.encoder import EncoderSimilarity

        encoder = EncoderSimilarity.from_pretrained(
            str(self._folder()), with_entities=self.variant.with_entities
        )
        return encoder(self._names())

    def _masked(self) -> Scores:
        from biograft.models.knowledge.entity_finder import make_finder
        from biograft.models.masked_lm import MaskedLanguageModel
        from biograft_lab.probing.masked_names import NameChoice, score_names

        model = MaskedLanguageModel.from_pretrained(self._folder())
        relations = self.queries.rest.relation_names
        choices = []
        for head, relation, row in zip(
            self.queries.heads.tolist(),
            self.queries.relations.tolist(),
            self.queries.candidates.tolist(),
            strict=True,
        ):
            sentence = self._sentence(relations[relation])
            before, after = sentence.replace("{head}", self.base.name_at(head)).split("{tail}")
            options = tuple(map(self.base.name_at, row))
            choices.append(NameChoice(before, after, options, group=relations[relation]))
        finder = None
        if self.variant.with_entities:
            finder = make_finder(model.model.base_model, model.tokenizer)
            if finder is None:
                raise ConfigError(f"with_entities: {model.name} takes no entity inputs")
        return score_names(model, choices, finder).information

    def _sentence(self, relation: str) -> str:
        if relation not in self.settings.wording:
            raise ConfigError(f"wording: no sentence for the relation {relation!r}; add one")
        return self.settings.wording[relation]

    def _folder(self) -> Path:
        return find_arm(self.job, self.variant.encoder, self.seed)

    def _pepr(self) -> Scores:
        rest = self.queries.rest
        graph = build_adjacency(rest.heads, rest.tails, rest.n_entities)
        scores = 1e-12 * self._chance()
        for head in np.unique(self.queries.heads).tolist():
            position = int(graph.position_of[head])
            if position >= graph.n_linked:
                continue
            start = np.zeros(graph.n_linked)
            start[position] = 1
            walk = solve(graph, start, damping=self.settings.damping, tolerance=1e-6)
            walk = np.append(walk, np.zeros(graph.n_entities - graph.n_linked))
            rows = self.queries.heads == head
            scores[rows] += walk[graph.position_of[self.queries.candidates[rows]]]
        return scores

    def _untrained(self) -> Scores:
        return self._distances(new_run(self.queries.rest, self._recipe()).tables)

    def _graph(self) -> Scores:
        recipe, rest = self._recipe(), self.queries.rest
        run = train_epochs(rest, recipe, new_run(rest, recipe), lambda run: False)
        return self._distances(run.best or run.tables)

    def _recipe(self) -> GraphRecipe:
        name = self.variant.recipe or self.settings.recipe
        changes = [*self.settings.changes, *self.variant.changes]
        return GraphRecipe.load(name, changes).with_seed(self.seed)

    def _distances(self, tables: Tables) -> Scores:
        """Return the negative distances |h M_r + r - t M_r| of a model, in its own norm."""
        queries, recipe = self.queries, self._recipe()
        order = 1 if recipe.model.norm == "l1" else 2
        scores = np.empty(queries.candidates.shape)
        for relation in np.unique(queries.relations).tolist():
            rows = queries.relations == relation
            heads = tables.entity[queries.heads[rows]][:, None]  # (queries, 1, dim)
            tails = tables.entity[queries.candidates[rows]]  # (queries, candidates, dim)
            if len(tables.projection):
                heads, tails = (_clip(x @ tables.projection[relation]) for x in (heads, tails))
            gap = heads + tables.relation[relation] - tails
            scores[rows] = -np.linalg.norm(gap, ord=order, axis=-1)
        return scores


def _clip(vectors: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Scale vectors that are longer than 1 to 1, as TransR does."""
    lengths = np.linalg.norm(vectors, axis=-1, keepdims=True)
    return np.asarray(vectors / np.maximum(lengths, 1))
