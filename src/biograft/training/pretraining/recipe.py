"""Pre-training recipes: an encoder, knowledge layers, a stream, objectives and training.

The defaults of streams are the published settings. ``pretrain`` runs a recipe.
"""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from biograft.config import (
    AtLeast,
    Choice,
    Range,
    Ratio,
    check_fields,
    from_mapping,
    set_value,
)
from biograft.display import Shown
from biograft.errors import ConfigError, MissingExtraError, nearest
from biograft.kb import KnowledgeBase
from biograft.models.adapters import LoraSettings
from biograft.models.knowledge_layers import NEIGHBOURS, read_layers
from biograft.models.scratch_configs import NewDecoder
from biograft.progress import Progress
from biograft.recipe import Overrides, Recipe, RecipeSource, read_table
from biograft.registry import Registry, load_object
from biograft.training import TrainingConfig
from biograft.training.objectives import OBJECTIVES
from biograft.training.objectives.configs import PartConfig
from biograft.training.objectives.examples import ENTITY_VISIBILITIES
from biograft.training.pretraining.substitution import SubstitutionConfig
from biograft.training.run_folder import sole_run

if TYPE_CHECKING:
    from biograft.models import TextEncoder
    from biograft.training import TrainingResult


@dataclass(frozen=True, slots=True, kw_only=True)
class PairStreamConfig(PartConfig):
    """Settings of any stream of pairs of texts, which an encoder reads.

    ``languages`` are those of the names that are read (empty: all). ``bucket_batches``, where above
    0, groups pairs of similar length within so many batches, which saves padding.

    ``dev`` is a gold standard in the format ``dev_format`` (`biograft evaluate link`). At each
    evaluation (``training.eval_every``) its mentions are linked to their nearest names, and the
    encoder of the best evaluation is kept.
    """

    stream_kind: ClassVar[str] = "synonym_pairs"

    languages: tuple[str, ...] = ()
    lowercase: bool = True
    """Lower-case all texts."""
    dev: Path | None = None
    dev_format: str = ""
    bucket_batches: Annotated[int, AtLeast(0)] = 0
    seed: Annotated[int, AtLeast(0)] = 33
    """Seed of order and sampling."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SynonymPairsConfig(PairStreamConfig):
    """Settings of the pairs of names to learn from.

    At most ``max_pairs`` pairs of one concept are sampled, by ``seed`` (0: all pairs).
    ``cross_language`` keeps pairs of different languages only. ``trade_names`` adds to a concept
    the names of its trade names and of the concepts that it is a trade name of. ``extra_pairs`` is
    a file of ``id||name||name`` lines to add.
    """

    implementation: ClassVar[str] = "biograft.training.pretraining.alignment:SynonymPairs"

    max_pairs: Annotated[int, AtLeast(0)] = 50
    cross_language: bool = False
    trade_names: bool = False
    extra_pairs: Path | None = None


MIN_LENGTH, MAX_LENGTH = 8, 32_767


@dataclass(frozen=True, slots=True, kw_only=True)
class AnnotatedTextConfig(PartConfig):
    """Settings of reading annotated text as sequences of tokens.

    ``shards`` is a folder of `biograft corpus annotate`; its tokens are stored in ``cache`` (by
    default beside it). With ``pack`` a sequence of at most ``max_length`` tokens holds several
    documents if they fit, otherwise one or a part of one. ``two_segments`` splits every sequence
    in two at the end of a sentence, for sentence_order and next_sentence; with
    ``random_next_probability`` the second segment is replaced by one of another document.
    ``bucket_batches``, where above 0, groups sequences of similar length within so many batches,
    which saves padding.

    A sequence has at most ``max_mentions`` mentions, those with the best scores (0: no limit), and
    none with a score below ``min_score``. Concepts with fewer than ``min_count`` mentions are not
    in the entity table.

    ``segmentation`` is a folder of `biograft corpus segment` with the segments of long entities.
    With a table ``substitution`` copies of the documents are read, too, in which entities are
    replaced by synonyms or by other entities. They are not packed together, so that a held-out
    document is held out in all its copies.

    Training is evaluated on ``held_out``, another folder of annotated text, by default on a
    hundredth of the sequences, which are then no training data.

    ``workers`` processes pack the shards (0: one per core); the sequences do not depend on it.
    """

    stream_kind: ClassVar[str] = "annotated_text"
    implementation: ClassVar[str] = "biograft.training.pretraining.packed_text:open_packed"

    shards: Path
    held_out: Path | None = None
    cache: Path | None = None
    max_length: Annotated[int, Range(min=MIN_LENGTH, max=MAX_LENGTH)] = 512
    pack: bool = True
    two_segments: bool = False
    random_next_probability: Ratio = 0.0
    bucket_batches: Annotated[int, AtLeast(0)] = 0
    max_mentions: Annotated[int, AtLeast(0)] = 50
    min_score: Annotated[float, AtLeast(0)] = 0.0
    min_count: Annotated[int, AtLeast(0)] = 1
    segmentation: Path | None = None
    substitution: SubstitutionConfig | None = None
    workers: Annotated[int, AtLeast(0)] = 0

    def __post_init__(self) -> None:
        check_fields(self)
        if self.two_segments and self.pack:
            raise ConfigError(
                "two_segments: both segments are of one document, but pack puts several in a "
                "sequence; set pack = false"
            )
        if self.substitution is not None and self.pack:
            raise ConfigError(
                "substitution: a document and its copies are held out together, but pack puts "
                "several documents in a sequence; set pack = false"
            )
        if self.random_next_probability and not self.two_segments:
            raise ConfigError(
                "random_next_probability: there is no second segment to replace; set two_segments"
            )

    def packing_settings(self) -> dict[str, Any]:
        """Return the settings that determine the packed sequences, as plain values."""
        settings = asdict(self)
        left_out = {"shards", "held_out", "cache", "workers", "segmentation"}
        left_out |= {"random_next_probability", "bucket_batches"}
        if self.substitution is None:
            left_out.add("substitution")
        return {key: settings[key] for key in settings if key not in left_out}


@dataclass(frozen=True, slots=True, kw_only=True)
class NameTemplatesConfig(PartConfig):
    """Settings of sentences made from a knowledge base.

    The sentence of a concept has at most ``max_definitions`` definitions, cut to
    ``definition_words`` words; without a definition, at most ``max_synonyms`` names. ``lower``
    lowercases all text; ``prompt`` gives the decoder ``mention is``. ``languages`` keeps names and
    definitions in these languages only (empty: all). ``bucket_batches``, where above 0, groups
    examples of similar length within so many batches, which saves padding.
    """

    stream_kind: ClassVar[str] = "name_templates"
    implementation: ClassVar[str] = "biograft.training.pretraining.generation:NameTemplates"

    lower: bool = True
    languages: tuple[str, ...] = ()
    prompt: bool = True
    max_synonyms: Annotated[int, AtLeast(1)] = 3
    max_definitions: Annotated[int, AtLeast(1)] = 2
    definition_words: Annotated[int, AtLeast(1)] = 384
    bucket_batches: Annotated[int, AtLeast(0)] = 0
    seed: Annotated[int, AtLeast(0)] = 33
    """Seed of order and sampling."""


STREAMS: Registry[Any] = Registry(
    "stream",
    {
        "synonym_pairs": (
            "recipe:SynonymPairsConfig",
            "pairs of names of one concept of a knowledge base",
        ),
        "annotated_text": (
            "recipe:AnnotatedTextConfig",
            "running text with linked mentions, as sequences of tokens",
        ),
        "name_templates": (
            "recipe:NameTemplatesConfig",
            "sentences about the concepts of a knowledge base, and the names to generate",
        ),
    },
    group="biograft.streams",
    home="biograft.training.pretraining",
)
"""The configurations of all streams; ``stream_kind`` says which objectives learn from one."""


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
    """The encoder to train: a folder or a name of the hub, its pooling and its prompts.

    What is not given comes from the files beside the weights; ``lower`` from the stream. Of a pair
    of names the first has the ``query_prompt``, the second the ``document_prompt``.
    ``query_encoder`` names another encoder for what is searched for, of the same width (two
    towers). ``lora`` trains low-rank adapters in place of the weights.
    """

    name: str
    """Folder or name on the hub."""
    pooling: str | None = None
    """Pooling of token states, as ``cls`` or ``mean``; None: that of the encoder's files."""
    max_length: int | None = None
    """Largest number of tokens of a text; None: that of the encoder's files."""
    lower: bool | None = None
    query_prompt: str | None = None
    document_prompt: str | None = None
    query_encoder: str | None = None
    lora: LoraSettings | None = None

    def load(self) -> TextEncoder:
        """Load the encoder."""
        try:
            from biograft.models import TextEncoder
        except ModuleNotFoundError as error:
            raise MissingExtraError("models", "an encoder") from error
        return TextEncoder.from_pretrained(
            self.name,
            pooling=self.pooling,
            max_length=self.max_length,
            lower=self.lower,
            query_prompt=self.query_prompt,
            document_prompt=self.document_prompt,
            query_encoder=self.query_encoder,
            lora=self.lora,
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
    """Model to start from."""
    new_kind: str = ""
    """The kind of the model made from scratch; empty where ``encoder.name`` gives the model."""
    new: Any = None
    """Sizes of a new model; None: start from an existing one."""
    knowledge: KnowledgeConfig | None = None
    """Knowledge layers; None: a plain encoder."""
    stream_kind: str
    """The kind of the stream."""
    stream: Any
    """Source of the examples."""
    objectives: Mapping[str, Any]
    """Settings of each objective, by name."""
    training: TrainingConfig = field(default_factory=TrainingConfig)
    """Length, batch and learning rate."""

    @classmethod
    def override(
        cls, name: str, values: MutableMapping[str, Any], overrides: Sequence[str]
    ) -> None:
        """Set the values that the user changes; an encoder replaces a model from scratch.

        Args:
            name: Name of the recipe.
            values: Its values, changed in place.
            overrides: Changes, as ``table.key=value`` or ``-table.key``.
        """
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
        """Make a recipe of its tables, checking every key and type.

        Args:
            name: Name of the recipe.
            values: Its tables and values.
        """
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
        given = {key: tables[key] for key in _TABLES if key in values}
        _refuse_unused(name, STREAMS.load(kind).stream_kind, given)


_VECTOR = "determines how a text becomes one vector"
_PURPOSES = {
    "pooling": _VECTOR,
    "max_length": _VECTOR,
    "lower": _VECTOR,
    "query_prompt": _VECTOR,
    "document_prompt": _VECTOR,
    "query_encoder": _VECTOR,
    "lora": "applies to given encoders and models that generate names",
    "dropout": "applies to models that generate names",
    "decoder": "applies to models that generate names",
}
_PER_TEXT = ("pooling", "lower", "query_prompt", "document_prompt", "query_encoder")
_UNUSED = {
    "synonym_pairs": ("dropout", "decoder"),
    "annotated_text": (*_PER_TEXT, "max_length", "dropout", "decoder", "lora"),
    "name_templates": _PER_TEXT,
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
    for key in ("decoder", "lora"):
        if key in given and "new" in values:
            raise ConfigError(f"encoder.{key}: is for a given encoder; set encoder.name")
    for objective in values.get("objective", {}):
        if objective in OBJECTIVES and (stream := OBJECTIVES.load(objective).stream_kind) != kind:
            raise ConfigError(f"objective.{objective}: is for stream.kind = {stream}, found {kind}")


def _configure_new(table: Mapping[str, Any], stream: str) -> Any:
    """Make the configuration of a model made from scratch."""
    values = dict(table)
    if "kind" not in values:
        raise ConfigError(f"new: missing key 'kind'; known: {', '.join(NEW_MODELS)}")
    kind = values.pop("kind")
    if kind in NEW_MODELS and stream in STREAMS:
        kinds, found = NEW_MODELS.load(kind).stream_kinds, STREAMS.load(stream).stream_kind
        if found not in kinds:
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


Ints = npt.NDArray[np.int64]
_HELD_OUT_RATIO, _MAX_HELD_OUT = 0.01, 256


def hold_out(groups: Ints, seed: int) -> tuple[Ints, Ints]:
    """Split the indices of examples so that those of one group stay together.

    Copies of a document are a group: a held-out document must not be in training in another form.

    Args:
        groups: Group of each example; where each is its own, their indices.
        seed: Seed of the choice.
    """
    n_held_out = min(int(len(groups) * _HELD_OUT_RATIO), _MAX_HELD_OUT)
    known, sizes = np.unique(groups, return_counts=True)
    order = np.random.default_rng([seed, len(groups)]).permutation(len(known))
    n_groups = int(np.searchsorted(np.cumsum(sizes[order]), n_held_out, side="right"))
    is_held_out = np.isin(groups, known[order[:n_groups]])
    return np.flatnonzero(~is_held_out), np.flatnonzero(is_held_out)


@dataclass(frozen=True, slots=True, repr=False)
class PretrainResult(Shown):
    """The result of running a pre-training recipe."""

    run: Path
    """Folder of the run."""
    encoder: Path
    """Folder of the trained model; transformers loads it, and for alignment
    sentence-transformers."""
    training_data: str
    """A description of the training data."""
    counts: Mapping[str, Any]
    """The counts of the training data."""
    training: TrainingResult
    """Steps, duration and last evaluation."""

    def to_json(self) -> dict[str, Any]:
        """Return the result as plain values."""
        trained = self.training
        return {
            "run": str(self.run),
            "encoder": str(self.encoder),
            **self.counts,
            "step": trained.step,
            "n_steps": trained.n_steps,
            "finished": trained.finished,
            "batch": str(trained.batch),
            "loss": trained.loss,
            "seconds": round(trained.seconds, 3),
        }


def pretrain(
    recipe: RecipeSource | PretrainingRecipe,
    kb: KnowledgeBase | str | Path | None,
    out: str | Path,
    *,
    overrides: Overrides = (),
    resume: bool = False,
    progress: Progress | None = None,
) -> PretrainResult:
    """Train the encoder of a recipe in the folder ``out``, or resume a run there.

    The encoder is also written to ``out/encoder`` when the time limit ends a session before the
    last step; see ``training.finished``.

    Args:
        recipe: A recipe, its name, a TOML file, or a dictionary of its content.
        kb: Knowledge base, or its folder, for recipes that need one.
        out: Folder of the run.
        overrides: Changes of the recipe, as ``table.key=value`` or as a dictionary of tables.
        resume: Continue an interrupted run.
        progress: Progress of training.
    """
    if not isinstance(recipe, PretrainingRecipe):
        recipe = PretrainingRecipe.load(recipe, overrides)
    elif overrides:
        raise ConfigError("overrides: the recipe is loaded already; give them to Recipe.load")
    base = None if kb is None else KnowledgeBase.open(kb)
    try:
        run = load_object(f"{__package__}.stream:pretrain_on_stream")
    except ModuleNotFoundError as error:
        raise MissingExtraError("models", "training an encoder") from error
    progress = progress or Progress()
    with sole_run(Path(out)):
        result: PretrainResult = run(recipe, base, Path(out), resume=resume, progress=progress)
        return result
