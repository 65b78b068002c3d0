"""How often names were found in annotated text: the queries of D3."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from biograft.corpus.shards import Shards
from biograft.probing.similarity.queries import SimilarityQuery
from biograft.progress import Progress
from biograft.text import normalise


def count_names(folder: Path, progress: Progress | None = None) -> Counter[str]:
    """Count the spans of annotated text by the normalised key of what stands there."""
    shards = Shards.open(folder)
    found: Counter[str] = Counter()
    for n, document in enumerate(shards, 1):
        found.update(document.text[span.start : span.end] for span in document.spans)
        if progress:
            progress.advance(1, n / max(len(shards), 1))
    counts: Counter[str] = Counter()
    for text, n in found.items():
        counts[normalise(text)] += n
    return counts


def with_frequencies(
    queries: Sequence[SimilarityQuery], counts: Counter[str]
) -> list[SimilarityQuery]:
    """Note with queries how often each of their two names was found."""
    return [
        replace(
            query,
            frequencies=(counts[normalise(query.query)], counts[normalise(query.positive)]),
        )
        for query in queries
    ]
