"""``biograft finetune``: train a linker or a task model by a recipe."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from biograft.cli.options import (
    SET,
    SWEEP,
    SWEEP_VALUES,
    Json,
    OptionalKb,
    Quiet,
    Run,
    print_json,
    print_sweep,
    warn_left_out,
    warn_unknown,
    warn_without_text,
)
from biograft.config import Config, Option
from biograft.errors import ConfigError
from biograft.kb.names import whole_number
from biograft.progress import Progress

if TYPE_CHECKING:
    from biograft.evaluation import LinkQuery
    from biograft.evaluation.linking import GoldQueries
    from biograft.training.linkers.recipes import Outcome
    from biograft.training.tasks import TaskResult


@dataclass(frozen=True, kw_only=True)
class FinetuneOptions(Config):
    """Options that change a recipe; empty ones leave it as it is."""

    train: Annotated[
        tuple[str, ...],
        Option("Gold standard to train on; repeatable.", metavar="PATH", repeated=True),
    ] = ()
    dev: Annotated[
        tuple[str, ...],
        Option(
            "Gold standard to evaluate on; tasks choose epochs by it.",
            metavar="PATH",
            repeated=True,
        ),
    ] = ()
    test: Annotated[
        tuple[str, ...],
        Option(
            "Tasks and generative linkers: test set, evaluated once, at the end.",
            metavar="PATH",
            repeated=True,
        ),
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
        tuple[str, ...],
        Option("Train with each of these seeds; mean and deviation are reported.", metavar="1,2,3"),
    ] = ()
    sweep: Annotated[tuple[str, ...], Option(SWEEP, metavar=SWEEP_VALUES, repeated=True)] = ()
    changes: Annotated[
        tuple[str, ...],
        Option(SET, "--set", "TABLE.KEY=VALUE", repeated=True),
    ] = ()
    resume: Annotated[bool, Option("Resume an interrupted run.")] = False
    overwrite: Annotated[bool, Option("Remove an earlier run at RUN first.")] = False

    def all_seeds(self) -> list[int]:
        """Return the seeds as numbers."""
        seeds = [number for seed in self.seeds if (number := whole_number(seed)) is not None]
        if len(seeds) < len(self.seeds):
            raise ConfigError(f"--seeds: expected numbers, found {', '.join(self.seeds)}")
        return seeds

    def data(self, kind: str, unused: Sequence[str]) -> dict[str, Any]:
        """Return the changes of the table ``[data]``; refuse options that are not used.

        Args:
            kind: Name of the linker or task.
            unused: Options that it does not use.
        """
        for name in unused:
            if getattr(self, name):
                raise ConfigError(f"--{name}: a recipe of {kind!r} does not use it")
        values = {name: getattr(self, name) for name in (*_SPLITS, "format", "types", "text")}
        return {name: value for name, value in values.items() if value}


_SPLITS = ("train", "dev", "test")
_NOT_OF_TASKS = ("known", "types", "text", "index", "model")


def _warn_of_gold(split: str, gold: GoldQueries, *, texts: bool) -> None:
    for path, counts in gold.rejected.items():
        warn_left_out(counts, "rows", f"{path}: ")
    warn_unknown(gold.unknown, where=f"--{split}: ")
    if texts:
        warn_without_text(gold.n_without_text, len(gold.queries), f"--{split}: ")


def _measure(outcome: Outcome, dev: Sequence[LinkQuery]) -> dict[str, Any]:
    """Evaluate a linker on dev, without and with the trained model, if the run holds it all."""
    made = outcome.made
    if not dev or not {"kb", "index", "model"} <= made.keys():
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
    from biograft.training.tasks.results import numbers_of

    for name, value in numbers_of({**outcome.report, **measured}):
        text = f"{value:.4f}" if isinstance(value, float) else f"{value:,}"
        typer.echo(f"  {name:28} {text}")
    if not outcome.finished:
        typer.echo(f"the time is over; continue with: biograft finetune ... --resume -o {out}")
    for name, path in outcome.made.items():
        typer.echo(f"{name}: {path}")


_SHOWN = 3
"""Number of printed metrics of a task."""


def _print_task(result: TaskResult) -> None:
    results = result.results
    main = results["metric"]
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
    from biograft.recipe import Recipe, check_kind, find_recipe, read_recipe
    from biograft.training.finetune import finetune as run_recipe

    if options.resume and options.overwrite:
        raise ConfigError("--resume continues a run, --overwrite removes it; give one of them")
    path = find_recipe(recipe)
    described = read_recipe(path)
    kind = str(described.get("kind", "linker"))
    check_kind(path.stem, kind, "linker", "task")
    name = str(described.get(kind))
    data = options.data(name, _NOT_OF_TASKS if kind == "task" else ())
    if options.sweep:
        given = {"known": options.known, "index": options.index, "model": options.model}
        print_sweep(
            path,
            out,
            options.sweep,
            as_json=as_json,
            kb=kb,
            data=data,
            overrides=options.changes,
            encoder=options.encoder,
            resume=options.resume,
            progress=Progress(enabled=not quiet),
            **{name: value for name, value in given.items() if value},
            **({"seeds": options.all_seeds()} if options.seeds else {}),
        )
        return
    loaded: Any = Recipe.load(path, options.changes, encoder=options.encoder)
    dev: list[LinkQuery] = []

    def report(split: str, read: Any) -> None:
        if kind == "task":
            warn_left_out(read.rejected, "rows", f"--{split}: ")
            return
        _warn_of_gold(split, read, texts=bool(options.text or loaded.data.text))
        dev.extend(read.queries if split == "dev" else ())

    try:
        done: Any = run_recipe(
            loaded,
            out,
            kb=kb,
            data=data,
            known=options.known,
            index=options.index,
            model=options.model,
            seeds=options.all_seeds(),
            resume=options.resume,
            overwrite=options.overwrite,
            progress=Progress(enabled=not quiet),
            report=report,
        )
    except ConfigError as error:
        if str(error).partition(":")[0] in ("kb", "format", *_SPLITS, "known", "index", "model"):
            raise ConfigError(f"--{error}") from error
        raise
    if kind == "task":
        values = {"run": str(done.run), "model": str(done.model), **done.results}
    else:
        measured = _measure(done, dev)
        values = {"recipe": loaded.name, "linker": name, "run": str(out), **done.to_json()}
        values |= measured
    if as_json:
        print_json(values)
    elif kind == "task":
        _print_task(done)
    else:
        _print_linker(done, measured, out)
