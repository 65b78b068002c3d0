"""``biograft finetune``: train a linker, or a model of a task, on what people have labelled."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from biograft.cli.finetune_link import train_linker
from biograft.cli.finetune_options import FinetuneOptions
from biograft.cli.finetune_task import train_task
from biograft.cli.options import (
    Changes,
    Json,
    OptionalKb,
    Quiet,
    Resume,
    Run,
    Types,
    split_list,
)
from biograft.config import find_recipe, load_toml
from biograft.errors import ConfigError


def finetune(
    recipe: Annotated[
        str,
        typer.Argument(
            metavar="RECIPE",
            help="A recipe of biograft (linker-ranker, linker-encoder, linker-encoder-cpu, "
            "linker-rerank; genbioel-finetune-ncbi, -bc5cdr, -cometa, -aap, each also with -cpu; "
            "ner, relation, matching, inference, classification, ranking, each also with -cpu), "
            "or a .toml file.",
        ),
    ],
    out: Run,
    kb: OptionalKb = None,
    train: Annotated[
        list[str] | None,
        typer.Option(metavar="PATH", help="Gold standard to learn from; may be given again."),
    ] = None,
    dev: Annotated[
        list[str] | None,
        typer.Option(
            metavar="PATH",
            help="Gold standard to look at, never to learn from; a task chooses by it.",
        ),
    ] = None,
    test: Annotated[
        list[str] | None,
        typer.Option(metavar="PATH", help="Tasks: measured once, at the end."),
    ] = None,
    known: Annotated[
        list[str] | None,
        typer.Option(
            metavar="PATH", help="Ranker: gold that the encoder was trained on; it counts as seen."
        ),
    ] = None,
    form: Annotated[
        str, typer.Option("--format", metavar="F", help="Format of the gold standards.")
    ] = "",
    types: Types = "",
    index: Annotated[
        Path | None,
        typer.Option(
            metavar="INDEX",
            help="Index of KB; a ranker takes its vectors over, generation is mixed with it.",
        ),
    ] = None,
    encoder: Annotated[
        str, typer.Option(metavar="NAME_OR_DIR", help="Encoder, instead of the recipe's.")
    ] = "",
    model: Annotated[
        Path | None,
        typer.Option(
            metavar="MODEL",
            help="Re-ranking: the trained linker that ranks first, trained on other mentions.",
        ),
    ] = None,
    seeds: Annotated[
        str, typer.Option(metavar="1,2,3", help="Tasks: a training with each of these seeds.")
    ] = "",
    changes: Changes = None,
    resume: Resume = False,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Remove an earlier run at RUN first.")
    ] = False,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Train by a recipe what people have labelled: a linker, or a model of a task.

    A ranker is RUN/model, to be used with RUN/kb and RUN/index; an encoder RUN/encoder; a
    re-ranker RUN/model, to be used with KB and INDEX; a linker that generates names RUN/model, to
    be used with any KB; these need --kb. The model of a task is RUN/model, what it reaches
    RUN/results.json; --resume goes on with the seeds still to do.
    """
    from biograft.linking.recipes import shipped_recipes as shipped_linkers
    from biograft.tasks.kinds import TASKS
    from biograft.tasks.recipes import shipped_recipes as shipped_tasks

    if resume and overwrite:
        raise ConfigError("--resume goes on with a run, --overwrite removes it; give one of them")
    path = find_recipe(recipe, {**shipped_linkers(), **shipped_tasks()})
    options = FinetuneOptions(
        recipe=path,
        out=out,
        kb=kb,
        train=train or (),
        dev=dev or (),
        test=test or (),
        known=known or (),
        format=form,
        types=split_list(types),
        index=index,
        encoder=encoder,
        model=model,
        seeds=split_list(seeds),
        changes=changes or (),
        resume=resume,
        overwrite=overwrite,
        as_json=as_json,
        quiet=quiet,
    )
    run = train_task if load_toml(path).get("kind") in [*TASKS] else train_linker
    run(options)
