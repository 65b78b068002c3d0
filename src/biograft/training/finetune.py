"""Training of a linker or of a task model on labelled data, in one call."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from biograft.config import from_mapping
from biograft.errors import ConfigError
from biograft.evaluation import TextIndex, read_queries
from biograft.kb import KnowledgeBase
from biograft.progress import Progress
from biograft.recipe import Recipe, check_kind
from biograft.training.linkers.recipes import (
    LinkerRecipe,
    LinkerTrainingData,
    Outcome,
    finetune as finetune_linker,
)

if TYPE_CHECKING:
    from biograft.training.tasks import TaskRecipe, TaskResult

R = TypeVar("R", "LinkerRecipe", "TaskRecipe")


def finetune(
    recipe: str | Path | Recipe,
    out: str | Path,
    *,
    kb: KnowledgeBase | str | Path | None = None,
    data: Mapping[str, Any] | None = None,
    index: str | Path | None = None,
    model: str | Path | None = None,
    resume: bool = False,
    progress: Progress | None = None,
) -> Outcome | TaskResult:
    """Train a linker or a task model on labelled data, by a recipe, in the folder ``out``.

    Args:
        recipe: A recipe of a linker or a task, its name, or a TOML file.
        out: Folder of the run.
        kb: Knowledge base, or its folder; linkers need it.
        data: Changes of the table ``[data]`` of the recipe: files to ``train`` on, ``dev``,
            ``format``.
        index: Folder of an index, which some linkers use.
        model: Folder of a trained model, which some linkers use.
        resume: Continue an interrupted run.
        progress: Progress of training.

    >>> finetune("ner-cpu", "RUN", data={"train": ["train.txt"], "dev": ["dev.txt"]}).model
    ... # doctest: +SKIP
    PosixPath('RUN/model')
    >>> gold = {"train": ["train.concept"], "format": "biosyn"}
    >>> finetune("linker-ranker", "RUN", kb="KB", data=gold).made["model"]  # doctest: +SKIP
    PosixPath('RUN/model')
    """
    recipe = recipe if isinstance(recipe, Recipe) else Recipe.load(recipe)
    check_kind(recipe.name, recipe.kind, "linker", "task")
    progress = progress or Progress(enabled=False)
    if not isinstance(recipe, LinkerRecipe):
        for name, value in (("kb", kb), ("index", index), ("model", model)):
            if value is not None:
                raise ConfigError(f"{name}: a recipe of a task does not use it")
        return _finetune_task(recipe, data, Path(out), resume=resume, progress=progress)
    if kb is None:
        raise ConfigError(f"kb: recipe {recipe.name} trains a linker and needs a knowledge base")
    recipe, base = (
        _with_data(recipe, data),
        kb if isinstance(kb, KnowledgeBase) else KnowledgeBase.open(kb),
    )
    table, texts = recipe.data, TextIndex.read(recipe.data.text)
    train = read_queries(base, table.train, table.format, table.types, texts)
    dev = read_queries(base, table.dev, table.format, table.types, texts)
    examples = LinkerTrainingData(
        kb=base,
        train=train.queries,
        dev=dev.queries or None,
        out=Path(out),
        index=None if index is None else Path(index),
        model=None if model is None else Path(model),
        resume=resume,
        progress=progress,
    )
    return finetune_linker(recipe, examples)


def _finetune_task(
    recipe: Recipe, data: Mapping[str, Any] | None, out: Path, *, resume: bool, progress: Progress
) -> TaskResult:
    from biograft.models.tasks import TASKS
    from biograft.training.tasks import TaskRecipe, TaskTrainingData, finetune_task

    if not isinstance(recipe, TaskRecipe):
        raise ConfigError(f"recipe {recipe.name}: expected a recipe of a linker or a task")
    recipe = _with_data(recipe, data)
    read, table = TASKS.load(recipe.task).read, recipe.data
    for split in ("train", "dev"):
        if not getattr(table, split):
            raise ConfigError(f"data.{split}: expected at least one file")
    examples = TaskTrainingData(
        train=read(table.train, "train", table),
        dev=read(table.dev, "dev", table),
        test=read(table.test, "test", table) if table.test else None,
        out=out,
        resume=resume,
        progress=progress,
    )
    return finetune_task(recipe, examples)


def _with_data(recipe: R, data: Mapping[str, Any] | None) -> R:
    """Return a recipe with other values in its table ``[data]``."""
    values = {**asdict(recipe.data), **(data or {})}
    return replace(recipe, data=from_mapping(type(recipe.data), values, "data."))
