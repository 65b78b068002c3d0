"""The kinds of recipes: what each configures, what it takes, and what runs it."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from biograft.config import find_recipe, from_mapping, load_toml, set_value
from biograft.errors import ConfigError, MissingExtraError, OutputError, nearest
from biograft.kb import KnowledgeBase
from biograft.linking.finetuning import FinetuneConfig
from biograft.linking.generative.config import GenerativeConfig
from biograft.linking.index import OpenedIndex, build_index, open_index, open_search, update_index
from biograft.linking.linker import Linker
from biograft.linking.provenance import store_fingerprint
from biograft.linking.rankers import LabelledMention, TrainedLinker
from biograft.linking.rerank.config import RerankConfig
from biograft.linking.supervised import RankerConfig, TrainedRanker, grow_store
from biograft.pretraining.recipe import EncoderConfig
from biograft.progress import Progress
from biograft.registry import Registry
from biograft.training.run_folder import RUN, check_run, is_first_process, sole_run, start_run

if TYPE_CHECKING:
    from biograft.linking.rerank.examples import GoldQuery
    from biograft.nn import TextEncoder


@dataclass(frozen=True, slots=True, kw_only=True)
class Lesson:
    """What is learned from, where the run is written, and how far it has got."""

    kb: KnowledgeBase
    train: Sequence[GoldQuery]
    out: Path
    known: Sequence[GoldQuery] = ()
    """Mentions that the index's encoder was trained on: seen, and not learned from."""
    dev: Sequence[GoldQuery] | None = None
    index: Path | None = None
    """Index of ``kb``."""
    model: Path | None = None
    """Trained linker that ranks first; it was trained on other mentions than these."""
    resume: bool = False
    progress: Progress = field(default_factory=lambda: Progress(enabled=False))

    @property
    def given(self) -> dict[str, Any]:
        """What not every kind of recipe has a use for."""
        known = self.known or None
        return {"dev": self.dev, "known": known, "index": self.index, "model": self.model}


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What a run made, by what it is: ``kb``, ``index``, ``model``, ``encoder``."""

    made: Mapping[str, Path]
    report: Mapping[str, Any]
    finished: bool = True
    """Whether the last step was done; if not, the run can be resumed."""

    @classmethod
    def of_linker(cls, trained: TrainedLinker) -> Outcome:
        """Tell of a run that made a linker, and nothing beside it."""
        made = {"model": trained.model}
        return cls(made=made, report=trained.figures(), finished=trained.training.finished)

    def to_json(self) -> dict[str, Any]:
        """Give the outcome as plain values."""
        made = {name: str(path) for name, path in self.made.items()}
        return {**made, "finished": self.finished, "report": dict(self.report)}


class RunRecipe(Protocol):
    """Trains what a recipe says."""

    def __call__(self, recipe: LinkingRecipe, lesson: Lesson) -> Outcome:
        """Run the recipe in the folder of the lesson."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecipeKind:
    """One kind of recipe."""

    config: type[Any]
    """What the table ``config`` holds."""
    encoder_key: str
    """Where a recipe of this kind names its encoder."""
    needs_encoder: bool
    takes: frozenset[str]
    """Which of ``dev``, ``known``, ``index`` and ``model`` it has a use for."""
    run: RunRecipe

    @property
    def has_encoder_table(self) -> bool:
        """Whether the encoder has a table of its own in the recipe."""
        return self.encoder_key.startswith("encoder.")


KINDS: Registry[RecipeKind] = Registry(
    "kind of recipe",
    {
        "ranker": (
            "biograft.linking.recipes:RANKER",
            "candidates ranked by what mentions teach",
        ),
        "encoder": (
            "biograft.linking.recipes:ENCODER",
            "an encoder that finds the concepts of mentions",
        ),
        "rerank": (
            "biograft.linking.recipes:RERANKER",
            "first candidates ranked again by context",
        ),
        "generative": (
            "biograft.linking.recipes:GENERATIVE",
            "names written by a model that reads the text",
        ),
    },
)


def finetune(recipe: LinkingRecipe, lesson: Lesson) -> Outcome:
    """Train what a recipe says; refuse first what it has no use for."""
    kind = KINDS.load(recipe.kind)
    for name, value in lesson.given.items():
        if value is not None and name not in kind.takes:
            raise ConfigError(f"{name}: a recipe of kind {recipe.kind!r} has no use for it")
    with sole_run(lesson.out):
        return kind.run(recipe, lesson)


def label_mentions(queries: Iterable[GoldQuery]) -> list[LabelledMention]:
    """Take each query that has a concept as a mention.

    Composite mentions teach nothing: which of their parts means which concept is not known, and
    every part as a name of every concept would spoil the grown store.
    """
    return [
        LabelledMention(part, query.gold, query.document or f"query {number}")
        for number, query in enumerate(queries)
        if query.gold and len(query.needed) == 1
        for part in query.parts
    ]


def remove_run(folder: Path) -> None:
    """Remove an earlier run that has ended to make place, and nothing else."""
    if not is_first_process():
        return
    if not folder.exists() or (folder.is_dir() and not any(folder.iterdir())):
        return
    if not RUN.is_at(folder):
        raise OutputError(f"{folder}: is no run of biograft, so it is not replaced by one")
    with sole_run(folder):
        shutil.rmtree(folder)


_FOLDER = Path(__file__).with_name("recipes")


@dataclass(frozen=True, slots=True, kw_only=True)
class DataConfig:
    """Which gold standards are learned from; paths count from the working directory."""

    train: tuple[str, ...] = ()
    dev: tuple[str, ...] = ()
    format: str = ""
    types: tuple[str, ...] = ()
    """Mentions of these types only; none: all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkingRecipe:
    """What kind of linker is trained, on what, and how."""

    name: str
    kind: str
    about: str = ""
    config: Any
    """The configuration of the kind."""
    encoder: EncoderConfig | None = None
    """The encoder that is trained or that makes vectors, where the kind has one apart."""
    data: DataConfig = field(default_factory=DataConfig)

    @classmethod
    def load(
        cls, name_or_path: str | Path, overrides: Sequence[str] = (), encoder: str = ""
    ) -> LinkingRecipe:
        """Load a shipped recipe by name, or a file; overrides are ``table.key=value`` texts."""
        path = find_recipe(name_or_path, shipped_recipes())
        values = load_toml(path)
        kind = _kind(path.stem, values)
        if encoder:
            set_value(values, f"{kind.encoder_key}={json.dumps(encoder, ensure_ascii=False)}")
        for override in overrides:
            set_value(values, override)
        return cls.from_values(path.stem, values)

    @classmethod
    def from_values(cls, name: str, values: Mapping[str, Any]) -> LinkingRecipe:
        """Make a recipe of plain values, checking every key and type."""
        kind = _kind(name, values)
        known = {"about", "kind", "config", "data"}
        if kind.has_encoder_table:
            known.add("encoder")
        for key in values:
            if key not in known:
                raise ConfigError(f"recipe {name}: unknown key {key!r}; {nearest(key, known)}")
        if kind.needs_encoder and not _table(values, kind.encoder_key.split(".")[0]):
            raise ConfigError(f"recipe {name}: missing key '{kind.encoder_key}'")
        encoder = _table(values, "encoder")
        return cls(
            name=name,
            kind=str(values["kind"]),
            about=str(values.get("about", "")),
            config=from_mapping(kind.config, _table(values, "config"), "config."),
            encoder=from_mapping(EncoderConfig, encoder, "encoder.") if encoder else None,
            data=from_mapping(DataConfig, _table(values, "data"), "data."),
        )

    def to_json(self) -> dict[str, Any]:
        """Give the whole configuration as plain values."""
        plain: dict[str, Any] = json.loads(json.dumps(asdict(self), default=str))
        return plain


def shipped_recipes() -> dict[str, Path]:
    """Give the recipes that come with biograft, by name."""
    return {path.stem: path for path in sorted(_FOLDER.glob("*.toml"))}


def _kind(name: str, values: Mapping[str, Any]) -> RecipeKind:
    kind = values.get("kind")
    if kind is None:
        raise ConfigError(f"recipe {name}: missing key 'kind'; known: {', '.join(KINDS)}")
    if not isinstance(kind, str) or kind not in KINDS:
        raise ConfigError(
            f"recipe {name}: no {KINDS.kind} is called {kind!r}; {nearest(str(kind), KINDS)}"
        )
    return KINDS.load(kind)


def _table(values: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    table = values.get(name, {})
    if not isinstance(table, Mapping):
        raise ConfigError(f"{name}: expected a table, found {table!r}")
    return table


def run_encoder(recipe: LinkingRecipe, lesson: Lesson) -> Outcome:
    """Write ``out/encoder``, with the weight of letters in it where that is learned."""
    from biograft.linking.finetuning import finetune_encoder

    if recipe.encoder is None:
        raise ConfigError(f"recipe {recipe.name}: missing key 'encoder.name'")
    result = finetune_encoder(
        lesson.kb,
        recipe.encoder.load(),
        label_mentions(lesson.train),
        recipe.config,
        lesson.out,
        resume=lesson.resume,
        progress=lesson.progress,
    )
    report = {k: v for k, v in result.to_json().items() if k not in ("run", "encoder", "finished")}
    finished = result.training.finished
    return Outcome(made={"encoder": result.encoder}, report=report, finished=finished)


ENCODER = RecipeKind(
    config=FinetuneConfig,
    encoder_key="encoder.name",
    needs_encoder=True,
    takes=frozenset(),
    run=run_encoder,
)


def run_generative(recipe: LinkingRecipe, lesson: Lesson) -> Outcome:
    """Write ``out/model``; an index is searched only to fit how much it counts beside."""
    try:
        from biograft.linking.generative import Mentions, train_generative
    except ModuleNotFoundError as error:
        raise MissingExtraError("models", "training a generative linker") from error
    config: GenerativeConfig = recipe.config
    searches = config.fit_share or config.share < 1
    if lesson.index is not None and not searches:
        raise ConfigError(
            "index: nothing is searched where generation alone counts; leave it out, or set "
            "config.fit_share=true"
        )
    lesson.progress.start("index")
    languages = config.names.languages
    opened = open_search(lesson.kb, lesson.index, languages) if searches else None
    mentions = Mentions(
        train=lesson.train,
        held_out=lesson.dev or (),
        search=opened.search if opened else None,
    )
    result = train_generative(
        lesson.kb,
        mentions,
        config,
        lesson.out,
        resume=lesson.resume,
        progress=lesson.progress,
    )
    return Outcome.of_linker(result)


GENERATIVE = RecipeKind(
    config=GenerativeConfig,
    encoder_key="config.model",
    needs_encoder=False,
    takes=frozenset({"dev", "index"}),
    run=run_generative,
)


def run_ranker(recipe: LinkingRecipe, lesson: Lesson) -> Outcome:
    """Write ``out/kb``, ``out/index`` and ``out/model``; what is there is not made again."""
    try:
        from biograft.linking.supervised import train_network
    except ModuleNotFoundError as error:
        raise MissingExtraError("models", "training a ranker") from error
    if lesson.index is not None and recipe.encoder is not None:
        raise ConfigError("encoder: the index brings its own; leave one of the two out")
    mentions, known, out = label_mentions(lesson.train), label_mentions(lesson.known), lesson.out
    encoder = recipe.encoder.load() if recipe.encoder else None
    provenance = {
        "kb": store_fingerprint(lesson.kb),
        "mentions": _fingerprint(mentions),
        "known": _fingerprint(known),
        "encoder": encoder.fingerprint() if encoder else None,
        "index": str(lesson.index) if lesson.index else None,
    }
    (check_run if lesson.resume else start_run)(out, recipe.to_json(), provenance)
    lesson.progress.start("knowledge base")
    if not (out / "kb").exists():
        grow_store(lesson.kb, [*known, *mentions], out / "kb")
    kb = KnowledgeBase.open(out / "kb")
    opened = _index(kb, lesson, encoder)
    trained = train_network(kb, opened.search, mentions, recipe.config, lesson.progress, known)
    generators = [generator.name for generator in opened.search.generators]
    ranker = TrainedRanker(kb, trained.network, trained.memory, generators)
    ranker.save(out / "model", recipe.config, trained.report, overwrite=True)
    made = {name: out / name for name in ("kb", "index", "model")}
    return Outcome(made=made, report=trained.report)


def _index(kb: KnowledgeBase, lesson: Lesson, encoder: TextEncoder | None) -> OpenedIndex:
    """Make the index of the grown store; vectors that the given index holds are taken over."""
    folder = lesson.out / "index"
    if folder.exists():
        return open_index(kb, folder)
    if lesson.index is None:
        build_index(kb, folder, encoder, progress=lesson.progress)
        return open_index(kb, folder)
    open_index(lesson.kb, lesson.index)  # refuses that of another store
    work = folder.with_name("index.copied")
    shutil.rmtree(work, ignore_errors=True)
    shutil.copytree(lesson.index, work)
    update_index(kb, work, progress=lesson.progress)
    work.rename(folder)
    return open_index(kb, folder)


def _fingerprint(mentions: Sequence[LabelledMention]) -> str:
    digest = hashlib.sha256()
    for mention in mentions:
        told = (mention.text, sorted(mention.concepts), mention.document)
        digest.update(repr(told).encode())
    return digest.hexdigest()


RANKER = RecipeKind(
    config=RankerConfig,
    encoder_key="encoder.name",
    needs_encoder=False,
    takes=frozenset({"dev", "index", "known"}),
    run=run_ranker,
)


def run_rerank(recipe: LinkingRecipe, lesson: Lesson) -> Outcome:
    """Write ``out/model``; candidates are those of the index, ranked by the model if given."""
    try:
        from biograft.linking.rerank import gather_examples, train_reranker
    except ModuleNotFoundError as error:
        raise MissingExtraError("models", "training a re-ranker") from error
    lesson.progress.start("candidates")
    linker = Linker.open(lesson.kb, lesson.index, lesson.model)
    data = gather_examples(lesson.kb, linker, lesson.train, recipe.config, lesson.dev)
    result = train_reranker(
        data,
        recipe.config,
        lesson.out,
        ranker=lesson.model,
        resume=lesson.resume,
        progress=lesson.progress,
    )
    return Outcome.of_linker(result)


RERANKER = RecipeKind(
    config=RerankConfig,
    encoder_key="config.encoder",
    needs_encoder=False,
    takes=frozenset({"dev", "index", "model"}),
    run=run_rerank,
)
