"""A recipe: one TOML file that says which task is trained, with which encoder, and how."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from biograft.config import find_recipe, from_mapping, load_toml, set_value
from biograft.errors import ConfigError, MissingExtraError, nearest
from biograft.pretraining.recipe import EncoderConfig
from biograft.tasks.configs import DataConfig, SearchConfig
from biograft.tasks.task import TASKS, TaskKind

if TYPE_CHECKING:
    from biograft.nn import TextEncoder

_FOLDER = Path(__file__).with_name("recipes")
_TABLES = ("encoder", "config", "search", "data")


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskEncoderConfig(EncoderConfig):
    """Which encoder is trained, and how much of what it knows it is told.

    For encoders that see the neighbours of the entities that a text names: ``told_share`` is the
    share of these, ``n_neighbours`` how many of each are seen; what is not given stays as it is.
    """

    told_share: float | None = None
    n_neighbours: int | None = None

    def load(self) -> TextEncoder:
        """Load the encoder, told as much as is said here."""
        encoder = EncoderConfig.load(self)  # super() does not work in a class with slots
        if self.told_share is not None or self.n_neighbours is not None:
            encoder.limit_knowledge(self.told_share, self.n_neighbours)
        return encoder


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskRecipe:
    """Which task is trained, with which encoder, and how."""

    name: str
    kind: str
    about: str = ""
    encoder: TaskEncoderConfig
    config: Any
    """The configuration of the kind."""
    search: SearchConfig = field(default_factory=SearchConfig)
    data: DataConfig = field(default_factory=DataConfig)

    @classmethod
    def load(cls, name_or_path: str | Path, overrides: Sequence[str] = ()) -> TaskRecipe:
        """Load a shipped recipe by name, or a file; overrides are ``table.key=value`` texts."""
        path = find_recipe(name_or_path, shipped_recipes())
        values = load_toml(path)
        for override in overrides:
            set_value(values, override)
        return cls.from_values(path.stem, values)

    @classmethod
    def from_values(cls, name: str, values: Mapping[str, Any]) -> TaskRecipe:
        """Make a recipe of plain values, checking every key and type."""
        known = ("about", "kind", *_TABLES)
        for key in values:
            if key not in known:
                raise ConfigError(f"recipe {name}: unknown key {key!r}; {nearest(key, known)}")
        kind = _load_kind(name, values.get("kind"))
        tables = {table: values.get(table, {}) for table in _TABLES}
        for table, found in tables.items():
            if not isinstance(found, Mapping):
                raise ConfigError(f"{table}: expected a table, found {found!r}")
        return cls(
            name=name,
            kind=str(values["kind"]),
            about=str(values.get("about", "")),
            encoder=from_mapping(TaskEncoderConfig, tables["encoder"], "encoder."),
            config=from_mapping(kind.config, tables["config"], "config."),
            search=from_mapping(SearchConfig, tables["search"], "search."),
            data=from_mapping(DataConfig, tables["data"], "data."),
        )

    def to_json(self) -> dict[str, Any]:
        """Give the whole configuration as plain values."""
        plain: dict[str, Any] = json.loads(json.dumps(asdict(self), default=str))
        return plain


def shipped_recipes() -> dict[str, Path]:
    """Give the recipes that come with biograft, by name."""
    return {path.stem: path for path in sorted(_FOLDER.glob("*.toml"))}


def _load_kind(name: str, kind: Any) -> TaskKind:
    if not isinstance(kind, str) or kind not in TASKS:
        raise ConfigError(
            f"recipe {name}: no {TASKS.kind} is called {kind!r}; {nearest(str(kind), TASKS)}"
        )
    try:
        return TASKS.load(kind)
    except ModuleNotFoundError as error:
        raise MissingExtraError("models", "a model of a task") from error
