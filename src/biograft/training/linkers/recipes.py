"""Linker recipes: which linker is trained, on which gold queries, and how."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Self

from biograft.config import Above, AtLeast, Choice, Config, from_mapping
from biograft.display import Shown
from biograft.errors import ConfigError, MissingExtraError, nearest
from biograft.kb import KnowledgeBase
from biograft.linking.forms import MentionForms
from biograft.linking.lexical.index import LexicalConfig
from biograft.linking.queries import LabelledMention
from biograft.linking.trained_configs import (
    GenerativeConfig,
    RankerConfig,
    RerankConfig,
    StaticConfig,
)
from biograft.progress import Progress
from biograft.recipe import Recipe, TrainingConfig, read_table
from biograft.registry import Registry
from biograft.training.objectives.configs import SynonymAlignmentConfig, SynonymMarginalConfig
from biograft.training.pretraining.recipe import EncoderConfig
from biograft.training.run_folder import sole_run

if TYPE_CHECKING:
    from biograft.linking.queries import GoldQuery
    from biograft.training import TrainingResult


@dataclass(frozen=True, slots=True)
class TrainedLinker:
    """The result of a training run, with its metrics on held-out mentions."""

    run: Path
    model: Path
    """Folder of the linker."""
    training: TrainingResult
    report: Mapping[str, Any]

    def to_json(self) -> dict[str, Any]:
        """Return the result as plain values."""
        folders = {"run": str(self.run), "model": str(self.model)}
        return {**folders, "finished": self.training.finished, **self.metrics()}

    def metrics(self) -> dict[str, Any]:
        """Return steps, loss, duration and held-out metrics of the run."""
        return {
            "step": self.training.step,
            "n_steps": self.training.n_steps,
            "loss": self.training.loss,
            "seconds": round(self.training.seconds, 3),
            **self.report,
        }

    def outcome(self, name: str = "model", **more: Any) -> Outcome:
        """Return the outcome of the run.

        Args:
            name: Name of its folder in the outcome, such as ``encoder``.
            more: Further entries of the report.

        Returns:
            The folder, the metrics, and whether the run is finished.
        """
        report = {**self.metrics(), **more}
        return Outcome(made={name: self.model}, report=report, finished=self.training.finished)


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkerTrainingData:
    """Gold queries to train a linker on, and the folder of the run."""

    kb: KnowledgeBase
    """Knowledge base to link to."""
    train: Sequence[GoldQuery]
    """Mentions to train on."""
    out: Path
    """Folder of the run."""
    known: Sequence[GoldQuery] = ()
    """Mentions that the index's encoder was trained on; they count as seen."""
    dev: Sequence[GoldQuery] | None = None
    """Mentions to choose on; None: a part of ``train``."""
    test: Sequence[GoldQuery] | None = None
    """Mentions that are evaluated once, at the end."""
    index: Path | None = None
    """Index of ``kb``."""
    model: Path | None = None
    """Trained linker that ranks first; it must be trained on other mentions than these."""
    resume: bool = False
    """Continue an interrupted run."""
    progress: Progress = field(default_factory=Progress)
    """Receives the progress."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Outcome(Shown):
    """The result of a run: its folders by name (``kb``, ``index``, ``model``, ``encoder``)."""

    made: Mapping[str, Path]
    """Folders by their kind."""
    report: Mapping[str, Any]
    """Metrics and counts of the training."""
    finished: bool = True
    """Whether the last step was done; if not, the run can be resumed."""

    def to_json(self) -> dict[str, Any]:
        """Return the outcome as plain values."""
        made = {name: str(path) for name, path in self.made.items()}
        return {**made, "finished": self.finished, "report": dict(self.report)}


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkerKind:
    """One kind of linker that can be trained."""

    config: type[Any]
    """The configuration in the table ``config`` of a recipe."""
    encoder_key: str
    """The key under which a recipe names the encoder."""
    needs_encoder: bool
    """Whether the recipe must name an encoder."""
    takes: frozenset[str]
    """Options that it uses: ``dev``, ``test``, ``known``, ``index``, ``model``."""
    run: Callable[[LinkerRecipe, LinkerTrainingData], Outcome]
    """Trains by the recipe in the folder ``data.out``."""
    needs_train: bool = True
    """Whether it learns from labelled mentions; if not, they may be left out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FinetuneTraining(TrainingConfig):
    """Training with the defaults of BioSyn; a batch counts mentions."""

    epochs: Annotated[int, AtLeast(1)] = 10
    batch_size: Annotated[int, AtLeast(1)] = 16
    learning_rate: Annotated[float, Above(0)] = 1e-5


@dataclass(frozen=True, slots=True, kw_only=True)
class FinetuneConfig(Config):
    """Settings of fine-tuning an encoder on labelled mentions.

    ``marginal`` loss (BioSyn): each mention has ``k`` candidates, half of them by lexical search,
    half by the encoder, updated at the start of each epoch. If no gold name is among them, the one
    most similar to the mention is added (``missing_gold`` = ``add``), or the mention is skipped.

    ``refresh`` selects the names that the encoder searches: all (``full``), or the ``reachable``
    ones: the ``reach`` nearest to any mention by lexical search, all names of gold concepts, and
    the last candidates. With ``first_full`` the first epoch searches all names.

    ``bank`` loss: the marginal loss over all names, with the vectors computed at the start of the
    epoch; only mentions, and ``partners`` correct names of each, are encoded in a step. Lexical
    search only selects the ``reachable`` names. Mentions are names, too, but not for themselves.

    ``contrastive`` loss: pairs of a mention and another mention or name of its concept, with the
    other pairs of the batch as negatives; for data of many mentions and few names.

    ``exclude_own_mention`` excludes names equal to the mention from its candidates, so that a
    dictionary with the training mentions does not teach exact matching. ``distinct`` uses
    mentions with equal text and concepts once per epoch.
    """

    loss: Annotated[str, Choice("marginal", "bank", "contrastive")] = "marginal"
    """Loss of the training."""
    k: Annotated[int, AtLeast(2)] = 20
    refresh: Annotated[str, Choice("reachable", "full")] = "reachable"
    first_full: bool = True
    reach: Annotated[int, AtLeast(1)] = 100
    missing_gold: Annotated[str, Choice("add", "skip")] = "add"
    partners: Annotated[int, AtLeast(1)] = 1
    distinct: bool = True
    exclude_own_mention: bool = False
    encode_batch: Annotated[int, AtLeast(1)] = 64
    """Number of names of usual length encoded at once when candidates are updated."""
    lexical: LexicalConfig = field(default_factory=LexicalConfig)
    """Lexical search, and the languages of the names."""
    marginal: SynonymMarginalConfig = field(default_factory=SynonymMarginalConfig)
    contrastive: SynonymAlignmentConfig = field(default_factory=SynonymAlignmentConfig)
    training: FinetuneTraining = field(default_factory=FinetuneTraining)
    """Epochs, batch and learning rate."""

    @property
    def similarity(self) -> str:
        """The similarity of vectors that the encoder is trained for."""
        return "cosine" if self.loss == "contrastive" else self.marginal.similarity


TRAINERS: Registry[Callable[[LinkerRecipe, LinkerTrainingData], Outcome]] = Registry(
    "trainer of linkers",
    {
        "ranker": ("supervised:train_by_recipe", "training a ranker"),
        "encoder": ("encoder:train_by_recipe", "fine-tuning an encoder"),
        "rerank": ("rerank:train_by_recipe", "training a re-ranker"),
        "static": ("static:train_by_recipe", "distilling an encoder"),
        "generative": ("generative:train_by_recipe", "training a generative linker"),
    },
    home="biograft.training.linkers",
)
"""The functions that train, which need torch, and what they do in the words of a message."""


def _train(recipe: LinkerRecipe, data: LinkerTrainingData) -> Outcome:
    try:
        train = TRAINERS.load(recipe.linker)
    except ModuleNotFoundError as error:
        raise MissingExtraError("models", TRAINERS.help()[recipe.linker]) from error
    return train(recipe, data)


RANKER = LinkerKind(
    config=RankerConfig,
    encoder_key="encoder.name",
    needs_encoder=False,
    takes=frozenset({"dev", "index", "known"}),
    run=_train,
)
ENCODER = LinkerKind(
    config=FinetuneConfig,
    encoder_key="encoder.name",
    needs_encoder=True,
    takes=frozenset({"dev"}),
    run=_train,
)
RERANKER = LinkerKind(
    config=RerankConfig,
    encoder_key="config.encoder",
    needs_encoder=False,
    takes=frozenset({"dev", "index", "model"}),
    run=_train,
)
STATIC = LinkerKind(
    config=StaticConfig,
    encoder_key="encoder.name",
    needs_encoder=False,
    takes=frozenset({"index"}),
    run=_train,
    needs_train=False,
)
GENERATIVE = LinkerKind(
    config=GenerativeConfig,
    encoder_key="config.model",
    needs_encoder=False,
    takes=frozenset({"dev", "test", "index"}),
    run=_train,
)
LINKERS: Registry[LinkerKind] = Registry(
    "kind of linker",
    {
        "ranker": ("recipes:RANKER", "a network that ranks candidates"),
        "encoder": ("recipes:ENCODER", "an encoder for dense search"),
        "rerank": ("recipes:RERANKER", "a cross-encoder that re-ranks candidates by context"),
        "static": ("recipes:STATIC", "an encoder for dense search without torch, by distillation"),
        "generative": ("recipes:GENERATIVE", "a sequence-to-sequence model that generates names"),
    },
    group="biograft.linkers",
    home="biograft.training.linkers",
)


def finetune(recipe: LinkerRecipe, data: LinkerTrainingData) -> Outcome:
    """Train a linker by a recipe.

    Args:
        recipe: Kind of linker, settings and encoder.
        data: Gold queries, folder of the run, and what else the kind uses.

    Returns:
        The folders made, and the metrics.

    Raises:
        ConfigError: The kind of linker does not use some of the data.
    """
    kind = LINKERS.load(recipe.linker)
    for name in ("dev", "test", "known", "index", "model"):
        value = getattr(data, name)
        if value is not None and value != () and name not in kind.takes:
            raise ConfigError(f"{name}: a recipe of {recipe.linker!r} does not use it")
    with sole_run(data.out):
        return kind.run(recipe, data)


def finetune_seeds(recipe: LinkerRecipe, data: LinkerTrainingData, seeds: Sequence[int]) -> Outcome:
    """Train a linker with each of some seeds, in the folder ``seed-N`` of the run.

    Args:
        recipe: Kind of linker, settings and encoder.
        data: As for ``finetune``.
        seeds: The seeds.

    Returns:
        The folders of all seeds; mean, deviation and values of the numbers of their reports.
    """
    from biograft.training.tasks.results import summarise_numbers

    made: dict[str, Path] = {}
    reports = []
    for seed in seeds:
        out, config = data.out / f"seed-{seed}", recipe.config
        changes = {"seed": seed}
        if hasattr(config, "training"):
            changes = {"training": replace(config.training, **changes)}
        changed = replace(recipe, config=replace(config, **changes))
        one = finetune(changed, replace(data, out=out, resume=data.resume and out.exists()))
        made |= {f"seed-{seed}/{name}": path for name, path in one.made.items()}
        if not one.finished:
            return Outcome(made=made, report=one.report, finished=False)
        reports.append(one.report)
    return Outcome(made=made, report=summarise_numbers(reports))


def label_mentions(
    queries: Iterable[GoldQuery], kb: KnowledgeBase | None = None
) -> list[LabelledMention]:
    """Return the mentions with known concepts.

    Composite mentions are left out: which part means which concept is not known, and every part
    as a name of every concept would spoil the extended store.

    Args:
        queries: Mentions with their correct concepts.
        kb: A store in which abbreviations are expanded as they are in linking.

    Returns:
        Text, concepts and document of each mention.
    """
    queries = list(queries)
    forms = [part for query in queries for part in query.parts]
    if kb is not None:
        mention_forms = MentionForms(kb, abbreviations=True, composites=False)
        forms = [form for form, _ in mention_forms.of_queries(queries)]
    owners = [(row, query) for row, query in enumerate(queries) for _ in query.parts]
    return [
        LabelledMention(form, query.gold, query.document or f"query {row}")
        for form, (row, query) in zip(forms, owners, strict=True)
        if query.gold and len(query.needed) == 1
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkerDataConfig:
    """The gold standards of a recipe; paths are relative to the working directory."""

    train: tuple[str, ...] = ()
    dev: tuple[str, ...] = ()
    test: tuple[str, ...] = ()
    format: str = ""
    types: tuple[str, ...] = ()
    """Mentions of these types only; none: all."""
    text: tuple[str, ...] = ()
    """The documents of gold standards that have only ids and offsets."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkerRecipe(Recipe):
    """A recipe of linker training: kind, data, settings."""

    kind: ClassVar[str] = "linker"

    linker: str
    """Kind of linker, as ``ranker``."""
    config: Any
    """The configuration of the linker."""
    encoder: EncoderConfig | None = None
    """The encoder that is trained or that computes vectors, where the linker has one apart."""
    data: LinkerDataConfig = field(default_factory=LinkerDataConfig)
    """Files to train on, and their format."""

    @classmethod
    def find_encoder(cls, name: str, values: Mapping[str, Any]) -> str:
        """Return the key under which the recipe names its encoder.

        Args:
            name: Name of the recipe.
            values: Its tables.

        Returns:
            The key, with dots between tables.
        """
        return _linker_kind(name, values).encoder_key

    @classmethod
    def from_tables(cls, name: str, values: Mapping[str, Any]) -> Self:
        """Make a recipe of its tables, checking every key and type.

        Args:
            name: Name of the recipe.
            values: Its tables.

        Returns:
            The recipe.

        Raises:
            ConfigError: A key is missing or unknown, or a value is of the wrong type.
        """
        kind = _linker_kind(name, values)
        known = {"about", "linker", "config", "data"}
        table = kind.encoder_key.split(".")[0]
        if table == "encoder":
            known.add(table)
        for key in values:
            if key not in known:
                raise ConfigError(f"recipe {name}: unknown key {key!r}; {nearest(key, known)}")
        if kind.needs_encoder and not read_table(values, table):
            raise ConfigError(f"recipe {name}: missing key '{kind.encoder_key}'")
        encoder = read_table(values, "encoder")
        return cls(
            name=name,
            about=str(values.get("about", "")),
            linker=str(values["linker"]),
            config=from_mapping(kind.config, read_table(values, "config"), "config."),
            encoder=from_mapping(EncoderConfig, encoder, "encoder.") if encoder else None,
            data=from_mapping(LinkerDataConfig, read_table(values, "data"), "data."),
        )


def _linker_kind(name: str, values: Mapping[str, Any]) -> LinkerKind:
    linker = values.get("linker")
    if linker is None:
        raise ConfigError(f"recipe {name}: missing key 'linker'; known: {', '.join(LINKERS)}")
    if not isinstance(linker, str) or linker not in LINKERS:
        raise ConfigError(
            f"recipe {name}: no {LINKERS.kind} is called {linker!r}; "
            f"{nearest(str(linker), LINKERS)}"
        )
    return LINKERS.load(linker)
