"""ROUGE of generated texts by characters, as IMCS-V2 computes it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise, product
from typing import Any

import numpy as np


def rouge_scores(text: str, references: Sequence[str]) -> dict[str, float]:
    """Return ROUGE-1, ROUGE-2 and ROUGE-L (F1), each the mean over the references.

    Characters are the words, and of equal n-grams one counts, as in the package ``rouge``, with
    which the benchmark evaluates. ROUGE-L counts the different characters of the longest common
    subsequences of any two sentences, which end at a full stop (``.``).

    Args:
        text: Generated text.
        references: Right texts.

    >>> rouge_scores("有发热", ["有发热"])["rouge-l"]
    1.0
    """
    scores: dict[str, list[float]] = {"rouge-1": [], "rouge-2": [], "rouge-l": []}
    for reference in references:
        parts = [["".join(s.split()) for s in each.split(".")] for each in (text, reference)]
        one, two = ("".join(each) for each in parts)
        common = {c for pair in product(*reversed(parts)) for c in _common_subsequence(*pair)}
        overlaps: tuple[tuple[set[Any], ...], ...] = (
            ({*one}, {*two}, {*one} & {*two}),
            (pairs := {*pairwise(one)}, others := {*pairwise(two)}, pairs & others),
            ({*one}, {*two}, common),
        )
        for found, (mine, gold, shared) in zip(scores.values(), overlaps, strict=True):
            found.append(2 * len(shared) / ((len(mine) + len(gold)) or 1))
    return {name: sum(found) / len(references) for name, found in scores.items()}


def _common_subsequence(one: str, two: str) -> Iterator[str]:
    """Yield the longest common subsequence backwards; of equal ones, that of the package."""
    right = np.array([*two], np.str_)
    table = np.zeros((len(one) + 1, len(two) + 1), np.int32)
    for row, character in enumerate(one, 1):
        matched = np.maximum(table[row - 1, 1:], table[row - 1, :-1] + (right == character))
        table[row, 1:] = np.maximum.accumulate(matched)
    i, j = len(one), len(two)
    while i and j:
        if one[i - 1] == two[j - 1]:
            yield one[i - 1]
            i, j = i - 1, j - 1
        elif table[i - 1, j] > table[i, j - 1]:
            i -= 1
        else:
            j -= 1
