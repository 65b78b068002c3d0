"""Relation extraction: classification of the relation between two mentions of a text.

Entity markers such as ``@DRUG$`` replace the two mentions, or precede them, as one token each; a
linear head reads their states, or the marked text is classified as a whole. A text that is too
long is cut at its end, as long as both markers stay. Otherwise it is cut around them: the text
between keeps its two ends, and the text before and after shares what remains.
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
from biograft.errors import ConfigError
from biograft.metrics import ClassReport, label_report
from biograft.models import TextEncoder
from biograft.models.tasks.model import LabelNetwork, LinearHead, Predicting, TaskNetwork
from biograft.models.tasks.task import RelationConfig
from biograft.models.tasks.tokens import TaskTokenizer
from biograft.text.tasks.registry import RelationExample, anonymise
from biograft.text.tasks.rows import to_examples

MIN_ROOM = 8
"""The least number of text tokens beside the markers that an encoder must take."""


@dataclass(frozen=True, slots=True)
class RelationSequence:
    """A text with two marked mentions as one sequence."""

    tokens: tuple[int, ...]
    positions: tuple[int, int]
    """Positions of the two entity markers."""
    cut_around: bool
    """Whether text before a marker had to be cut."""
    label: int = -1


@dataclass(frozen=True, slots=True)
class _MarkedText:
    """The text before, between and after the markers, and these in the order of the text.

    Mentions that keep their names are part of the text after their markers.
    """

    texts: tuple[str, str, str]
    markers: tuple[str, ...]
    """One where both mentions share it."""


def markers_of(examples: Iterable[RelationExample]) -> list[str]:
    """List the entity markers of some examples, such as ``@DRUG$``."""
    return sorted({name for each in examples for name in _split(each, named=False).markers})


class RelationTokenizer:
    """Tokenises relation examples, with one token for each entity marker.

    Args:
        encoder: Encoder with its tokenizer.
        order: Order of the two entities, as ``config.order``.
        named: Keep the names of the entities between their markers.
    """

    def __init__(self, encoder: TextEncoder, order: str, *, named: bool = False) -> None:
        self._tokenizer, self._order, self._named = TaskTokenizer(encoder), order, named
        added = encoder.tokenizer.get_added_vocab()
        self._marker_tokens: dict[str, list[int]] = {name: [int(i)] for name, i in added.items()}
        if self._tokenizer.room < MIN_ROOM:
            raise ConfigError(
                f"max_length: leaves {self._tokenizer.room} tokens for a text; expected at least "
                f"{MIN_ROOM}"
            )

    def read(self, examples: Sequence[RelationExample]) -> list[RelationSequence]:
        """Return the sequence of each example."""
        marked = [_split(example, named=self._named) for example in examples]
        texts = [text for each in marked for text in each.texts]
        ids = [tokens.ids for tokens in self._tokenizer.read(texts)]
        return [
            self._join(example, each, ids[3 * row : 3 * row + 3])
            for row, (example, each) in enumerate(zip(examples, marked, strict=True))
        ]

    def _join(
        self, example: RelationExample, marked: _MarkedText, ids: Sequence[list[int]]
    ) -> RelationSequence:
        markers = [self._tokens_of_marker(name) for name in marked.markers]
        room = self._tokenizer.room - sum(map(len, markers))
        before, between, after = ids
        cut_around = len(before) + len(between) > room
        if cut_around:
            before, between, after = _cut_around(before, between, after, room)
        first = len(before)
        second = first if len(markers) == 1 else first + len(markers[0]) + len(between)
        tokens = [*before, *markers[0], *between, *(markers[1] if len(markers) > 1 else ()), *after]
        tokens = tokens[: self._tokenizer.room]
        positions = (first + self._tokenizer.n_before, second + self._tokenizer.n_before)
        if self._order == "roles" and example.second.start < example.first.start:
            positions = (positions[1], positions[0])
        return RelationSequence(tuple(self._tokenizer.frame(tokens)), positions, cut_around)

    def _tokens_of_marker(self, name: str) -> list[int]:
        """Return the token of a marker; a marker unknown in training has several."""
        if name not in self._marker_tokens:
            [tokens] = self._tokenizer.read([name])
            self._marker_tokens[name] = tokens.ids
        return self._marker_tokens[name]


def _split(example: RelationExample, *, named: bool) -> _MarkedText:
    """Split the text of an example at its two mentions."""
    marked = anonymise(example)
    markers = tuple(marked.text[slice(*new)] for _, new in marked.edits)
    starts = [start for (start, _), _ in marked.edits]
    resumes = starts if named else [end for (_, end), _ in marked.edits]
    text = example.text
    between = text[resumes[0] : starts[1]] if len(starts) > 1 else ""
    return _MarkedText((text[: starts[0]], between, text[resumes[-1] :]), markers)


def _cut_around(
    before: list[int], between: list[int], after: list[int], room: int
) -> tuple[list[int], list[int], list[int]]:
    """Cut a text so that both markers stay in it."""
    if len(between) >= room:
        half = room // 2
        return [], [*between[: room - half], *between[len(between) - half :]], []
    room -= len(between)
    n_after = min(len(after), max(room // 2, room - len(before)))
    n_before = min(len(before), room - n_after)
    return before[len(before) - n_before :], between, after[:n_after]


@dataclass(frozen=True, slots=True)
class RelationPrediction:
    """A predicted label with its probability."""

    label: str
    """The most probable label."""
    probability: float
    """Its probability."""


class RelationModel(Predicting[RelationPrediction]):
    """An encoder with entity markers and a linear head on their states.

    Args:
        encoder: Encoder, which is trained.
        config: Settings of the task.
        labels: Names of the relations, in the order of the scores.
    """

    kind = record = "relation"

    def __init__(
        self, encoder: TextEncoder, config: RelationConfig, labels: tuple[str, ...]
    ) -> None:
        self.config, self.labels = config, labels
        self.tokenizer = RelationTokenizer(encoder, config.order, named=config.named)
        self.network: TaskNetwork
        if config.head == "text":
            self.network = LabelNetwork(encoder, labels, config.dropout)
        else:
            head = LinearHead(encoder.dim, len(labels), n_positions=2)
            self.network = TaskNetwork(encoder, head, config.dropout)

    @classmethod
    def from_examples(
        cls, encoder: TextEncoder, config: RelationConfig, examples: Sequence[RelationExample]
    ) -> RelationModel:
        """Create an untrained model for the labels and markers of some examples.

        Args:
            encoder: Encoder, which is trained; it gets a token for each marker.
            config: Settings of the task.
            examples: Training examples.
        """
        labels = sorted({e.label for e in examples}, key=lambda x: (x not in config.negative, x))
        if len(labels) < 2:
            raise ConfigError(f"relation: expected at least 2 labels, found {labels}")
        add_markers(encoder, markers_of(examples))
        return cls(encoder, config, tuple(labels))

    def settings(self) -> Mapping[str, Any]:
        """Return the labels that count in F1."""
        return {"positive": list(self.positive)}

    @property
    def positive(self) -> tuple[str, ...]:
        """The labels that state a relation."""
        return tuple(label for label in self.labels if label not in self.config.negative)

    def training_items(
        self, examples: Sequence[RelationExample]
    ) -> tuple[list[RelationSequence], Counter[str]]:
        """Return labelled sequences; texts cut before a mention are counted."""
        index = {label: row for row, label in enumerate(self.labels)}
        sequences = [
            replace(sequence, label=index[example.label])
            for example, sequence in zip(examples, self.tokenizer.read(examples), strict=True)
        ]
        n_cut = sum(sequence.cut_around for sequence in sequences)
        return sequences, Counter({"texts cut around their mentions": n_cut} if n_cut else {})

    def loss(
        self, network: nn.Module, items: Sequence[RelationSequence]
    ) -> tuple[Tensor, dict[str, float]]:
        """Compute the mean of -log p of the gold label."""
        (scores,) = network(self.network.collate(items))
        labels = torch.tensor([item.label for item in items], device=scores.device)
        return nn.functional.cross_entropy(scores, labels), {}

    def predict(self, examples: Any, precision: str = "auto") -> list[RelationPrediction]:
        """Predict the most probable label of each example."""
        examples = to_examples(self.record, examples)
        predictions = [RelationPrediction("", 0.0)] * len(examples)
        for row, (scores,) in self.network.predict(self.tokenizer.read(examples), precision):
            best = int(scores.argmax())
            probability = float(scores.softmax(0)[best])
            predictions[row] = RelationPrediction(self.labels[best], probability)
        return predictions

    def report(
        self, examples: Sequence[RelationExample], predictions: Sequence[RelationPrediction]
    ) -> ClassReport:
        """Evaluate the positive labels, as in BLURB; labels unknown to the model are missed."""
        gold = [example.label for example in examples]
        positive = {*self.positive, *gold} - {*self.config.negative}
        return label_report(gold, [each.label for each in predictions], positive)

    def write(
        self,
        examples: Sequence[RelationExample],
        predictions: Sequence[RelationPrediction],
        path: Path,
    ) -> None:
        """Write one line for each example: ids, gold label and prediction.

        Args:
            examples: Examples of the file.
            predictions: Prediction for each.
            path: File to write.
        """
        with new_file(path, overwrite=True) as file:
            for example, predicted in zip(examples, predictions, strict=True):
                about = {"id": example.id, "document": example.document, "gold": example.label}
                line = json.dumps({**about, **asdict(predicted)}, ensure_ascii=False)
                file.write(f"{line}\n".encode())


def add_markers(encoder: TextEncoder, markers: Sequence[str]) -> None:
    """Add each marker as one token; its embedding is random, by torch's seed.

    Args:
        encoder: Encoder, changed in place.
        markers: Texts of the markers.
    """
    new = [AddedToken(name, normalized=False, special=False) for name in markers]
    encoder.tokenizer.add_tokens(new)
    n_tokens = max(len(encoder.tokenizer), encoder.model.get_input_embeddings().num_embeddings)
    encoder.model.resize_token_embeddings(n_tokens, mean_resizing=False)
