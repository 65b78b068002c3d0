"""Contribution of each test document to the main metric of a fine-tuning run, from its predictions.

A metric such as F1 is a ratio of sums over documents: 2 TP to predicted and gold entities; accuracy
is that of right answers to questions. With the numerator and the denominator of every document, two
arms are compared by a bootstrap over documents and seeds (``metrics.crossed_ratio_bootstrap``).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from biograft.errors import ConfigError
from biograft.text.documents import Document
from biograft.text.formats import read_documents
from biograft.text.tasks.registry import RankingExample

Pair = tuple[int, int]
"""Numerator and denominator."""
BIGRAMS = "bigram overlap"
"""The arm of ranking tasks that knows nothing but the characters of question and answers."""
_TOLERANCE = 1e-9


def count_documents(
    task: str, config: Any, examples: Sequence[Any], predictions: Path, reported: float
) -> list[Pair]:
    """Return the pair of each test example, whose ratio is the reported metric."""
    pairs = list(_COUNTERS[task](config, examples, predictions))
    numerator, denominator = (sum(pair[k] for pair in pairs) for k in (0, 1))
    if abs(numerator - reported * denominator) > _TOLERANCE * max(1, denominator):
        raise ConfigError(
            f"{predictions}: the documents have {numerator} of {denominator}, but the result is "
            f"{reported:.6f}"
        )
    return pairs


def _entities(config: Any, examples: Sequence[Any], predictions: Path) -> Iterator[Pair]:
    """Pairs of F1, by exact span, and by type unless the task ignores types."""
    for gold, predicted in zip(examples, read_documents(predictions, "jsonl"), strict=True):
        expected, found = (_spans(each, config.types) for each in (gold, predicted))
        yield 2 * len(expected & found), len(expected) + len(found)


def _spans(document: Document, types: str) -> set[tuple[int, int, str]]:
    return {(m.start, m.end, "" if types == "ignore" else m.type) for m in document.mentions}


def _pairs_of_texts(config: Any, examples: Sequence[Any], predictions: Path) -> Iterator[Pair]:
    """Pairs of F1 of the label of matching texts."""
    for line in _lines(predictions):
        gold, found = config.positive in line["gold"], config.positive in line["labels"]
        yield 2 * (gold and found), gold + found


def _relations(config: Any, examples: Sequence[Any], predictions: Path) -> Iterator[Pair]:
    """Pairs of micro F1 of all labels that state a relation."""
    for line in _lines(predictions):
        gold, found = (line[key] not in config.negative for key in ("gold", "label"))
        yield 2 * (gold and line["gold"] == line["label"]), gold + found


def _questions(config: Any, examples: Sequence[Any], predictions: Path) -> Iterator[Pair]:
    """Pairs of acc@1 of the questions that count; the others have none."""
    for line in _lines(predictions):
        counts = _is_counted(line["relevance"], config.questions)
        yield counts and line["rank"] == 1, int(counts)


def _is_counted(relevance: Sequence[int], questions: str) -> bool:
    """Whether a question counts: with a right answer, or with exactly one beside wrong ones."""
    n_right = sum(grade > 0 for grade in relevance)
    return n_right > 0 if questions == "answered" else n_right == 1 < len(relevance)


def count_bigrams(examples: Sequence[RankingExample], questions: str) -> list[Pair]:
    """Return the pairs of acc@1 if the answer with most bigrams of the question is chosen.

    Where several share most, the choice is wrong.
    """
    pairs = []
    for example in examples:
        asked = _bigrams(example.query)
        shared = [len(asked & _bigrams(answer.text)) for answer in example.candidates]
        best = max(shared)
        is_right = shared.count(best) == 1 and example.candidates[shared.index(best)].relevance > 0
        counts = _is_counted([answer.relevance for answer in example.candidates], questions)
        pairs.append((int(counts and is_right), int(counts)))
    return pairs


def _bigrams(text: str) -> set[str]:
    return {text[row : row + 2] for row in range(len(text) - 1)}


_COUNTERS = {
    "ner": _entities,
    "matching": _pairs_of_texts,
    "relation": _relations,
    "ranking": _questions,
}


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    with path.open(encoding="utf-8") as file:
        yield from map(json.loads, file)


def pack_pairs(pairs: Sequence[Pair]) -> str:
    """Write the pairs of all documents.

    >>> pack_pairs([(4, 6), (0, 2)])
    '4/6 0/2'
    """
    return " ".join(f"{int(numerator)}/{int(denominator)}" for numerator, denominator in pairs)


def unpack_pairs(packed: str) -> npt.NDArray[np.float64]:
    """Read what ``pack_pairs`` wrote, (documents, 2).

    >>> unpack_pairs("4/6 0/2").tolist()
    [[4.0, 6.0], [0.0, 2.0]]
    """
    return np.array([pair.split("/") for pair in packed.split()], np.float64)
