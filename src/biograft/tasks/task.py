"""The kinds of tasks: what each configures, how it reads its examples and makes its model."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from biograft.corpus.tasks import TaskConfig, read_task
from biograft.corpus.tasks.records import ClassExample, Example, RankingExample, labels_of
from biograft.errors import InputError
from biograft.registry import Registry
from biograft.tasks.configs import DataConfig

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
        "ner": ("biograft.tasks.ner:KIND", "entities in documents"),
        "relation": ("biograft.tasks.relation:KIND", "how two mentions of a text are related"),
        "matching": (
            "biograft.tasks.classification:MATCHING",
            "whether two texts say or ask the same",
        ),
        "inference": ("biograft.tasks.classification:INFERENCE", "how two texts stand"),
        "classification": (
            "biograft.tasks.classification:CLASSIFICATION",
            "the class of a text, or its classes",
        ),
        "ranking": ("biograft.tasks.ranking:KIND", "which texts answer a question"),
    },
)


def reader_of(record: str) -> Callable[[Sequence[str], str, DataConfig], TaskExamples]:
    """Make what reads examples of a record (pair, class, ranking, relation) in any format."""

    def read(paths: Sequence[str], part: str, data: DataConfig) -> TaskExamples:
        """Read files; of one that has parts (DDI's zip) only the part asked for."""
        examples: list[Example] = []
        rejected: Counter[str] = Counter()
        for path in paths:
            config = TaskConfig(
                path=Path(path),
                format=data.format,
                part=part if data.has_parts or data.dev_list else "",
                dev_list=Path(data.dev_list) if data.dev_list and part != "test" else None,
                grouped=data.grouped,
            )
            found = read_task(config)
            if found.kind != record:
                raise InputError(
                    f"holds examples of the kind {found.kind}, not {record}", path=path
                )
            _refuse_unlabelled(found.examples, path)
            examples += found.examples
            rejected += found.log.rejected.counts
        return TaskExamples(examples, rejected)

    return read


def _refuse_unlabelled(examples: Sequence[Example], path: str) -> None:
    rankings = [example for example in examples if isinstance(example, RankingExample)]
    if rankings and not any(example.n_relevant for example in rankings):
        raise InputError("holds no question with a right answer", path=path)
    if not all(_is_labelled(example) for example in examples):
        raise InputError("holds examples without a label", path=path)


def _is_labelled(example: Example) -> bool:
    """Whether an example says what is right; of several classes none may hold."""
    if isinstance(example, ClassExample) and example.multi:
        return True
    return bool(labels_of(example))
