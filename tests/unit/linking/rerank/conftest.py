"""A store in which one name has two meanings, mentions that only their text decides, a tiny model.

``cold`` is an illness among words of illness, a temperature among words of weather, and neither
among words of war.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from biograft.kb import BuildConfig, KnowledgeBase, build_store
from biograft.kb.sources import SourceConfig
from biograft.linking import Linker, RerankConfig, RerankTraining
from biograft.training.linkers import collect_examples, train_reranker

CONCEPTS: list[dict[str, Any]] = [
    {
        "id": "ILL",
        "name": "Cold",
        "names": ["common cold", "coryza", "acute rhinitis"],
        "type": "disease",
        "definition": "An illness with cough and fever that passes within days.",
    },
    {"id": "TEMP", "name": "Cold Temperature", "names": ["cold"], "type": "finding"},
    {"id": "HEAT", "name": "Heat"},
]
SIGNS = ("fever", "cough", "sneezing", "headache", "chills")
WEATHER = ("winter", "snow", "ice", "wind", "frost")
WAR = ("war", "soviet", "spies", "treaty", "bombs")
GOLD = {SIGNS: frozenset({"ILL"}), WEATHER: frozenset({"TEMP"}), WAR: frozenset()}


@dataclass(frozen=True)
class Query:
    """The query of a mention, as in an evaluation."""

    context: str
    gold: frozenset[str]
    parts: tuple[str, ...] = ("cold",)
    start: int | None = None
    end: int | None = None
    document: str = ""


def make_queries(kinds: Sequence[tuple[str, ...]] = (SIGNS, WEATHER, WAR)) -> list[Query]:
    """Make a mention for each two words of a kind; each stands in a document of its own."""
    made = []
    for kind in kinds:
        for first, second in itertools.permutations(kind, 2):
            context = f"{first} and cold with {second}"
            start = context.index("cold")
            name = f"{first} {second}"
            made.append(Query(context, GOLD[kind], start=start, end=start + 4, document=name))
    return made


class Bench(NamedTuple):
    """Everything that training needs."""

    kb: KnowledgeBase
    linker: Linker
    queries: list[Query]
    config: Callable[..., RerankConfig]


@pytest.fixture(scope="session")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Bench:
    """Make it once: ``bench.config(n_candidates=2, steps=5)`` describes a small training."""
    from tiny_models import tiny_encoder_folder

    folder = tmp_path_factory.mktemp("rerank")
    source = folder / "kb.jsonl"
    source.write_text("".join(f"{json.dumps(concept)}\n" for concept in CONCEPTS))
    build_store(BuildConfig(sources=(SourceConfig(path=source, format="jsonl"),)), folder / "kb")
    kb = KnowledgeBase.open(folder / "kb")
    texts = [str(value) for concept in CONCEPTS for value in concept.values()]
    words = [*texts, *(query.context for query in make_queries()), "{ } ( ) ; none of these"]
    plain = RerankConfig(encoder=str(tiny_encoder_folder(folder / "encoder", words)))

    def config(**values: Any) -> RerankConfig:
        of_training = {key: value for key, value in values.items() if hasattr(plain.training, key)}
        rest = {key: value for key, value in values.items() if key not in of_training}
        usual = {"epochs": 14, "batch_size": 8, "device_batch_size": 0, "learning_rate": 1e-2}
        training = RerankTraining(**{"precision": "fp32", **usual, **of_training})
        return replace(plain, **{"max_length": 48, "training": training, **rest})

    return Bench(kb, Linker.open(kb), make_queries(), config)


@pytest.fixture(scope="session")
def trained(bench: Bench, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Train once on four fifths of the mentions; give the folder of the run."""
    run = tmp_path_factory.mktemp("trained") / "run"
    config = bench.config(held_out=0.2)
    data = collect_examples(bench.kb, bench.linker, bench.queries, config)
    train_reranker(data, config, run)
    return run
