"""Linker recipes: which linker is trained, on which gold queries, and how."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, Self

from biograft.config import from_mapping
from biograft.errors import ConfigError, OutputError, nearest
from biograft.kb import KnowledgeBase
from biograft.linking.forms import MentionForms
from biograft.linking.queries import LabelledMention
from biograft.progress import Progress
from biograft.recipe import Recipe, read_table
from biograft.registry import Registry
from biograft.training.pretraining.recipe import EncoderConfig
from biograft.training.run_folder import RUN, is_first_process, sole_run

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


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkerTrainingData:
    """Gold queries to train a linker on, and the folder of the run."""

    kb: KnowledgeBase
    train: Sequence[GoldQuery]
    out: Path
    known: Sequence[GoldQuery] = ()
    """Mentions that the index's encoder was trained on; they count as seen."""
    dev: Sequence[GoldQuery] | None = None
    index: Path | None = None
    """Index of ``kb``."""
    model: Path | None = None
    """Trained linker that ranks first; it must be trained on other mentions than these."""
    resume: bool = False
    progress: Progress = field(default_factory=lambda: Progress(enabled=False))

    @property
    def optional(self) -> dict[str, Any]:
        """The data that not every linker uses, by name."""
        known = self.known or None
        return {"dev": self.dev, "known": known, "index": self.index, "model": self.model}


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The result of a run: its folders by name (``kb``, ``index``, ``model``, ``encoder``)."""

    made: Mapping[str, Path]
    report: Mapping[str, Any]
    finished: bool = True
    """Whether the last step was done; if not, the run can be resumed."""

    @classmethod
    def of_linker(cls, trained: TrainedLinker) -> Outcome:
        """Make the outcome of a run whose only folder is a model."""
        made = {"model": trained.model}
        return cls(made=made, report=trained.metrics(), finished=trained.training.finished)

    def to_json(self) -> dict[str, Any]:
        """Return the outcome as plain values."""
        made = {name: str(path) for name, path in self.made.items()}
        return {**made, "finished": self.finished, "report": dict(self.report)}


class TrainLinker(Protocol):
    """Trains one kind of linker."""

    def __call__(self, recipe: LinkerRecipe, data: LinkerTrainingData) -> Outcome:
        """Train by the recipe in the folder ``data.out``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkerKind:
    """One kind of linker that can be trained."""

    config: type[Any]
    """The configuration in the table ``config`` of a recipe."""
    encoder_key: str
    """The key under which a recipe names the encoder."""
    needs_encoder: bool
    takes: frozenset[str]
    """Options that it uses: ``dev``, ``known``, ``index``, ``model``."""
    run: TrainLinker
    needs_train: bool = True
    """Whether it learns from labelled mentions; if not, they may be left out."""

    @property
    def has_encoder_table(self) -> bool:
        """Whether the encoder has a table of its own in the recipe."""
        return self.encoder_key.startswith("encoder.")


LINKERS: Registry[LinkerKind] = Registry(
    "kind of linker",
    {
        "ranker": ("trainers:RANKER", "a network that ranks candidates"),
        "encoder": ("trainers:ENCODER", "an encoder for dense search"),
        "rerank": ("trainers:RERANKER", "a cross-encoder that re-ranks candidates by context"),
        "static": ("trainers:STATIC", "an encoder for dense search without torch, by distillation"),
        "generative": ("trainers:GENERATIVE", "a sequence-to-sequence model that generates names"),
    },
    group="biograft.linkers",
    home="biograft.training.linkers",
)


def finetune(recipe: LinkerRecipe, data: LinkerTrainingData) -> Outcome:
    """Train a linker by a recipe; data that it does not use is refused."""
    kind = LINKERS.load(recipe.linker)
    for name, value in data.optional.items():
        if value is not None and name not in kind.takes:
            raise ConfigError(f"{name}: a recipe of {recipe.linker!r} does not use it")
    with sole_run(data.out):
        return kind.run(recipe, data)


def label_mentions(
    queries: Iterable[GoldQuery], kb: KnowledgeBase | None = None
) -> list[LabelledMention]:
    """Return the mentions with known concepts.

    Composite mentions are left out: which part means which concept is not known, and every part
    as a name of every concept would spoil the extended store. With a store, abbreviations are
    expanded as they are in linking.
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


def remove_run(folder: Path) -> None:
    """Remove the folder of a finished run; refuse any other folder."""
    if not is_first_process():
        return
    if not folder.exists() or (folder.is_dir() and not any(folder.iterdir())):
        return
    if not RUN.is_at(folder):
        raise OutputError(f"{folder}: is no run of biograft, so it is not replaced by one")
    with sole_run(folder):
        shutil.rmtree(folder)


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkerDataConfig:
    """The gold standards of a recipe; paths are relative to the working directory."""

    train: tuple[str, ...] = ()
    dev: tuple[str, ...] = ()
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
    config: Any
    """The configuration of the linker."""
    encoder: EncoderConfig | None = None
    """The encoder that is trained or that computes vectors, where the linker has one apart."""
    data: LinkerDataConfig = field(default_factory=LinkerDataConfig)

    @classmethod
    def find_encoder(cls, name: str, values: Mapping[str, Any]) -> str:
        """Return the key under which the recipe names its encoder."""
        return _linker_kind(name, values).encoder_key

    @classmethod
    def from_tables(cls, name: str, values: Mapping[str, Any]) -> Self:
        """Make a recipe of its tables, checking every key and type."""
        kind = _linker_kind(name, values)
        known = {"about", "linker", "config", "data"}
        if kind.has_encoder_table:
            known.add("encoder")
        for key in values:
            if key not in known:
                raise ConfigError(f"recipe {name}: unknown key {key!r}; {nearest(key, known)}")
        if kind.needs_encoder and not read_table(values, kind.encoder_key.split(".")[0]):
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
