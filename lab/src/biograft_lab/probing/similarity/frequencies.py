"""Frequencies of names in annotated text, which tell the rare ones (D3)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from biograft.kb.names import normalise
from biograft.progress import Progress
from biograft.text.shards import Shards
from biograft_lab.probing.similarity.queries import SimilarityQuery


def count_names(folder: Path, progress: Progress | None = None) -> Counter[str]:
    """Count the spans of annotated text by normalised key."""
    shards = Shards.open(folder)
    counts_in_text: Counter[str] = Counter()
    for n, document in enumerate(shards, 1):
        counts_in_text.update(document.text[span.start : span.end] for span in document.spans)
        if progress:
            progress.advance(1, n / max(len(shards), 1))
    counts: Counter[str] = Counter()
    for text, n in counts_in_text.items():
        counts[normalise(text)] += n
    return counts


def with_frequencies(
    queries: Sequence[SimilarityQuery], counts: Counter[str]
) -> list[SimilarityQuery]:
    """Add the frequencies of query and positive to queries."""
    return [
        replace(
            query,
            frequencies=(counts[normalise(query.query)], counts[normalise(query.positive)]),
        )
        for query in queries
    ]
