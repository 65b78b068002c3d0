"""``biograft pretrain``: train an encoder by a recipe."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from biograft.cli.options import Changes, Json, OptionalKb, Quiet, Resume, Run
from biograft.progress import Progress


def pretrain(
    recipe: Annotated[
        str,
        typer.Argument(
            metavar="RECIPE", help="A recipe of biograft (sapbert, sapbert-cpu), or a .toml file."
        ),
    ],
    out: Run,
    kb: OptionalKb = None,
    encoder: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Encoder to begin with, instead of the recipe's."),
    ] = None,
    changes: Changes = None,
    resume: Resume = False,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Train an encoder by a recipe; the result is RUN/encoder.

    An interrupt, or --set training.max_minutes=N, saves the state; --resume goes on from it as
    if nothing had happened.
    """
    from biograft.kb import KnowledgeBase
    from biograft.recipes import Recipe
    from biograft.recipes import pretrain as run_recipe

    overrides = list(changes or ())
    if encoder is not None:
        overrides.append(f"encoder.name={json.dumps(str(encoder), ensure_ascii=False)}")
    result = run_recipe(
        Recipe.load(recipe, overrides),
        KnowledgeBase.open(kb) if kb else None,
        out,
        resume=resume,
        progress=Progress(enabled=not quiet),
    )
    if as_json:
        typer.echo(json.dumps(result.to_json(), ensure_ascii=False))
        return
    counts, trained = result.counts, result.training
    loss = f"; loss {trained.loss:.4f}" if trained.loss is not None else ""
    typer.echo(f"{counts.n_pairs:,} pairs of names of {counts.n_concepts:,} concepts")
    typer.echo(f"step {trained.step:,} of {trained.n_steps:,} in {trained.seconds:.1f} s{loss}")
    if not trained.finished:
        typer.echo(f"the time is over; go on with: biograft pretrain ... --resume -o {out}")
    typer.echo(f"encoder: {result.encoder}")
