"""The kinds of tasks: what each configures, how it reads its examples and makes its model."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from biograft.registry import Registry
from biograft.tasks.config import DataConfig

if TYPE_CHECKING:
    from biograft.nn import TextEncoder
    from biograft.tasks.model import TaskModel

PARTS = ("train", "dev", "test")


@dataclass(frozen=True, slots=True)
class TaskExamples:
    """The examples of some files, and how many rows were left out of them, by reason."""

    examples: Sequence[Any]
    rejected: Mapping[str, int] = field(default_factory=Counter)

    def fingerprint(self) -> str:
        """Compute the SHA-256 of what was read."""
        digest = hashlib.sha256()
        for example in self.examples:
            digest.update(repr(example).encode())
        return digest.hexdigest()


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskKind:
    """One kind of task."""

    config: type[Any]
    """What the table ``config`` of a recipe holds; its ``training`` is a ``TaskTraining``."""
    read: Callable[[Sequence[str], str, DataConfig], TaskExamples]
    """Reads files as the examples of a part: train, dev or test."""
    start: Callable[[TextEncoder, Any, Sequence[Any]], TaskModel[Any, Any]]
    """Makes a model that has learnt nothing, fit for the examples to learn from."""
    build: Callable[[TextEncoder, Any, tuple[str, ...]], TaskModel[Any, Any]]
    """Makes a model for known labels, whose weights are put in then."""
    figures: tuple[str, ...] = ("f1", "precision", "recall", "macro_f1")
    """What is told of a report over seeds; the first is the main one, by which dev chooses."""

    @property
    def main(self) -> str:
        """The figure by which epochs, rates and seeds are chosen, and runs compared."""
        return self.figures[0]


TASKS: Registry[TaskKind] = Registry(
    "kind of task",
    {
        "ner": ("biograft.tasks.ner.kind:KIND", "entities in documents"),
        "relation": ("biograft.tasks.relation.kind:KIND", "how two mentions of a text are related"),
        "matching": (
            "biograft.tasks.classification.kind:MATCHING",
            "whether two texts say or ask the same",
        ),
        "inference": ("biograft.tasks.classification.kind:INFERENCE", "how two texts stand"),
        "classification": (
            "biograft.tasks.classification.kind:CLASSIFICATION",
            "the class of a text, or its classes",
        ),
        "ranking": ("biograft.tasks.ranking.kind:KIND", "which texts answer a question"),
    },
)
