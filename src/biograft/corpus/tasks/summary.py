"""What a task file holds, before anything is learned from it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from biograft.corpus.tasks.chance import majority, random_ranking
from biograft.corpus.tasks.leakage import asked, n_repeated
from biograft.corpus.tasks.records import (
    Example,
    RankingExample,
    RelationExample,
    kind_of,
    labels_of,
    texts_of,
)


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
