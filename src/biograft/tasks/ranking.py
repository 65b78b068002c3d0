"""Losses of right answers, each scored together with wrong ones of the same question."""

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
from biograft.corpus.tasks.records import RankingExample
from biograft.corpus.tasks.summary import random_ranking
from biograft.errors import ConfigError
from biograft.nn import TextEncoder
from biograft.tasks.configs import RankingConfig
from biograft.tasks.network import LinearHead, TaskNetwork
from biograft.tasks.task import TaskKind, reader_of
from biograft.tasks.tokens import TextReader, TextSequence


def pairwise(scores: Tensor, sizes: Sequence[int], margin: float) -> Tensor:
    """Compute the mean over right and wrong answers of max(0, margin - right + wrong).

    ``scores`` are those of groups one after the other, so many of each as ``sizes`` says, the
    right answer first. They are brought to 0 ... 1 by a sigmoid, so that the margin means
    something and is not reached by making all weights larger.
    """
    groups = torch.split(scores.sigmoid(), list(sizes))
    gaps = torch.cat([margin - group[0] + group[1:] for group in groups])
    return gaps.clamp(min=0).mean()


def listwise(scores: Tensor, sizes: Sequence[int]) -> Tensor:
    """Compute the mean over groups of -log p of the right answer, which is the first."""
    groups = nn.utils.rnn.pad_sequence(
        [*torch.split(scores, list(sizes))], batch_first=True, padding_value=-torch.inf
    )
    return -groups.log_softmax(dim=1)[:, 0].mean()


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


@dataclass(frozen=True, slots=True)
class RankingAnswer:
    """The score of each answer of a question, in the question's order."""

    scores: tuple[float, ...]

    @property
    def order(self) -> tuple[int, ...]:
        """The numbers of the answers, best first; of equal ones the earlier first."""
        return tuple(sorted(range(len(self.scores)), key=lambda k: (-self.scores[k], k)))


@dataclass(frozen=True, slots=True)
class RightAnswer:
    """A right answer of a question and wrong ones, as sequences."""

    right: TextSequence
    wrong: tuple[TextSequence, ...]

    @property
    def tokens(self) -> Sequence[int]:
        """The longest sequence."""
        return max((sequence.tokens for sequence in (self.right, *self.wrong)), key=len)


class RankingModel:
    """An encoder with a linear head on the opening token: one score for question and answer."""

    kind = "ranking"

    def __init__(
        self, encoder: TextEncoder, config: RankingConfig, labels: tuple[str, ...] = ()
    ) -> None:
        self.config, self.labels = config, labels
        self.texts = TextReader(encoder)
        self.network = TaskNetwork(encoder, LinearHead(encoder.dim, 1), config.dropout)

    @classmethod
    def start(
        cls, encoder: TextEncoder, config: RankingConfig, examples: Sequence[RankingExample]
    ) -> RankingModel:
        """Make a model that has learnt nothing yet; there must be something to learn."""
        if not any(e.decidable and not why_not(e, config.questions) for e in examples):
            raise ConfigError(
                f"ranking: none of {len(examples)} questions to learn from (config.questions = "
                f"{config.questions!r}) has both right and wrong answers"
            )
        return cls(encoder, config)

    def settings(self) -> Mapping[str, Any]:
        """There is nothing more to know."""
        return {}

    def learnable(
        self, examples: Sequence[RankingExample]
    ) -> tuple[list[RightAnswer], Counter[str]]:
        """Make the sequences to learn from; questions that teach nothing are counted."""
        lost: Counter[str] = Counter()
        kept = []
        for example in examples:
            reason = why_not(example, self.config.questions)
            if not reason and not example.decidable:
                reason = "questions without a wrong answer"
            if reason:
                lost[reason] += 1
            else:
                kept.append(example)
        sequences = self._read(kept)
        items: list[RightAnswer] = []
        start = 0
        for example in kept:
            own = sequences[start : start + len(example.candidates)]
            start += len(own)
            judged = [*zip(example.candidates, own, strict=True)]
            wrong = tuple(sequence for answer, sequence in judged if answer.relevance <= 0)
            items += [RightAnswer(own, wrong) for answer, own in judged if answer.relevance > 0]
        return items, lost + self.texts.count_cut(sequences)

    def choose(
        self, items: Sequence[RightAnswer], draw: np.random.Generator
    ) -> Sequence[RightAnswer]:
        """Draw the wrong answers of an epoch; where there are fewer than asked for, all."""
        n = self.config.negatives
        return [
            item
            if not 0 < n < len(item.wrong)
            else replace(
                item, wrong=tuple(item.wrong[k] for k in draw.choice(len(item.wrong), n, False))
            )
            for item in items
        ]

    def loss(
        self, network: nn.Module, items: Sequence[RightAnswer]
    ) -> tuple[Tensor, dict[str, float]]:
        """Compute the loss of some right answers and the wrong ones drawn for them."""
        sequences = [sequence for item in items for sequence in (item.right, *item.wrong)]
        (scores,) = network(self.network.collate(sequences))
        sizes = [1 + len(item.wrong) for item in items]
        if self.config.loss == "listwise":
            return listwise(scores[:, 0], sizes), {}
        return pairwise(scores[:, 0], sizes, self.config.margin), {}

    def predict(
        self, examples: Sequence[RankingExample], precision: str = "auto"
    ) -> list[RankingAnswer]:
        """Score the answers of each question; those of like length are read together."""
        sequences = self._read(examples)
        scores = np.zeros(len(sequences), np.float64)
        for row, (score,) in self.network.read(sequences, precision):
            scores[row] = float(score[0])
        ends = np.cumsum([len(example.candidates) for example in examples])
        return [RankingAnswer(tuple(own.tolist())) for own in np.split(scores, ends)[:-1]]

    def report(
        self, examples: Sequence[RankingExample], answers: Sequence[RankingAnswer]
    ) -> RankingReport:
        """Rank by scores, of equal ones the wrong ones first."""
        scores = [answer.scores for answer in answers]
        return ranking_report(examples, scores, self.config.questions)

    def write(
        self, examples: Sequence[RankingExample], answers: Sequence[RankingAnswer], path: Path
    ) -> None:
        """Write a line for each question, in their order; ``rank`` is the first right answer's."""
        with new_file(path, overwrite=True) as file:
            for row, (example, answer) in enumerate(zip(examples, answers, strict=True)):
                said = {
                    "row": row,
                    "id": example.id,
                    "query": example.query,
                    "relevance": [candidate.relevance for candidate in example.candidates],
                    "scores": answer.scores,
                    "rank": rank_of(example, answer.scores)[0] if example.n_relevant else None,
                }
                file.write(f"{json.dumps(said, ensure_ascii=False)}\n".encode())

    def _read(self, examples: Sequence[RankingExample]) -> list[TextSequence]:
        return self.texts.read(
            [(example.query, answer.text) for example in examples for answer in example.candidates]
        )


KIND = TaskKind(
    config=RankingConfig,
    read=reader_of("ranking"),
    start=RankingModel.start,
    build=RankingModel,
    figures=("acc@1", "mrr"),
)
