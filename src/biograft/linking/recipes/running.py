"""Run a recipe on mentions whose concepts are known."""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from biograft.errors import ConfigError, OutputError
from biograft.linking.labelled import LabelledMention
from biograft.linking.recipes.kinds import KINDS, Lesson, Outcome
from biograft.linking.recipes.recipe import LinkingRecipe
from biograft.training.run_folder import RUN, is_first_process, sole_run

if TYPE_CHECKING:
    from biograft.linking.rerank.examples import GoldQuery


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
