"""Statistics of task examples: labels, lengths, chance level, and overlap of two sets (leakage)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Hashable, Iterable, Sequence
from dataclasses import asdict, dataclass
from math import comb
from typing import Any, TypeAlias

from biograft.errors import ConfigError
from biograft.kb import KnowledgeBase
from biograft.text.documents import Document
from biograft.text.tasks.registry import (
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
    """Return the most frequent answer and the ratio of examples that have it.

    An answer is the set of labels of an example; of equally frequent ones, the first in order.
    """
    counts = Counter(tuple(sorted(labels_of(example))) for example in examples)
    if not counts:
        return (), 0.0
    answer, n = min(counts.items(), key=lambda item: (-item[1], item[0]))
    return answer, n / counts.total()


def first_right(example: RankingExample) -> float:
    """Return the probability that the first of a random order is an answer."""
    n = len(example.candidates)
    return example.n_relevant / n if n else 0.0


def reciprocal_rank(example: RankingExample) -> float:
    """Return the expected reciprocal rank of the first answer in a random order.

    The first of r answers among n candidates has rank k in C(n - k, r - 1) of C(n, r) orders.

    >>> from biograft.text.tasks.registry import Answer
    >>> reciprocal_rank(RankingExample("q", (Answer("a", 1), Answer("b"))))
    0.75
    """
    n, r = len(example.candidates), example.n_relevant
    if not r:
        return 0.0
    return sum(comb(n - k, r - 1) / k for k in range(1, n - r + 2)) / comb(n, r)


def random_ranking(examples: Sequence[RankingExample]) -> dict[str, float]:
    """Return the mean metrics of a random order; a question without an answer scores 0."""
    n = max(len(examples), 1)
    return {
        "acc@1": sum(map(first_right, examples)) / n,
        "mrr": sum(map(reciprocal_rank, examples)) / n,
    }


Question: TypeAlias = Hashable


@dataclass(frozen=True, slots=True)
class Overlap:
    """The overlap of a set (``b``) with another (``a``); texts are compared exactly."""

    n_examples: int
    """Examples of b."""
    n_seen: int
    """Examples of b whose texts (and mentions) are an example of a; pairs in either order."""
    n_contradicted: int
    """Seen examples with another label (or other relevances) in a."""
    n_texts: int
    """Distinct texts of b."""
    n_texts_seen: int
    """Distinct texts of b that occur in any example of a."""
    n_judgements_seen: int
    """For rankings: pairs of question and answer of b that occur in a."""

    def to_json(self) -> dict[str, int]:
        """Return all counts as plain values."""
        return asdict(self)


def overlap(a: Sequence[Example], b: Sequence[Example]) -> Overlap:
    """Count what of ``b`` (such as test) also occurs in ``a`` (such as train).

    Args:
        a: Examples, such as those of train.
        b: Examples that are looked for there, such as those of test.
    """
    answers: dict[Question, set[Hashable]] = {}
    for example in a:
        answers.setdefault(question_of(example), set()).add(_gold_answer(example))
    seen = [example for example in b if question_of(example) in answers]
    known = {text for example in a for text in texts_of(example)}
    texts = {text for example in b for text in texts_of(example)}
    judged = {pair for example in a for pair in _judged_pairs(example)}
    return Overlap(
        n_examples=len(b),
        n_seen=len(seen),
        n_contradicted=sum(
            answers[question_of(example)] != {_gold_answer(example)} for example in seen
        ),
        n_texts=len(texts),
        n_texts_seen=len(texts & known),
        n_judgements_seen=sum(pair in judged for example in b for pair in _judged_pairs(example)),
    )


def question_of(example: Example) -> Question:
    """Return an example without its answer: equal for examples that ask the same."""
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


def _gold_answer(example: Example) -> Hashable:
    if isinstance(example, RankingExample):
        return frozenset((answer.text, answer.relevance) for answer in example.candidates)
    return frozenset(labels_of(example))


def _judged_pairs(example: Example) -> list[tuple[str, str]]:
    if not isinstance(example, RankingExample):
        return []
    return [(example.query, answer.text) for answer in example.candidates]


def count_known(
    examples: Iterable[Document | RelationExample], kb: KnowledgeBase, table: Collection[str] = ()
) -> dict[str, int]:
    """Count the mentions that a knowledge base, and the entity table of a model, has by name.

    Args:
        examples: Documents with mentions, or relations.
        kb: The knowledge base.
        table: Ids of the concepts in the table.

    Returns:
        ``mentions``, ``in_kb`` and ``in_table`` (KeBioLM, Table 1).

    Raises:
        ConfigError: The mentions are replaced by placeholders, as BLURB does in relations.
    """
    counts = Counter(mentions=0, in_kb=0, in_table=0)
    known: dict[str, set[str]] = {}
    for example in examples:
        mentions = (
            (example.first, example.second)
            if isinstance(example, RelationExample)
            else example.mentions
        )
        for mention in mentions:
            if (text := mention.text).startswith("@") and text.endswith("$"):
                raise ConfigError(f"mentions are replaced by {text}; read the original corpus")
            if text not in known:
                known[text] = {match.concept for match in kb.find(text)}
            counts["mentions"] += 1
            counts["in_kb"] += bool(known[text])
            counts["in_table"] += not known[text].isdisjoint(table)
    return dict(counts)


@dataclass(frozen=True, slots=True)
class Summary:
    """Counts of a set of examples, and its chance level."""

    kind: str
    """Kind of example."""
    n_examples: int
    """Number of examples."""
    n_unlabelled: int
    """Number of examples without a label."""
    labels: dict[str, int]
    """The count of each label (of rankings: each relevance), the most frequent first."""
    n_repeated: int
    """Examples with the question of an earlier one."""
    max_length: int
    """Characters of the longest text."""
    mean_length: float
    """Characters of a text, on average."""
    chance: dict[str, Any]
    """Scores of constant or random answers, by metric."""
    extra: dict[str, int]
    """Counts specific to the kind of example."""

    def to_json(self) -> dict[str, Any]:
        """Return all counts as plain values."""
        value = asdict(self)
        extra = value.pop("extra")
        return {**value, "mean_length": round(self.mean_length, 1), **extra}


def summarise(examples: Sequence[Example]) -> Summary:
    """Compute the statistics of a set of examples of one kind."""
    lengths = [len(text) for example in examples for text in texts_of(example)]
    return Summary(
        kind=kind_of(examples[0]) if examples else "",
        n_examples=len(examples),
        n_unlabelled=sum(not _is_labelled(example) for example in examples),
        labels=count_labels(examples),
        n_repeated=len(examples) - len(set(map(question_of, examples))),
        max_length=max(lengths, default=0),
        mean_length=sum(lengths) / max(len(lengths), 1),
        chance=chance_of(examples),
        extra=_extra(examples),
    )


def count_labels(examples: Sequence[Example]) -> dict[str, int]:
    """Count the labels, the most frequent first, then by name."""
    counts = Counter(label for example in examples for label in labels_of(example))
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))


def chance_of(examples: Sequence[Example]) -> dict[str, Any]:
    """Return the chance level: the accuracy of the majority class, or metrics of a random order.

    Rankings are measured over all questions, and over the decidable ones.
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
    answer, ratio = majority(labelled)
    return {"accuracy": ratio, "answer": list(answer)}


def _is_labelled(example: Example) -> bool:
    return bool(labels_of(example)) or getattr(example, "multi", False)


def _extra(examples: Sequence[Example]) -> dict[str, int]:
    rankings = [example for example in examples if isinstance(example, RankingExample)]
    if rankings:
        sizes = [len(example.candidates) for example in rankings]
        return {
            "n_candidates": sum(sizes),
            "max_candidates": max(sizes),
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
            "n_with_gaps": sum(bool(mention.fragments) for mention in both),
            "n_overlapping": sum(overlapping),
        }
    if any(getattr(example, "multi", False) for example in examples):
        return {"n_without_label": sum(not labels_of(example) for example in examples)}
    return {}


def _overlap(example: RelationExample) -> bool:
    first, second = example.first, example.second
    return first.start < second.end and second.start < first.end
