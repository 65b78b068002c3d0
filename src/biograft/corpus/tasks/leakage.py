"""What two splits have in common: a model that saw it in one is not tested by it in the other."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import asdict, dataclass
from typing import TypeAlias

from biograft.corpus.tasks.records import (
    ClassExample,
    Example,
    PairExample,
    RankingExample,
    RelationExample,
    labels_of,
    texts_of,
)

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
