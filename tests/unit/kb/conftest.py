"""Fixtures for the tests of the store: small stores of JSON lines, and their whole content."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from biograft.kb import BuildConfig, BuildReport, KnowledgeBase, build_store
from biograft.kb.sources import SourceConfig

FILES = ("one.jsonl", "two.jsonl", "three.jsonl", "four.jsonl")
Lines = Sequence[dict[str, Any] | str]


@dataclass(frozen=True)
class Built:
    """A store that was just built."""

    report: BuildReport
    base: KnowledgeBase
    folder: Path


@pytest.fixture
def sources(tmp_path: Path) -> Callable[..., list[Path]]:
    """Write concepts (or raw lines) as files of JSON lines: ``sources([...], [...])``."""

    def write(*contents: Lines) -> list[Path]:
        paths = []
        for name, lines in zip(FILES, contents, strict=False):
            texts = [line if isinstance(line, str) else json.dumps(line) for line in lines]
            paths.append(tmp_path / name)
            paths[-1].write_text("".join(f"{text}\n" for text in texts), encoding="utf-8")
        return paths

    return write


@pytest.fixture
def build(sources: Callable[..., list[Path]], tmp_path: Path) -> Callable[..., Built]:
    """Build a store: ``build([{"id": "A", "name": "a"}], [...], merge="ids")``."""
    n_built = 0

    def of(*contents: Lines, source_options: dict[str, Any] | None = None, **options: Any) -> Built:
        nonlocal n_built
        n_built += 1
        folder = tmp_path / f"kb{n_built}"
        paths = sources(*contents)
        described = [SourceConfig(path=p, format="jsonl", **(source_options or {})) for p in paths]
        report = build_store(BuildConfig(sources=tuple(described), **options), folder)
        return Built(report, KnowledgeBase.open(folder), folder)

    return of


@pytest.fixture
def contents() -> Callable[[KnowledgeBase], list[Any]]:
    """The whole content of a store as one value: concepts in order, relations sorted."""

    def of(base: KnowledgeBase) -> list[Any]:
        return [(base.concept_at(row), sorted(base.outgoing(row))) for row in range(len(base))]

    return of


@pytest.fixture
def random_concepts() -> Callable[..., list[dict[str, Any]]]:
    """Make random concepts with every kind of fact, duplicates and dangling relations included."""
    languages = ("en", "zh", "de")
    kinds = ("preferred", "synonym", "abbreviation", "narrow")

    def make(n: int, seed: int, prefix: str = "C") -> list[dict[str, Any]]:
        rng = random.Random(seed)
        ids = [f"{prefix}{k}" for k in range(n)]

        def text() -> str:
            words = rng.choices(["acute", "heart", "病", "Straße", "β-2", "pain", "x"], k=3)
            return " ".join(words) + f" {rng.randrange(2 * n)}"

        def name() -> dict[str, str]:
            return {
                "text": text(),
                "language": rng.choice(languages),
                "kind": rng.choice(kinds),
                "source": rng.choice(["MSH", "ICD", "FMA"]),
            }

        return [
            {
                "id": concept,
                "names": [name() for _ in range(rng.randrange(5))],
                "definitions": [{"text": text(), "source": "MSH"}] * rng.randrange(3),
                "types": [
                    {"type": f"T{k}", "label": f"type {k}", "tree": f"A{k}"}
                    for k in rng.sample(range(4), rng.randrange(3))
                ],
                "ids": [
                    {"id": f"X:{rng.randrange(n)}", "kind": rng.choice(["xref", "alternate"])}
                    for _ in range(rng.randrange(3))
                ],
                "relations": [
                    {
                        "relation": rng.choice(["is-a", "treats"]),
                        "source": "MSH",
                        "tail": rng.choice([*ids, "unknown"]),
                    }
                    for _ in range(rng.randrange(4))
                ],
            }
            for concept in rng.sample(ids, n)
        ]

    return make
