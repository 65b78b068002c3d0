"""``biograft finetune`` with a recipe of a task (entities, pairs, answers ...), over seeds."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import typer

from biograft.cli.finetune_options import FinetuneOptions
from biograft.cli.gold_warnings import warn_left_out
from biograft.errors import ConfigError
from biograft.progress import Progress

if TYPE_CHECKING:
    from biograft.tasks import TaskRecipe, TaskResult
    from biograft.tasks.kinds import TaskExamples

_SHOWN = 3
"""Of the figures of a kind, how many are printed."""


def train_task(options: FinetuneOptions) -> None:
    """Train a model of a task and print what was found."""
    from biograft.linking.recipes.running import remove_run
    from biograft.tasks import TaskLesson, TaskRecipe, finetune_task

    recipe = TaskRecipe.load(options.recipe, _overrides(options))
    options.refuse(recipe.kind, "kb", "known", "types", "index", "model")
    lesson = TaskLesson(
        train=_read(recipe, "train", options),
        dev=_read(recipe, "dev", options),
        test=_read(recipe, "test", options) if options.test or recipe.data.test else None,
        out=options.out,
        resume=options.resume,
        progress=Progress(enabled=not options.quiet),
    )
    if options.overwrite:
        remove_run(options.out)
    result = finetune_task(recipe, lesson)
    if options.as_json:
        said = {"run": str(result.run), "model": str(result.model), **result.results}
        typer.echo(json.dumps(said, ensure_ascii=False))
    else:
        _print(result)


def _overrides(options: FinetuneOptions) -> list[str]:
    found = list(options.changes)
    if options.encoder:
        found.append(f"encoder.name={json.dumps(options.encoder, ensure_ascii=False)}")
    if options.seeds:
        if not all(seed.isascii() and seed.isdecimal() for seed in options.seeds):
            raise ConfigError(f"--seeds: expected numbers, found {', '.join(options.seeds)}")
        found.append(f"search.seeds=[{', '.join(str(int(seed)) for seed in options.seeds)}]")
    return found


def _read(recipe: TaskRecipe, part: str, options: FinetuneOptions) -> TaskExamples:
    """Read the examples of a part, as the recipe says where the command does not."""
    from biograft.tasks import TASKS

    data = replace(recipe.data, format=options.format or recipe.data.format)
    chosen: Sequence[str] = getattr(options, part) or getattr(recipe.data, part)
    if not chosen:
        raise ConfigError(f"--{part}: name a file, here or as data.{part} in a recipe")
    found = TASKS.load(recipe.kind).read(chosen, part, data)
    warn_left_out(found.rejected, "rows", f"--{part}: ")
    return found


def _print(result: TaskResult) -> None:
    found = result.results
    main = found["figure"]
    for rate in found["rates"] if len(found["rates"]) > 1 else ():
        score = rate[f"dev_{main}"]
        typer.echo(f"  learning rate {rate['learning_rate']:g}: {main} {score:.4f} on dev")
    for part in ("dev", "test"):
        if part in found:
            typer.echo(f"  {part:5} {_line(found[part])}")
    for part, level in found.get("chance", {}).items():
        typer.echo(f"  chance on {part}: {main} {level[main]:.4f}")
    for reason, n in found["lost"].items():
        typer.echo(f"  {n:,} {reason}", err=True)
    typer.echo(f"model: {result.model}")


def _line(figures: Mapping[str, Any]) -> str:
    words = []
    shown = [*figures.items()][:_SHOWN]
    for name, told in shown:
        mean, deviation = told["mean"], told["deviation"]
        spread = f" ± {deviation:.4f}" if deviation is not None else ""
        words.append(f"{name} {mean:.4f}{spread}")
    n_seeds = len(shown[0][1]["values"])
    return ", ".join(words) + f" ({n_seeds} seed{'s' if n_seeds > 1 else ''})"
