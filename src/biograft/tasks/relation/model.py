"""A model that says how two mentions of a text are related."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import torch
from tokenizers import AddedToken
from torch import Tensor, nn

from biograft.corpus.tasks.records import RelationExample
from biograft.errors import ConfigError
from biograft.metrics import ClassReport, label_report
from biograft.nn import TextEncoder
from biograft.runs import new_file
from biograft.tasks.heads import LinearHead
from biograft.tasks.network import TaskNetwork
from biograft.tasks.relation.config import RelationConfig
from biograft.tasks.relation.pairs import PairReader, PairTokens, indicators_of


@dataclass(frozen=True, slots=True)
class RelationAnswer:
    """A label, and how probable the model takes it to be."""

    label: str
    probability: float


class RelationModel:
    """An encoder that knows indicators, with a head that tells relations apart."""

    kind = "relation"

    def __init__(
        self, encoder: TextEncoder, config: RelationConfig, labels: tuple[str, ...]
    ) -> None:
        self.config, self.labels = config, labels
        self.pairs = PairReader(encoder, config.order, named=config.named)
        head = LinearHead(encoder.dim, len(labels), n_places=2)
        self.network = TaskNetwork(encoder, head, config.dropout)

    @classmethod
    def start(
        cls, encoder: TextEncoder, config: RelationConfig, examples: Sequence[RelationExample]
    ) -> RelationModel:
        """Make a model for the labels and indicators of some examples; it has learnt nothing."""
        labels = sorted({e.label for e in examples}, key=lambda x: (x not in config.negative, x))
        if len(labels) < 2:
            raise ConfigError(f"relation: expected at least 2 labels to tell apart, found {labels}")
        add_indicators(encoder, indicators_of(examples))
        return cls(encoder, config, tuple(labels))

    def settings(self) -> Mapping[str, Any]:
        """Say which labels count in F1."""
        return {"positive": list(self.positive)}

    @property
    def positive(self) -> tuple[str, ...]:
        """The labels that say that there is a relation."""
        return tuple(label for label in self.labels if label not in self.config.negative)

    def learnable(
        self, examples: Sequence[RelationExample]
    ) -> tuple[list[PairTokens], Counter[str]]:
        """Make the sequences to learn from; texts cut in front of a mention are counted."""
        numbers = {label: number for number, label in enumerate(self.labels)}
        pairs = [
            replace(pair, label=numbers[example.label])
            for example, pair in zip(examples, self.pairs.read(examples), strict=True)
        ]
        n_cut = sum(pair.cut_around for pair in pairs)
        return pairs, Counter({"texts cut around their mentions": n_cut} if n_cut else {})

    def loss(
        self, network: nn.Module, items: Sequence[PairTokens]
    ) -> tuple[Tensor, dict[str, float]]:
        """Compute the mean of -log p of the right label."""
        (scores,) = network(self.network.collate(items))
        labels = torch.tensor([item.label for item in items], device=scores.device)
        return nn.functional.cross_entropy(scores, labels), {}

    def predict(
        self, examples: Sequence[RelationExample], precision: str = "auto"
    ) -> list[RelationAnswer]:
        """Answer each example with its likeliest label."""
        answers = [RelationAnswer("", 0.0)] * len(examples)
        for row, (scores,) in self.network.read(self.pairs.read(examples), precision):
            number = int(scores.argmax())
            answers[row] = RelationAnswer(self.labels[number], float(scores.softmax(0)[number]))
        return answers

    def report(
        self, examples: Sequence[RelationExample], answers: Sequence[RelationAnswer]
    ) -> ClassReport:
        """Count the positive labels, as BLURB does; those that were never learned are missed."""
        gold = [example.label for example in examples]
        positive = {*self.positive, *gold} - {*self.config.negative}
        return label_report(gold, [answer.label for answer in answers], positive)

    def write(
        self, examples: Sequence[RelationExample], answers: Sequence[RelationAnswer], path: Path
    ) -> None:
        """Write a line for each example: which it is, its label, the answer."""
        with new_file(path, overwrite=True) as file:
            for example, answer in zip(examples, answers, strict=True):
                said = {"id": example.id, "document": example.document, "gold": example.label}
                line = json.dumps({**said, **asdict(answer)}, ensure_ascii=False)
                file.write(f"{line}\n".encode())


def add_indicators(encoder: TextEncoder, indicators: Sequence[str]) -> None:
    """Make each indicator one token; the new rows of the encoder are random, by torch's seed."""
    new = [AddedToken(name, normalized=False, special=False) for name in indicators]
    encoder.tokenizer.add_tokens(new)
    n_tokens = max(len(encoder.tokenizer), encoder.model.get_input_embeddings().num_embeddings)
    encoder.model.resize_token_embeddings(n_tokens, mean_resizing=False)
