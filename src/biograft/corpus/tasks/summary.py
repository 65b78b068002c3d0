"""What is reached without reading: the level above which a model has learned anything."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import asdict, dataclass
from math import comb
from typing import Any, TypeAlias

from biograft.corpus.tasks.records import (
    ClassExample,
    Example,
    PairExample,
    RankingExample,
    RelationExample,
    kind_of,
    labels_of,
    texts_of,
)


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


Question: TypeAlias = Hashable


@dataclass(frozen=True, slots=True)
class Overlap:
    """How much of a set (``b``) stands in another (``a``) too; texts are compared exactly."""

    n_examples: int
    """Examples of b."""
    n_seen: int
    """Of these, what a asks too: the same texts (and mentions); the order of a pair is naught."""
    n_contradicted: int
    """Of those seen, the ones that have another label (or other judgements) in a."""
    n_texts: int
    """Different texts of b."""
    n_texts_seen: int
    """Of these, the ones that stand in a, in whatever example."""
    n_judgements_seen: int
    """For rankings: pairs of question and answer of b that stand in a."""

    def to_json(self) -> dict[str, int]:
        """Give all figures as plain values."""
        return asdict(self)


def overlap(a: Sequence[Example], b: Sequence[Example]) -> Overlap:
    """Count what of ``b`` (such as a test split) stands in ``a`` (such as train) too."""
    answers: dict[Question, set[Hashable]] = {}
    for example in a:
        answers.setdefault(asked(example), set()).add(_answered(example))
    seen = [example for example in b if asked(example) in answers]
    known = {text for example in a for text in texts_of(example)}
    texts = {text for example in b for text in texts_of(example)}
    judged = {pair for example in a for pair in _judgements(example)}
    return Overlap(
        n_examples=len(b),
        n_seen=len(seen),
        n_contradicted=sum(answers[asked(example)] != {_answered(example)} for example in seen),
        n_texts=len(texts),
        n_texts_seen=len(texts & known),
        n_judgements_seen=sum(pair in judged for example in b for pair in _judgements(example)),
    )


def asked(example: Example) -> Question:
    """Give what an example asks, without its answer: equal for two that ask the same."""
    match example:
        case PairExample():
            return frozenset((example.first, example.second))
        case ClassExample():
            return (example.text, example.context)
        case RankingExample():
            return (example.query, frozenset(answer.text for answer in example.candidates))
        case RelationExample():
            first, second = example.first, example.second
            spans = frozenset(((first.start, first.end), (second.start, second.end)))
            return (example.text, spans)


def n_repeated(questions: Sequence[Question]) -> int:
    """Count the questions that were asked before."""
    return Counter(questions).total() - len(set(questions))


def _answered(example: Example) -> Hashable:
    if isinstance(example, RankingExample):
        return frozenset((answer.text, answer.relevance) for answer in example.candidates)
    return frozenset(labels_of(example))


def _judgements(example: Example) -> list[tuple[str, str]]:
    if not isinstance(example, RankingExample):
        return []
    return [(example.query, answer.text) for answer in example.candidates]


@dataclass(frozen=True, slots=True)
class Summary:
    """Counts of a set of examples, and what chance reaches on it."""

    kind: str
    n_examples: int
    n_unlabelled: int
    labels: dict[str, int]
    """How often each label stands, the most frequent first; of rankings, each relevance."""
    n_repeated: int
    """Examples that ask what an earlier one asked."""
    longest: int
    """Characters of the longest text."""
    mean_length: float
    """Characters of a text, on average."""
    chance: dict[str, Any]
    extra: dict[str, int]
    """Counts that only this kind of example has."""

    def to_json(self) -> dict[str, Any]:
        """Give all figures as plain values."""
        return {
            "kind": self.kind,
            "n_examples": self.n_examples,
            "n_unlabelled": self.n_unlabelled,
            "labels": self.labels,
            "n_repeated": self.n_repeated,
            "longest": self.longest,
            "mean_length": round(self.mean_length, 1),
            "chance": self.chance,
            **self.extra,
        }


def summarise(examples: Sequence[Example]) -> Summary:
    """Count what a set of examples (of one kind) holds."""
    lengths = [len(text) for example in examples for text in texts_of(example)]
    return Summary(
        kind=kind_of(examples[0]) if examples else "",
        n_examples=len(examples),
        n_unlabelled=sum(not _is_labelled(example) for example in examples),
        labels=count_labels(examples),
        n_repeated=n_repeated([asked(example) for example in examples]),
        longest=max(lengths, default=0),
        mean_length=sum(lengths) / max(len(lengths), 1),
        chance=chance_of(examples),
        extra=_extra(examples),
    )


def count_labels(examples: Sequence[Example]) -> dict[str, int]:
    """Count the labels, the most frequent first, then by name."""
    counts = Counter(label for example in examples for label in labels_of(example))
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))


def chance_of(examples: Sequence[Example]) -> dict[str, Any]:
    """Say what chance reaches: of classes the majority's accuracy, of rankings a random order.

    Rankings are measured twice: over all questions, and over those where an order can be right
    or wrong.
    """
    rankings = [example for example in examples if isinstance(example, RankingExample)]
    if rankings:
        decidable = random_ranking([example for example in rankings if example.decidable])
        return random_ranking(rankings) | {
            f"{name} (decidable)": value for name, value in decidable.items()
        }
    labelled = [example for example in examples if _is_labelled(example)]
    if not labelled:
        return {}
    answer, share = majority(labelled)
    return {"accuracy": share, "answer": list(answer)}


def _is_labelled(example: Example) -> bool:
    return bool(labels_of(example)) or getattr(example, "multi", False)


def _extra(examples: Sequence[Example]) -> dict[str, int]:
    rankings = [example for example in examples if isinstance(example, RankingExample)]
    if rankings:
        sizes = [len(example.candidates) for example in rankings]
        return {
            "n_candidates": sum(sizes),
            "most_candidates": max(sizes),
            "n_without_answer": sum(not example.n_relevant for example in rankings),
            "n_with_one_answer": sum(example.n_relevant == 1 for example in rankings),
            "n_decidable": sum(example.decidable for example in rankings),
        }
    relations = [example for example in examples if isinstance(example, RelationExample)]
    if relations:
        both = [mention for example in relations for mention in (example.first, example.second)]
        overlapping = (_overlap(example) for example in relations)
        return {
            "n_documents": len({example.document for example in relations} - {""}),
            "n_with_gaps": sum(bool(mention.pieces) for mention in both),
            "n_overlapping": sum(overlapping),
        }
    if any(getattr(example, "multi", False) for example in examples):
        return {"n_without_label": sum(not labels_of(example) for example in examples)}
    return {}


def _overlap(example: RelationExample) -> bool:
    first, second = example.first, example.second
    return first.start < second.end and second.start < first.end
