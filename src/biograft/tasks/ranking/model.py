"""A model that scores answers, each read together with its question."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from torch import Tensor, nn

from biograft.corpus.tasks.records import RankingExample
from biograft.errors import ConfigError
from biograft.nn import TextEncoder
from biograft.runs import new_file
from biograft.tasks.heads import LinearHead
from biograft.tasks.network import TaskNetwork
from biograft.tasks.ranking.config import RankingConfig
from biograft.tasks.ranking.losses import listwise, pairwise
from biograft.tasks.ranking.report import RankingReport, rank_of, ranking_report, why_not
from biograft.tasks.sequences import TextReader, TextSequence


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
