"""Examples as sequences: indicators in place of the two mentions, or before them, a token each.

What is too long loses the text behind, as long as both indicators stay. Else it is cut around
them: what lies between keeps its two ends, what lies outside shares the room that is left.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import torch
from tokenizers import AddedToken
from torch import Tensor, nn

from biograft.artifacts import new_file
from biograft.corpus.tasks.records import RelationExample, anonymise
from biograft.errors import ConfigError
from biograft.metrics import ClassReport, label_report
from biograft.nn import TextEncoder
from biograft.tasks.configs import RelationConfig
from biograft.tasks.network import LinearHead, TaskNetwork
from biograft.tasks.task import TaskKind, reader_of
from biograft.tasks.tokens import TaskTokenizer

LEAST_ROOM = 8
"""Tokens below which nothing but the indicators would be read."""


@dataclass(frozen=True, slots=True)
class PairTokens:
    """A text with two mentions as one sequence."""

    tokens: tuple[int, ...]
    places: tuple[int, int]
    """The tokens of the two indicators."""
    cut_around: bool
    """Whether the text in front of an indicator had to be cut."""
    label: int = -1


@dataclass(frozen=True, slots=True)
class _Pieces:
    """Text before, between and behind the indicators, and these in the text's order.

    Where mentions keep their names, the text goes on with them.
    """

    texts: tuple[str, str, str]
    indicators: tuple[str, ...]
    """One where both mentions share it."""


def indicators_of(examples: Iterable[RelationExample]) -> list[str]:
    """List the indicators of some examples, such as ``@DRUG$``."""
    return sorted({name for each in examples for name in _take_apart(each, named=False).indicators})


class PairReader:
    """Makes sequences of examples."""

    def __init__(self, encoder: TextEncoder, order: str, *, named: bool = False) -> None:
        self._tokenizer, self._order, self._named = TaskTokenizer(encoder), order, named
        added = encoder.tokenizer.get_added_vocab()
        self._numbers: dict[str, list[int]] = {name: [int(row)] for name, row in added.items()}
        if self._tokenizer.room < LEAST_ROOM:
            raise ConfigError(
                f"max_length: leaves room for {self._tokenizer.room} tokens of a text; expected "
                f"at least {LEAST_ROOM}"
            )

    def read(self, examples: Sequence[RelationExample]) -> list[PairTokens]:
        """Make the sequence of each example."""
        pieces = [_take_apart(example, named=self._named) for example in examples]
        texts = [text for piece in pieces for text in piece.texts]
        ids = [tokens.ids for tokens in self._tokenizer.read(texts)]
        return [
            self._join(example, piece, ids[3 * row : 3 * row + 3])
            for row, (example, piece) in enumerate(zip(examples, pieces, strict=True))
        ]

    def _join(
        self, example: RelationExample, piece: _Pieces, ids: Sequence[list[int]]
    ) -> PairTokens:
        marks = [self._indicator(name) for name in piece.indicators]
        room = self._tokenizer.room - sum(map(len, marks))
        before, between, behind = ids
        cut_around = len(before) + len(between) > room
        if cut_around:
            before, between, behind = _cut_around(before, between, behind, room)
        first = len(before)
        second = first if len(marks) == 1 else first + len(marks[0]) + len(between)
        tokens = [*before, *marks[0], *between, *(marks[1] if len(marks) > 1 else ()), *behind]
        tokens = tokens[: self._tokenizer.room]
        places = (first + self._tokenizer.n_before, second + self._tokenizer.n_before)
        if self._order == "roles" and example.second.start < example.first.start:
            places = (places[1], places[0])
        return PairTokens(tuple(self._tokenizer.frame(tokens)), places, cut_around)

    def _indicator(self, name: str) -> list[int]:
        """Give the token of an indicator; one that the training did not know has several."""
        if name not in self._numbers:
            [tokens] = self._tokenizer.read([name])
            self._numbers[name] = tokens.ids
        return self._numbers[name]


def _take_apart(example: RelationExample, *, named: bool) -> _Pieces:
    marked = anonymise(example)
    indicators = tuple(marked.text[slice(*new)] for _, new in marked.edits)
    starts = [start for (start, _), _ in marked.edits]
    goes_on = starts if named else [end for (_, end), _ in marked.edits]
    text = example.text
    between = text[goes_on[0] : starts[1]] if len(starts) > 1 else ""
    return _Pieces((text[: starts[0]], between, text[goes_on[-1] :]), indicators)


def _cut_around(
    before: list[int], between: list[int], behind: list[int], room: int
) -> tuple[list[int], list[int], list[int]]:
    """Cut a text so that both indicators stay in it."""
    if len(between) >= room:
        half = room // 2
        return [], [*between[: room - half], *between[len(between) - half :]], []
    room -= len(between)
    n_behind = min(len(behind), max(room // 2, room - len(before)))
    n_before = min(len(before), room - n_behind)
    return before[len(before) - n_before :], between, behind[:n_behind]


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


KIND = TaskKind(
    config=RelationConfig,
    read=reader_of("relation"),
    start=RelationModel.start,
    build=RelationModel,
)
