"""The pre-training recipe: an encoder, knowledge layers, a stream, objectives and training."""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Self

from biograft.config import (
    AtLeast,
    Choice,
    Range,
    check_fields,
    from_mapping,
    set_value,
)
from biograft.errors import ConfigError, MissingExtraError, nearest
from biograft.models.knowledge_layers import NEIGHBOURS, read_layers
from biograft.models.scratch_configs import NewDecoder
from biograft.recipe import Recipe, read_table
from biograft.registry import Registry
from biograft.training import TrainingConfig
from biograft.training.objectives import OBJECTIVES
from biograft.training.objectives.examples import ENTITY_VISIBILITIES
from biograft.training.pretraining.stream_configs import STREAMS

if TYPE_CHECKING:
    from biograft.models import TextEncoder


@dataclass(frozen=True, slots=True, kw_only=True)
class KnowledgeConfig:
    """The knowledge layers that are added to the encoder, and the entity table that they share.

    ``layers`` has a table for each layer: ``[knowledge.layers.entity_memory]``. ``vectors`` is a
    folder of `biograft graph embed`; an entity without a vector starts at random, and so do all
    without the folder, in ``dim`` dimensions. ``freeze`` excludes the table from training.
    ``neighbours``, a folder of `biograft graph neighbours`, is for ``neighbour_attention``.

    For layers that take entity inputs (``neighbour_attention``, ``entity_fusion``): the table holds
    the ``whole_graph``, all entities of ``vectors`` and ``neighbours``, which later texts may
    mention, or only those of the text and their neighbours. ``entity_visibility`` says for which
    mentions the layers receive the entity in training: ``masked`` ones, these and half of the
    others (``mixed``), or ``all``.
    """

    layers: Mapping[str, Any]
    vectors: Path | None = None
    dim: Annotated[int, AtLeast(1)] = 100
    freeze: bool = False
    neighbours: Path | None = None
    whole_graph: bool = True
    entity_visibility: Annotated[str, Choice(*ENTITY_VISIBILITIES)] = "mixed"

    def __post_init__(self) -> None:
        check_fields(self, "knowledge.")
        object.__setattr__(self, "layers", read_layers(self.layers, "knowledge.layers"))
        if not self.layers:
            raise ConfigError(
                "knowledge.layers: expected a table for each knowledge layer, such as "
                "[knowledge.layers.entity_memory], found none"
            )
        if NEIGHBOURS in self.layers and self.neighbours is None:
            raise ConfigError(
                "knowledge.neighbours: neighbour_attention reads a folder of `biograft graph "
                "neighbours`; name it (--neighbours)"
            )
        if NEIGHBOURS not in self.layers and self.neighbours is not None:
            raise ConfigError(
                "knowledge.neighbours: no layer of the recipe reads neighbours; leave it out, or "
                "add a table [knowledge.layers.neighbour_attention]"
            )

    @property
    def takes_entity_inputs(self) -> bool:
        """Whether a layer needs the linked entities of mentions as inputs."""
        return any(layer.takes_entity_inputs for layer in self.layers.values())

    def model_settings(self) -> dict[str, Any]:
        """Return the fields of ``KnowledgeBertConfig`` that the recipe sets."""
        layers = {name: asdict(layer) for name, layer in self.layers.items()}
        return {"knowledge_layers": layers, "freeze_entities": self.freeze}


_TABLES = ("encoder", "new", "knowledge", "stream", "objective", "training")


NEW_MODELS: Registry[Any] = Registry(
    "kind of new model",
    {
        "bart": (
            "biograft.models.scratch_configs:NewSeq2Seq",
            "an encoder-decoder; its tokenizer is trained on the stream",
        ),
        "bert": (
            "biograft.models.scratch_configs:NewBert",
            "an encoder; its tokenizer is trained on the stream",
        ),
    },
)
"""The configuration of every model that can be made from scratch.

Its ``stream_kinds`` are the kinds of streams that it can be trained on; ``create(texts, seed)``
makes it.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class EncoderConfig:
    """The encoder to train: a folder or a name of the hub, and its pooling.

    What is not given comes from the files beside the weights; ``lower`` from the stream.
    """

    name: str
    pooling: str | None = None
    max_length: int | None = None
    lower: bool | None = None

    def load(self) -> TextEncoder:
        """Load the encoder."""
        try:
            from biograft.models import TextEncoder
        except ModuleNotFoundError as error:
            raise MissingExtraError("models", "an encoder") from error
        return TextEncoder.from_pretrained(
            self.name, pooling=self.pooling, max_length=self.max_length, lower=self.lower
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class StartConfig(EncoderConfig):
    """Initial model of pre-training; without a name one is made from scratch.

    ``dropout``, also in attention, applies to models that generate names, as does the ``decoder``
    that is added if the model is an encoder.
    """

    name: str = ""
    dropout: Annotated[float, Range(min=0, below=1)] | None = None
    decoder: NewDecoder | None = None

    def __post_init__(self) -> None:
        check_fields(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class PretrainingRecipe(Recipe):
    """A recipe of pre-training: model, stream, objectives, settings."""

    kind: ClassVar[str] = "pretrain"

    encoder: StartConfig = field(default_factory=StartConfig)
    new_kind: str = ""
    """The kind of the model made from scratch; empty where ``encoder.name`` gives the model."""
    new: Any = None
    knowledge: KnowledgeConfig | None = None
    stream_kind: str
    """The kind of the stream."""
    stream: Any
    objectives: Mapping[str, Any]
    training: TrainingConfig = field(default_factory=TrainingConfig)

    @classmethod
    def override(
        cls, name: str, values: MutableMapping[str, Any], overrides: Sequence[str]
    ) -> None:
        """Set the values that the user changes; an encoder replaces a model from scratch."""
        had_knowledge = "knowledge" in values
        for override in overrides:
            set_value(values, override)
        if any(override.startswith("encoder.name=") for override in overrides) and not any(
            override.startswith("new.") for override in overrides
        ):
            values.pop("new", None)
        if "knowledge" in values and not had_knowledge:
            raise ConfigError(
                f"recipe {name}: has no knowledge layer to which knowledge.* (--vectors, "
                "--neighbours) could apply; take kebiolm or smedbert, or add a table [knowledge] "
                "to a recipe of your own"
            )

    @classmethod
    def from_tables(cls, name: str, values: Mapping[str, Any]) -> Self:
        """Make a recipe of its tables, checking every key and type."""
        known = ("about", *_TABLES)
        for key in values:
            if key not in known:
                raise ConfigError(f"recipe {name}: unknown key {key!r}; {nearest(key, known)}")
        tables = {table: read_table(values, table) for table in _TABLES}
        stream = dict(tables["stream"])
        kind = stream.pop("kind", "synonym_pairs")
        _check_tables(name, kind, values, tables)
        return cls(
            name=name,
            about=str(values.get("about", "")),
            encoder=from_mapping(StartConfig, tables["encoder"], "encoder."),
            new_kind=str(tables["new"].get("kind", "")),
            new=_configure_new(tables["new"], kind) if "new" in values else None,
            knowledge=from_mapping(KnowledgeConfig, tables["knowledge"], "knowledge.")
            if "knowledge" in values
            else None,
            stream_kind=kind,
            stream=_configure(STREAMS, kind, stream, "stream.kind", "stream."),
            objectives={
                entry: _configure(OBJECTIVES, entry, table, "objective", f"objective.{entry}.")
                for entry, table in tables["objective"].items()
            },
            training=from_mapping(TrainingConfig, tables["training"], "training."),
        )

    def to_json(self) -> dict[str, Any]:
        """Return the whole configuration as plain values."""
        parts = {
            "encoder": asdict(self.encoder),
            **({"new": {"kind": self.new_kind, **asdict(self.new)}} if self.new_kind else {}),
            **({"knowledge": asdict(self.knowledge)} if self.knowledge else {}),
            "stream": {"kind": self.stream_kind, **asdict(self.stream)},
            "objective": {name: asdict(part) for name, part in self.objectives.items()},
            "training": asdict(self.training),
        }
        return self.as_plain(parts)


def _check_tables(
    name: str, kind: Any, values: Mapping[str, Any], tables: Mapping[str, Mapping[str, Any]]
) -> None:
    """Check that a recipe has objectives, one model, and nothing that its stream does not use."""
    if not tables["objective"]:
        raise ConfigError(f"recipe {name}: names no objective; known: {', '.join(OBJECTIVES)}")
    if bool(tables["encoder"].get("name")) == ("new" in values):
        raise ConfigError(
            f"recipe {name}: expected either encoder.name, the model to begin with, or a table "
            f"[new] for one made from scratch; found {'both' if 'new' in values else 'neither'}"
        )
    if kind in STREAMS:
        _refuse_unused(name, kind, {key: tables[key] for key in _TABLES if key in values})


_VECTOR = "determines how a text becomes one vector"
_PURPOSES = {
    "pooling": _VECTOR,
    "max_length": _VECTOR,
    "lower": _VECTOR,
    "dropout": "applies to models that generate names",
    "decoder": "applies to models that generate names",
}
_UNUSED = {
    "synonym_pairs": ("dropout", "decoder"),
    "annotated_text": ("pooling", "max_length", "lower", "dropout", "decoder"),
    "name_templates": ("pooling", "lower"),
}
"""The keys of the table ``encoder`` that each kind of stream does not use."""


def _refuse_unused(name: str, kind: Any, values: Mapping[str, Any]) -> None:
    """Refuse tables and keys that a recipe of this stream does not use."""
    if "knowledge" in values and kind != "annotated_text":
        raise ConfigError(f"recipe {name}: [knowledge] is for stream.kind = annotated_text")
    given = values.get("encoder", {})
    for key in _UNUSED.get(kind, ()):
        if key in given:
            raise ConfigError(
                f"encoder.{key}: {_PURPOSES[key]}; stream.kind = {kind} does not use it, leave it "
                "out"
            )
    for key in ("max_length", "dropout"):
        if key in given and "new" in values:
            raise ConfigError(f"encoder.{key}: a model made from scratch has new.{key} instead")
    if "decoder" in given and "new" in values:
        raise ConfigError("encoder.decoder: is for a given encoder; set encoder.name")
    for objective in values.get("objective", {}):
        if objective in OBJECTIVES and (stream := OBJECTIVES.load(objective).stream_kind) != kind:
            raise ConfigError(f"objective.{objective}: is for stream.kind = {stream}, found {kind}")


def _configure_new(table: Mapping[str, Any], stream: str) -> Any:
    """Make the configuration of a model made from scratch."""
    values = dict(table)
    if "kind" not in values:
        raise ConfigError(f"new: missing key 'kind'; known: {', '.join(NEW_MODELS)}")
    kind = values.pop("kind")
    if kind in NEW_MODELS and stream not in (kinds := NEW_MODELS.load(kind).stream_kinds):
        raise ConfigError(
            f"new.kind: {kind} is for stream.kind = {' or '.join(kinds)}, found {stream}"
        )
    return _configure(NEW_MODELS, kind, values, "new.kind", "new.")


def _configure(registry: Registry[Any], name: Any, values: Any, where: str, prefix: str) -> Any:
    """Make the configuration of a registered thing."""
    if name not in registry:
        raise ConfigError(
            f"{where}: no {registry.kind} is called {name!r}; {nearest(str(name), registry)}"
        )
    if not isinstance(values, Mapping):
        raise ConfigError(f"{prefix[:-1]}: expected a table, found {values!r}")
    return from_mapping(registry.load(name), values, prefix)
