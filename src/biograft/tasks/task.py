"""The registry of tasks: the configuration, reader, model and metrics of each.

A task is one module that defines a ``TaskKind``, and one line in ``TASKS``. Its model follows the
``TaskModel`` protocol (``tasks/model.py``).
"""

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
from biograft.tasks.configs import TaskDataConfig

if TYPE_CHECKING:
    from biograft.nn import TextEncoder
    from biograft.tasks.model import TaskModel


@dataclass(frozen=True, slots=True)
class TaskExamples:
    """The examples of some files, and the number of rejected rows by reason."""

    examples: Sequence[Any]
    rejected: Mapping[str, int] = field(default_factory=Counter)

    def fingerprint(self) -> str:
        """Compute the SHA-256 of the examples."""
        digest = hashlib.sha256()
        for example in self.examples:
            digest.update(repr(example).encode())
        return digest.hexdigest()


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskKind:
    """One kind of task: how its data is read, its model built and its results reported."""

    config: type[Any]
    """The class of a recipe's table ``config``; its ``training`` is a ``TaskTraining``."""
    read: Callable[[Sequence[str], str, TaskDataConfig], TaskExamples]
    """Reads files as the examples of a split: train, dev or test."""
    create: Callable[[TextEncoder, Any, Sequence[Any]], TaskModel[Any, Any]]
    """Creates an untrained model whose labels come from the training examples."""
    build: Callable[[TextEncoder, Any, tuple[str, ...]], TaskModel[Any, Any]]
    """Builds a model for known labels, into which saved weights are loaded."""
    metrics: tuple[str, ...] = ("f1", "precision", "recall", "macro_f1")
    """The metrics summarised over seeds; the first, the main one, selects on dev."""
    counting: tuple[str, ...] = ()
    """Fields of ``config`` that decide what the metrics count; runs that differ in one are not
    compared."""

    @property
    def main_metric(self) -> str:
        """The metric that selects epochs, learning rates and seeds, and compares runs."""
        return self.metrics[0]


TASKS: Registry[TaskKind] = Registry(
    "kind of task",
    {
        "ner": ("ner:KIND", "named entity recognition in documents"),
        "relation": (
            "relation:KIND",
            "relation extraction: the relation between two mentions of a text",
        ),
        "matching": ("classification:MATCHING", "whether two texts say or ask the same"),
        "inference": (
            "classification:INFERENCE",
            "natural language inference: the relation between two texts",
        ),
        "classification": ("classification:CLASSIFICATION", "the class or classes of a text"),
        "ranking": ("ranking:KIND", "answer ranking: candidate answers to a question, best first"),
    },
    group="biograft.tasks",
    home="biograft.tasks",
)


def reader_of(record: str) -> Callable[[Sequence[str], str, TaskDataConfig], TaskExamples]:
    """Return a reader of one kind of record (pair, class, ranking, relation) in any format."""

    def read(paths: Sequence[str], split: str, data: TaskDataConfig) -> TaskExamples:
        """Read files; from a file that holds several splits (DDI's zip), read only ``split``."""
        examples: list[Example] = []
        rejected: Counter[str] = Counter()
        for path in paths:
            config = TaskConfig(
                path=Path(path),
                format=data.format,
                split=split if data.has_splits or data.dev_list else "",
                dev_list=Path(data.dev_list) if data.dev_list and split != "test" else None,
                grouped=data.grouped,
                schema=Path(data.schema) if data.schema else None,
            )
            content = read_task(config)
            if content.kind != record:
                raise InputError(
                    f"holds examples of the kind {content.kind}, not {record}", path=path
                )
            _check_labelled(content.examples, path)
            examples += content.examples
            rejected += content.log.rejected.counts
        return TaskExamples(examples, rejected)

    return read


def _check_labelled(examples: Sequence[Example], path: str) -> None:
    rankings = [example for example in examples if isinstance(example, RankingExample)]
    if rankings and not any(example.n_relevant for example in rankings):
        raise InputError("holds no question with a correct answer", path=path)
    if not all(_is_labelled(example) for example in examples):
        raise InputError("holds examples without a label", path=path)


def _is_labelled(example: Example) -> bool:
    """Whether an example is labelled; a multi-label example may have no label."""
    if isinstance(example, ClassExample) and example.multi:
        return True
    return bool(labels_of(example))
