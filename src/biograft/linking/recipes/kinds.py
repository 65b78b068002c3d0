"""The kinds of recipes: what each configures, what it takes, and what runs it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from biograft.kb import KnowledgeBase
from biograft.linking.trained import TrainedLinker
from biograft.progress import Progress
from biograft.registry import Registry

if TYPE_CHECKING:
    from biograft.linking.recipes.recipe import LinkingRecipe
    from biograft.linking.rerank.examples import GoldQuery


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
            "biograft.linking.recipes.ranker:KIND",
            "candidates ranked by what mentions teach",
        ),
        "encoder": (
            "biograft.linking.recipes.encoder:KIND",
            "an encoder that finds the concepts of mentions",
        ),
        "rerank": (
            "biograft.linking.recipes.rerank:KIND",
            "first candidates ranked again by context",
        ),
        "generative": (
            "biograft.linking.recipes.generative:KIND",
            "names written by a model that reads the text",
        ),
    },
)
