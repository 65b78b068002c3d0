"""What a recipe says of its knowledge layers: the table ``[knowledge]``."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from biograft.config import find_recipe, from_mapping, load_toml, set_value
from biograft.errors import ConfigError, MissingExtraError, nearest
from biograft.nn.knowledge_layers import MEMORY, NEIGHBOURS, TOLD_LAYERS, check_layer
from biograft.objectives import OBJECTIVES
from biograft.objectives.examples import WAYS
from biograft.pretraining.stream_configs import STREAMS
from biograft.registry import Registry
from biograft.training import TrainingConfig

if TYPE_CHECKING:
    from biograft.nn import TextEncoder


@dataclass(frozen=True, slots=True, kw_only=True)
class KnowledgeConfig:
    """Which knowledge layers are put into the encoder, where, and how their entities begin.

    ``after`` says behind how many layers of the encoder each stands: ``{ entity_memory = 8 }``; a
    number alone is for ``entity_memory``. All share one table of entities. ``vectors`` is a folder
    of `biograft graph embed`; an entity that it lacks begins at random, and so do all without it.

    For ``entity_memory``: ``n_nearest`` entities make up what a mention is told; they are sought
    in ``n_probed`` clusters of the table, 0: in all of it, exactly.

    For ``neighbour_attention``: ``neighbours`` is a folder of `biograft graph neighbours`, of
    which a mention sees ``n_neighbours``.

    For all that are told entities (``neighbour_attention``, ``entity_fusion``): the table holds the
    ``whole_graph``, all that ``vectors`` and ``neighbours`` have, so that texts to come may name
    any entity, or only those of the text and their neighbours. ``shown`` says which mentions are
    told theirs in training: those that are ``hidden`` from the tokens, or ``all``. With
    ``neutral_start`` an untrained layer changes nothing.
    """

    after: int | Mapping[str, int] = 8
    vectors: Path | None = None
    dim: int = 100
    freeze: bool = False
    n_nearest: int = 100
    n_probed: int = 0
    fusion_norm: bool = False
    neighbours: Path | None = None
    n_neighbours: int = 10
    whole_graph: bool = True
    shown: str = "hidden"
    type_attention: bool = True
    node_attention: bool = True
    neutral_start: bool = True

    def __post_init__(self) -> None:
        for name, after in self.layers.items():
            check_layer(name)
            if after < 0:
                raise ConfigError(f"knowledge.after: expected at least 0, found {after}")
        for name, least in (("dim", 1), ("n_nearest", 1), ("n_probed", 0), ("n_neighbours", 1)):
            if getattr(self, name) < least:
                raise ConfigError(
                    f"knowledge.{name}: expected at least {least}, found {getattr(self, name)}"
                )
        if self.shown not in WAYS:
            raise ConfigError(
                f"knowledge.shown: expected one of {', '.join(WAYS)}, found {self.shown!r}"
            )
        if NEIGHBOURS in self.layers and self.neighbours is None:
            raise ConfigError(
                "knowledge.neighbours: neighbour_attention reads a folder of `biograft graph "
                "neighbours`; name it (--neighbours)"
            )
        if NEIGHBOURS not in self.layers and self.neighbours is not None:
            raise ConfigError(
                "knowledge.neighbours: no layer of the recipe reads neighbours; leave it out, or "
                "add neighbour_attention to knowledge.after"
            )

    @property
    def layers(self) -> Mapping[str, int]:
        """Behind how many layers of the encoder each knowledge layer stands, by its name."""
        return {MEMORY: self.after} if isinstance(self.after, int) else dict(self.after)

    @property
    def tells(self) -> bool:
        """Whether a layer must be told which entities mentions are linked to."""
        return any(name in self.layers for name in TOLD_LAYERS)

    def of_model(self) -> dict[str, Any]:
        """Give the settings under their names in the configuration of a model."""
        own = (
            *("n_nearest", "n_probed", "fusion_norm", "n_neighbours"),
            *("type_attention", "node_attention", "neutral_start"),
        )
        told = {name: getattr(self, name) for name in own}
        return {"knowledge_after": dict(self.layers), "freeze_entities": self.freeze, **told}

    def to_json(self) -> dict[str, Any]:
        """Give what decides a run as plain values, those of layers that are not there left out."""
        chosen = asdict(self)
        of_layers = {
            MEMORY: ("n_nearest", "n_probed", "fusion_norm"),
            NEIGHBOURS: ("neighbours", "n_neighbours", "type_attention", "node_attention"),
        }
        for layer, names in of_layers.items():
            if layer not in self.layers:
                for name in names:
                    del chosen[name]
        if not self.tells:
            del chosen["whole_graph"], chosen["shown"], chosen["neutral_start"]
        if not chosen.get("n_probed", 1):
            del chosen["n_probed"]
        return chosen


_TABLES = ("encoder", "new", "knowledge", "stream", "objective", "training")
_FOLDER = Path(__file__).parents[1] / "recipes"


NEW_MODELS: Registry[Any] = Registry(
    "kind of new model",
    {
        "bart": (
            "biograft.nn.scratch_configs:NewSeq2Seq",
            "a model that reads a text and writes a name, its tokenizer learnt from the stream",
        ),
        "bert": (
            "biograft.nn.scratch_configs:NewBert",
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
