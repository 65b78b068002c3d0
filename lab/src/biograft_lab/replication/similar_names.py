"""Similar names (SMedBERT's D1 to D3) by encoders of several seeds, with the answer to every query.

A query is a name; its other name stands among similar names of other entities of its type. The
parts of a row are queries that differ from the rest:

======================  ==================================================================
``D2``                  two entities that share three quarters of their neighbours
``two entities``        the names belong to two entities that a relation joins
``frequency 0``, ...    how often the rarer of the two names is in the text (0, 1-5, above)
``no shared character`` the two names have none in common
======================  ==================================================================
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Annotated, Any

import numpy as np

from biograft.config import AtLeast, Choice, check_fields
from biograft.errors import ConfigError, InputError
from biograft.kb import KnowledgeBase
from biograft.kb.names import normalise
from biograft.text import NamesIndex
from biograft_lab.probing.similarity import (
    SimilarityConfig,
    SimilarityQuery,
    WordVectorConfig,
    build_queries,
    collect_names,
    judge,
    lexical_similarity,
    read_training_text,
    train_glove,
    train_sgns,
    with_frequencies,
)
from biograft_lab.probing.similarity.report import QueryNames, Scores
from biograft_lab.probing.similarity.word_vectors import (
    ChineseWordTokenizer,
    read_text_lines,
    tokenize,
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

SETS = ("D1",)
BASELINES = ("lexical", "sgns", "glove", "sgns-words", "glove-words")
_FEW = 5
_CHUNK = 2000
"""Texts searched at once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SimilarNameSettings:
    """The store, the text that names are counted and word vectors trained in, and the queries.

    ``texts`` is an input: a file, a text a line, or annotated text.
    """

    kb: str = "kb"
    texts: str = "texts"
    same_as: tuple[str, ...] = ()
    n_pairs: Annotated[int, AtLeast(0)] = 0
    n_negatives: Annotated[int, AtLeast(1)] = 19
    dim: Annotated[int, AtLeast(1)] = 100

    def __post_init__(self) -> None:
        check_fields(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class SimilarNameVariant:
    """An encoder as INPUT/PATH, ``{seed}`` in it for each seed of pre-training, or a baseline."""

    encoder: str = ""
    baseline: Annotated[str, Choice("", *BASELINES)] = ""
    with_entities: bool = False

    def __post_init__(self) -> None:
        check_fields(self)
        if bool(self.encoder) == bool(self.baseline):
            raise ConfigError("expected an encoder or a baseline")


class SimilarNames:
    """Runs experiments of kind ``similar_names``."""

    def check(self, experiment: Experiment) -> None:
        """Refuse settings, sets, inputs and variants that are not known."""
        settings = parse_settings(experiment, SimilarNameSettings)
        check_names("sets", experiment.sets, SETS)
        check_names("settings", [settings.kb, settings.texts], [*experiment.inputs])
        check_arms(experiment, filter(None, _encoders(experiment).values()))

    def small(self, experiment: Experiment) -> Experiment:
        """Return the experiment at the size of toy data."""
        return experiment.smaller({"n_pairs": 20, "n_negatives": 2, "dim": 4}, {}, n_seeds=2)

    def run(self, job: ExperimentJob) -> None:
        """Answer all queries by every arm."""
        results, encoders = job.results(), _encoders(job.experiment)
        check_same_start(job, encoders)
        settings = parse_settings(job.experiment, SimilarNameSettings)
        variants = parse_variants(job.experiment, SimilarNameVariant)
        queries: list[SimilarityQuery] = []
        for label, seed in each_arm(job, encoders):
            for name in job.experiment.sets:
                key: dict[str, Any] = {"set": name, "config": label}
                key |= {} if seed is None else {"seed": seed}
                if results.has(key):
                    continue
                queries = queries or _read_queries(job, settings)
                started, names = time.perf_counter(), collect_names(queries)
                scores = _scores(job, variants[label], settings, names, seed or 0)
                row = {**_row(queries, scores), "seconds": round(time.perf_counter() - started, 1)}
                job.add(results, key, row)


def _encoders(experiment: Experiment) -> dict[str, str]:
    variants = parse_variants(experiment, SimilarNameVariant)
    return {label: variant.encoder for label, variant in variants.items()}


def _read_queries(job: ExperimentJob, settings: SimilarNameSettings) -> list[SimilarityQuery]:
    base = KnowledgeBase.open(job.input(settings.kb))
    config = SimilarityConfig(
        same_as=settings.same_as, limit=settings.n_pairs, negatives=settings.n_negatives
    )
    built = build_queries(base, config).queries
    if not built:
        raise InputError("has no two names with enough similar ones", path=base.folder)
    texts = {text for query in built for text in (query.query, query.positive)}
    counts = count_in_text(sorted(texts), job.input(settings.texts))
    return order_by_entities(with_frequencies(built, counts))


def count_in_text(names: Sequence[str], texts: Path) -> Counter[str]:
    """Count names in text, of overlapping ones the leftmost and longest, by normalised key."""
    index, counts, lines = NamesIndex.build(names), Counter[str](), read_text_lines(texts)
    while held := list(islice(lines, _CHUNK)):
        for matches in index.find_many(held):
            counts.update(normalise(match.text) for match in matches)
    return counts


def order_by_entities(queries: Sequence[SimilarityQuery]) -> list[SimilarityQuery]:
    """Put queries of the same entities together, which are no independent evidence."""
    return sorted(queries, key=_entities)


def _entities(query: SimilarityQuery) -> tuple[str, ...]:
    return tuple(sorted(query.concepts))


def _scores(
    job: ExperimentJob,
    variant: SimilarNameVariant,
    settings: SimilarNameSettings,
    names: QueryNames,
    seed: int,
) -> Scores:
    if variant.encoder:
        from biograft_lab.probing.similarity import EncoderSimilarity

        folder = str(find_arm(job, variant.encoder, seed))
        encoder = EncoderSimilarity.from_pretrained(folder, with_entities=variant.with_entities)
        return encoder(names)
    if variant.baseline == "lexical":
        return lexical_similarity(names)
    words = variant.baseline.endswith("-words")
    split = ChineseWordTokenizer(names.texts) if words else tokenize
    text = read_training_text(job.input(settings.texts), split=split)
    train = train_sgns if variant.baseline.startswith("sgns") else train_glove
    return train(text, WordVectorConfig(dim=settings.dim))(names)


def _row(queries: Sequence[SimilarityQuery], scores: Scores) -> Row:
    right = judge(scores)
    sizes = Counter(map(_entities, queries))
    parts = {name: np.array(mask, np.bool_) for name, mask in _parts(queries)}
    return {
        "split": "test",
        "n": len(queries),
        "acc@1": 100 * float(right.mean()),
        "of_parts": {
            name: {"n": int(mask.sum()), "acc@1": 100 * float(right[mask].mean())}
            for name, mask in parts.items()
            if mask.any()
        },
        "right": pack_flags(right.tolist()),
        "documents": pack_sizes(sizes.values()),
        "parts": {name: pack_flags(mask.tolist()) for name, mask in parts.items() if mask.any()},
    }


def _parts(queries: Sequence[SimilarityQuery]) -> Iterator[tuple[str, list[bool]]]:
    two = [query.concepts[0] != query.concepts[1] for query in queries]
    rarer = [min(query.frequencies or (0,)) for query in queries]
    yield "D2", [q.same_neighbours and other for q, other in zip(queries, two, strict=True)]
    yield "two entities", two
    yield "frequency 0", [count == 0 for count in rarer]
    yield f"frequency 1-{_FEW}", [0 < count <= _FEW for count in rarer]
    yield f"frequency above {_FEW}", [count > _FEW for count in rarer]
    yield "no shared character", [not {*q.query} & {*q.positive} for q in queries]
