"""``biograft finetune``: train a linker or a task model by a recipe."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from biograft.cli.options import (
    Json,
    OptionalKb,
    Quiet,
    Run,
    print_json,
    warn_left_out,
    warn_unknown,
    warn_without_text,
)
from biograft.config import Config, Option
from biograft.errors import ConfigError
from biograft.kb.names import whole_number
from biograft.progress import Progress

if TYPE_CHECKING:
    from biograft.evaluation import LinkQuery, TextIndex
    from biograft.kb import KnowledgeBase
    from biograft.models.tasks.task import TaskExamples
    from biograft.training.linkers.recipes import Outcome
    from biograft.training.tasks import TaskRecipe, TaskResult


@dataclass(frozen=True, kw_only=True)
class FinetuneOptions(Config):
    """What the command changes of a recipe; empty where nothing is given."""

    train: Annotated[
        tuple[str, ...],
        Option("Gold standard to train on; repeatable.", metavar="PATH", repeated=True),
    ] = ()
    dev: Annotated[
        tuple[str, ...],
        Option(
            "Gold standard to evaluate on; tasks choose rates and epochs by it.",
            metavar="PATH",
            repeated=True,
        ),
    ] = ()
    test: Annotated[
        tuple[str, ...],
        Option("Tasks: test set, evaluated once, at the end.", metavar="PATH", repeated=True),
    ] = ()
    known: Annotated[
        tuple[str, ...],
        Option(
            "Ranker: gold that the encoder was trained on; it counts as seen.",
            metavar="PATH",
            repeated=True,
        ),
    ] = ()
    format: Annotated[str, Option("Format of the gold standards.", metavar="F")] = ""
    types: Annotated[
        tuple[str, ...], Option("Gold mentions of these types only.", metavar="Disease,...")
    ] = ()
    text: Annotated[
        tuple[str, ...],
        Option(
            "Documents of gold that has only ids and offsets, such as BioSyn's; repeatable.",
            metavar="FILE",
            repeated=True,
        ),
    ] = ()
    index: Annotated[
        Path | None,
        Option(
            "Index of KB; a ranker reuses its vectors, a generative linker is mixed with it.",
            metavar="INDEX",
        ),
    ] = None
    encoder: Annotated[str, Option("Encoder, instead of the recipe's.", metavar="NAME_OR_DIR")] = ""
    model: Annotated[
        Path | None,
        Option(
            "Re-ranking: the trained linker that ranks first, trained on other mentions.",
            metavar="MODEL",
        ),
    ] = None
    seeds: Annotated[
        tuple[str, ...], Option("Tasks: train with each of these seeds.", metavar="1,2,3")
    ] = ()
    changes: Annotated[
        tuple[str, ...],
        Option("Override a value of the recipe.", "--set", "TABLE.KEY=VALUE", repeated=True),
    ] = ()
    resume: Annotated[bool, Option("Resume an interrupted run.")] = False
    overwrite: Annotated[bool, Option("Remove an earlier run at RUN first.")] = False

    def refuse(self, kind: str, *names: str) -> None:
        """Refuse options that a linker or a task does not use.

        Args:
            kind: Name of the linker or task.
            names: Options that it does not use.
        """
        for name in names:
            if getattr(self, name):
                raise ConfigError(f"--{name}: a recipe of {kind!r} does not use it")


def train_linker(
    path: Path, out: Path, kb: Path | None, options: FinetuneOptions, progress: Progress
) -> tuple[dict[str, Any], Callable[[], None]]:
    """Train a linker; return its report as plain values, and what prints it.

    Args:
        path: File of the recipe.
        out: Folder of the run.
        kb: Folder of the knowledge base, which linkers need.
        options: Options of the command.
        progress: Progress of training.
    """
    from biograft.evaluation import TextIndex
    from biograft.kb import KnowledgeBase
    from biograft.training.linkers.recipes import (
        LINKERS,
        LinkerRecipe,
        LinkerTrainingData,
        finetune as run_recipe,
    )
    from biograft.training.run_folder import remove_run

    recipe = LinkerRecipe.load(path, options.changes, encoder=options.encoder)
    kind = LINKERS.load(recipe.linker)
    options.refuse(recipe.linker, "test", "seeds")
    if kb is None:
        raise ConfigError(f"--kb: a recipe of {recipe.linker!r} needs a knowledge base")
    data = recipe.data
    texts = TextIndex.read(options.text or data.text)
    gold = _Gold(
        options.format or data.format, options.types or data.types, KnowledgeBase.open(kb), texts
    )
    train, dev = options.train or data.train, options.dev or data.dev
    held_out = gold.read("--dev", dev) if dev else None
    training = LinkerTrainingData(
        kb=gold.kb,
        train=gold.read("--train", train) if train or kind.needs_train else (),
        known=gold.read("--known", options.known) if options.known else (),
        dev=held_out,
        out=out,
        index=options.index,
        model=options.model,
        resume=options.resume,
        progress=progress,
    )
    if options.overwrite:
        remove_run(out)
    outcome = run_recipe(recipe, training)
    measured = _measure(outcome, held_out) if held_out else {}
    values = {
        "recipe": recipe.name,
        "linker": recipe.linker,
        "run": str(out),
        **outcome.to_json(),
        **measured,
    }
    return values, lambda: _print_linker(outcome, measured, out)


class _Gold:
    """Reads gold standards of one format for one knowledge base."""

    def __init__(
        self, form: str, types: tuple[str, ...], kb: KnowledgeBase, texts: TextIndex | None
    ) -> None:
        self.form, self.types, self.kb, self.texts = form, types, kb, texts

    def read(self, option: str, paths: Sequence[str]) -> list[LinkQuery]:
        """Read the queries of several files as one, and warn of what is left out."""
        from biograft.evaluation import read_queries

        if not paths:
            raise ConfigError(f"{option}: name a gold standard, here or as data.train in a recipe")
        if not self.form:
            raise ConfigError("--format: name the format of the gold standards")
        gold = read_queries(self.kb, paths, self.form, self.types, self.texts)
        for path, counts in gold.rejected.items():
            warn_left_out(counts, "rows", f"{path}: ")
        warn_unknown(gold.unknown, where=f"{option}: ")
        if self.texts is not None:
            warn_without_text(gold.n_without_text, len(gold.queries), f"{option}: ")
        return gold.queries


def _measure(outcome: Outcome, dev: Sequence[LinkQuery]) -> dict[str, Any]:
    """Evaluate a linker on dev, without and with the trained model, if the run holds it all."""
    made = outcome.made
    if not {"kb", "index", "model"} <= made.keys():
        return {}
    from biograft.evaluation import EvaluationConfig, evaluate_linking
    from biograft.kb import KnowledgeBase
    from biograft.linking import Linker

    base, config = KnowledgeBase.open(made["kb"]), EvaluationConfig(ks=(1,), n_resamples=1)
    metrics = {}
    for name, model in (("search", None), ("trained", made["model"])):
        linker = Linker.open(base, index=made["index"], model=model)
        metrics[name] = evaluate_linking(linker, base, dev, config=config)["acc@1"]
    return {"dev": {"n": len(dev), **{name: round(v, 6) for name, v in metrics.items()}}}


def _print_linker(outcome: Outcome, measured: Mapping[str, Any], out: Path) -> None:
    for name, value in _flat({**outcome.report, **measured}):
        text = f"{value:.4f}" if isinstance(value, float) else f"{value:,}"
        typer.echo(f"  {name:28} {text}")
    if not outcome.finished:
        typer.echo(f"the time is over; continue with: biograft finetune ... --resume -o {out}")
    for name, path in outcome.made.items():
        typer.echo(f"{name}: {path}")


def _flat(values: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the numbers of a report with their dotted keys."""
    for name, value in values.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{before}{name}.")
        elif isinstance(value, int | float):
            yield f"{before}{name}", value


_SHOWN = 3
"""Number of printed metrics of a task."""


def train_task(
    path: Path, out: Path, kb: Path | None, options: FinetuneOptions, progress: Progress
) -> tuple[dict[str, Any], Callable[[], None]]:
    """Train a task model; return its metrics as plain values, and what prints them.

    Args:
        path: File of the recipe.
        out: Folder of the run.
        kb: Refused, since no task uses it.
        options: Options of the command.
        progress: Progress of training.
    """
    from biograft.training.run_folder import remove_run
    from biograft.training.tasks import TaskRecipe, TaskTrainingData, finetune_task

    recipe = TaskRecipe.load(path, _overrides(options))
    if kb is not None:
        raise ConfigError(f"--kb: a recipe of {recipe.task!r} does not use it")
    options.refuse(recipe.task, "known", "types", "text", "index", "model")
    training = TaskTrainingData(
        train=_read(recipe, "train", options),
        dev=_read(recipe, "dev", options),
        test=_read(recipe, "test", options) if options.test or recipe.data.test else None,
        out=out,
        resume=options.resume,
        progress=progress,
    )
    if options.overwrite:
        remove_run(out)
    result = finetune_task(recipe, training)
    values = {"run": str(result.run), "model": str(result.model), **result.results}
    return values, lambda: _print_task(result)


def _overrides(options: FinetuneOptions) -> list[str]:
    overrides = list(options.changes)
    if options.encoder:
        overrides.append(f"encoder.name={json.dumps(options.encoder, ensure_ascii=False)}")
    if options.seeds:
        seeds = [whole_number(seed) for seed in options.seeds]
        if None in seeds:
            raise ConfigError(f"--seeds: expected numbers, found {', '.join(options.seeds)}")
        overrides.append(f"search.seeds=[{', '.join(map(str, seeds))}]")
    return overrides


def _read(recipe: TaskRecipe, split: str, options: FinetuneOptions) -> TaskExamples:
    """Read the examples of a split, from the files of the command or of the recipe."""
    from biograft.models.tasks import TASKS

    data = replace(recipe.data, format=options.format or recipe.data.format)
    paths: Sequence[str] = getattr(options, split) or getattr(recipe.data, split)
    if not paths:
        raise ConfigError(f"--{split}: name a file, here or as data.{split} in a recipe")
    examples = TASKS.load(recipe.task).read(paths, split, data)
    warn_left_out(examples.rejected, "rows", f"--{split}: ")
    return examples


def _print_task(result: TaskResult) -> None:
    results = result.results
    main = results["metric"]
    for rate in results["rates"] if len(results["rates"]) > 1 else ():
        score = rate[f"dev_{main}"]
        typer.echo(f"  learning rate {rate['learning_rate']:g}: {main} {score:.4f} on dev")
    for split in ("dev", "test"):
        if split in results:
            typer.echo(f"  {split:5} {_line(results[split])}")
    for split, level in results.get("chance", {}).items():
        if main in level:
            typer.echo(f"  chance on {split}: {main} {level[main]:.4f}")
    for reason, n in results["lost"].items():
        typer.echo(f"  {n:,} {reason}", err=True)
    typer.echo(f"model: {result.model}")


def _line(metrics: Mapping[str, Any]) -> str:
    words = []
    first = [*metrics.items()][:_SHOWN]
    for name, values in first:
        mean, deviation = values["mean"], values["deviation"]
        spread = f" ± {deviation:.4f}" if deviation is not None else ""
        words.append(f"{name} {mean:.4f}{spread}")
    n_seeds = len(first[0][1]["values"])
    return ", ".join(words) + f" ({n_seeds} seed{'s' if n_seeds > 1 else ''})"


def finetune(
    recipe: Annotated[str, typer.Argument(metavar="RECIPE")],
    out: Run,
    options: FinetuneOptions,
    kb: OptionalKb = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Train a linker or a task model on labelled data, by a recipe.

    A ranker is RUN/model, to be used with RUN/kb and RUN/index; an encoder RUN/encoder; a
    re-ranker RUN/model, to be used with KB and INDEX; a linker that generates names RUN/model, to
    be used with any KB; these need --kb. The model of a task is RUN/model, what it reaches
    RUN/results.json; --resume continues with the remaining seeds.

    Args:
        recipe: A recipe of a linker or a task (biograft recipe list), or a .toml file.
    """
    from biograft.recipe import check_kind, find_recipe, read_recipe

    if options.resume and options.overwrite:
        raise ConfigError("--resume continues a run, --overwrite removes it; give one of them")
    path = find_recipe(recipe)
    kind = str(read_recipe(path).get("kind", "linker"))
    check_kind(path.stem, kind, "linker", "task")
    run = train_task if kind == "task" else train_linker
    values, show = run(path, out, kb, options, Progress(enabled=not quiet))
    if as_json:
        print_json(values)
    else:
        show()
