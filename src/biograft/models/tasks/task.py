"""The registry of tasks: the configuration, reader, model and metrics of each.

A task is a ``TaskKind``, and one line in ``TASKS``. Its configuration has tables of training, of
seeds, and of data. Its model follows the ``TaskModel`` protocol
(``tasks/model.py``), and is imported when one is made, so that recipes are read without torch.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

from biograft.config import Above, AtLeast, Choice, Config, Range, Ratio, check_fields
from biograft.errors import ConfigError, InputError
from biograft.kb.sources.log import ReadLog
from biograft.recipe import SCHEDULES, TrainingConfig
from biograft.registry import Registry, load_object
from biograft.text.documents import Document
from biograft.text.formats import read_documents
from biograft.text.tasks import TaskConfig, read_task
from biograft.text.tasks.registry import ClassExample, Example, RankingExample, labels_of
from biograft.text.tasks.rows import DOCUMENT, to_examples

if TYPE_CHECKING:
    from biograft.models import TextEncoder
    from biograft.models.tasks.model import TaskModel

Dropout: TypeAlias = Annotated[float, Range(min=0, below=1)]


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskTraining(TrainingConfig):
    """Training with evaluation on dev after each epoch; the weights of the best epoch are kept.

    Training stops early after ``patience`` epochs without improvement (0: never), or at a dev
    score of 1.
    """

    epochs: Annotated[int, AtLeast(1)] = 60
    """Largest number of passes over the training examples."""
    batch_size: Annotated[int, AtLeast(1)] = 16
    """Examples of an update."""
    learning_rate: Annotated[float, Above(0)] = 3e-5
    """Highest learning rate."""
    schedule: Annotated[str, Choice(*SCHEDULES)] = "linear"
    """Course of the learning rate after the warm-up."""
    warmup_ratio: Ratio = 0.1
    """Share of the updates over which the learning rate rises."""
    clip: Annotated[float, AtLeast(0)] = 1.0
    """Bound on the norm of the gradient; 0: no bound."""
    save_every: Annotated[int, AtLeast(0)] = 0
    """Updates between checkpoints; 0: after each epoch only."""
    patience: Annotated[int, AtLeast(0)] = 0

    def __post_init__(self) -> None:
        check_fields(self)
        for name in ("steps", "eval_every", "max_minutes"):
            if value := getattr(self, name):
                raise ConfigError(
                    f"{name}: expected 0 (a task counts epochs, and is resumed by seeds), "
                    f"found {value}"
                )

    def for_run(self, seed: int) -> TrainingConfig:
        """Return the configuration of the training loop for one seed."""
        shared = {field.name: getattr(self, field.name) for field in fields(TrainingConfig)}
        return TrainingConfig(**{**shared, "seed": seed})


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchConfig(Config):
    """The seeds of a run, and how many of them a sweep chooses with."""

    choosing_seeds: int = 1
    """Number of seeds that a sweep compares with; the best combination is trained with all."""
    seeds: tuple[Annotated[int, AtLeast(0)], ...] = (1,)

    def __post_init__(self) -> None:
        check_fields(self)
        if not self.seeds or len(set(self.seeds)) < len(self.seeds):
            raise ConfigError(f"seeds: expected one or several different numbers: {self.seeds}")
        if not 1 <= self.choosing_seeds <= len(self.seeds):
            raise ConfigError(
                f"choosing_seeds: expected 1 to {len(self.seeds)} (the number of seeds), "
                f"found {self.choosing_seeds}"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskDataConfig:
    """The files of the examples; paths are relative to the working directory."""

    train: tuple[str, ...] = ()
    """Files to train on."""
    dev: tuple[str, ...] = ()
    """Files to choose the best epoch on."""
    test: tuple[str, ...] = ()
    """Files to evaluate the result on."""
    format: str = ""
    """Name of the format; empty: recognised by content."""
    has_splits: bool = False
    """For DDI: each file holds the whole corpus, of which one split is read."""
    dev_list: str = ""
    """For DDI: a list of pairs; their documents are dev, not train. Implies ``has_splits``."""
    grouped: bool = False
    """For ChemProt: the relation groups of BLURB instead of single relations."""
    schema: str = ""
    """For CMeIE: the schema file, whose relations are the labels instead of predicates."""
    name: str = ""
    """Name of the data set, for the model card; empty: its format, else the names of the files."""
    language: str = ""
    """Language of the data set, for the model card; empty: as its documents say."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NerConfig(Config):
    """Configuration of named entity recognition."""

    head: Annotated[str, Choice("softmax", "crf", "spans")] = "softmax"
    """``softmax``: each word is tagged by itself; ``crf``: linear-chain CRF; ``spans``: every span
    is scored, which finds nested entities."""
    scheme: Annotated[str, Choice("bio", "bioes")] = "bio"
    """Tag scheme of softmax and crf."""
    types: Annotated[str, Choice("ignore", "keep")] = "ignore"
    """``ignore``: one entity type, as in BLURB; ``keep``: the types of the files."""
    read: Annotated[str, Choice("passages", "sentences", "documents")] = "passages"
    """The unit of text: ``passages`` of the files (sentences of CoNLL, title and abstract), their
    ``sentences``, or whole ``documents``."""
    overlap: Annotated[int, AtLeast(0)] = 64
    """Tokens shared by successive windows of a text that exceeds the encoder's maximum length; at
    most half of a window."""
    max_span: Annotated[int, AtLeast(1)] = 64
    """Maximum length of an entity in words, for ``spans``."""
    relations: bool = False
    """With ``spans``: find the relations between mentions, too; F1 then counts relations, by the
    spans of both mentions and the type."""
    dropout: Dropout = 0.1
    """Dropout before the head."""
    training: TaskTraining = field(default_factory=TaskTraining)
    """Epochs, batch and learning rate."""

    def __post_init__(self) -> None:
        check_fields(self)
        if self.relations and self.head != "spans":
            raise ConfigError(f"relations: expected head = 'spans', found {self.head!r}")


@dataclass(frozen=True, slots=True, kw_only=True)
class InferenceConfig(Config):
    """Configuration of natural language inference."""

    dropout: Dropout = 0.1
    """Dropout before the head."""
    training: TaskTraining = field(default_factory=TaskTraining)
    """Epochs, batch and learning rate."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MatchingConfig(InferenceConfig):
    """Configuration of text matching."""

    positive: str = "1"
    """The label of matching texts, for which F1 is computed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassificationConfig(InferenceConfig):
    """Configuration of text classification."""

    several: bool = False
    """Multi-label: any number of classes may hold. Set by examples that are multi-label."""
    threshold: Annotated[float, Range(above=0, below=1)] = 0.5
    """Multi-label: the probability above which a class is predicted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RankingConfig(Config):
    """Configuration of answer ranking.

    A training batch holds ``training.batch_size`` correct answers, each with its wrong ones.
    """

    loss: Annotated[str, Choice("pairwise", "listwise")] = "pairwise"
    """``pairwise``: margin loss between a correct and each wrong answer; ``listwise``: -log p of
    the correct answer among those sampled with it."""
    margin: Annotated[float, Range(above=0, max=1)] = 0.3
    """Margin of ``pairwise``, between scores from 0 to 1."""
    negatives: Annotated[int, AtLeast(0)] = 1
    """Wrong answers sampled for each correct one, anew in each epoch; 0: all."""
    questions: Annotated[str, Choice("answered", "single")] = "answered"
    """``answered``: all questions with a correct answer; ``single``: those with exactly one, and
    wrong ones beside it. Applies to training and evaluation."""
    dropout: Dropout = 0.1
    """Dropout before the head."""
    training: TaskTraining = field(default_factory=TaskTraining)
    """Epochs, batch and learning rate."""


ORDERS = ("text", "roles")
_HAN = re.compile("[\u4e00-\u9fff]")


@dataclass(frozen=True, slots=True, kw_only=True)
class RelationConfig(Config):
    """Configuration of relation extraction."""

    negative: tuple[str, ...] = ("false", "DDI-false", "0")
    """Labels that state no relation; F1 counts the others."""
    head: Annotated[str, Choice("markers", "text")] = "markers"
    """``markers``: the states of both markers give the label, as published; ``text``: the marked
    text is classified as a whole, by a model that transformers opens."""
    order: Annotated[str, Choice(*ORDERS)] = "text"
    """Order of the two states: of the mentions in the ``text``, as published, or in the example
    (``roles``)."""
    named: bool = False
    """Whether both mentions stay in the text after their markers, for entity-aware models;
    otherwise markers replace them, as published."""
    dropout: Dropout = 0.1
    """Dropout before the head."""
    training: TaskTraining = field(default_factory=TaskTraining)
    """Epochs, batch and learning rate."""


@dataclass(frozen=True, slots=True)
class TaskExamples:
    """The examples of some files, and the number of rejected rows by reason."""

    examples: Sequence[Any]
    """Examples in the order of the files."""
    rejected: Mapping[str, int] = field(default_factory=Counter)
    """Number of rejected rows by reason."""
    name: str = ""
    """Name of the data set, for model cards."""
    language: str = ""
    """Its language, such as ``en``; empty: that of its documents, or Chinese by its characters."""

    def languages(self) -> list[str]:
        """Return the languages of the examples, as far as they are known."""
        if self.language:
            return [self.language]
        stated = {getattr(example, "language", "") for example in self.examples} - {""}
        text = "".join(map(str, self.examples[:100]))
        return sorted(stated) or (["zh"] if 5 * len(_HAN.findall(text)) > len(text) else [])

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
        """The metric that selects epochs and seeds, and compares runs."""
        return self.metrics[0]

    def create(
        self, encoder: TextEncoder, config: Any, examples: Sequence[Any]
    ) -> TaskModel[Any, Any]:
        """Create an untrained model whose labels come from the training examples.

        Args:
            encoder: Encoder, which is trained.
            config: Settings of the task.
            examples: Training examples.
        """
        model: TaskModel[Any, Any] = self._model.from_examples(encoder, config, examples)
        return model

    def build(
        self, encoder: TextEncoder, config: Any, labels: tuple[str, ...]
    ) -> TaskModel[Any, Any]:
        """Build a model for known labels, into which saved weights are loaded.

        Args:
            encoder: Encoder of the saved model.
            config: Settings of the task.
            labels: Labels of the saved model.
        """
        model: TaskModel[Any, Any] = self._model(encoder, config, labels)
        return model

    @property
    def _model(self) -> Any:
        return load_object(self.model) if isinstance(self.model, str) else self.model


@dataclass(frozen=True, slots=True)
class ExampleReader:
    """Reads files of one kind of record (pair, class, ranking, relation) in any format."""

    record: str

    def __call__(self, paths: Sequence[str], split: str, data: TaskDataConfig) -> TaskExamples:
        """Read files; from a file that holds several splits (DDI's zip), read only ``split``.

        Args:
            paths: Files of examples.
            split: Split they are: train, dev or test.
            data: How files are read.
        """
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
            if content.kind != self.record:
                raise InputError(
                    f"holds examples of the kind {content.kind}, not {self.record}", path=path
                )
            _check_labelled(content.examples, path)
            examples += content.examples
            rejected += content.log.rejected.counts
        return TaskExamples(examples, rejected)


reader_of = ExampleReader


def read_labelled_documents(paths: Sequence[str], split: str, data: TaskDataConfig) -> TaskExamples:
    """Read documents with mentions, of any format.

    Args:
        paths: Files or folders of documents.
        split: Split they are; unused, since documents do not name it.
        data: How files are read.
    """
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


def take_examples(kind: TaskKind, data: Any, split: str) -> TaskExamples:
    """Return the labelled examples of a list, a frame or a ``datasets.Dataset``.

    Args:
        kind: Kind of the task.
        data: The rows; documents of a task that is not of one kind of record.
        split: Name of the split, for errors.
    """
    of_documents = kind.read is read_labelled_documents
    record = DOCUMENT if of_documents else getattr(kind.read, "record", "")
    examples = to_examples(record, data, split)
    if not examples or (of_documents and not any(each.mentions for each in examples)):
        raise ConfigError(f"{split}: expected labelled examples, found none")
    if not of_documents:
        _check_labelled(examples, split)
    return TaskExamples(examples, name=f"{split} set")


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
    counting=("types", "relations"),
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
