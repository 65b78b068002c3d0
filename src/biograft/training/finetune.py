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
from biograft.recipe import Overrides, Recipe, RecipeSource, check_kind
from biograft.text.tasks.registry import SPLITS
from biograft.text.tasks.rows import is_files, plain_rows
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
    from biograft.training.tasks import TaskRecipe, TaskResult

D = TypeVar("D", "LinkerDataConfig", "TaskDataConfig")


def finetune(
    recipe: RecipeSource | Recipe,
    out: str | Path,
    *,
    kb: KnowledgeBase | str | Path | None = None,
    data: Mapping[str, Any] | None = None,
    overrides: Overrides = (),
    known: Any = (),
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
            ``test``, ``format``. In place of files also rows: a list, a frame of pandas or polars,
            or a ``datasets.Dataset``, of examples (a task) or of mentions with their concepts
            (a linker, see ``evaluation.to_queries``).
        overrides: Changes of the recipe, as ``table.key=value`` or as a dictionary of tables.
        known: Gold that the encoder of ``index`` was trained on, for a ranker; files or rows.
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
    >>> gold = {"train": [("sugar disease", "D003920"), ("high BP", "D006973")]}
    >>> finetune("linker-ranker", "RUN", kb="KB", data=gold)  # doctest: +SKIP
    """
    if isinstance(recipe, Recipe) and overrides:
        raise ConfigError("overrides: the recipe is loaded already; give them to Recipe.load")
    recipe = recipe if isinstance(recipe, Recipe) else Recipe.load(recipe, overrides)
    known = known if is_files(known) else plain_rows(known)
    check_kind(recipe.name, recipe.kind, "linker", "task")
    run: dict[str, Any] = {
        "out": Path(out),
        "resume": resume,
        "progress": progress or Progress(),
    }
    if isinstance(recipe, LinkerRecipe):
        if kb is None:
            raise ConfigError(f"kb: a recipe of {recipe.linker!r} needs a knowledge base")
        base = KnowledgeBase.open(kb)
        mentions = LinkerTrainingData(
            kb=base,
            **_read_mentions(recipe, data, base, known, report),
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
    examples = _read_examples(recipe, data, report)
    if overwrite:
        remove_run(run["out"])
    return finetune_task(recipe, TaskTrainingData(**examples, **run))


def _read_mentions(
    recipe: LinkerRecipe,
    data: Mapping[str, Any] | None,
    kb: KnowledgeBase,
    known: Any,
    report: Callable[[str, Any], object],
) -> dict[str, Any]:
    table, splits = split_data(recipe.data, data)
    texts = TextIndex.read(table.text)
    if LINKERS.load(recipe.linker).needs_train:
        _check_given(splits, "train")
    read: dict[str, Any] = {"train": ()}
    for split, gold in {**splits, "known": known}.items():
        if gold:
            queries = read_queries(kb, gold, table.format, table.types, texts)
            report(split, queries)
            read[split] = queries.queries
    return read


def _read_examples(
    recipe: TaskRecipe, data: Mapping[str, Any] | None, report: Callable[[str, Any], object]
) -> dict[str, Any]:
    from biograft.models.tasks.task import TASKS, take_examples

    table, splits = split_data(recipe.data, data)
    _check_given(splits, "train", "dev")
    read, kind = {}, TASKS.load(recipe.task)
    for split, given in splits.items():
        if given and is_files(given):
            name = table.name or table.format or ", ".join(Path(path).name for path in given)
            examples = replace(kind.read(given, split, table), name=name)
        elif given:
            examples = take_examples(kind, given, split)
            examples = replace(examples, name=table.name or examples.name)
        else:
            continue
        read[split] = replace(examples, language=table.language)
        report(split, read[split])
    return read


def _check_given(splits: Mapping[str, Any], *needed: str) -> None:
    for split in needed:
        if isinstance(splits[split], list) and not splits[split]:
            raise ConfigError(f"{split}: expected labelled examples, found none")
        if not splits[split]:
            raise ConfigError(f"{split}: name a file, here or as data.{split} in a recipe")


def split_data(table: D, changes: Mapping[str, Any] | None) -> tuple[D, dict[str, Any]]:
    """Return a table ``[data]`` with other values, and the files or the rows of each split.

    Recipes are recorded without them.

    Args:
        table: The table.
        changes: Other values; a split may be files or rows.
    """
    values, rows = dict(changes or {}), {}
    for split in SPLITS:
        given = values.get(split, ())
        if not is_files(given):
            rows[split] = plain_rows(values.pop(split))
        elif split in values:
            paths = [given] if isinstance(given, str | Path) else given
            values[split] = [str(path) for path in paths]
    table = from_mapping(type(table), {**asdict(table), **values}, "data.")
    return table, {split: getattr(table, split) for split in SPLITS} | rows
