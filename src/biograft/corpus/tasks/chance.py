"""What is reached without reading: the level above which a model has learned anything."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from math import comb

from biograft.corpus.tasks.records import Example, RankingExample, labels_of


def majority(examples: Sequence[Example]) -> tuple[tuple[str, ...], float]:
    """Give the most frequent answer and the share of examples it is right for.

    An answer is all labels of an example together; of equals, the first in order.
    """
    counts = Counter(tuple(sorted(labels_of(example))) for example in examples)
    if not counts:
        return (), 0.0
    answer, n = min(counts.items(), key=lambda item: (-item[1], item[0]))
    return answer, n / counts.total()


def first_right(example: RankingExample) -> float:
    """Give the chance that the first of a random order is an answer."""
    n = len(example.candidates)
    return example.n_relevant / n if n else 0.0


def reciprocal_rank(example: RankingExample) -> float:
    """Give the expected reciprocal rank of the first answer in a random order.

    The first of r answers among n stands at rank k in C(n - k, r - 1) of C(n, r) orders.

    >>> from biograft.corpus.tasks.records import Answer
    >>> reciprocal_rank(RankingExample("q", (Answer("a", 1), Answer("b"))))
    0.75
    """
    n, r = len(example.candidates), example.n_relevant
    if not r:
        return 0.0
    return sum(comb(n - k, r - 1) / k for k in range(1, n - r + 2)) / comb(n, r)


def random_ranking(examples: Sequence[RankingExample]) -> dict[str, float]:
    """Give the means over all questions for a random order; no answer at all scores 0."""
    n = max(len(examples), 1)
    return {
        "acc@1": sum(map(first_right, examples)) / n,
        "mrr": sum(map(reciprocal_rank, examples)) / n,
    }
