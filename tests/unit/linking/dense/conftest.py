"""Fixtures for the dense index: small stores, small encoders, and what brute force finds."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from biograft.kb import BuildConfig, KnowledgeBase, build_store
from biograft.kb.sources import SourceConfig
from biograft.linking import RowHits
from biograft.models import TextEncoder

NAMES = [
    ["heart attack", "Heart Attack", "myocardial infarction", {"text": "心脏病", "language": "zh"}],
    ["flu", "influenza", "acute viral influenza of the airways"],
    ["FLU", "common cold"],
    ["cold"],
    ["heart failure", "failure of the heart", {"text": "insuffisance", "language": "fr"}],
]
WORDS = [name if isinstance(name, str) else name["text"] for names in NAMES for name in names]


@pytest.fixture
def make_kb(tmp_path: Path) -> Callable[..., KnowledgeBase]:
    """Build a store of concepts with these names: ``make_kb([["flu", "influenza"], ["cold"]])``."""
    n_made = 0

    def make(names: Sequence[Sequence[Any]] = NAMES) -> KnowledgeBase:
        nonlocal n_made
        n_made += 1
        source = tmp_path / f"source{n_made}.jsonl"
        concepts = [
            {"id": f"C{row}", "name": first, "names": rest}
            for row, (first, *rest) in enumerate(names)
        ]
        source.write_text("".join(json.dumps(concept) + "\n" for concept in concepts))
        folder = tmp_path / f"kb{n_made}"
        config = BuildConfig(sources=(SourceConfig(path=source, format="jsonl"),))
        build_store(config, folder)
        return KnowledgeBase.open(folder)

    return make


@pytest.fixture
def encoder(tmp_path: Path) -> TextEncoder:
    """Give a small encoder that knows the words of the stores."""
    from tiny_models import tiny_encoder_folder

    return TextEncoder.from_pretrained(tiny_encoder_folder(tmp_path / "tiny", WORDS))


@pytest.fixture
def brute_force() -> Callable[..., RowHits]:
    """Compare all pairs, query by query: what exact search must find."""

    def find(vectors: np.ndarray, queries: np.ndarray, k: int) -> RowHits:
        rows, scores = np.full((len(queries), k), -1), np.full((len(queries), k), -np.inf)
        for index, query in enumerate(queries.astype(np.float64)):
            exact = [np.float32(np.dot(query, vector)) for vector in vectors.astype(np.float64)]
            best = sorted(range(len(vectors)), key=lambda row: (-exact[row], row))[:k]
            rows[index, : len(best)] = best
            scores[index, : len(best)] = [exact[row] for row in best]
        return RowHits(rows, scores.astype(np.float32))

    return find
