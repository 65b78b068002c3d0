"""Training of a linker or of a task model on labelled data, in one call."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from biograft.config import from_mapping
from biograft.errors import ConfigError
from biograft.evaluation import TextIndex, read_queries
from biograft.kb import KnowledgeBase
from biograft.progress import Progress
from biograft.recipe import Recipe, RecipeSource, check_kind
from biograft.text.tasks.registry import SPLITS
from biograft.text.tasks.rows import is_files
from biograft.training.linkers.recipes import (
    LINKERS,
    LinkerDataConfig,
    LinkerRecipe,
    LinkerTrainingData,
    Outcome,
    finetune as finetune_linker,
    finetune_seeds,
)
from biograft.training.run_folder import remove_run

if TYPE_CHECKING:
    from biograft.models.tasks.task import TaskDataConfig
    from biograft.training.tasks import TaskResult

D = TypeVar("D", "LinkerDataConfig", "TaskDataConfig")


def finetune(
    recipe: RecipeSource | Recipe,
    out: str | Path,
    *,
    kb: KnowledgeBase | str | Path | None = None,
    data: Mapping[str, Any] | None = None,
    known: Sequence[str] = (),
    index: str | Path | None = None,
    model: str | Path | None = None,
    seeds: Sequence[int] = (),
    resume: bool = False,
    overwrite: bool = False,
    progress: Progress | None = None,
    report: Callable[[str, Any], object] = lambda split, read: None,
) -> Outcome | TaskResult:
    """Train a linker or a task model on labelled data, by a recipe, in the folder ``out``.

    Args:
        recipe: A recipe of a linker or a task, its name, a TOML file, or a dictionary.
        out: Folder of the run.
        kb: Knowledge base, or its folder; linkers need it.
        data: Changes of the table ``[data]`` of the recipe: files to ``train`` on, ``dev``,
            ``test``, ``format``. Tasks also take examples in place of files: a list of records or
            dictionaries, a frame of pandas or polars, or a ``datasets.Dataset``.
        known: Gold that the encoder of ``index`` was trained on, for a ranker.
        index: Folder of an index, which some linkers use.
        model: Folder of a trained model, which some linkers use.
        seeds: Train with each of these seeds; the report of a linker, with a folder ``seed-N`` for
            each, has means and deviations.
        resume: Continue an interrupted run.
        overwrite: Remove an earlier run at ``out`` once the data have been read.
        progress: Progress of training.
        report: Called with the name of each split and what was read: ``GoldQueries`` of a linker,
            ``TaskExamples`` of a task. Both say what was left out.

    >>> finetune("ner-cpu", "RUN", data={"train": ["train.txt"], "dev": ["dev.txt"]}).model
    ... # doctest: +SKIP
    PosixPath('RUN/model')
    >>> rows = [{"text": "no fever", "label": "absent"}, {"text": "fever", "label": "present"}]
    >>> finetune("classification-cpu", "RUN", data={"train": rows, "dev": rows})  # doctest: +SKIP
    >>> gold = {"train": ["train.concept"], "format": "biosyn"}
    >>> finetune("linker-ranker", "RUN", kb="KB", data=gold).made["model"]  # doctest: +SKIP
    PosixPath('RUN/model')
    """
    recipe = recipe if isinstance(recipe, Recipe) else Recipe.load(recipe)
    check_kind(recipe.name, recipe.kind, "linker", "task")
    run: dict[str, Any] = {
        "out": Path(out),
        "resume": resume,
        "progress": progress or Progress(),
    }
    if isinstance(recipe, LinkerRecipe):
        if kb is None:
            raise ConfigError(f"kb: a recipe of {recipe.linker!r} needs a knowledge base")
        base = kb if isinstance(kb, KnowledgeBase) else KnowledgeBase.open(kb)
        mentions = LinkerTrainingData(
            kb=base,
            **_read_mentions(recipe, merge_data(recipe.data, data), base, known, report),
            index=None if index is None else Path(index),
            model=None if model is None else Path(model),
            **run,
        )
        for name in [f"seed-{seed}" for seed in seeds] or [""] if overwrite else ():
            remove_run(run["out"] / name)
        if seeds:
            return finetune_seeds(recipe, mentions, seeds)
        return finetune_linker(recipe, mentions)
    from biograft.training.tasks import TaskRecipe, TaskTrainingData, finetune_task

    if not isinstance(recipe, TaskRecipe):
        raise ConfigError(f"recipe {recipe.name}: expected a recipe of a linker or a task")
    for name, value in (("kb", kb), ("index", index), ("model", model), ("known", known or None)):
        if value is not None:
            raise ConfigError(f"{name}: a recipe of {recipe.task!r} does not use it")
    if seeds:
        recipe = replace(recipe, search=replace(recipe.search, seeds=tuple(seeds)))
    changes = dict(data or {})
    rows = {s: changes.pop(s) for s in SPLITS if s in changes and not is_files(changes[s])}
    examples = _read_examples(recipe.task, merge_data(recipe.data, changes), rows, report)
    if overwrite:
        remove_run(run["out"])
    return finetune_task(recipe, TaskTrainingData(**examples, **run))


def _read_mentions(
    recipe: LinkerRecipe,
    table: LinkerDataConfig,
    kb: KnowledgeBase,
    known: Sequence[str],
    report: Callable[[str, Any], object],
) -> dict[str, Any]:
    texts = TextIndex.read(table.text)
    if LINKERS.load(recipe.linker).needs_train:
        _check_given(table, "train")
    read: dict[str, Any] = {"train": ()}
    for split in ("train", "dev", "test", "known"):
        if paths := known if split == "known" else getattr(table, split):
            gold = read_queries(kb, paths, table.format, table.types, texts)
            report(split, gold)
            read[split] = gold.queries
    return read


def _read_examples(
    task: str,
    table: TaskDataConfig,
    rows: Mapping[str, Any],
    report: Callable[[str, Any], object],
) -> dict[str, Any]:
    from biograft.models.tasks.task import TASKS, take_examples

    _check_given(table, *(split for split in ("train", "dev") if split not in rows))
    read = {}
    for split in SPLITS:
        if split in rows:
            examples = take_examples(TASKS.load(task), rows[split], split)
            read[split] = replace(examples, name=table.name or examples.name)
        elif paths := getattr(table, split):
            examples = TASKS.load(task).read(paths, split, table)
            name = table.name or table.format or ", ".join(Path(path).name for path in paths)
            read[split] = replace(examples, name=name, language=table.language)
            report(split, read[split])
    return read


def _check_given(table: Any, *splits: str) -> None:
    for split in splits:
        if not getattr(table, split):
            raise ConfigError(f"{split}: name a file, here or as data.{split} in a recipe")


def merge_data(table: D, changes: Mapping[str, Any] | None) -> D:
    """Return a table ``[data]`` with other values; recipes are recorded without them.

    Args:
        table: The table.
        changes: Other values.
    """
    files = {
        split: [str(path) for path in ([value] if isinstance(value, str | Path) else value)]
        for split, value in (changes or {}).items()
        if split in SPLITS and is_files(value)
    }
    return from_mapping(type(table), {**asdict(table), **(changes or {}), **files}, "data.")
