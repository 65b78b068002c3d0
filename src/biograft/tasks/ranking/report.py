"""How well answers are ranked: over questions, ties against the model, beside chance."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from biograft.corpus.tasks.chance import random_ranking
from biograft.corpus.tasks.records import RankingExample
from biograft.errors import ConfigError


@dataclass(frozen=True, slots=True)
class RankingReport:
    """The rank of the first right answer of each question measured, and what was left out."""

    ranks: tuple[int, ...]
    n_tied: int
    """Questions whose best right answer has the same score as a wrong one."""
    n_without_wrong: int
    """Questions measured that cannot be answered wrongly: all their answers are right."""
    left_out: dict[str, int]
    chance: dict[str, float]

    @property
    def accuracy(self) -> float:
        """The share of questions that have a right answer first (acc@1)."""
        return sum(rank == 1 for rank in self.ranks) / len(self.ranks)

    @property
    def reciprocal_rank(self) -> float:
        """The mean over questions of 1 / rank of the first right answer (MRR)."""
        return sum(1 / rank for rank in self.ranks) / len(self.ranks)

    def to_json(self) -> dict[str, Any]:
        """Give all figures as plain values."""
        return {
            "acc@1": self.accuracy,
            "mrr": self.reciprocal_rank,
            "n_questions": len(self.ranks),
            "n_without_wrong": self.n_without_wrong,
            "left_out": self.left_out,
            "ties": "against the model",
            "n_tied": self.n_tied,
            "chance": self.chance,
        }


def ranking_report(
    examples: Sequence[RankingExample], scores: Sequence[Sequence[float]], questions: str
) -> RankingReport:
    """Rank the answers of each question by their scores, of equal ones the wrong ones first."""
    if len(examples) != len(scores):
        raise ConfigError(f"{len(scores)} answers to {len(examples)} questions")
    measured = [row for row, example in enumerate(examples) if not why_not(example, questions)]
    if not measured:
        raise ConfigError(f"ranking: none of {len(examples)} questions can be measured")
    left_out: dict[str, int] = {}
    for reason in (why_not(example, questions) for example in examples):
        if reason:
            left_out[reason] = left_out.get(reason, 0) + 1
    ranked = [rank_of(examples[row], scores[row]) for row in measured]
    kept = [examples[row] for row in measured]
    return RankingReport(
        ranks=tuple(rank for rank, _ in ranked),
        n_tied=sum(tied for _, tied in ranked),
        n_without_wrong=sum(not example.decidable for example in kept),
        left_out=left_out,
        chance=random_ranking(kept),
    )


def why_not(example: RankingExample, questions: str) -> str:
    """Say why a question is neither learned from nor measured; empty if it is."""
    if not example.n_relevant:
        return "questions without a right answer"
    if questions == "single" and example.n_relevant > 1:
        return "questions with several right answers"
    if questions == "single" and not example.decidable:
        return "questions without a wrong answer"
    return ""


def rank_of(example: RankingExample, scores: Sequence[float]) -> tuple[int, bool]:
    """Give the rank of a question's best right answer, and whether a wrong one equals it."""
    pairs = list(zip(example.candidates, scores, strict=True))
    best = max(score for answer, score in pairs if answer.relevance > 0)
    wrong = [score for answer, score in pairs if answer.relevance <= 0]
    return 1 + sum(score >= best for score in wrong), best in wrong
