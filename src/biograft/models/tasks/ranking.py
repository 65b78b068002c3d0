"""Answer ranking: candidate answers of a question scored by an encoder (cross-encoder).

A model learns from each correct answer together with wrong ones of the same question, by a
pairwise margin loss or a listwise softmax loss, and is measured by acc@1 and MRR.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from biograft.artifacts import new_file
from biograft.errors import ConfigError
from biograft.models import TextEncoder
from biograft.models.tasks.model import LabelNetwork, Predicting
from biograft.models.tasks.task import RankingConfig
from biograft.models.tasks.tokens import SequenceTokenizer, TextSequence
from biograft.text.tasks.registry import RankingExample
from biograft.text.tasks.rows import to_examples
from biograft.text.tasks.summary import random_ranking


@dataclass(frozen=True, slots=True)
class RankingPrediction:
    """The score of each candidate of a question, in their given order."""

    scores: tuple[float, ...]
    """Scores, higher is better."""

    @property
    def order(self) -> tuple[int, ...]:
        """The indices of the candidates, best first; ties in their given order."""
        return tuple(sorted(range(len(self.scores)), key=lambda k: (-self.scores[k], k)))


@dataclass(frozen=True, slots=True)
class AnswerGroup:
    """A correct answer of a question and wrong ones, as sequences."""

    correct: TextSequence
    wrong: tuple[TextSequence, ...]

    @property
    def tokens(self) -> Sequence[int]:
        """The longest sequence."""
        return max((sequence.tokens for sequence in (self.correct, *self.wrong)), key=len)


def pairwise(scores: Tensor, sizes: Sequence[int], margin: float) -> Tensor:
    """Compute the mean over pairs of a correct and a wrong answer of max(0, margin - s+ + s-).

    A sigmoid maps scores to 0 ... 1: without it, larger weights alone would reach the margin.

    Args:
        scores: Scores of groups one after the other, each with its correct answer first.
        sizes: Number of scores in each group.
        margin: Distance that a correct answer should have.
    """
    groups = torch.split(scores.sigmoid(), list(sizes))
    gaps = torch.cat([margin - group[0] + group[1:] for group in groups])
    return gaps.clamp(min=0).mean()


def listwise(scores: Tensor, sizes: Sequence[int]) -> Tensor:
    """Compute the mean over groups of -log p of the correct answer, which is the first.

    Args:
        scores: Scores of groups one after the other, each with its correct answer first.
        sizes: Number of scores in each group.
    """
    groups = nn.utils.rnn.pad_sequence(
        [*torch.split(scores, list(sizes))], batch_first=True, padding_value=-torch.inf
    )
    return -groups.log_softmax(dim=1)[:, 0].mean()


class RankingModel(Predicting[RankingPrediction]):
    """An encoder that scores a question with a candidate answer.

    Args:
        encoder: Encoder, which is trained.
        config: Settings of the task.
        labels: Unused; a ranking has no classes.
    """

    kind = record = "ranking"

    def __init__(
        self, encoder: TextEncoder, config: RankingConfig, labels: tuple[str, ...] = ()
    ) -> None:
        self.config, self.labels = config, labels
        self.texts = SequenceTokenizer(encoder)
        self.network = LabelNetwork(encoder, ("relevant",), config.dropout)

    @classmethod
    def from_examples(
        cls, encoder: TextEncoder, config: RankingConfig, examples: Sequence[RankingExample]
    ) -> RankingModel:
        """Create an untrained model; the examples must have questions to learn from.

        Args:
            encoder: Encoder, which is trained.
            config: Settings of the task.
            examples: Training questions.
        """
        if not any(e.decidable and not reason_left_out(e, config.questions) for e in examples):
            raise ConfigError(
                f"ranking: none of {len(examples)} questions (config.questions = "
                f"{config.questions!r}) has both correct and wrong answers"
            )
        return cls(encoder, config)

    def settings(self) -> Mapping[str, Any]:
        """Return nothing: labels, configuration and weights are all."""
        return {}

    def training_items(
        self, examples: Sequence[RankingExample]
    ) -> tuple[list[AnswerGroup], Counter[str]]:
        """Return one group for each correct answer; questions without both kinds are counted."""
        lost: Counter[str] = Counter()
        usable = []
        for example in examples:
            reason = reason_left_out(example, self.config.questions)
            if not reason and not example.decidable:
                reason = "questions without a wrong answer"
            if reason:
                lost[reason] += 1
            else:
                usable.append(example)
        sequences = self._tokenize(usable)
        items: list[AnswerGroup] = []
        start = 0
        for example in usable:
            own = sequences[start : start + len(example.candidates)]
            start += len(own)
            judged = [*zip(example.candidates, own, strict=True)]
            wrong = tuple(sequence for candidate, sequence in judged if candidate.relevance <= 0)
            items += [
                AnswerGroup(sequence, wrong)
                for candidate, sequence in judged
                if candidate.relevance > 0
            ]
        return items, lost + self.texts.count_cut(sequences)

    def sample_epoch(
        self, items: Sequence[AnswerGroup], rng: np.random.Generator
    ) -> Sequence[AnswerGroup]:
        """Sample ``config.negatives`` wrong answers for each group, or take all there are."""
        n = self.config.negatives
        return [
            item
            if not 0 < n < len(item.wrong)
            else replace(
                item, wrong=tuple(item.wrong[k] for k in rng.choice(len(item.wrong), n, False))
            )
            for item in items
        ]

    def loss(
        self, network: nn.Module, items: Sequence[AnswerGroup]
    ) -> tuple[Tensor, dict[str, float]]:
        """Compute the loss of a batch of answer groups."""
        sequences = [sequence for item in items for sequence in (item.correct, *item.wrong)]
        (scores,) = network(self.network.collate(sequences))
        sizes = [1 + len(item.wrong) for item in items]
        if self.config.loss == "listwise":
            return listwise(scores[:, 0], sizes), {}
        return pairwise(scores[:, 0], sizes, self.config.margin), {}

    def count(self, items: Sequence[AnswerGroup]) -> int:
        """Count the groups, or pairs, that the loss of a batch is a mean over."""
        if self.config.loss == "listwise":
            return len(items)
        return sum(len(item.wrong) for item in items)

    def predict(self, examples: Any, precision: str = "auto") -> list[RankingPrediction]:
        """Score the candidates of each question."""
        examples = to_examples(self.record, examples)
        sequences = self._tokenize(examples)
        scores = np.zeros(len(sequences), np.float64)
        for row, (score,) in self.network.predict(sequences, precision):
            scores[row] = float(score[0])
        ends = np.cumsum([len(example.candidates) for example in examples])
        return [RankingPrediction(tuple(own.tolist())) for own in np.split(scores, ends)[:-1]]

    def report(
        self, examples: Sequence[RankingExample], predictions: Sequence[RankingPrediction]
    ) -> RankingReport:
        """Rank by score; ties count against the model."""
        scores = [each.scores for each in predictions]
        return ranking_report(examples, scores, self.config.questions)

    def write(
        self,
        examples: Sequence[RankingExample],
        predictions: Sequence[RankingPrediction],
        path: Path,
    ) -> None:
        """Write one line for each question; ``rank`` is that of the first correct answer.

        Args:
            examples: Questions of the file.
            predictions: Scores of the candidates of each.
            path: File to write.
        """
        with new_file(path, overwrite=True) as file:
            for row, (example, predicted) in enumerate(zip(examples, predictions, strict=True)):
                line = {
                    "row": row,
                    "id": example.id,
                    "query": example.query,
                    "relevance": [candidate.relevance for candidate in example.candidates],
                    "scores": predicted.scores,
                    "rank": rank_of(example, predicted.scores)[0] if example.n_relevant else None,
                }
                file.write(f"{json.dumps(line, ensure_ascii=False)}\n".encode())

    def _tokenize(self, examples: Sequence[RankingExample]) -> list[TextSequence]:
        return self.texts.read(
            [
                (example.query, candidate.text)
                for example in examples
                for candidate in example.candidates
            ]
        )


@dataclass(frozen=True, slots=True)
class RankingReport:
    """Ranks of the first correct answers, with the number of questions left out by reason."""

    ranks: tuple[int, ...]
    n_tied: int
    """Questions whose best correct answer ties with a wrong one."""
    n_without_wrong: int
    """Questions measured whose candidates are all correct."""
    left_out: dict[str, int]
    chance: dict[str, float]

    @property
    def accuracy(self) -> float:
        """The fraction of questions with a correct answer first (acc@1)."""
        return sum(rank == 1 for rank in self.ranks) / len(self.ranks)

    @property
    def reciprocal_rank(self) -> float:
        """The mean over questions of 1 / rank of the first correct answer (MRR)."""
        return sum(1 / rank for rank in self.ranks) / len(self.ranks)

    def to_json(self) -> dict[str, Any]:
        """Return all metrics as plain values."""
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
    """Rank the candidates of each question by score; ties count against the model.

    Args:
        examples: Questions with their candidates.
        scores: Score of each candidate.
        questions: Which questions count, as ``config.questions``.
    """
    if len(examples) != len(scores):
        raise ConfigError(f"{len(scores)} predictions for {len(examples)} questions")
    reasons = [reason_left_out(example, questions) for example in examples]
    rows = [row for row, reason in enumerate(reasons) if not reason]
    if not rows:
        raise ConfigError(f"ranking: none of {len(examples)} questions can be measured")
    ranked = [rank_of(examples[row], scores[row]) for row in rows]
    measured = [examples[row] for row in rows]
    return RankingReport(
        ranks=tuple(rank for rank, _ in ranked),
        n_tied=sum(tied for _, tied in ranked),
        n_without_wrong=sum(not example.decidable for example in measured),
        left_out=dict(Counter(reason for reason in reasons if reason)),
        chance=random_ranking(measured),
    )


def reason_left_out(example: RankingExample, questions: str) -> str:
    """Return why a question is left out of training and evaluation; empty if it is not.

    Args:
        example: A question with its candidates.
        questions: Which questions count, as ``config.questions``.
    """
    if not example.n_relevant:
        return "questions without a correct answer"
    if questions == "single" and example.n_relevant > 1:
        return "questions with several correct answers"
    if questions == "single" and not example.decidable:
        return "questions without a wrong answer"
    return ""


def rank_of(example: RankingExample, scores: Sequence[float]) -> tuple[int, bool]:
    """Return the rank of the best correct answer, and whether it ties with a wrong one.

    Args:
        example: A question with its candidates.
        scores: Score of each candidate.
    """
    pairs = list(zip(example.candidates, scores, strict=True))
    best = max(score for candidate, score in pairs if candidate.relevance > 0)
    wrong = [score for candidate, score in pairs if candidate.relevance <= 0]
    return 1 + sum(score >= best for score in wrong), best in wrong
