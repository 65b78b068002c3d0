"""The registry of tasks: the configuration, reader, model and metrics of each.

A task is a ``TaskKind``, and one line in ``TASKS``.
Its model follows the ``TaskModel`` protocol (``tasks/model.py``), and is imported when one is
made, so that recipes are read without torch.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from biograft.errors import ConfigError, InputError
from biograft.kb.sources.log import ReadLog
from biograft.models.tasks.configs import (
    ClassificationConfig,
    InferenceConfig,
    MatchingConfig,
    NerConfig,
    RankingConfig,
    RelationConfig,
    TaskDataConfig,
)
from biograft.registry import Registry, load_object
from biograft.text.documents import Document
from biograft.text.formats import read_documents
from biograft.text.tasks import TaskConfig, read_task
from biograft.text.tasks.registry import ClassExample, Example, RankingExample, labels_of

if TYPE_CHECKING:
    from biograft.models import TextEncoder
    from biograft.models.tasks.model import TaskModel


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
    model: type[Any] | str
    """The class of its model, or where it is: ``module:Class``."""
    metrics: tuple[str, ...] = ("f1", "precision", "recall", "macro_f1")
    """The metrics summarised over seeds; the first, the main one, selects on dev."""
    counting: tuple[str, ...] = ()
    """Fields of ``config`` that decide what the metrics count; runs that differ in one are not
    compared."""

    @property
    def main_metric(self) -> str:
        """The metric that selects epochs, learning rates and seeds, and compares runs."""
        return self.metrics[0]

    def create(
        self, encoder: TextEncoder, config: Any, examples: Sequence[Any]
    ) -> TaskModel[Any, Any]:
        """Create an untrained model whose labels come from the training examples."""
        model: TaskModel[Any, Any] = self._model.from_examples(encoder, config, examples)
        return model

    def build(
        self, encoder: TextEncoder, config: Any, labels: tuple[str, ...]
    ) -> TaskModel[Any, Any]:
        """Build a model for known labels, into which saved weights are loaded."""
        model: TaskModel[Any, Any] = self._model(encoder, config, labels)
        return model

    @property
    def _model(self) -> Any:
        return load_object(self.model) if isinstance(self.model, str) else self.model


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


def read_labelled_documents(paths: Sequence[str], split: str, data: TaskDataConfig) -> TaskExamples:
    """Read documents with mentions, of any format."""
    if data.has_splits or data.dev_list or data.grouped or data.schema:
        raise ConfigError(
            "data: has_splits, dev_list, grouped and schema do not apply to documents; leave them "
            "out"
        )
    documents: list[Document] = []
    rejected: Counter[str] = Counter()
    for path in paths:
        log = ReadLog(Path(path))
        content = list(read_documents(path, data.format, log))
        if not any(document.mentions for document in content):
            raise InputError(
                f"holds no mention in {len(content):,} documents",
                path=path,
                remedy="check the format",
            )
        documents += content
        rejected += log.rejected.counts
    return TaskExamples(documents, rejected)


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


_CLASSES = ("f1", "accuracy", "macro_f1", "precision", "recall")
"""Metrics of texts with classes."""

NER = TaskKind(
    config=NerConfig,
    read=read_labelled_documents,
    model="biograft.models.tasks.ner:NerModel",
    counting=("types",),
)
RELATION = TaskKind(
    config=RelationConfig,
    read=reader_of("relation"),
    model="biograft.models.tasks.relation:RelationModel",
    counting=("negative",),
)
MATCHING = TaskKind(
    config=MatchingConfig,
    read=reader_of("pair"),
    model="biograft.models.tasks.classification:MatchingModel",
    metrics=_CLASSES,
    counting=("positive",),
)
INFERENCE = TaskKind(
    config=InferenceConfig,
    read=reader_of("pair"),
    model="biograft.models.tasks.classification:InferenceModel",
    metrics=_CLASSES,
)
CLASSIFICATION = TaskKind(
    config=ClassificationConfig,
    read=reader_of("class"),
    model="biograft.models.tasks.classification:ClassificationModel",
    metrics=_CLASSES,
)
RANKING = TaskKind(
    config=RankingConfig,
    read=reader_of("ranking"),
    model="biograft.models.tasks.ranking:RankingModel",
    metrics=("acc@1", "mrr"),
    counting=("questions",),
)

TASKS: Registry[TaskKind] = Registry(
    "kind of task",
    {
        "ner": ("task:NER", "named entity recognition in documents"),
        "relation": (
            "task:RELATION",
            "relation extraction: the relation between two mentions of a text",
        ),
        "matching": ("task:MATCHING", "whether two texts say or ask the same"),
        "inference": (
            "task:INFERENCE",
            "natural language inference: the relation between two texts",
        ),
        "classification": ("task:CLASSIFICATION", "the class or classes of a text"),
        "ranking": ("task:RANKING", "answer ranking: candidate answers to a question, best first"),
    },
    group="biograft.tasks",
    home="biograft.models.tasks",
)
