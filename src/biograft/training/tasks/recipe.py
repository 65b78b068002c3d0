"""A recipe: one TOML file that says which task is trained, with which encoder, and how."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Self

from biograft.config import from_mapping
from biograft.errors import ConfigError, nearest
from biograft.models.tasks.task import TASKS, SearchConfig, TaskDataConfig, TaskKind
from biograft.recipe import Recipe, read_table
from biograft.training.pretraining.recipe import EncoderConfig

if TYPE_CHECKING:
    from biograft.models import TextEncoder

_TABLES = ("encoder", "config", "search", "data")


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskEncoderConfig(EncoderConfig):
    """The encoder to train, and limits of its knowledge for measurements.

    For encoders that take entity inputs: ``entity_coverage`` is the ratio of entity mentions of a
    text that it receives, ``n_neighbours`` the number of neighbours of each entity. Without a value
    nothing is limited.
    """

    entity_coverage: float | None = None
    n_neighbours: int | None = None

    def load(self) -> TextEncoder:
        """Load the encoder with its limits."""
        encoder = EncoderConfig.load(self)  # super() does not work in a class with slots
        if self.entity_coverage is not None or self.n_neighbours is not None:
            from biograft.models.knowledge.entity_finder import limit_coverage
            from biograft.models.knowledge.layers import keep_neighbours

            if self.n_neighbours is not None:
                keep_neighbours(encoder.model, self.n_neighbours)
            if self.entity_coverage is not None:
                limit_coverage(encoder, self.entity_coverage)
        return encoder


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskRecipe(Recipe):
    """A recipe of task training: task, encoder, settings."""

    kind: ClassVar[str] = "task"

    task: str
    """Name of the task."""
    encoder: TaskEncoderConfig
    """Encoder to fine-tune, with its knowledge."""
    config: Any
    """The configuration of the task."""
    search: SearchConfig = field(default_factory=SearchConfig)
    """Seeds and learning rates to try."""
    data: TaskDataConfig = field(default_factory=TaskDataConfig)
    """Files of the examples."""

    @classmethod
    def from_tables(cls, name: str, values: Mapping[str, Any]) -> Self:
        """Make a recipe of its tables, checking every key and type."""
        known = ("about", "task", *_TABLES)
        for key in values:
            if key not in known:
                raise ConfigError(f"recipe {name}: unknown key {key!r}; {nearest(key, known)}")
        task = _load_task(name, values.get("task"))
        tables = {table: read_table(values, table) for table in _TABLES}
        if "learning_rates" in tables["search"]:
            raise ConfigError(
                "search.learning_rates: a recipe has one rate (config.training.learning_rate); "
                "search with --sweep training.learning_rate=1e-5,3e-5"
            )
        return cls(
            name=name,
            about=str(values.get("about", "")),
            task=str(values["task"]),
            encoder=from_mapping(TaskEncoderConfig, tables["encoder"], "encoder."),
            config=from_mapping(task.config, tables["config"], "config."),
            search=from_mapping(SearchConfig, tables["search"], "search."),
            data=from_mapping(TaskDataConfig, tables["data"], "data."),
        )


def _load_task(name: str, task: Any) -> TaskKind:
    if task is None:
        raise ConfigError(f"recipe {name}: missing key 'task'; known: {', '.join(TASKS)}")
    if not isinstance(task, str) or task not in TASKS:
        raise ConfigError(
            f"recipe {name}: no {TASKS.kind} is called {task!r}; {nearest(str(task), TASKS)}"
        )
    return TASKS.load(task)
