"""Cloze queries whose answer is one token of the vocabulary, by encoders of several seeds.

Facts are those of a store, as in ``biograft probe cloze``. Small encoders fill in a name of several
tokens almost never, so that such queries tell nothing; those of one token do. A query is right if
one of the ``k`` best tokens is a name of a right concept. Queries of one relation that share their
answers are one document.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from biograft.config import AtLeast, check_fields
from biograft.errors import InputError
from biograft.kb import KnowledgeBase
from biograft.models.masked_lm import MaskedLanguageModel
from biograft.progress import Progress
from biograft_lab.probing import (
    ClozeGold,
    ClozeQuery,
    DecodingConfig,
    QueryConfig,
    answer_queries,
    build_queries,
    cloze_gold,
)
from biograft_lab.replication.experiment import Experiment
from biograft_lab.replication.pretrained_arms import (
    check_arms,
    check_same_start,
    each_arm,
    find_arm,
)
from biograft_lab.replication.results import Row, pack_flags, pack_sizes
from biograft_lab.replication.runner import (
    ExperimentJob,
    check_names,
    parse_settings,
    parse_variants,
)

LANGUAGES = ("en",)
IN_QUERY, NOT_IN_QUERY = "name in the query", "name not in the query"


@dataclass(frozen=True, slots=True, kw_only=True)
class OneTokenSettings:
    """Limits: queries of each knowledge base, and best tokens that count."""

    n_queries: Annotated[int, AtLeast(1)] = 3000
    k: Annotated[int, AtLeast(1)] = 5

    def __post_init__(self) -> None:
        check_fields(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class OneTokenVariant:
    """A masked language model: INPUT/PATH, ``{seed}`` in it for each seed of pre-training."""

    encoder: str


@dataclass(frozen=True, slots=True)
class OneTokenQueries:
    """Queries with their right answers; those of a document are together."""

    queries: tuple[ClozeQuery, ...]
    gold: tuple[ClozeGold, ...]

    def row(self, right: Sequence[bool], k: int) -> Row:
        """Return recall and answers; answers that the query names are a part of their own."""
        sizes = Counter((query.relation, query.answers) for query in self.queries)
        named = [gold.contains_answer for gold in self.gold]
        parts = {IN_QUERY: named, NOT_IN_QUERY: [not each for each in named]}
        return {
            "split": "test",
            "n": len(right),
            f"recall@{k}": 100 * sum(right) / max(1, len(right)),
            "right": pack_flags(right),
            "documents": pack_sizes(sizes.values()),
            "parts": {name: pack_flags(flags) for name, flags in parts.items()},
        }


class OneTokenFacts:
    """Runs experiments of kind ``one_token_facts``; the sets are stores, named as inputs."""

    def check(self, experiment: Experiment) -> None:
        """Refuse settings, sets and variants that are not known."""
        parse_settings(experiment, OneTokenSettings)
        check_names("sets", experiment.sets, [*experiment.inputs])
        check_arms(experiment, _encoders(experiment).values())

    def small(self, experiment: Experiment) -> Experiment:
        """Return the experiment at the size of toy data."""
        return experiment.smaller({"n_queries": 20}, {}, n_seeds=2)

    def run(self, job: ExperimentJob) -> None:
        """Ask all queries of every store and arm."""
        results, encoders = job.results(), _encoders(job.experiment)
        check_same_start(job, encoders)
        settings = parse_settings(job.experiment, OneTokenSettings)
        for name in job.experiment.sets:
            base, queries = KnowledgeBase.open(job.input(name)), None
            for label, seed in each_arm(job, encoders):
                key = {"set": name, "config": label, **({} if seed is None else {"seed": seed})}
                if results.has(key):
                    continue
                started = time.perf_counter()
                folder = find_arm(job, encoders[label], seed or 0)
                model = MaskedLanguageModel.from_pretrained(folder)
                queries = queries or one_token_queries(base, model, settings.n_queries)
                right = ask(model, queries, settings.k)
                seconds = round(time.perf_counter() - started, 1)
                job.add(results, key, {**queries.row(right, settings.k), "seconds": seconds})


def _encoders(experiment: Experiment) -> dict[str, str]:
    variants = parse_variants(experiment, OneTokenVariant)
    return {label: variant.encoder for label, variant in variants.items()}


def one_token_queries(
    base: KnowledgeBase, model: MaskedLanguageModel, limit: int
) -> OneTokenQueries:
    """Return the queries of a store that one token answers, evenly spaced."""
    vocabulary = set(model.tokenizer.get_vocab())
    built = build_queries(base, QueryConfig(languages=LANGUAGES, per_relation=0)).queries
    asked = [(query, cloze_gold(base, query, LANGUAGES)) for query in built]
    asked = [(query, gold) for query, gold in asked if not vocabulary.isdisjoint(gold.keys)]
    if not asked:
        raise InputError("has no fact that one token completes", path=Path(base.folder))
    asked = asked[:: -(-len(asked) // limit)] if len(asked) > limit else asked
    asked.sort(key=lambda pair: (pair[0].relation, pair[0].answers))
    return OneTokenQueries(tuple(q for q, _ in asked), tuple(gold for _, gold in asked))


def ask(model: MaskedLanguageModel, queries: OneTokenQueries, k: int) -> list[bool]:
    """Return which queries a model answers rightly within its ``k`` best tokens."""
    config = DecodingConfig(lengths=(1,), beam=k)
    answers = answer_queries(model, queries.queries, queries.gold, config, Progress())
    return [bool(hit) for hit in answers.hits]
