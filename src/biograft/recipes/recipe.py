"""A recipe: one TOML file that says what is trained, on what, for what, and how."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from biograft.config import find_recipe, from_mapping, load_toml, set_value
from biograft.errors import ConfigError, MissingExtraError, nearest
from biograft.objectives import OBJECTIVES
from biograft.recipes.knowledge import KnowledgeConfig
from biograft.registry import Registry
from biograft.streams import STREAMS
from biograft.training import TrainingConfig

if TYPE_CHECKING:
    from biograft.nn import TextEncoder

_TABLES = ("encoder", "new", "knowledge", "stream", "objective", "training")
_FOLDER = Path(__file__).parent


NEW_MODELS: Registry[Any] = Registry(
    "kind of new model",
    {
        "bart": (
            "biograft.nn.seq2seq.config:NewSeq2Seq",
            "a model that reads a text and writes a name, its tokenizer learnt from the stream",
        ),
        "bert": (
            "biograft.nn.new_bert.config:NewBert",
            "a model that reads a text, its tokenizer learnt from the stream",
        ),
    },
)
"""The configuration of every model that can be made from scratch.

Its ``reads`` are the kinds of streams that it can learn from; ``create(texts, seed)`` makes it.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class EncoderConfig:
    """Which encoder is trained: a folder or a name of the hub, and how it makes one vector.

    What is not given comes from the files beside the weights; ``lower`` from the stream.
    """

    name: str
    pooling: str | None = None
    max_length: int | None = None
    lower: bool | None = None

    def load(self) -> TextEncoder:
        """Load the encoder."""
        try:
            from biograft.nn import TextEncoder
        except ModuleNotFoundError as error:
            raise MissingExtraError("models", "an encoder") from error
        return TextEncoder.from_pretrained(
            self.name, pooling=self.pooling, max_length=self.max_length, lower=self.lower
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class StartConfig(EncoderConfig):
    """Which model pre-training begins with; without a name one is made from scratch.

    ``dropout``, also in attention, is for models that write names.
    """

    name: str = ""
    dropout: float | None = None

    def __post_init__(self) -> None:
        if self.dropout is not None and not 0 <= self.dropout < 1:
            raise ConfigError(f"dropout: expected a share from 0 to below 1, found {self.dropout}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """What is trained, on what, for what, and how."""

    name: str
    about: str = ""
    encoder: StartConfig = field(default_factory=StartConfig)
    new_kind: str = ""
    """The kind of the model made from scratch; empty where ``encoder.name`` says which it is."""
    new: Any = None
    knowledge: KnowledgeConfig | None = None
    reads: str
    """The kind of the stream."""
    stream: Any
    objectives: Mapping[str, Any]
    training: TrainingConfig = field(default_factory=TrainingConfig)

    @classmethod
    def load(cls, name_or_path: str | Path, overrides: Sequence[str] = ()) -> Recipe:
        """Load a shipped recipe by name, or a file; overrides are ``table.key=value`` texts."""
        path = find_recipe(name_or_path, shipped_recipes())
        values = load_toml(path)
        knows = "knowledge" in values
        for override in overrides:
            set_value(values, override)
        if any(override.startswith("encoder.name=") for override in overrides) and not any(
            override.startswith("new.") for override in overrides
        ):
            values.pop("new", None)  # a model that is there takes the place of a new one
        if "knowledge" in values and not knows:
            raise ConfigError(
                f"recipe {path.stem}: has no knowledge layer to which knowledge.* (--vectors, "
                "--neighbours) could apply; take kebiolm or smedbert, or add a table [knowledge] "
                "to a recipe of your own"
            )
        return cls.from_values(path.stem, values)

    @classmethod
    def from_values(cls, name: str, values: Mapping[str, Any]) -> Recipe:
        """Make a recipe of plain values, checking every key and type."""
        known = ("about", *_TABLES)
        for key in values:
            if key not in known:
                raise ConfigError(f"recipe {name}: unknown key {key!r}; {nearest(key, known)}")
        tables = {table: _table(values, table) for table in _TABLES}
        stream = dict(tables["stream"])
        kind = stream.pop("kind", "synonym_pairs")
        if not tables["objective"]:
            raise ConfigError(f"recipe {name}: names no objective; known: {', '.join(OBJECTIVES)}")
        if bool(tables["encoder"].get("name")) == ("new" in values):
            raise ConfigError(
                f"recipe {name}: expected either encoder.name, the model to begin with, or a table "
                f"[new] for one made from scratch; found {'both' if 'new' in values else 'neither'}"
            )
        if kind in STREAMS:
            _refuse_unread(name, kind, {key: tables[key] for key in _TABLES if key in values})
        return cls(
            name=name,
            about=str(values.get("about", "")),
            encoder=from_mapping(StartConfig, tables["encoder"], "encoder."),
            new_kind=str(tables["new"].get("kind", "")),
            new=_configure_new(tables["new"], kind) if "new" in values else None,
            knowledge=from_mapping(KnowledgeConfig, tables["knowledge"], "knowledge.")
            if "knowledge" in values
            else None,
            reads=kind,
            stream=_configure(STREAMS, kind, stream, "stream.kind", "stream."),
            objectives={
                entry: _configure(OBJECTIVES, entry, table, "objective", f"objective.{entry}.")
                for entry, table in tables["objective"].items()
            },
            training=from_mapping(TrainingConfig, tables["training"], "training."),
        )

    def to_json(self) -> dict[str, Any]:
        """Give the whole configuration as plain values."""
        parts = {
            "recipe": self.name,
            "encoder": asdict(self.encoder),
            **({"new": {"kind": self.new_kind, **asdict(self.new)}} if self.new_kind else {}),
            **({"knowledge": self.knowledge.to_json()} if self.knowledge else {}),
            "stream": {"kind": self.reads, **asdict(self.stream)},
            "objective": {name: asdict(part) for name, part in self.objectives.items()},
            "training": asdict(self.training),
        }
        plain: dict[str, Any] = json.loads(json.dumps(parts, default=str))
        return plain


def shipped_recipes() -> dict[str, Path]:
    """Give the recipes that come with biograft, by name."""
    return {path.stem: path for path in sorted(_FOLDER.glob("*.toml"))}


_VECTOR = "says how a text becomes one vector"
_MEANING = {
    "pooling": _VECTOR,
    "max_length": _VECTOR,
    "lower": _VECTOR,
    "dropout": "is for models that write names",
}
_UNREAD = {
    "synonym_pairs": ("dropout",),
    "annotated_text": ("pooling", "max_length", "lower", "dropout"),
    "name_templates": ("pooling", "lower"),
}
"""What of the table ``encoder`` each kind of stream has no use for."""


def _refuse_unread(name: str, kind: Any, values: Mapping[str, Any]) -> None:
    """Refuse what a recipe of this stream has no use for, rather than passing it over."""
    if "knowledge" in values and kind != "annotated_text":
        raise ConfigError(f"recipe {name}: [knowledge] is for stream.kind = annotated_text")
    given = values.get("encoder", {})
    for key in _UNREAD.get(kind, ()):
        if key in given:
            raise ConfigError(
                f"encoder.{key}: {_MEANING[key]}; stream.kind = {kind} has no use for it, leave it "
                "out"
            )
    for key in ("max_length", "dropout"):
        if key in given and "new" in values:
            raise ConfigError(f"encoder.{key}: a model made from scratch has new.{key} instead")
    for objective in values.get("objective", {}):
        if objective in OBJECTIVES and (reads := OBJECTIVES.load(objective).reads) != kind:
            raise ConfigError(f"objective.{objective}: is for stream.kind = {reads}, found {kind}")


def _configure_new(table: Mapping[str, Any], stream: str) -> Any:
    """Make the configuration of a model made from scratch."""
    values = dict(table)
    if "kind" not in values:
        raise ConfigError(f"new: missing key 'kind'; known: {', '.join(NEW_MODELS)}")
    kind = values.pop("kind")
    if kind in NEW_MODELS and stream not in (reads := NEW_MODELS.load(kind).reads):
        raise ConfigError(
            f"new.kind: {kind} is for stream.kind = {' or '.join(reads)}, found {stream}"
        )
    return _configure(NEW_MODELS, kind, values, "new.kind", "new.")


def _table(values: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    table = values.get(name, {})
    if not isinstance(table, Mapping):
        raise ConfigError(f"{name}: expected a table, found {table!r}")
    return table


def _configure(registry: Registry[Any], name: Any, values: Any, where: str, prefix: str) -> Any:
    """Make the configuration of a registered thing."""
    if name not in registry:
        raise ConfigError(f"{where}: no {registry.kind} is called {name!r}; "
                          f"{nearest(str(name), registry)}")  # fmt: skip
    if not isinstance(values, Mapping):
        raise ConfigError(f"{prefix[:-1]}: expected a table, found {values!r}")
    return from_mapping(registry.load(name), values, prefix)
